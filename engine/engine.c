/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's entry points and the loop of one turn; routing of packets to the halves. What happens with a
 * packet is near.c and far.c. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/eng.h"
#include "roce/icrc.h"
#include "rwy/endian.h"

#define SWEEP_INTERVAL (2 * RWY_MS)
#define SWEEP_SLOTS    256
#define TABLE_MIN      1024
/* An unpaired flow whose host has been silent for this long: it has given up, or will begin anew. Nothing of
 * it was acknowledged. */
#define HALF_OPEN_SILENT (10 * RWY_SEC)
#define GIVEN_UP         (60 * RWY_SEC) /* a host that was silent for so long asks for no answer again */

static uint32_t table_size(uint32_t conns)
{
	uint32_t n = TABLE_MIN;

	while (n < conns)
		n <<= 1;
	return n;
}

int eng_new(struct eng **out, const struct eng_cfg *cfg, const struct eng_ops *ops, void *ctx,
    struct rwy_bufs bufs, rwy_time now)
{
	struct eng *e = calloc(1, sizeof(*e));
	int r = RWY_ENOMEM;

	if (!e)
		return r;
	e->cfg = *cfg;
	e->ops = ops;
	e->ctx = ctx;
	e->bufs = bufs;
	e->rng = cfg->seed;
	e->now = e->started = now;
	e->wheel_tick = now >> ENG_WHEEL_SHIFT;
	e->near_slab.size = (sizeof(struct eng_near) + 63) & ~63u;
	e->far_slab.size = (sizeof(struct eng_far) + 63) & ~63u;
	e->pair_slab.size = (sizeof(struct eng_pair) + 63) & ~63u;
	e->host_slab.size = (sizeof(struct eng_host) + 63) & ~63u;
	e->table_mask = table_size(cfg->conns_max) - 1;
	e->table = calloc((size_t)e->table_mask + 1,
	    sizeof(struct eng_half *)); /* NOLINT(bugprone-sizeof-expression): an array of pointers */
	e->occupied = calloc(((size_t)e->table_mask + 1) / 64, sizeof(*e->occupied));
	if (!e->table || !e->occupied)
		goto err;
	r = eng_tenants_init(e);
	if (r)
		goto err;
	r = eng_tunnels_init(e, now);
	if (r)
		goto err;
	r = eng_journal_init(e);
	if (r)
		goto err;
	eng_journal_restore(e, 0, now);
	*out = e;
	return 0;
err:
	eng_free(e);
	return r;
}

void eng_free(struct eng *e)
{
	if (!e)
		return;
	e->closing = true;
	for (uint32_t i = 0; e->table && i <= e->table_mask; i++)
		while (e->table[i]) {
			struct eng_half *h = e->table[i];

			if (h->is_far)
				eng_far_free((struct eng_far *)h, e->now);
			else
				eng_near_free((struct eng_near *)h, e->now);
		}
	for (unsigned i = 0; i < e->cfg.tunnels; i++)
		wan_free(e->tun[i].wan);
	eng_ways_free(e->ways);
	eng_rp_fini(e);
	eng_tenants_fini(e);
	eng_slab_fini(&e->near_slab);
	eng_slab_fini(&e->far_slab);
	eng_slab_fini(&e->pair_slab);
	eng_slab_fini(&e->host_slab);
	free(e->jfree);
	free(e->jold);
	free(e->occupied);
	free(e->table);
	free(e);
}

void eng_drop(struct eng *e, struct rwy_buf *b, uint64_t *counter)
{
	(*counter)++;
	rwy_buf_free(&e->bufs, b);
}

struct rwy_buf *eng_ctrl_buf(struct eng *e, const struct eng_ctrl *c)
{
	struct rwy_buf *b = rwy_buf_alloc(&e->bufs, WAN_HDR_MAX, ENG_CTRL_LEN);

	if (!b) {
		e->c.drop_no_buffer++;
		return NULL;
	}
	b->kind = RWY_BUF_CTRL;
	b->len = (uint32_t)eng_ctrl_encode(b->data, c);
	return b;
}

