/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A UDP address with its connections: which connection a datagram is of, and answers to those of
 * none: Version Negotiation, Retry, Stateless Reset. A stranger costs no memory: past a few half
 * open connections a peer must prove its address first (RFC 9000, 8.1).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/carrier/quic_impl.h"
#include "rwy/hash.h"

#define TOKEN_TIME (10 * RWY_SEC)
#define RESET_GAP  (1 * RWY_MS) /* at most a thousand Stateless Resets a second */
#define FIRST_SIZE 1200         /* RFC 9000, 14.1: a smaller first packet is dropped */
#define RESET_MIN  43           /* a shorter packet might be a reset itself (RFC 9000, 10.3.3) */
#define RESET_RAND 22

/* --- life ------------------------------------------------------------------------------------- */
void gw_quic_cfg_default(struct gw_quic_cfg *cfg)
{
	*cfg = (struct gw_quic_cfg){.cc = GW_QUIC_BBR2,
	    .streams = 65,
	    .window = 16u << 20,
	    .payload = 1452,
	    .idle = 4 * RWY_SEC,
	    .keep_alive = 1 * RWY_SEC,
	    .handshake = 5 * RWY_SEC,
	    .conns = 128,
	    .half_max = 32,
	    .half_retry = 4,
	    .each = GW_TLS_EACH,
	    .burst = GW_TLS_BURST};
}

int gw_quic_end_new(struct gw_quic_end **out, const struct gw_quic_cfg *cfg, struct gw_quic_tls *tls,
    const struct gw_quic_ops *ops, void *ctx)
{
	struct gw_quic_end *e;

	if (cfg->streams < 2 || cfg->streams > GW_QUIC_STREAMS_MAX || cfg->window < QUIC_CHUNK ||
	    cfg->payload < FIRST_SIZE || cfg->payload > 9000 || !cfg->conns || !cfg->idle || !tls)
		return RWY_EINVAL;
	e = calloc(1, sizeof(*e));
	if (!e)
		return RWY_ENOMEM;
	e->cfg = *cfg;
	e->tls = quic_tls_ref(tls);
	e->ops = ops;
	e->ctx = ctx;
	quic_random(&e->cid_key, sizeof(e->cid_key));
	*out = e;
	return 0;
}

void gw_quic_end_free(struct gw_quic_end *e)
{
	struct quic_chunk *k;

	if (!e)
		return;
	while (e->conns)
		quic_conn_free(e->conns);
	while ((k = e->spare)) {
		e->spare = k->next;
		free(k);
	}
	gw_quic_tls_free(e->tls);
	free(e);
}

void gw_quic_end_tls(struct gw_quic_end *e, struct gw_quic_tls *tls)
{
	struct gw_quic_tls *old = e->tls;

	e->tls = quic_tls_ref(tls);
	gw_quic_tls_free(old);
}

const struct gw_quic_counters *gw_quic_end_counters(const struct gw_quic_end *e)
{
	return &e->c;
}

/* --- answers without a connection ------------------------------------------------------------- */
static bool answer(struct gw_quic_end *e, const struct gw_quic_addr *to, ngtcp2_ssize n)
{
	struct gw_quic_out out = {.remote = *to, .data = e->batch, .len = (size_t)n, .segment = (size_t)n};

	if (n <= 0 || !e->ops->output(e->ctx, &out))
		return false;
	e->c.tx_datagrams++;
	return true;
}

static void answer_versions(struct gw_quic_end *e, const struct gw_quic_addr *to, const ngtcp2_version_cid *v)
{
	static const uint32_t ours[] = {NGTCP2_PROTO_VER_V1};
	uint8_t random;

	quic_random(&random, 1);
	e->c.tx_versions += answer(e, to,
	    ngtcp2_pkt_write_version_negotiation(
	        e->batch, FIRST_SIZE, random, v->scid, v->scidlen, v->dcid, v->dcidlen, ours, 1));
}

