/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The course of a tunnel's key exchanges: when one begins, what a peer that asks gets, and what
 * happens when both begin at once: then that of the end with the lower address counts.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "gateway/keys/internal.h"

/* A lost SYN costs a second by the kernel's timer, so it is sent anew earlier at first. */
#define PATIENCE  (250 * RWY_MS)
#define CROSSED   (1 * RWY_SEC) /* the peer's exchange is given so long */
#define SILENCE   (3 * RWY_SEC) /* a tunnel silent for so long may have lost its peer's keys */
#define QUIET_MIN (5 * RWY_SEC)
#define QUIET_MAX (60 * RWY_SEC)
#define LOOK      (500 * RWY_MS) /* so often it is looked whether a tunnel is up */
#define SECOND    (60 * RWY_SEC) /* the end with the higher address renews so much later */

static bool lower(const struct keys_tun *t)
{
	return memcmp(t->local.b, t->remote.b, sizeof(t->local.b)) < 0;
}

/* --- what the operator sees ------------------------------------------------------------------- */
static void say_keys(const struct keys_tun *t, bool first)
{
	char until[32] = "";
	struct tm tm;

	strftime(until, sizeof(until), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&t->peer.expires, &tm));
	gw_log(first ? GW_LOG_NOTICE : GW_LOG_INFO, "keys",
	    "tunnel=%s state=used peer=%s certificate_until=%s exchanges=%llu", t->conf.name,
	    conf_tunnel_peer_name(&t->conf), until, (unsigned long long)t->c.exchanges);
}

/* --- begin ------------------------------------------------------------------------------------ */
static void retry_later(struct keys_tun *t, rwy_time now)
{
	t->retry = keys_tun_later(&t->backoff, now);
}

static void begin(struct gw_keys *k, struct keys_tun *t, rwy_time now)
{
	const struct gw_kx_offer offer = {.tunnel = t->id,
	    .epoch = k->epoch,
	    .workers = (uint16_t)k->app->workers,
	    .alg = k->app->conf->keys.alg};
	int fd = keys_sock_connect(&t->local, &t->remote, t->conf.keys_port);
	struct keys_conn *c;

	if (fd < 0) {
		t->c.failed++;
		keys_tun_problem(t, strerror(errno), now);
		retry_later(t, now);
		return;
	}
	c = keys_conn_new(k, fd, false, now);
	if (!c) {
		retry_later(t, now);
		return;
	}
	c->local = t->local;
	c->peer = t->remote;
	c->t = t;
	t->own = c;
	t->patience = !t->patience                      ? PATIENCE
	              : t->patience * 2 < KEYS_DEADLINE ? t->patience * 2
	                                                : KEYS_DEADLINE;
	c->deadline = now + t->patience;
	if (gw_kx_client(&c->kx, k->cert, &offer, conf_tunnel_peer_name(&t->conf)) != 0) {
		keys_conn_free(k, c);
		retry_later(t, now);
	}
}

/* --- failure --------------------------------------------------------------------------------- */
static void tun_failed(struct gw_keys *k, struct keys_conn *c, const char *why, rwy_time now)
{
	struct keys_tun *t = c->t;
	char text[sizeof(t->problem)];

	if (c->reserve) {
		keys_reserve_failed(k, c, why, now);
		return;
	}
	/* An unknown client's failure shows at the first tunnel to its address. */
	for (unsigned i = 0; !t && c->accepted && i < CONF_TUNNELS_MAX; i++)
		if (k->tun[i].state != GW_KEYS_OFF && rwy_ip_eq(&k->tun[i].remote, &c->peer))
			t = &k->tun[i];
	if (t && c->state == KEYS_CONN_LAST_WORDS) {
		t = NULL; /* it was said before */
	} else if (t && !c->accepted && gw_kx_refused(c->kx) == GW_KX_R_BUSY) {
		t->c.crossed++;
		t->retry = now + CROSSED;
	} else if (t && c->accepted && !c->t && t->own) {
		t->c.crossed++; /* the peer gave its own up for ours */
	} else if (t) {
		snprintf(text, sizeof(text), c->accepted ? "the peer's exchange: %s" : "%s", why);
		*(c->accepted ? &t->c.refused : &t->c.failed) += 1;
		keys_tun_problem(t, text, now);
		if (!c->accepted)
			retry_later(t, now);
	}
	if (c->t && c->t->own == c)
		c->t->own = NULL;
	if (c->t && c->t->taken == c)
		c->t->taken = NULL;
	c->t = NULL;
	if (c->state == KEYS_CONN_OPEN)
		keys_conn_last_words(k, c);
	else
		keys_conn_free(k, c);
}