void eng_dirty(struct eng_half *h)
{
	struct eng *e = h->e;

	if (h->dirty)
		return;
	h->dirty = true;
	h->dirty_next = NULL;
	if (e->dirty_tail)
		e->dirty_tail->dirty_next = h;
	else
		e->dirty_head = h;
	e->dirty_tail = h;
}

void eng_lan_send(struct eng *e, uint32_t tenant, struct rwy_buf *b, bool own, const struct rwy_ip *dst,
    struct eng_nexthop *nh)
{
	struct eng_lan_tx tx = {.tenant = tenant, .buf = b, .len = b->len, .own = own, .dst = dst, .nh = nh};

	e->c.lan_tx_packets++;
	e->c.lan_tx_bytes += b->len;
	e->ops->lan_tx(e->ctx, &tx);
}

void eng_lan_made(struct eng *e, uint32_t tenant, const uint8_t *bytes, uint32_t len,
    const struct rwy_ip *dst, struct eng_nexthop *nh)
{
	struct eng_lan_tx tx = {.tenant = tenant, .bytes = bytes, .len = len, .dst = dst, .nh = nh};

	e->c.lan_tx_packets++;
	e->c.lan_tx_bytes += len;
	e->ops->lan_tx(e->ctx, &tx);
}

/* RC packets of a local host. The ICRC is good. */
static void rc_packet(struct eng *e, uint32_t tenant, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now)
{
	struct eng_key k = {pkt->src, pkt->dst, pkt->dqpn, tenant};
	struct eng_near *n;
	struct eng_far *f;

	if (roce_op_is_request(pkt->info)) {
		n = eng_near_get(e, &k, true, now);
		if (n)
			eng_near_request(n, pkt, b, now);
		else
			rwy_buf_free(&e->bufs, b); /* counted by eng_near_get */
		return;
	}
	n = (struct eng_near *)eng_find(e, &k, false);
	f = eng_learn_owner(e, tenant, n, pkt, now);
	if (!f || !(n || (n = eng_near_get(e, &k, false, now)))) {
		eng_drop(e, b, &e->c.drop_unknown_qpn);
		return;
	}
	if (n->far != f)
		eng_pair_halves(n, f, ENG_BY_PROBE);
	n->h.last = now;
	eng_far_response(n->far, pkt, b, now);
}

/* A local host asks its sender to slow down: we are the sender. It never crosses the WAN. */
static void cnp(struct eng *e, uint32_t tenant, const struct roce_pkt *pkt, rwy_time now)
{
	struct eng_key k = {pkt->src, pkt->dst, pkt->dqpn, tenant};
	const struct eng_near *n = (const struct eng_near *)eng_find(e, &k, false);

	if (n && n->far)
		eng_rp_cnp(n->far, now);
}

static struct wan_txflow *mgmt_flow(struct eng_tun *t, rwy_time now)
{
	uint8_t info[WAN_OPEN_MAX];
	struct eng_open o = {.type = ENG_OPEN_MGMT, .rnr_retry = 255, .retry = 255};

	if (!t->mgmt && wan_tx_open(t->wan, &t->mgmt, info, eng_open_encode(info, &o), t, now) != 0)
		t->mgmt = NULL;
	return t->mgmt;
}

/* One hop less; false: it was the last. RoCE is carried as if the hosts were on one link (some stacks send
 * TTL 1). */
static bool hop(uint8_t *ip, uint32_t len)
{
	uint32_t sum;

	if (len >= 40 && ip[0] >> 4 == 6) {
		if (ip[7] <= 1)
			return false;
		ip[7]--;
		return true;
	}
	if (len < 20 || ip[8] <= 1)
		return false;
	ip[8]--;
	sum = rwy_get16(ip + 10) + 0x100u; /* RFC 1141 */
	rwy_put16(ip + 10, (uint16_t)(sum + (sum >> 16)));
	return true;
}

static void best_effort(
    struct eng *e, uint32_t tenant, struct roce_pkt *pkt, struct rwy_buf *b, bool roce, rwy_time now)
{
	int t = eng_way(e, tenant, &pkt->src, &pkt->dst, 0);

