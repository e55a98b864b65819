/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Roceway gateway at the border switch: the engine itself with real packet bytes, a port of the
 * fabric, and its end of the WAN. Its worker takes a turn at most every `wake`; the processor time
 * of a turn is not modelled. Packets to hosts wait in the port's queue without limit (the peak is
 * reported); a real port would push back through its ring.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"
#include "tests/sim/dc/bytes.h"
#include "tests/sim/dc/gw.h"
#include "tests/sim/dc/hostile.h"
#include "tests/sim/dc/nic.h"
#include "tests/sim/dc/tenants.h"
#include "tests/sim/wan/seal.h"

#define HEADROOM     256
#define ROOM_FULL    (HEADROOM + 4416)
#define ROOM_THIN    448
#define CHUNK        256
#define WAN_MTU      4320
#define WAN_OVERHEAD 66 /* preamble 8, Ethernet 14, IPv4 20, UDP 8, FCS 4, gap 12 */
#define BURST        64

/* The WAN to one other site, this end's direction. */
struct wire {
	struct gw *from, *to;
	struct ev ev;
	struct rwy_bufq q; /* w0: bytes of the datagram header; stamp: arrival */
	rwy_time free_at;
	double frac;
	rwy_dur delay;
};

struct gw {
	struct node n; /* first member; port 0 goes to the border switch */
	struct eng *e;
	struct ev turn_ev;
	rwy_time last;
	struct dc_pktq rx;
	struct wire wire[DC_SITES_MAX - 1]; /* by tunnel: dc_peer() */
	uint64_t lost, sent;
	uint64_t sent_of[DC_TENANTS_MAX + 1]; /* bytes on the wire, by tenant */
	/* Buffers. */
	struct rwy_buf *free;
	uint64_t live, credit, custody;
	struct gw_peaks peak;
};

/* --- buffers ---------------------------------------------------------------------------------------- */

static uint32_t room(void)
{
	return dc_thin ? ROOM_THIN : ROOM_FULL;
}

static struct rwy_buf *slot(struct gw *g)
{
	size_t step = (sizeof(struct rwy_buf) + room() + 63) & ~(size_t)63;
	struct rwy_buf *b = g->free;

	if (!b) {
		/* One slot more, because a thin packet's length reaches beyond its bytes. */
		uint8_t *chunk = dc_alloc(g->n.dc, step * CHUNK + 8192);

		for (unsigned i = 0; i < CHUNK; i++) {
			b = (struct rwy_buf *)(void *)(chunk + i * step);
			b->next = g->free;
			g->free = b;
		}
	}
	b = g->free;
	g->free = b->next;
	memset(b, 0, sizeof(*b));
	return b;
}

static void slot_free(struct gw *g, struct rwy_buf *b)
{
	b->next = g->free;
	g->free = b;
}

static void live(struct gw *g)
{
	if (++g->live > g->peak.bufs)
		g->peak.bufs = g->live;
}

static struct rwy_buf *on_alloc(void *ctx, uint32_t headroom, uint32_t len)
{
	struct gw *g = ctx;
	struct rwy_buf *b;

	if (headroom + len > room())
		return NULL;
	b = slot(g);
	b->data = (uint8_t *)(b + 1) + headroom;
	b->headroom = (uint16_t)headroom;
	b->len = len;
	live(g);
	return b;
}

static void on_free(void *ctx, struct rwy_buf *b)
{
	struct gw *g = ctx;

	g->live--;
	slot_free(g, b);
}

/* --- output ----------------------------------------------------------------------------------- */

static unsigned tenant_of(const struct dc *dc, uint32_t dqpn)
{
	if (dqpn == DC_IP_QPN)
		return (unsigned)dc->s.xtenant;
	return dc_is_hostile(dqpn) ? (unsigned)dc->s.htenant : dc->qps[dc_qp_id(dqpn)]->tenant;
}

static void lan_tx(void *ctx, const struct eng_lan_tx *tx)
{
	struct gw *g = ctx;
	struct dc *dc = g->n.dc;
	struct dc_pkt *p = dc_pkt_get(dc);
	uint8_t made[128];
	uint8_t *bytes = tx->buf ? tx->buf->data : made;

	if (!tx->buf)
		memcpy(made, tx->bytes, tx->len < sizeof(made) ? tx->len : sizeof(made));
	if (dc_bytes_read(dc, bytes, tx->len, p) && tenant_of(dc, p->dqpn) == tx->tenant) {
		dc_port_send(&g->n.port[0], p, dc->evq.now);
		if (g->n.port[0].q[1].bytes > g->peak.lan_queue)
			g->peak.lan_queue = g->n.port[0].q[1].bytes;
	} else {
		dc_violation(
		    dc, "the gateway sent bytes that no host sent or would take", bytes[28], tx->len);
		dc_pkt_put(dc, p);
	}
	if (tx->buf && tx->own)
		on_free(g, tx->buf);
}