void keys_tun_unanswered(struct gw_keys *k, struct keys_conn *c, rwy_time now)
{
	struct keys_tun *t = c->t;

	if (c->reserve) {
		keys_reserve_failed(k, c, "no answer from its TCP port for keys", now);
		return;
	}
	if (t->patience == KEYS_DEADLINE) {
		k->ops->failed(k, c,
		    "no answer from the peer's TCP port for keys (`keys_port`): it does not run, or the path "
		    "does not let TCP through",
		    now);
		return;
	}
	keys_conn_free(k, c);
	t->retry = now;
}

/* --- keys ------------------------------------------------------------------------------------- */
static void keys_used(struct gw_keys *k, struct keys_tun *t, rwy_time now)
{
	bool first = t->state != GW_KEYS_USED;

	t->state = GW_KEYS_USED;
	t->since = t->heard = now;
	t->renew = now + k->app->conf->keys.lifetime + (lower(t) ? 0 : SECOND);
	t->backoff = t->patience = 0;
	t->problem[0] = 0;
	t->c.exchanges++;
	say_keys(t, first);
}

static void peer_is(struct keys_tun *t, struct gw_cert_peer *peer)
{
	gw_cert_peer_drop(&t->peer);
	t->peer = *peer;
}

/*
 * The handshake checked the certificate with the files of its time. A list that revokes it may have
 * come since: false, and why.
 */
static bool is_still_good(
    const struct gw_keys *k, const struct keys_tun *t, const struct gw_cert_peer *peer, char why[GW_CERT_WHY])
{
	return !k->cert ||
	       gw_cert_peer_verify(k->cert, peer, conf_tunnel_peer_name(&t->conf), why, GW_CERT_WHY);
}

/* Client: the server's workers can open what ours seal. */
static void install(struct gw_keys *k, struct keys_conn *c, rwy_time now)
{
	struct keys_tun *t = c->t;
	char why[GW_CERT_WHY];
	struct gw_cert_peer peer;
	int rc = gw_kx_peer(c->kx, &peer);

	if (!rc && !is_still_good(k, t, &peer, why)) {
		gw_cert_peer_drop(&peer);
		tun_failed(k, c, why, now);
		return;
	}
	if (!rc) {
		peer_is(t, &peer);
		rc = keys_workers_offer(k->app, t->idx, gw_kx_result(c->kx));
	}
	if (!rc)
		rc = keys_workers_use(k->app, t->idx);
	if (rc) {
		tun_failed(k, c,
		    rc == RWY_EEXIST ? "these keys look like others: once more"
		                     : "a worker does not answer, or has no memory",
		    now);
		return;
	}
	t->peer_epoch = gw_kx_result(c->kx)->peer_epoch;
	gw_kx_installed(c->kx);
	keys_used(k, t, now);
	t->own = NULL;
	c->t = NULL;
	keys_conn_last_words(k, c);
}

/* --- the peer asks ---------------------------------------------------------------------------- */
static struct keys_tun *tun_asked(struct gw_keys *k, const struct keys_conn *c)
{
	for (unsigned i = 0; i < CONF_TUNNELS_MAX; i++) {
		struct keys_tun *t = &k->tun[i];

		if (t->state != GW_KEYS_OFF && t->id == gw_kx_offer(c->kx)->tunnel &&
		    rwy_ip_eq(&t->remote, &c->peer) && rwy_ip_eq(&t->local, &c->local))
			return t;
	}
	return NULL;
}

/* 0, or the reason to refuse. */
static unsigned objection(
    struct gw_keys *k, const struct keys_tun *t, const struct keys_conn *c, const struct gw_cert_peer *peer)
{
	const struct gw_kx_offer *o = gw_kx_offer(c->kx);

	if (!gw_cert_peer_named(peer, conf_tunnel_peer_name(&t->conf)))
		return GW_KX_R_NAME;
	if (o->workers != k->app->workers)
		return GW_KX_R_WORKERS;
	if (o->alg != k->app->conf->keys.alg)
		return GW_KX_R_CIPHER;
	return t->own && lower(t) && !o->reserve ? GW_KX_R_BUSY : 0;
}

static void refuse(struct gw_keys *k, struct keys_conn *c, unsigned reason, rwy_time now)
{
	struct keys_tun *t = c->t;

	gw_kx_refuse(c->kx, (enum gw_kx_reason)reason);
	if (t && reason == GW_KX_R_BUSY) {
		c->t = NULL;
		keys_conn_last_words(k, c);
		return;
	}
	/* The sentences are the client's: say it the other way round. */
	tun_failed(k, c,
	    reason == GW_KX_R_NAME      ? "the certificate of the gateway that asks is not for `peer_name`"
	    : reason == GW_KX_R_TUNNEL  ? "the peer asks for a tunnel that is not here: `local`, `remote`, "
	                                  "`udp_port` or `security` differ"
	    : reason == GW_KX_R_WORKERS ? "the peer has another number of workers"
	    : reason == GW_KX_R_CIPHER  ? "the peer has another `keys.cipher`"
	                                : "a worker does not answer, or has no memory",
	    now);
}