	if (t < 0) {
		eng_drop(e, b, &e->c.drop_no_route);
		return;
	}
	if (!roce && !hop(b->data, b->len)) {
		eng_drop(e, b, &e->c.drop_ttl);
		return;
	}
	if (roce && roce_is_gsi(pkt)) {
		struct wan_txflow *m = mgmt_flow(&e->tun[t], now);

		if (!eng_learn_cm(e, tenant, pkt, now)) {
			rwy_buf_free(&e->bufs, b);
			return;
		}
		if (m && wan_tx_queued(m) < 4096) {
			b->len = pkt->len;
			if (eng_tag(e, tenant, b))
				wan_tx_send(m, b, now);
			return;
		}
		eng_drop(e, b, &e->c.drop_no_buffer);
		return;
	}
	e->c.dgrams++;
	if (eng_tag(e, tenant, b))
		wan_dgram_send(e->tun[t].wan, b, now);
}

#define GROUP      16 /* packets of a burst looked at together */
#define AHEAD      3  /* packets between fetching what a connection points to and using it */
#define HALF_LINES 6  /* cache lines of a half that a packet touches */
#define LINE       64

/* A packet of a burst, parsed. */
struct lan_in {
	struct roce_pkt pkt;
	uint32_t tenant;
	enum roce_parse_reason reason;
	struct eng_half **bucket; /* of the connection; NULL: no RC packet */
	struct eng_half *half;    /* probably its connection: only to be fetched */
};

static void fetch(const void *p, unsigned lines)
{
	for (unsigned i = 0; i < lines; i++)
		__builtin_prefetch((const uint8_t *)p + i * LINE);
}

static void lan_packet(struct eng *e, struct lan_in *in, struct rwy_buf *b, rwy_time now)
{
	struct roce_pkt *pkt = &in->pkt;

	e->c.lan_rx_packets++;
	e->c.lan_rx_bytes += b->len;
	if (!eng_tenant(e, in->tenant)) {
		eng_drop(e, b, &e->c.drop_unknown_tenant);
		return;
	}
	switch (in->reason) {
	case ROCE_PARSE_OK:
		break;
	case ROCE_PARSE_NOT_ROCE:
		best_effort(e, in->tenant, pkt, b, false, now);
		return;
	case ROCE_PARSE_TRUNCATED:
		eng_drop(e, b, &e->c.drop_truncated);
		return;
	case ROCE_PARSE_BAD_IP:
		eng_drop(e, b, &e->c.drop_bad_ip);
		return;
	case ROCE_PARSE_FRAGMENT:
		eng_drop(e, b, &e->c.drop_ip_fragment);
		return;
	case ROCE_PARSE_BAD_UDP:
		eng_drop(e, b, &e->c.drop_bad_udp_length);
		return;
	case ROCE_PARSE_BAD_BTH:
		eng_drop(e, b, &e->c.drop_bad_bth);
		return;
	case ROCE_PARSE_UNKNOWN_OPCODE:
		eng_drop(e, b, &e->c.drop_unknown_opcode);
		return;
	case ROCE_PARSE_BAD_LENGTH:
		eng_drop(e, b, &e->c.drop_bad_length);
		return;
	case ROCE_PARSE_REASON_COUNT:
		rwy_unreachable();
	}
	e->c.roce_rx++;
	if (!roce_icrc_ok(pkt)) {
		eng_drop(e, b, &e->c.drop_icrc);
		return;
	}
	switch ((enum roce_transport)pkt->info->transport) {
	case ROCE_RC:
		rc_packet(e, in->tenant, pkt, b, now);
		return;
	case ROCE_UD:
	case ROCE_UC:
		best_effort(e, in->tenant, pkt, b, true, now);
		return;
	case ROCE_CNP_T:
		cnp(e, in->tenant, pkt, now);
		eng_drop(e, b, &e->c.rp_cnp_handled);
		return;
	case ROCE_RD:
	case ROCE_XRC:
		eng_drop(e, b, &e->c.drop_unknown_opcode);
		return;
	}
	rwy_unreachable();
}