static void answer_retry(
    struct gw_quic_end *e, const struct gw_quic_addr *to, const ngtcp2_pkt_hd *hd, rwy_time now)
{
	uint8_t token[NGTCP2_CRYPTO_MAX_RETRY_TOKENLEN];
	ngtcp2_sockaddr_union u;
	ngtcp2_addr a;
	ngtcp2_cid scid;
	ngtcp2_ssize n;

	quic_sockaddr(&u, &a, to);
	quic_cid_new(&scid);
	n = ngtcp2_crypto_generate_retry_token(
	    token, e->tls->secret, QUIC_SECRET, hd->version, a.addr, a.addrlen, &scid, &hd->dcid, now);
	if (n < 0)
		return;
	e->c.tx_retries += answer(e, to,
	    ngtcp2_crypto_write_retry(
	        e->batch, FIRST_SIZE, hd->version, &hd->scid, &scid, &hd->dcid, token, (size_t)n));
}

static void answer_reset(struct gw_quic_end *e, const struct gw_quic_addr *to, const ngtcp2_version_cid *v,
    size_t len, rwy_time now)
{
	uint8_t token[NGTCP2_STATELESS_RESET_TOKENLEN], random[RESET_RAND];
	ngtcp2_cid cid;

	if (len < RESET_MIN || now < e->reset_at || !e->ops->name(e->ctx, to)) {
		e->c.drop_unknown++;
		return;
	}
	e->reset_at = now + RESET_GAP;
	ngtcp2_cid_init(&cid, v->dcid, v->dcidlen);
	quic_random(random, sizeof(random));
	if (ngtcp2_crypto_generate_stateless_reset_token(token, e->tls->secret, QUIC_SECRET, &cid) == 0)
		e->c.tx_resets += answer(e, to,
		    ngtcp2_pkt_write_stateless_reset(e->batch, len - 1 < FIRST_SIZE ? len - 1 : FIRST_SIZE,
		        token, random, sizeof(random)));
}

/* --- a peer's first packet -------------------------------------------------------------------- */
/* Checks the token of a Retry of ours. 0: good; odcid is the id before it. */
static int token_check(struct gw_quic_end *e, const struct gw_quic_addr *from, const ngtcp2_pkt_hd *hd,
    ngtcp2_cid *odcid, rwy_time now)
{
	ngtcp2_sockaddr_union u;
	ngtcp2_addr a;

	quic_sockaddr(&u, &a, from);
	return ngtcp2_crypto_verify_retry_token(odcid, hd->token.base, hd->token.len, e->tls->secret,
	    QUIC_SECRET, hd->version, a.addr, a.addrlen, &hd->dcid, TOKEN_TIME, now);
}

static bool too_often(struct gw_quic_end *e, const struct gw_quic_addr *from, rwy_time now)
{
	uint64_t v[2];
	rwy_time *at;

	memcpy(v, from->ip.b, sizeof(v));
	at = &e->paid[rwy_mix64(v[0] ^ rwy_mix64(v[1] ^ e->cid_key)) % QUIC_PAYERS];
	if (*at > now + e->cfg.burst * e->cfg.each)
		return true;
	*at = rwy_time_max(*at, now) + e->cfg.each;
	return false;
}

static struct gw_quic_conn *first_packet(
    struct gw_quic_end *e, const struct gw_quic_addr *from, const uint8_t *p, size_t n, rwy_time now)
{
	const char *name = e->ops->name(e->ctx, from);
	struct quic_first first = {0};
	struct gw_quic_conn *c;
	ngtcp2_pkt_hd hd;
	ngtcp2_cid odcid;

