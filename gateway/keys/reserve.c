/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys for the standby of a pair (docs/standby.md) before it needs them. It cannot reach the
 * tunnels' peers while the active gateway serves, and an exchange takes some round trips of the
 * WAN. So the active gateway exchanges a secret with the peer in the standby's name, and gives it
 * to the standby over the cable. The peer keeps those keys apart until a datagram sealed with them
 * comes (wan_keys_reserve). The active gateway forgets the secret, so nobody but the standby seals
 * with it.
 *
 * It does so again for another process of the standby, and after each other exchange: with the
 * peer, or with the standby, which makes one when it asked for the tunnels and did not get them.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "gateway/keys/internal.h"

/* --- the active gateway ----------------------------------------------------------------------- */
/* The tunnel to the other gateway of the pair. NULL: there is none. */
static struct keys_tun *cable(struct gw_keys *k)
{
	for (unsigned i = 0; i < CONF_TUNNELS_MAX; i++)
		if (k->tun[i].state == GW_KEYS_USED && k->tun[i].conf.standby)
			return &k->tun[i];
	return NULL;
}

/* The standby's process; 0: there is none. */
static uint64_t standby(struct gw_keys *k)
{
	const struct keys_tun *p = k->pair.pair == GW_PAIR_SERVES ? cable(k) : NULL;

	return p && keys_workers_up(k->app, p->idx) ? p->peer_epoch : 0;
}

/* What the standby needs keys for now. epoch 0: there is no standby. */
static struct keys_reserved needs(struct gw_keys *k, const struct keys_tun *t)
{
	uint64_t epoch = t->conf.standby || t->state != GW_KEYS_USED ? 0 : standby(k);

	return (struct keys_reserved){epoch, t->c.exchanges, epoch ? cable(k)->c.exchanges : 0};
}

static bool same(const struct keys_reserved *a, const struct keys_reserved *b)
{
	return a->epoch == b->epoch && a->exchanges == b->exchanges && a->of_cable == b->of_cable;
}

static void link_conn(struct keys_tun *t, struct keys_conn *c, struct keys_conn **where)
{
	c->t = t;
	c->reserve = true;
	*where = c;
}

/* The connection is not needed any more: it may say its last. */
static void unlink_conn(struct gw_keys *k, struct keys_conn *c)
{
	struct keys_reserve *r = &c->t->reserve;

	if (r->ask == c)
		r->ask = NULL;
	if (r->give == c)
		r->give = NULL;
	c->t = NULL;
	c->reserve = false;
	if (c->state == KEYS_CONN_OPEN)
		keys_conn_last_words(k, c);
	else
		keys_conn_free(k, c);
}

static void give_up(struct gw_keys *k, struct keys_tun *t, const char *why, rwy_time now)
{
	struct keys_reserve *r = &t->reserve;
	char text[sizeof(t->problem)];

	/* `why` may be a connection's */
	snprintf(text, sizeof(text), "no keys for the standby: %s", why);
	if (r->ask)
		unlink_conn(k, r->ask);
	if (r->give)
		unlink_conn(k, r->give);
	r->retry = keys_tun_later(&r->backoff, now);
	keys_tun_problem(t, text, now);
}

void keys_reserve_failed(struct gw_keys *k, struct keys_conn *c, const char *why, rwy_time now)
{
	struct keys_tun *t = c->t;

	if (!c->accepted) {
		give_up(k, t, why, now);
		return;
	}
	t->c.refused++;
	unlink_conn(k, c);
}

/* Begins an exchange in the standby's name. */
static void ask(struct gw_keys *k, struct keys_tun *t, rwy_time now)
{
	const struct gw_kx_offer offer = {.tunnel = t->id,
	    .epoch = t->reserve.now.epoch,
	    .workers = (uint16_t)k->app->workers,
	    .alg = k->app->conf->keys.alg,
	    .reserve = true};
	int fd = keys_sock_connect(&t->local, &t->remote, t->conf.keys_port);
	struct keys_conn *c = fd < 0 ? NULL : keys_conn_new(k, fd, false, now);

	if (!c) {
		give_up(k, t, fd < 0 ? strerror(errno) : "too many connections", now);
		return;
	}
	link_conn(t, c, &t->reserve.ask);
	if (gw_kx_client(&c->kx, k->cert, &offer, conf_tunnel_peer_name(&t->conf)) != 0)
		give_up(k, t, "no memory", now);
}

/* The peer's workers have the keys: now the standby gets them. */
static void give(struct gw_keys *k, struct keys_tun *t, rwy_time now)
{
	const struct gw_kx_result *keys = gw_kx_result(t->reserve.ask->kx);
	const struct keys_tun *p = cable(k);
	struct keys_conn *c;
	int fd;

	if (!p || standby(k) != keys->own_epoch) {
		give_up(k, t, "the standby is gone", now);
		return;
	}
	fd = keys_sock_connect(&p->local, &p->remote, p->conf.keys_port);
	c = fd < 0 ? NULL : keys_conn_new(k, fd, false, now);
	if (!c) {
		give_up(k, t, fd < 0 ? strerror(errno) : "too many connections", now);
		return;
	}
	link_conn(t, c, &t->reserve.give);
	if (gw_kx_client_keep(&c->kx, k->cert, t->id, keys, conf_tunnel_peer_name(&p->conf)) != 0)
		give_up(k, t, "no memory", now);
}