/* What the connection of a packet points to. It may have gone meanwhile: its memory is still there. */
static void fetch_more(const struct lan_in *in)
{
	const struct eng_near *n = (const struct eng_near *)in->half;

	if (!n || n->h.is_far)
		return;
	if (roce_op_is_request(in->pkt.info)) {
		fetch(n->req, 2);
		__builtin_prefetch(n->jent, 1);
	} else if (n->far) {
		fetch(n->far, HALF_LINES);
	}
}

/*
 * Some packets of a burst. Memory is what a packet waits for, so it is asked for early and for all of them:
 * buckets while the packets are parsed, then the connections, then, a few packets ahead, what those point to.
 */
static void lan_group(struct eng *e, struct rwy_buf **bufs, const uint16_t *tenants, unsigned n, rwy_time now)
{
	struct lan_in in[GROUP];

	for (unsigned i = 0; i < n; i++) {
		in[i].reason = roce_parse(bufs[i]->data, bufs[i]->len, &in[i].pkt);
		in[i].tenant = tenants[i];
		in[i].bucket = NULL;
		in[i].half = NULL;
		if (in[i].reason != ROCE_PARSE_OK || in[i].pkt.info->transport != ROCE_RC)
			continue;
		struct eng_key k = {in[i].pkt.src, in[i].pkt.dst, in[i].pkt.dqpn, in[i].tenant};

		in[i].bucket = &e->table[eng_key_hash(&k, false) & e->table_mask];
		__builtin_prefetch(in[i].bucket);
	}
	for (unsigned i = 0; i < n; i++)
		if (in[i].bucket && (in[i].half = *in[i].bucket))
			fetch(in[i].half, HALF_LINES);
	for (unsigned i = 0; i < n; i++) {
		if (i + AHEAD < n)
			fetch_more(&in[i + AHEAD]);
		if (i + 1 < n)
			fetch(bufs[i + 1]->data + 2 * LINE, bufs[i + 1]->len > 6 * LINE ? 4 : 0);
		lan_packet(e, &in[i], bufs[i], now);
	}
}

void eng_tenant_rx(struct eng *e, struct rwy_buf **bufs, const uint16_t *tenants, unsigned n, rwy_time now)
{
	e->now = now;
	for (unsigned k; n; n -= k, bufs += k, tenants += k) {
		k = n < GROUP ? n : GROUP;
		lan_group(e, bufs, tenants, k, now);
	}
}

void eng_lan_rx(struct eng *e, struct rwy_buf **bufs, unsigned n, rwy_time now)
{
	static const uint16_t plain[GROUP];

	e->now = now;
	for (unsigned k; n; n -= k, bufs += k) {
		k = n < GROUP ? n : GROUP;
		lan_group(e, bufs, plain, k, now);
	}
}

void eng_wan_rx(struct eng *e, unsigned tunnel, uint8_t path, struct rwy_buf *b, uint8_t ecn, rwy_time now)
{
	e->now = now;
	if (!e->tun[tunnel].wan) { /* on its way while the tunnel was removed */
		eng_drop(e, b, &e->c.drop_no_tunnel);
		return;
	}
	wan_recv(e->tun[tunnel].wan, path, b, ecn, now);
}

/* Owed ACKs and what can go to local hosts. */
static unsigned flush_dirty(struct eng *e, rwy_time now)
{
	struct eng_half *h;
	unsigned n = 0;

	while ((h = e->dirty_head)) {
		e->dirty_head = h->dirty_next;
		if (!e->dirty_head)
			e->dirty_tail = NULL;
		h->dirty = false;
		h->dirty_next = NULL;
		if (e->dirty_head)
			fetch(e->dirty_head, HALF_LINES);
		n++;
		if (!h->e) /* freed meanwhile */
			eng_slab_put(h->is_far ? &e->far_slab : &e->near_slab, h);
		else if (h->is_far)
			eng_far_flush((struct eng_far *)h, now);
		else
			eng_near_flush((struct eng_near *)h, now);
	}
	return n;
}

static bool expired(const struct eng_half *h, rwy_time now)
{
	const struct eng_near *n = (const struct eng_near *)h;
	const struct eng_far *f = (const struct eng_far *)h;
	bool idle = h->is_far ? !f->active || !f->reqr.q.n : !n->req || !wan_tx_queued(n->req);

	if (now >= h->close_at || h->ten->removing)
		return true;
	if (!h->is_far && h->state == ENG_LEARNING && !n->far && !n->resume &&
	    now - h->last > HALF_OPEN_SILENT)
		return true;
	return idle && now - h->last > h->e->cfg.idle_expiry;
}