	if (!name || !name[0] || strlen(name) >= GW_QUIC_NAME) {
		e->c.drop_stranger++;
		return NULL;
	}
	if (ngtcp2_accept(&hd, p, n) != 0 || n < FIRST_SIZE) {
		e->c.drop_unknown++;
		return NULL;
	}
	odcid = hd.dcid;
	first = (struct quic_first){.hd = &hd, .odcid = &odcid, .retried = hd.token.len > 0};
	if (first.retried && token_check(e, from, &hd, &odcid, now) != 0) {
		e->c.drop_token++;
		return NULL;
	}
	if (e->half >= e->cfg.half_max || e->n >= e->cfg.conns) {
		e->c.drop_full++;
		return NULL;
	}
	if (!first.retried && e->half >= e->cfg.half_retry) {
		answer_retry(e, from, &hd, now);
		return NULL;
	}
	if (too_often(e, from, now)) {
		e->c.drop_rate++;
		return NULL;
	}
	c = quic_conn_new(e, from, name, &first, now);
	e->c.drop_full += !c;
	return c;
}

/* A short header with an id of nobody: the peer's Stateless Reset, of which only the connection
 * itself knows the token, or a packet of a connection that we have forgotten. */
static void stray_packet(struct gw_quic_end *e, const struct gw_quic_addr *from, const ngtcp2_version_cid *v,
    const uint8_t *p, size_t n, uint8_t ecn, rwy_time now)
{
	for (struct gw_quic_conn *c = e->conns; c; c = c->next)
		if (c->state == QUIC_OPEN && c->remote.port == from->port &&
		    rwy_ip_eq(&c->remote.ip, &from->ip)) {
			quic_conn_read(c, from, p, n, ecn, now);
			if (c->state == QUIC_DEAD)
				return;
		}
	answer_reset(e, from, v, n, now);
}

/* --- datagrams, time -------------------------------------------------------------------------- */
/* Tells of connections that ended and frees them. */
static void bury(struct gw_quic_end *e, rwy_time now)
{
	for (struct gw_quic_conn *c = e->conns; c;) {
		struct gw_quic_conn *dead = c->state == QUIC_DEAD ? c : NULL;

		c = c->next;
		if (!dead)
			continue;
		if (dead->quit)
			quic_conn_tell(dead, 0, dead->why, now);
		else
			e->ops->closed(e->ctx, dead, dead->why, now);
		quic_conn_free(dead);
		c = e->conns; /* the callback may have ended others */
	}
}

void gw_quic_read(struct gw_quic_end *e, const struct gw_quic_addr *remote, const uint8_t *p, size_t n,
    uint8_t ecn, rwy_time now)
{
	struct gw_quic_conn *c;
	ngtcp2_version_cid v;
	int rc;

	e->c.rx_datagrams++;
	rc = n ? ngtcp2_pkt_decode_version_cid(&v, p, n, QUIC_CID_LEN) : NGTCP2_ERR_INVALID_ARGUMENT;
	if (rc == NGTCP2_ERR_VERSION_NEGOTIATION) {
		if (n < FIRST_SIZE || !e->ops->name(e->ctx, remote))
			e->c.drop_unknown++;
		else
			answer_versions(e, remote, &v);
		return;
	}
	if (rc != 0) {
		e->c.drop_malformed++;
		return;
	}
	c = quic_cid_find(e, v.dcid, v.dcidlen);
	if (!c && !(p[0] & 0x80)) /* RFC 9000, 17.3: a short header */
		stray_packet(e, remote, &v, p, n, ecn, now);
	else if (!c)
		c = first_packet(e, remote, p, n, now);
	if (c)
		quic_conn_read(c, remote, p, n, ecn, now);
	bury(e, now);
}

void gw_quic_write(struct gw_quic_end *e, rwy_time now)
{
	e->full = false;
	for (struct gw_quic_conn *c = e->conns; c; c = c->next)
		quic_conn_write(c, now);
	bury(e, now);
}

rwy_time gw_quic_next(const struct gw_quic_end *e)
{
	rwy_time next = RWY_NEVER;

	for (const struct gw_quic_conn *c = e->conns; c; c = c->next)
		next = rwy_time_min(next, quic_conn_next(c));
	return next;
}

