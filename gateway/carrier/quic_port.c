/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tunnels' QUIC connections: records on streams. Stream 0 has what concerns the connection, stream
 * 1 datagrams without a host's packet, the others a bucket of flows each. quic.h has the protocol,
 * quic_sock.c the sockets.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/random.h"
#include "gateway/carrier/internal.h"

#define BUCKETS  64
#define STREAMS  (2 + BUCKETS)
#define RUN      16                               /* datagrams taken from a worker at a time */
#define RUN_ROOM (RUN * (WAN_REC_MAX + 64))       /* room for as many */
#define INPUT    (WAN_REC_MAX + WAN_REC_HDR + 1u) /* of a stream, at first */
#define FULL     (200 * RWY_US)                   /* pause after the socket was full */
#define PIECES   8

/* --- a connection as a row of the carriers ---------------------------------------------------- */
static const char *quic_read(struct gw_carriers *cs, struct gw_conn *c, rwy_time now)
{
	const char *why = NULL;
	uint32_t use = c->use;
	bool all = true;

	for (unsigned i = 0; i < STREAMS && !why; i++) {
		struct gw_input *in = &c->streams[i];
		uint32_t had = in->n;

		if (!had)
			continue;
		all &= gw_conn_records(cs, c, in, &why, now);
		if (c->use != use || c->state == GW_CONN_FREE)
			return NULL;
		gw_quic_consumed(c->quic, i, had - in->n);
	}
	if (!why && c->state == GW_CONN_OPEN)
		gw_conn_stall(cs, c, !all);
	return why;
}

/* Puts a datagram on the stream of its bucket. */
static bool datagram_send(struct gw_conn *c, const struct rte_mbuf *m)
{
	unsigned buckets = gw_quic_streams(c->quic) - 2, n = 0;
	unsigned stream = m->hash.usr ? 2 + m->hash.usr % buckets : 1;
	struct iovec v[PIECES];

	for (const struct rte_mbuf *x = m; x && n < PIECES; x = x->next)
		v[n++] = (struct iovec){rte_pktmbuf_mtod(x, void *), x->data_len};
	return gw_quic_send(c->quic, stream, v, n) == 0;
}

static const char *quic_write(struct gw_carriers *cs, struct gw_conn *c)
{
	if (c->ctl_n && gw_quic_streams(c->quic)) {
		struct iovec v = {c->ctl, c->ctl_n};

		if (gw_quic_send(c->quic, 0, &v, 1) == 0)
			c->ctl_n = 0;
	}
	while (gw_quic_room(c->quic) >= RUN_ROOM && gw_conn_fill(cs, c, RUN)) {
		for (; c->out_at < c->out_n; c->out_at++) {
			struct rte_mbuf *m = c->out[c->out_at];

			if (!datagram_send(c, m))
				return "no memory";
			c->t->c.tx_datagrams++;
			c->t->c.tx_bytes += m->pkt_len;
			rte_pktmbuf_free(m);
		}
		c->out_at = c->out_n = 0;
	}
	return NULL;
}

static bool quic_room(const struct gw_conn *c)
{
	return gw_quic_streams(c->quic) && gw_quic_room(c->quic) >= RUN_ROOM;
}

static void quic_watch(struct gw_carriers *cs, struct gw_conn *c)
{
	(void)cs, (void)c; /* the port's socket is watched */
}

static void streams_free(struct gw_input *in)
{
	for (unsigned i = 0; in && i < STREAMS; i++)
		free(in[i].p);
	free(in);
}

static void quic_close(struct gw_conn *c)
{
	if (c->quic)
		gw_quic_close(c->quic, "the tunnel needs it no more");
	c->quic = NULL;
	streams_free(c->streams);
	c->streams = NULL;
}

static const struct gw_conn_kind kind_quic = {
    WAN_CARRIER_QUIC, quic_read, quic_write, quic_room, quic_watch, quic_close, NULL};

static struct gw_conn *conn_new(struct gw_carriers *cs, struct gw_quic_conn *q, bool accepted)
{
	struct gw_input *in = calloc(STREAMS, sizeof(*in));
	struct gw_conn *c = in ? gw_conn_new(cs, &kind_quic, -1, accepted) : NULL;

	if (!c) {
		free(in);
		return NULL;
	}
	c->streams = in;
	c->quic = q;
	return c;
}

/* --- what connections tell -------------------------------------------------------------------- */
static bool output(void *ctx, const struct gw_quic_out *out)
{
	struct gw_quic_port *p = ctx;

	if (gw_quic_sock_send(p->fd, out))
		return true;
	p->full_until = gw_now() + FULL;
	return false;
}