static void sweep_slot(struct eng *e, uint32_t slot, rwy_time now)
{
	for (struct eng_half *h = e->table[slot], *next; h; h = next) {
		next = h->chain;
		if (e->tun[h->tunnel].removing) {
			e->c.conns_expired++;
			eng_leave(h, now);
			continue;
		}
		if (!expired(h, now)) {
			if (!h->is_far && ((struct eng_near *)h)->reads.cap && now - h->last > GIVEN_UP)
				eng_near_forget_reads((struct eng_near *)h);
			continue;
		}
		e->c.conns_expired++;
		if (h->is_far)
			eng_far_free((struct eng_far *)h, now);
		else
			eng_near_free((struct eng_near *)h, now);
	}
}

/* Looks at a few table slots a time, so that no turn is long. The table is a whole number of such times. */
static void sweep(struct eng *e, rwy_time now)
{
	e->sweep_at = now + SWEEP_INTERVAL;
	for (unsigned i = 0; i < e->cfg.tunnels; i++) {
		struct eng_tun *t = &e->tun[i];

		if (!t->wan)
			continue;
		t->min_rtt = wan_min_rtt(t->wan);
		if (t->min_rtt && (!t->least_rtt || t->min_rtt < t->least_rtt))
			t->least_rtt = t->min_rtt;
	}
	if (!e->halves)
		return;
	for (uint32_t i = 0; i < SWEEP_SLOTS / 64; i++, e->sweep += 64) {
		uint32_t first = e->sweep & e->table_mask;
		uint64_t bits, later = UINT64_MAX;

		while ((bits = e->occupied[first / 64] & later)) {
			unsigned k = (unsigned)__builtin_ctzll(bits);

			later = ~(((uint64_t)2 << k) - 1);
			sweep_slot(e, first + k, now);
		}
	}
}

static unsigned wan_out(struct eng *e, unsigned idx, rwy_time now)
{
	struct wan_tx tx[16];
	unsigned n, total = 0;

	do {
		n = wan_poll(e->tun[idx].wan, tx, 16, now);
		for (unsigned i = 0; i < n; i++)
			e->ops->wan_tx(e->ctx, idx, &tx[i]);
		total += n;
	} while (n == 16 && total < 256);
	return total;
}

unsigned eng_poll(struct eng *e, rwy_time now)
{
	unsigned total;

	e->now = now;
	if (now >> ENG_WHEEL_SHIFT > e->wheel_tick) {
		eng_wheel_run(e, now);
		eng_learn_tick(e, now);
	}
	if (e->rps)
		eng_rp_poll(e, now);
	total = flush_dirty(e, now);
	for (unsigned i = 0; i < e->cfg.tunnels; i++) {
		if (!e->tun[i].wan)
			continue;
		if (wan_next(e->tun[i].wan) <= now)
			wan_tick(e->tun[i].wan, now);
		total += wan_out(e, i, now);
	}
	if (e->dirty_head)
		total += flush_dirty(e, now);
	if (now >= e->sweep_at)
		sweep(e, now);
	return total;
}

rwy_time eng_next(const struct eng *e)
{
	rwy_time at = eng_learn_next(e);

	if (e->dirty_head)
		return e->now;
	for (unsigned i = 0; i < e->cfg.tunnels; i++)
		if (e->tun[i].wan)
			at = rwy_time_min(at, wan_next(e->tun[i].wan));
	if (e->rps)
		at = rwy_time_min(at, eng_rp_next(e));
	if (e->wheel_n)
		at = rwy_time_min(at, (e->wheel_tick + 1) << ENG_WHEEL_SHIFT);
	if (e->halves)
		at = rwy_time_min(at, e->sweep_at);
	return at;
}

void eng_log(struct eng *e, int level, const char *fmt, ...)
{
	char msg[256];
	va_list ap;

	if (!e->ops->log)
		return;
	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	e->ops->log(e->ctx, level, msg);
}