/* --- connections ------------------------------------------------------------------------------ */
int gw_quic_connect(struct gw_quic_end *e, const struct gw_quic_addr *remote, const char *name, void *user,
    struct gw_quic_conn **out, rwy_time now)
{
	struct gw_quic_conn *c;

	if (!name || !name[0] || strlen(name) >= GW_QUIC_NAME)
		return RWY_EINVAL;
	c = e->n < e->cfg.conns ? quic_conn_new(e, remote, name, NULL, now) : NULL;
	if (!c)
		return RWY_ENOMEM;
	c->user = user;
	*out = c;
	return 0;
}

void gw_quic_close(struct gw_quic_conn *c, const char *reason)
{
	if (c->state == QUIC_DEAD)
		return;
	if (c->state == QUIC_HANDSHAKE)
		c->end->half -= !c->client;
	snprintf(c->why, sizeof(c->why), "%s", reason);
	c->state = QUIC_DEAD;
	c->quit = true; /* this may run inside ngtcp2: bury does the rest */
}

void *gw_quic_user(const struct gw_quic_conn *c)
{
	return c->user;
}

void gw_quic_user_set(struct gw_quic_conn *c, void *user)
{
	c->user = user;
}

struct gw_quic_end *gw_quic_end_of(const struct gw_quic_conn *c)
{
	return c->end;
}

struct gw_quic_addr gw_quic_remote(const struct gw_quic_conn *c)
{
	return c->remote;
}

unsigned gw_quic_streams(const struct gw_quic_conn *c)
{
	return c->streams;
}

size_t gw_quic_room(const struct gw_quic_conn *c)
{
	uint64_t window = c->end->cfg.window, all = window > c->unacked ? window - c->unacked : 0;
	uint64_t first = c->unsent < QUIC_UNSENT ? QUIC_UNSENT - c->unsent : 0;

	return c->state == QUIC_OPEN ? (size_t)(all < first ? all : first) : 0;
}

int gw_quic_send(struct gw_quic_conn *c, unsigned stream, const struct iovec *v, unsigned n)
{
	size_t more = 0;
	int rc;

	for (unsigned i = 0; i < n; i++)
		more += v[i].iov_len;
	if (stream >= c->streams || more > gw_quic_room(c))
		return RWY_EAGAIN;
	if (!more)
		return 0;
	rc = quic_tx_append(c->end, &c->tx[stream], v, n);
	if (rc)
		return rc;
	c->unacked += more;
	c->unsent += more;
	c->active[stream / 64] |= (uint64_t)1 << stream % 64;
	return 0;
}

void gw_quic_consumed(struct gw_quic_conn *c, unsigned stream, size_t n)
{
	if (c->state != QUIC_OPEN || stream >= c->end->cfg.streams)
		return;
	(void)!ngtcp2_conn_extend_max_stream_offset(c->q, quic_stream_id(stream, !c->client), n);
	ngtcp2_conn_extend_max_offset(c->q, n);
}

void gw_quic_info(const struct gw_quic_conn *c, struct gw_quic_info *out)
{
	ngtcp2_conn_stat s;

	*out = (struct gw_quic_info){.open = c->state == QUIC_OPEN, .unacked = c->unacked};
	if (c->state == QUIC_DEAD)
		return;
	ngtcp2_conn_get_conn_stat(c->q, &s);
	out->window = s.cwnd;
	out->inflight = s.bytes_in_flight;
	out->delivery_Bps = s.delivery_rate_sec;
	for (unsigned i = 0; i < c->streams; i++)
		out->lost += ngtcp2_conn_get_stream_loss_count(c->q, c->id[i]);
	out->pieces = c->pieces + out->lost;
	if (s.first_rtt_sample_ts == UINT64_MAX)
		return;
	out->srtt = s.smoothed_rtt;
	out->min_rtt = s.min_rtt;
	out->rttvar = s.rttvar;
}