static bool to_wire(struct wire *w, struct rwy_buf *b, uint32_t tenant)
{
	struct gw *g = w->from;
	struct dc *dc = g->n.dc;
	rwy_time now = dc->evq.now, at = rwy_time_max(w->free_at, now),
	         last = w->q.tail ? w->q.tail->stamp : 0;
	uint64_t queue = (uint64_t)((double)(at - now) * dc->s.wan / 8e9);
	double t = (b->len + WAN_OVERHEAD) * 8e9 / dc->s.wan + w->frac;

	g->sent++;
	g->sent_of[tenant] += b->len + WAN_OVERHEAD;
	if (queue > g->peak.wan_queue)
		g->peak.wan_queue = queue;
	if (queue > (uint64_t)dc->s.bbuf || dc_outage(dc) || (dc->s.loss > 0 && dc_unit(dc) <= dc->s.loss)) {
		g->lost++;
		return false;
	}
	w->frac = t - floor(t);
	w->free_at = at + (rwy_dur)t;
	b->stamp = w->free_at + w->delay;
	if (dc->s.jitter > 0)
		b->stamp = rwy_time_max(last, b->stamp + (rwy_dur)(dc_unit(dc) * dc->s.jitter));
	rwy_bufq_push(&w->q, b);
	if (w->q.head == b)
		ev_set(&dc->evq, &w->ev, b->stamp);
	return true;
}

/* Copies the datagram once, into the buffer that the other gateway will get. */
static void wan_tx(void *ctx, unsigned tunnel, const struct wan_tx *tx)
{
	struct gw *g = ctx, *to = g->wire[tunnel].to;
	struct rwy_buf *b = slot(to);
	uint32_t len = tx->buf ? tx->len : 0, stored = dc_thin && len > DC_THIN_BYTES ? DC_THIN_BYTES : len;

	b->data = (uint8_t *)(b + 1);
	b->len = tx->hdr_len + len;
	b->w0 = tx->hdr_len;
	memcpy(b->data, tx->hdr, tx->hdr_len);
	if (len)
		memcpy(b->data + tx->hdr_len, tx->buf->data + tx->off, stored);
	if (!to_wire(&g->wire[tunnel], b, tx->class_id))
		slot_free(to, b);
	if (tx->buf && tx->own)
		on_free(g, tx->buf);
}

static void log_line(void *ctx, int level, const char *msg)
{
	const struct gw *g = ctx;

	if (getenv("RWYDC_LOG"))
		fprintf(stderr, "%12.6f %c %d %s\n", (double)(g->n.dc->evq.now - g->n.dc->zero) / 1e9,
		    'A' + (int)g->n.site, level, msg);
}

static const struct eng_ops eng_ops = {.lan_tx = lan_tx, .wan_tx = wan_tx, .log = log_line};

/* --- turns -------------------------------------------------------------------------------------------- */

static void turn_at(struct gw *g, rwy_time at)
{
	at = rwy_time_max(at, g->last + (rwy_dur)g->n.dc->s.wake);
	if (!g->turn_ev.pos || ev_at(&g->n.dc->evq, &g->turn_ev) > at)
		ev_set(&g->n.dc->evq, &g->turn_ev, at);
}

static void from_lan(struct gw *g, rwy_time now)
{
	struct rwy_buf *bufs[BURST];
	uint16_t tenants[BURST];
	struct dc_pkt *p;
	unsigned n = 0;

	while ((p = dc_pktq_pop(&g->rx))) {
		struct rwy_buf *b = on_alloc(g, HEADROOM, 0);

		b->len = dc_bytes_make(g->n.dc, p, b->data);
		tenants[n] = (uint16_t)tenant_of(g->n.dc, p->dqpn);
		dc_pkt_put(g->n.dc, p);
		bufs[n++] = b;
		if (n == BURST) {
			eng_tenant_rx(g->e, bufs, tenants, n, now);
			n = 0;
		}
	}
	if (n)
		eng_tenant_rx(g->e, bufs, tenants, n, now);
}