static const char *name(void *ctx, const struct gw_quic_addr *remote)
{
	const struct gw_quic_port *p = ctx;

	for (unsigned i = 0; i < CONF_TUNNELS_MAX; i++) {
		const struct gw_carrier_tun *t = &p->cs->tun[i];

		if (t->used && t->quic == p && rwy_ip_eq(&t->remote, &remote->ip))
			return conf_tunnel_peer_name(&t->conf);
	}
	return NULL;
}

static void opened(void *ctx, struct gw_quic_conn *q, rwy_time now)
{
	struct gw_quic_port *p = ctx;
	struct gw_conn *c = gw_quic_user(q);

	if (!c) {
		c = conn_new(p->cs, q, true);
		if (!c) {
			gw_quic_close(q, "no memory");
			return;
		}
		gw_quic_user_set(q, c);
		p->cs->unknown++;
		c->peer = gw_quic_remote(q).ip;
		c->port = p->local.port;
		c->deadline = now + 3 * RWY_SEC;
	}
	c->state = GW_CONN_HELLO;
}

static bool input_add(struct gw_input *in, const uint8_t *p, size_t n)
{
	if (in->cap - in->n < n) {
		size_t cap = in->cap ? in->cap : INPUT;
		uint8_t *more;

		while (cap < in->n + n)
			cap *= 2; /* no more than the window, which the peer must observe */
		more = realloc(in->p, cap);
		if (!more)
			return false;
		in->p = more;
		in->cap = (uint32_t)cap;
	}
	memcpy(in->p + in->n, p, n);
	in->n += (uint32_t)n;
	return true;
}

static void received(
    void *ctx, struct gw_quic_conn *q, unsigned stream, const uint8_t *p, size_t n, rwy_time now)
{
	struct gw_carriers *cs = ((struct gw_quic_port *)ctx)->cs;
	struct gw_conn *c = gw_quic_user(q);
	const char *why = NULL;
	enum gw_conn_state was;
	struct gw_input *in;
	uint32_t use, had;
	bool all;

	if (!c || c->quic != q)
		return;
	in = &c->streams[stream];
	use = c->use;
	if (c->t)
		c->t->c.rx_bytes += n;
	if (!input_add(in, p, n)) {
		cs->conn_ops->lost(cs, c, "no memory", now);
		return;
	}
	/* Another stream overtook the handshake's: its datagrams wait for that. */
	if (c->stalled || (c->state == GW_CONN_HELLO && stream))
		return;
	had = in->n;
	was = c->state;
	all = gw_conn_records(cs, c, in, &why, now);
	if (c->use != use || c->state == GW_CONN_FREE)
		return;
	if (why) {
		cs->conn_ops->lost(cs, c, why, now);
		return;
	}
	gw_quic_consumed(q, stream, had - in->n);
	if (c->state == GW_CONN_OPEN && was != c->state && (why = quic_read(cs, c, now)))
		cs->conn_ops->lost(cs, c, why, now);
	else if (!all)
		gw_conn_stall(cs, c, true); /* the thread goes on when it can */
}

static void closed(void *ctx, struct gw_quic_conn *q, const char *why, rwy_time now)
{
	struct gw_carriers *cs = ((struct gw_quic_port *)ctx)->cs;
	struct gw_conn *c = gw_quic_user(q);

	if (!c || c->quic != q) {
		gw_log(GW_LOG_NOTICE, "carrier", "event=\"QUIC refused\" why=\"%s\"", why);
		return;
	}
	c->quic = NULL;
	cs->conn_ops->lost(cs, c, why, now);
}

static const struct gw_quic_ops end_ops = {output, name, opened, received, closed};

struct gw_conn *gw_quic_port_open(struct gw_carriers *cs, struct gw_carrier_tun *t, rwy_time now)
{
	struct gw_quic_addr to = {t->remote, t->conf.quic_port};
	struct gw_conn *c = conn_new(cs, NULL, false);

	if (c && gw_quic_connect(t->quic->end, &to, conf_tunnel_peer_name(&t->conf), c, &c->quic, now) == 0)
		return c;
	if (c)
		gw_conn_free(cs, c);
	snprintf(t->problem, sizeof(t->problem), "QUIC: no memory, or too many connections");
	return NULL;
}