static void asked(struct gw_keys *k, struct keys_conn *c, rwy_time now)
{
	struct keys_tun *t = tun_asked(k, c);
	struct gw_cert_peer peer = {0};
	unsigned reason = GW_KX_R_TUNNEL;
	char why[GW_CERT_WHY];
	int rc;

	if (t && gw_kx_peer(c->kx, &peer) != 0)
		reason = GW_KX_R_RESOURCE;
	else if (t)
		reason = objection(k, t, c, &peer);
	c->t = t;
	if (reason) {
		gw_cert_peer_drop(&peer);
		refuse(k, c, reason, now);
		return;
	}
	if (!is_still_good(k, t, &peer, why)) {
		gw_cert_peer_drop(&peer);
		tun_failed(k, c, why, now);
		return;
	}
	if (gw_kx_offer(c->kx)->reserve) {
		gw_cert_peer_drop(&peer);
		keys_reserve_asked(k, c, t, now);
		return;
	}
	if (t->own) {
		t->c.crossed++;
		keys_conn_free(k, t->own);
	}
	if (t->taken)
		keys_conn_free(k, t->taken);
	peer_is(t, &peer);
	t->taken = c;
	if (gw_kx_accept(c->kx, k->epoch) != 0) {
		tun_failed(k, c, gw_kx_why(c->kx), now);
		return;
	}
	do
		rc = keys_workers_offer(k->app, t->idx, gw_kx_result(c->kx));
	while (rc == RWY_EEXIST && gw_kx_again(c->kx) == 0);
	if (rc) {
		refuse(k, c, GW_KX_R_RESOURCE, now);
		return;
	}
	t->peer_epoch = gw_kx_result(c->kx)->peer_epoch;
	gw_kx_installed(c->kx);
}

/* --- events ----------------------------------------------------------------------------------- */
static void tun_event(struct gw_keys *k, struct keys_conn *c, enum gw_kx_event ev, rwy_time now)
{
	if (c->reserve) {
		keys_reserve_event(k, c, ev, now);
		return;
	}
	switch (ev) {
	case GW_KX_EV_NONE:
	case GW_KX_EV_KEPT:
		break;
	case GW_KX_EV_KEEP:
		keys_reserve_event(k, c, ev, now);
		break;
	case GW_KX_EV_ASKED:
		asked(k, c, now);
		break;
	case GW_KX_EV_KEYS:
		install(k, c, now);
		break;
	case GW_KX_EV_READY:
		/* A worker that does not answer learns it from the peer's next datagram. */
		(void)!keys_workers_use(k->app, c->t->idx);
		keys_used(k, c->t, now);
		keys_conn_free(k, c);
		break;
	case GW_KX_EV_FAILED:
		tun_failed(k, c, gw_kx_why(c->kx), now);
		break;
	}
}

const struct keys_conn_ops keys_tun_ops = {.event = tun_event, .failed = tun_failed};

void keys_tun_check(struct gw_keys *k, struct keys_tun *t, rwy_time now)
{
	char why[GW_CERT_WHY];

	if (!t->peer.n || !k->cert ||
	    gw_cert_peer_verify(k->cert, &t->peer, conf_tunnel_peer_name(&t->conf), why, sizeof(why)))
		return;
	keys_workers_end(k->app, t->idx);
	gw_cert_peer_drop(&t->peer);
	if (t->taken)
		keys_conn_free(k, t->taken);
	t->state = GW_KEYS_WANTED;
	t->c.ended++;
	keys_tun_problem(t, why, now);
	retry_later(t, now);
}

/* --- time ------------------------------------------------------------------------------------- */
static bool silent(struct gw_keys *k, struct keys_tun *t, rwy_time now)
{
	if (keys_workers_up(k->app, t->idx)) {
		t->heard = now;
		t->quiet = 0;
	}
	return rwy_since(t->heard, now) >= SILENCE;
}

void keys_tun_anew(struct keys_tun *t, rwy_time now)
{
	t->retry = t->renew = now;
	t->backoff = t->patience = t->quiet = 0;
}

rwy_time keys_tun_tick(struct gw_keys *k, struct keys_tun *t, rwy_time now)
{
	bool still = t->state == GW_KEYS_USED && silent(k, t, now);

	if (t->state == GW_KEYS_OFF || !k->cert)
		return RWY_NEVER;
	if (gw_pair_hides(k->pair.pair) && !t->conf.standby)
		return now + LOOK;
	if (t->own || t->taken || now < t->retry)
		return now + LOOK < t->retry ? now + LOOK : rwy_time_max(t->retry, now + RWY_MS);
	if (t->state == GW_KEYS_USED && !still && now < t->renew)
		return rwy_time_min(t->renew, now + LOOK);
	if (still) {
		t->quiet = !t->quiet ? QUIET_MIN : t->quiet * 2 < QUIET_MAX ? t->quiet * 2 : QUIET_MAX;
		t->retry = now + t->quiet;
	}
	begin(k, t, now);
	return now + LOOK;
}