static void from_wan(struct gw *g, unsigned tunnel, rwy_time now)
{
	struct gw *peer = g->wire[tunnel].to;
	struct wire *w = &peer->wire[dc_peer_no(peer->n.site, g->n.site)];

	while (w->q.head && w->q.head->stamp <= now) {
		struct rwy_buf *b = rwy_bufq_pop(&w->q);

		seal_hdr_len = (uint16_t)b->w0;
		live(g);
		eng_wan_rx(g->e, tunnel, 0, b, 0, now);
	}
	if (w->q.head)
		ev_set(&g->n.dc->evq, &w->ev, w->q.head->stamp);
}

static void on_turn(struct ev *ev, rwy_time now)
{
	struct gw *g = EV_OWNER(ev, struct gw, turn_ev);
	uint64_t custody;

	g->last = now;
	from_lan(g, now);
	for (unsigned k = 0; k + 1 < g->n.dc->sites; k++)
		from_wan(g, k, now);
	eng_poll(g->e, now);
	custody = eng_custody_bytes(g->e);
	if (custody > g->peak.custody)
		g->peak.custody = custody;
	turn_at(g, rwy_time_max(eng_next(g->e), now));
}

/* The first datagram on a wire arrives at the other gateway. */
static void on_wire(struct ev *ev, rwy_time now)
{
	turn_at(EV_OWNER(ev, struct wire, ev)->to, now);
}

static void on_rx(struct node *n, struct port *in, struct dc_pkt *p, rwy_time now)
{
	struct gw *g = (struct gw *)n;

	dc_pktq_push(&g->rx, p);
	turn_at(g, now);
}

static const struct node_ops gw_ops = {.rx = on_rx};

/* --- making and freeing ----------------------------------------------------------------------- */

/* Both ends number their tunnel alike. */
static void tunnel(struct wan_cfg *w, const struct scen *s, unsigned site, unsigned peer, double rtt)
{
	double bdp = s->wan / 8e9 * rtt, held = s->credit * bdp + (32 << 20);
	uint32_t pkts = 1u << 17;

	while (pkts < 2 * bdp / 1024 && pkts < 1u << 22)
		pkts <<= 1;
	wan_cfg_default(w);
	w->paths = 1;
	w->mtu[0] = WAN_MTU;
	w->cc = cc_find(s->cc);
	w->cc_cfg.rate_Bps = (uint64_t)(s->ccrate / 8);
	w->cc_cfg.mtu = WAN_MTU;
	w->tunnel_id = 6 + site + peer;
	w->tx_pkts_max = pkts;
	w->rx_bytes = (uint64_t)held;
	w->rx_window = (uint32_t)fmin(2 * held / s->pmtu + 4096, 1 << 24);
	w->wire_overhead = WAN_OVERHEAD;
	w->fec = s->fec == SCEN_ON ? WAN_FEC_AUTO : WAN_FEC_OFF;
}

static void configure(struct gw *g, struct eng_cfg *c)
{
	const struct dc *dc = g->n.dc;
	const struct scen *s = &dc->s;
	double far = dc_rtt(dc, g->n.site, g->n.site ? 0 : dc->sites - 1);

	eng_cfg_default(c);
	c->tunnels = c->prefixes = dc->sites - 1;
	c->ack_mode = (enum eng_ack_mode)s->ack;
	if (s->beat > 0)
		c->causal_beat = (rwy_dur)s->beat;
	c->conns_max = 1 << 14;
	c->half_open_max = 1 << 13;
	c->host_window = (uint32_t)s->hwin;
	c->custody_conn = c->custody_total = (uint64_t)(s->custody * s->wan / 8e9 * far) + (64 << 20);
	if (s->np_min > 0)
		c->np_min = (uint64_t)s->np_min;
	if (s->np_max > 0)
		c->np_max = (uint64_t)s->np_max;
	if (s->np == SCEN_OFF)
		c->np_min = c->np_max = 0;
	c->rp = s->rp == SCEN_ON;
	c->lan_Bps = (uint64_t)(s->rate / 8);
	c->buf_cost = 0; /* custody counts packet bytes */
	c->seed = (uint64_t)s->seed * 2 + g->n.site + 1;
	for (unsigned k = 0; k < c->tunnels; k++) {
		unsigned peer = dc_peer(g->n.site, k);

		c->prefix[k] =
		    (struct eng_prefix){.addr = dc_site_net(peer), .len = 112, .tunnel = (uint8_t)k};
		snprintf(c->tunnel[k].name, ENG_NAME_MAX, "site-%u", peer);
		tunnel(&c->tunnel[k].wan, s, g->n.site, peer, dc_rtt(dc, g->n.site, peer));
		g->credit += c->tunnel[k].wan.rx_bytes;
	}
}