/* --- ports ------------------------------------------------------------------------------------ */
static int port_open(struct gw_carriers *cs, struct gw_quic_port *p, const struct gw_carrier_tun *t)
{
	const struct conf_quic *q = &cs->app->conf->quic;
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = GW_EV_QUIC | (uint64_t)(p - cs->quic)};
	struct gw_quic_cfg cfg;

	gw_quic_cfg_default(&cfg);
	cfg.local = p->local;
	cfg.streams = STREAMS;
	cfg.window = q->window;
	cfg.cc = q->cc == CONF_QUIC_CUBIC ? GW_QUIC_CUBIC : GW_QUIC_BBR2;
	p->cs = cs;
	p->fd = gw_quic_sock_new(
	    &p->local, t->conf.dscp.map[0] == t->conf.dscp.map[63] ? t->conf.dscp.map[0] : 0);
	if (p->fd < 0)
		return errno;
	if (gw_quic_end_new(&p->end, &cfg, cs->tls, &end_ops, p) == 0 &&
	    epoll_ctl(cs->epoll_fd, EPOLL_CTL_ADD, p->fd, &ev) == 0)
		return 0;
	gw_quic_end_free(p->end);
	close(p->fd);
	p->fd = -1;
	return ENOMEM;
}

struct gw_quic_port *gw_quic_port_get(struct gw_carriers *cs, struct gw_carrier_tun *t)
{
	struct gw_quic_addr local = {t->local, t->conf.quic_port};
	struct gw_quic_port *p = NULL;
	int e;

	if (!cs->tls || !*conf_tunnel_peer_name(&t->conf)) {
		snprintf(t->problem, sizeof(t->problem), "no QUIC: it needs %s",
		    cs->tls ? "the tunnel's `peer_name`" : "`keys.certificate`, `keys.key` and `keys.ca`");
		return NULL;
	}
	for (unsigned i = 0; i < CONF_TUNNELS_MAX; i++) {
		const struct gw_carrier_tun *o = &cs->tun[i];

		/* A connection is authenticated before it names its tunnel. */
		if (o->used && o->quic && o->conf.quic_port == local.port &&
		    rwy_ip_eq(&o->local, &t->local) && rwy_ip_eq(&o->remote, &t->remote) &&
		    strcmp(conf_tunnel_peer_name(&o->conf), conf_tunnel_peer_name(&t->conf)) != 0) {
			snprintf(t->problem, sizeof(t->problem),
			    "no QUIC: tunnel %s to the same address has another `peer_name`", o->conf.name);
			return NULL;
		}
	}
	for (unsigned i = 0; i < CONF_TUNNELS_MAX; i++) {
		struct gw_quic_port *x = &cs->quic[i];

		if (x->fd >= 0 && x->local.port == local.port && rwy_ip_eq(&x->local.ip, &local.ip)) {
			x->users++;
			return x;
		}
		if (x->fd < 0 && !p)
			p = x;
	}
	p->local = local; /* one port slot per tunnel */
	if ((e = port_open(cs, p, t)) != 0) {
		snprintf(t->problem, sizeof(t->problem), "QUIC port %u: %s", local.port, strerror(e));
		return NULL;
	}
	p->users = 1;
	return p;
}

/* Peers that have not said which tunnel they are of: none is here any more. */
static void end_unknown(struct gw_carriers *cs, const struct gw_quic_port *p, rwy_time now)
{
	for (unsigned i = 0; i < cs->top; i++) {
		struct gw_conn *c = &cs->conn[i];

		if (c->state != GW_CONN_FREE && c->quic && !c->t && gw_quic_end_of(c->quic) == p->end)
			cs->conn_ops->lost(cs, c, "the tunnel was removed", now);
	}
}

void gw_quic_port_put(struct gw_carriers *cs, struct gw_quic_port *p)
{
	if (!p || --p->users)
		return;
	end_unknown(cs, p, gw_now());
	gw_quic_write(p->end, gw_now()); /* peers learn what was closed */
	(void)!epoll_ctl(cs->epoll_fd, EPOLL_CTL_DEL, p->fd, NULL);
	gw_quic_end_free(p->end);
	p->end = NULL;
	close(p->fd);
	p->fd = -1;
}

rwy_time gw_quic_ports_turn(struct gw_carriers *cs, rwy_time now)
{
	rwy_time next = RWY_NEVER;

	for (unsigned i = 0; i < CONF_TUNNELS_MAX; i++) {
		struct gw_quic_port *p = &cs->quic[i];

		if (p->fd < 0)
			continue;
		if (now >= p->full_until)
			gw_quic_write(p->end, now);
		next = rwy_time_min(next, rwy_time_max(gw_quic_next(p->end), p->full_until));
	}
	return next;
}