/* The standby has them. */
static void kept(struct gw_keys *k, struct keys_tun *t)
{
	struct keys_reserve *r = &t->reserve;

	gw_kx_installed(r->ask->kx);
	unlink_conn(k, r->ask);
	unlink_conn(k, r->give);
	r->done = r->now;
	r->backoff = 0;
	t->problem[0] = 0;
	t->c.reserved++;
	gw_log(GW_LOG_INFO, "keys", "tunnel=%s event=\"the standby has keys for a takeover\"", t->conf.name);
}

bool keys_reserve_done(struct gw_keys *k, const struct keys_tun *t)
{
	const struct keys_reserved n = needs(k, t);

	return n.epoch && same(&n, &t->reserve.done);
}

/* The standby takes few connections of one address at a time, and few a second (listener.c). */
static bool busy(const struct gw_keys *k)
{
	for (unsigned i = 0; i < CONF_TUNNELS_MAX; i++)
		if (k->tun[i].reserve.ask)
			return true;
	return false;
}

rwy_time keys_reserve_tick(struct gw_keys *k, struct keys_tun *t, rwy_time now)
{
	struct keys_reserve *r = &t->reserve;
	const struct keys_reserved n = needs(k, t);
	rwy_time at = rwy_time_max(r->retry, k->reserve_at);

	if (!n.epoch || same(&n, &r->done) || t->own || t->taken || busy(k))
		return RWY_NEVER;
	if (now < at)
		return at;
	k->reserve_at = now + KEYS_EACH;
	r->now = n;
	ask(k, t, now);
	return RWY_NEVER;
}

/* --- the peer --------------------------------------------------------------------------------- */
void keys_reserve_asked(struct gw_keys *k, struct keys_conn *c, struct keys_tun *t, rwy_time now)
{
	int rc;

	c->t = t;
	c->reserve = true;
	if (gw_kx_accept(c->kx, k->epoch) != 0) {
		keys_reserve_failed(k, c, gw_kx_why(c->kx), now);
		return;
	}
	do
		rc = keys_workers_reserve(k->app, t->idx, gw_kx_result(c->kx));
	while (rc == RWY_EEXIST && gw_kx_again(c->kx) == 0);
	if (rc) {
		gw_kx_refuse(c->kx, GW_KX_R_RESOURCE);
		keys_reserve_failed(k, c, gw_kx_why(c->kx), now);
		return;
	}
	gw_kx_installed(c->kx);
}

/* --- the standby ------------------------------------------------------------------------------ */
/* The pair's tunnel, if the connection came over it and from a gateway with the right name. */
static const struct keys_tun *from_cable(struct gw_keys *k, struct keys_conn *c)
{
	const struct keys_tun *p = cable(k);
	struct gw_cert_peer peer;
	bool named;

	if (!p || !rwy_ip_eq(&p->remote, &c->peer) || !rwy_ip_eq(&p->local, &c->local) ||
	    gw_kx_peer(c->kx, &peer) != 0)
		return NULL;
	named = gw_cert_peer_named(&peer, conf_tunnel_peer_name(&p->conf));
	gw_cert_peer_drop(&peer);
	return named ? p : NULL;
}

static struct keys_tun *tun_named(struct gw_keys *k, uint64_t id)
{
	for (unsigned i = 0; i < CONF_TUNNELS_MAX; i++)
		if (k->tun[i].state != GW_KEYS_OFF && !k->tun[i].conf.standby && k->tun[i].id == id)
			return &k->tun[i];
	return NULL;
}

static void keep(struct gw_keys *k, struct keys_conn *c, rwy_time now)
{
	const struct gw_kx_result *keys = gw_kx_result(c->kx);
	struct keys_tun *t = from_cable(k, c) ? tun_named(k, gw_kx_offer(c->kx)->tunnel) : NULL;
	unsigned reason = 0;

	if (!t)
		reason = GW_KX_R_TUNNEL;
	else if (!gw_pair_hides(k->pair.pair) || keys->own_epoch != k->epoch)
		reason = GW_KX_R_NO_STANDBY;
	else if (keys_workers_keep(k->app, t->idx, keys) != 0)
		reason = GW_KX_R_RESOURCE;
	if (reason) {
		gw_kx_refuse(c->kx, (enum gw_kx_reason)reason);
		k->ops->failed(k, c, gw_kx_why(c->kx), now);
		return;
	}
	gw_kx_installed(c->kx);
	t->state = GW_KEYS_USED;
	t->since = t->heard = now;
	t->c.reserved++;
	gw_log(GW_LOG_INFO, "keys", "tunnel=%s event=\"the active gateway gave keys for a takeover\"",
	    t->conf.name);
	keys_conn_last_words(k, c);
}

/* --- events ----------------------------------------------------------------------------------- */
void keys_reserve_event(struct gw_keys *k, struct keys_conn *c, enum gw_kx_event ev, rwy_time now)
{
	switch (ev) {
	case GW_KX_EV_KEYS:
		give(k, c->t, now);
		return;
	case GW_KX_EV_KEPT:
		kept(k, c->t);
		return;
	case GW_KX_EV_KEEP:
		keep(k, c, now);
		return;
	case GW_KX_EV_READY:
		keys_workers_kept(k->app, c->t->idx);
		c->t->c.reserved++;
		keys_conn_free(k, c);
		return;
	case GW_KX_EV_FAILED:
		keys_reserve_failed(k, c, gw_kx_why(c->kx), now);
		return;
	case GW_KX_EV_ASKED:
	case GW_KX_EV_NONE:
		return;
	}
}