void dc_gw_tenant(struct gw *g, unsigned i, const struct dc_tenant *t)
{
	struct eng_prefix prefix;
	struct eng_tenant_cfg c = dc_tenant_cfg(t, i, g->n.site, g->custody, &prefix);

	if (eng_tenant_set(g->e, i, &c, g->n.dc->evq.now) != 0)
		dc_violation(g->n.dc, "a tenant that cannot be", i, 0);
}

static void tenants(struct gw *g)
{
	const struct scen *s = &g->n.dc->s;
	struct dc_tenant t[DC_TENANTS_MAX + 1];
	char err[200];

	if (!dc_tenants_read(s, t, err, sizeof(err)))
		abort(); /* scen_check() has checked it */
	for (unsigned i = 1; i <= (unsigned)s->tenants; i++)
		dc_gw_tenant(g, i, &t[i]);
}

uint64_t dc_gw_sent(const struct gw *g, unsigned tenant)
{
	return g->sent_of[tenant];
}

/* A later gateway connects those before it with itself. */
static void wires(struct gw *g)
{
	struct dc *dc = g->n.dc;

	for (unsigned k = 0; k + 1 < dc->sites; k++) {
		unsigned peer = dc_peer(g->n.site, k);
		struct wire *w = &g->wire[k];

		w->from = g;
		w->ev.fn = on_wire;
		w->delay = (rwy_dur)(dc_rtt(dc, g->n.site, peer) / 2);
		w->to = dc->gw[peer];
		if (w->to)
			w->to->wire[dc_peer_no(peer, g->n.site)].to = g;
	}
}

void dc_gw_init(struct dc *dc, unsigned site)
{
	static const struct rwy_buf_ops ops = {on_alloc, on_free};
	struct gw *g = dc->gw[site] = dc_alloc(dc, sizeof(*g));
	struct eng_cfg *c = malloc(sizeof(*c));

	if (!c)
		abort();
	dc_thin = seal_thin = dc->s.payload == PAYLOAD_THIN;
	dc_node_init(&g->n, dc, &gw_ops, site, 0, 1);
	g->turn_ev.fn = on_turn;
	configure(g, c);
	wires(g);
	if (eng_new(&g->e, c, &eng_ops, g, (struct rwy_bufs){&ops, g}, dc->evq.now) != 0)
		abort();
	g->custody = c->custody_total;
	free(c);
	tenants(g);
	turn_at(g, dc->evq.now);
}

void dc_gw_fini(struct dc *dc, unsigned site)
{
	struct gw *g = dc->gw[site];

	eng_free(g->e);
	if (g->live)
		dc_violation(dc, "buffers leaked in a gateway", site, g->live);
	dc_node_fini(&g->n);
}

bool dc_gw_up(const struct gw *g)
{
	struct wan_stats st;

	for (unsigned k = 0; k + 1 < g->n.dc->sites; k++) {
		eng_tunnel_stats(g->e, k, &st);
		if (!st.up)
			return false;
	}
	return true;
}

uint64_t dc_gw_held(const struct gw *g)
{
	uint64_t n = 0;
	struct wan_stats st;

	for (unsigned k = 0; k + 1 < g->n.dc->sites; k++) {
		eng_tunnel_stats(g->e, k, &st);
		n += st.rx_held_bytes;
	}
	return n;
}

uint64_t dc_gw_resent(const struct gw *g)
{
	uint64_t n = 0;
	struct wan_stats st;

	for (unsigned k = 0; k + 1 < g->n.dc->sites; k++) {
		eng_tunnel_stats(g->e, k, &st);
		n += st.c.tx_retransmit;
	}
	return n;
}

bool dc_gw_quiet(const struct gw *g)
{
	return !eng_custody_bytes(g->e) && !g->rx.n && !g->n.port[0].q[0].n && !g->n.port[0].q[1].n &&
	       !dc_gw_held(g);
}

struct port *dc_gw_port(struct gw *g)
{
	return &g->n.port[0];
}

struct eng *dc_gw_engine(const struct gw *g)
{
	return g->e;
}

void dc_gw_sample(struct gw *g)
{
	uint64_t held = dc_gw_held(g);

	if (held > g->peak.rx_held)
		g->peak.rx_held = held;
	if (held > g->credit)
		dc_violation(g->n.dc, "more held than credit was given for", held, g->credit);
}

const struct gw_peaks *dc_gw_peaks(const struct gw *g)
{
	return &g->peak;
}

void dc_gw_peaks_reset(struct gw *g)
{
	memset(&g->peak, 0, sizeof(g->peak));
}

uint64_t dc_gw_wan_lost(const struct gw *g)
{
	return g->lost;
}
