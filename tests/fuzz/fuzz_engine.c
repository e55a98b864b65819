/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzer of the whole engine: two of them, a WAN in memory between them that keeps, loses, doubles, swaps and
 * corrupts, and hosts that say whatever the byte string tells, right or wrong. Buffers have exactly the room
 * they claim, and headers are written in front of what is sent as the gateway does it. Checked after each
 * step: counts and links of the flow table, limits, custody, buffers, what goes to the hosts, and that the
 * clock moves on. Not here: what a host must see in the end; that is tests/sim.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/engine/eng.h"
#include "roce/icrc.h"
#include "rwy/endian.h"
#include "tests/unit/rc_pkt.c"
#include "wan/wan_pkt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define VNI 100
#define CHECK(x)                                                                                             \
	do {                                                                                                 \
		if (!(x)) {                                                                                  \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x);                              \
			abort();                                                                             \
		}                                                                                            \
	} while (0)

#define INPUT_MAX  3000
#define CONNS_MAX  12
#define HALF_MAX   4
#define CUSTODY    8192
#define L2_ROOM    18 /* Ethernet and a VLAN tag in front of an IP packet */
#define L4_ROOM    66 /* the same, IPv6 and UDP in front of a tunnel datagram */
#define RX_ROOM    176
#define QUEUE_MAX  512
#define KEEP       8
#define IDLE_POLLS 64
#define EVENTS_MAX 3000 /* looks at the clock in one step of the script */
#define BUFS_MAX   20000

struct dgram {
	uint32_t len;
	uint8_t *bytes;
};

/* A request that a host got. */
struct got {
	struct rwy_ip src, dst;
	uint32_t qpn, psn, len;
	uint8_t opcode;
};

struct world;

struct site {
	struct world *w;
	unsigned idx;
	struct eng *e;
	uint64_t bufs;
	struct got got[KEEP];
	uint32_t got_n;
	struct dgram in[QUEUE_MAX]; /* on the way to this site */
	uint32_t in_n;
	struct dgram old[KEEP]; /* for replays */
	uint32_t old_n;
	uint8_t fate; /* of what leaves this site, see fate() */
	uint32_t psn[4];
	uint8_t last[RC_PKT_MAX]; /* what a host of the site sent last */
	uint32_t last_len;
};

struct world {
	const uint8_t *p;
	size_t n;
	rwy_time now;
	uint64_t seed;
	struct site site[2];
	uint8_t mode;
	bool evil;           /* the peer gateway itself has lied: what it carries may be anything */
	uint32_t alloc_fail; /* every so many allocations fail; 0: none */
	uint32_t allocs;
};

static uint8_t u8(struct world *w)
{
	if (!w->n)
		return 0;
	w->n--;
	return *w->p++;
}

static uint32_t u16(struct world *w)
{
	uint32_t hi = u8(w);

	return hi << 8 | u8(w);
}

static uint32_t u24(struct world *w)
{
	uint32_t hi = u8(w);

	return hi << 16 | u16(w);
}

/* --- buffers ---------------------------------------------------------------------------------- */

struct mem {
	struct rwy_buf b; /* first */
	uint8_t bytes[];
};

static struct rwy_buf *buf_new(struct site *s, uint32_t room, uint32_t len)
{
	struct mem *m = malloc(sizeof(*m) + room + len);

	CHECK(m);
	memset(&m->b, 0, sizeof(m->b));
	m->b.data = m->bytes + room;
	m->b.len = len;
	m->b.headroom = (uint16_t)room;
	s->bufs++;
	CHECK(s->bufs < BUFS_MAX);
	return &m->b;
}

static struct rwy_buf *buf_alloc(void *ctx, uint32_t headroom, uint32_t len)
{
	struct site *s = ctx;

	if (s->w->alloc_fail && ++s->w->allocs % s->w->alloc_fail == 0)
		return NULL;
	return buf_new(s, headroom, len);
}

static void buf_free(void *ctx, struct rwy_buf *b)
{
	struct site *s = ctx;

	CHECK(s->bufs);
	s->bufs--;
	free(b);
}

static const struct rwy_buf_ops buf_ops = {buf_alloc, buf_free};

/* --- what engines send ------------------------------------------------------------------------ */

/* Headers in front, as the gateway writes them. */
static void scribble(struct rwy_buf *b, uint32_t room)
{
	if (b && b->headroom >= room)
		memset(b->data - room, 0xee, room);
}

static void host_got(struct site *s, uint8_t *ip, uint32_t len, const struct rwy_ip *to)
{
	struct got *g = &s->got[s->got_n % KEEP];
	struct roce_pkt pkt;

	if (roce_parse(ip, len, &pkt) != ROCE_PARSE_OK)
		return;
	CHECK(s->w->evil || rwy_ip_eq(to, &pkt.dst));
	if (pkt.info->transport != ROCE_RC)
		return;
	CHECK(s->w->evil || roce_icrc_ok(&pkt));
	if (!roce_op_is_request(pkt.info))
		return;
	*g = (struct got){pkt.src, pkt.dst, pkt.dqpn, pkt.psn, pkt.payload_len, pkt.opcode};
	if (pkt.info->op == ROCE_OP_READ_REQ)
		g->len = roce_reth_len(&pkt);
	s->got_n++;
}

static void lan_tx(void *ctx, const struct eng_lan_tx *tx)
{
	struct site *s = ctx;
	uint8_t *copy = malloc(tx->len ? tx->len : 1);

	CHECK(copy && tx->len);
	memcpy(copy, tx->buf ? tx->buf->data : tx->bytes, tx->len);
	host_got(s, copy, tx->len, tx->dst);
	free(copy);
	scribble(tx->buf, L2_ROOM);
	if (tx->buf && tx->own)
		buf_free(s, tx->buf);
}

static void put(struct site *to, const uint8_t *bytes, uint32_t len)
{
	struct dgram d = {len, malloc(len ? len : 1)};

	CHECK(d.bytes);
	memcpy(d.bytes, bytes, len);
	if (to->in_n == QUEUE_MAX) {
		free(d.bytes);
		return;
	}
	to->in[to->in_n++] = d;
}

/* What becomes of a datagram: the script's present choice. */
static void carry(struct site *from, uint8_t *bytes, uint32_t len)
{
	struct world *w = from->w;
	struct site *to = &w->site[!from->idx];
	uint8_t fate = from->fate & 0xf0 ? u8(w) : from->fate & 7;

	free(to->old[to->old_n % KEEP].bytes);
	to->old[to->old_n % KEEP] = (struct dgram){len, malloc(len)};
	CHECK(to->old[to->old_n % KEEP].bytes);
	memcpy(to->old[to->old_n++ % KEEP].bytes, bytes, len);
	if (fate == 1)
		return;
	if (fate == 2)
		put(to, bytes, len);
	if (fate == 3)
		bytes[w->allocs++ % len] ^= (uint8_t)(1u << (len & 7));
	put(to, bytes, len);
	if (fate == 4 && to->in_n > 1) { /* overtakes */
		struct dgram d = to->in[to->in_n - 1];

		memmove(to->in + 1, to->in, (to->in_n - 1) * sizeof(d));
		to->in[0] = d;
	}
}

static void wan_tx(void *ctx, unsigned tunnel, const struct wan_tx *tx)
{
	struct site *s = ctx;
	uint8_t dgram[12000];
	uint32_t len = tx->hdr_len;

	CHECK(tunnel == 0 && tx->hdr_len <= WAN_HDR_MAX);
	memcpy(dgram, tx->hdr, len);
	if (tx->buf) {
		CHECK(tx->off + tx->len <= tx->buf->len);
		memcpy(dgram + len, tx->buf->data + tx->off, tx->len);
		len += tx->len;
		if (!tx->off)
			scribble(tx->buf, L4_ROOM + tx->hdr_len);
	}
	carry(s, dgram, len);
	if (tx->buf && tx->own)
		buf_free(s, tx->buf);
}

static const struct eng_ops eng_ops = {.lan_tx = lan_tx, .wan_tx = wan_tx};

static struct rwy_ip host_ip(unsigned site, unsigned host, bool is6)
{
	uint8_t v4[4] = {10, (uint8_t)(site + 1), 0, (uint8_t)(host + 2)};
	struct rwy_ip ip = {{0xfd, 0, 0, (uint8_t)(site + 1)}};

	if (!is6)
		return rwy_ip_from4(v4);
	ip.b[15] = (uint8_t)(host + 2);
	return ip;
}

static void site_start(struct site *s)
{
	struct world *w = s->w;
	struct eng_cfg *c = malloc(sizeof(*c));
	struct wan_cfg *wan;

	CHECK(c);
	eng_cfg_default(c);
	c->tunnels = 1;
	c->prefixes = 2;
	c->prefix[0] = (struct eng_prefix){.addr = host_ip(!s->idx, 0, false), .len = 120};
	c->prefix[0].addr.b[15] = 0;
	c->prefix[1] = (struct eng_prefix){.addr = host_ip(!s->idx, 0, true), .len = 64};
	c->ack_mode = (enum eng_ack_mode)((w->mode & 3) % 3);
	c->conns_max = CONNS_MAX;
	c->half_open_max = HALF_MAX;
	c->idle_expiry = 5 * RWY_SEC;
	c->host_window = 8;
	c->custody_conn = CUSTODY;
	c->custody_total = 2 * CUSTODY;
	c->buf_cost = 0;
	c->read_cache_conn = 4096;
	c->probe_timeout = 20 * RWY_MS;
	c->rnr_retry = 2;
	c->retry = 3;
	c->seed = w->seed += 77;
	wan = &c->tunnel[0].wan;
	wan_cfg_default(wan);
	wan->mtu[0] = w->mode & 4 ? 9000 : 576;
	wan->cc = w->mode & 8 ? &cc_auto : &cc_fixed;
	wan->cc_cfg.rate_Bps = 1250000000;
	wan->cc_cfg.mtu = wan->mtu[0];
	wan->tunnel_id = 7;
	wan->tx_pkts_max = 256;
	wan->rx_window = w->mode & 16 ? 4 : 64;
	wan->rx_bytes = w->mode & 16 ? 20000 : 1 << 20;
	CHECK(eng_new(&s->e, c, &eng_ops, s, (struct rwy_bufs){&buf_ops, s}, w->now) == 0);
	if (w->mode & 128) { /* a second world of the same addresses */
		struct eng_tenant_cfg t = {.vni = VNI,
		    .ack_mode = c->ack_mode,
		    .flows_max = 16,
		    .custody = 1 << 16,
		    .prefix = c->prefix,
		    .prefixes = c->prefixes};

		CHECK(eng_tenant_set(s->e, 1 + s->idx, &t, w->now) == 0);
	}
	free(c);
}

static void site_stop(struct site *s)
{
	eng_free(s->e);
	CHECK(s->bufs == 0);
	s->e = NULL;
}

/* --- invariants ------------------------------------------------------------------------------- */

static void check_near(const struct eng_near *n, uint64_t *custody, uint32_t *half_open)
{
	*half_open += n->h.state == ENG_LEARNING;
	*custody += n->custody;
	CHECK(n->custody == (n->req ? wan_tx_bytes(n->req) : 0)); /* buf_cost is 0 here */
	CHECK(!n->far || (n->far->near == n && n->far->h.e));
	CHECK(!n->far || !n->lqpn || n->far->h.key.qpn == n->lqpn);
	CHECK(n->parked.n <= ENG_PARKED_MAX);
	CHECK(n->active || (!n->req && !n->cache.n && !n->parked.n));
}

static void check_far(const struct eng_far *f, uint32_t *learning)
{
	*learning += f->in_turn + f->queued;
	CHECK(!f->near || f->near->far == f);
	CHECK(!(f->in_turn && f->queued));
	CHECK(!f->near || !f->pair);
	CHECK(f->wait_n <= f->wait_cap);
	CHECK(f->told_seq <= f->done_seq || !f->req);
	CHECK(!f->active || f->reqr.inflight <= f->reqr.q.n);
}

static void check(struct site *s)
{
	const struct eng *e = s->e;
	uint32_t halves = 0, half_open = 0, learning = 0;
	uint64_t custody = 0;

	for (uint32_t i = 0; i <= e->table_mask; i++)
		for (const struct eng_half *h = e->table[i]; h; h = h->chain) {
			halves++;
			CHECK(h->e == e);
			if (h->is_far)
				check_far((const struct eng_far *)h, &learning);
			else
				check_near((const struct eng_near *)h, &custody, &half_open);
		}
	CHECK(halves == e->halves && halves <= CONNS_MAX);
	CHECK(half_open == e->half_open);
	CHECK(learning == e->learning);
	CHECK(custody == eng_custody_bytes(e));
	CHECK(custody <= s->bufs * (uint64_t)RC_PKT_MAX);
}

static void look(struct site *s)
{
	struct eng_flow_info info[4];
	struct wan_stats st;
	uint32_t cursor = 0, calls = 0;

	do {
		unsigned n = eng_flows(s->e, &cursor, info, 4);

		CHECK(n <= 4);
		for (unsigned i = 0; i < n; i++)
			CHECK(info[i].state && info[i].learned && info[i].error);
	} while (cursor && ++calls < 100);
	CHECK(calls < 100);
	eng_tunnel_stats(s->e, 0, &st);
	CHECK(st.tx_queued_bytes <= s->bufs * (uint64_t)RC_PKT_MAX);
}

/* --- time ------------------------------------------------------------------------------------- */

/* Nothing may stay due that polling does not do. */
static void poll_site(struct site *s)
{
	unsigned idle = 0;

	while (idle < IDLE_POLLS) {
		if (eng_poll(s->e, s->w->now))
			idle = 0;
		else
			idle++;
		if (eng_next(s->e) > s->w->now)
			return;
	}
	CHECK(idle < IDLE_POLLS); /* due for ever */
}

static bool deliver(struct site *s)
{
	uint32_t n = s->in_n;

	for (uint32_t i = 0; i < n; i++) {
		struct dgram d = s->in[i];
		struct rwy_buf *b = buf_new(s, RX_ROOM, d.len);

		memcpy(b->data, d.bytes, d.len);
		free(d.bytes);
		eng_wan_rx(s->e, 0, 0, b, (uint8_t)(d.len & 3), s->w->now);
	}
	memmove(s->in, s->in + n, (s->in_n - n) * sizeof(s->in[0]));
	s->in_n -= n;
	return n;
}

static void settle(struct world *w)
{
	for (unsigned i = 0; i < 60; i++) {
		bool any = false;

		poll_site(&w->site[0]);
		poll_site(&w->site[1]);
		w->now += 50 * RWY_US;
		any = deliver(&w->site[0]);
		any = deliver(&w->site[1]) || any;
		if (!any)
			break;
	}
	poll_site(&w->site[0]);
	poll_site(&w->site[1]);
}

static void pass(struct world *w, rwy_dur d)
{
	rwy_time end = w->now + d;

	for (unsigned i = 0; i < EVENTS_MAX && w->now < end; i++) {
		rwy_time at = rwy_time_min(eng_next(w->site[0].e), eng_next(w->site[1].e));

		w->now = rwy_time_min(end, rwy_time_max(at, w->now + d / 64));
		settle(w);
	}
}

/* --- what hosts send -------------------------------------------------------------------------- */

/* The IPv4 packet in `in` as IPv6, with its ICRC. */
static uint32_t to_ip6(uint8_t *out, const uint8_t *in, uint32_t len, unsigned site, unsigned host)
{
	struct rwy_ip src = host_ip(site, host, true), dst = host_ip(!site, host, true);
	struct roce_pkt pkt;

	memset(out, 0, 40);
	out[0] = 0x60;
	rwy_put16(out + 4, (uint16_t)(len - 20));
	out[6] = 17;
	out[7] = 64;
	memcpy(out + 8, src.b, 16);
	memcpy(out + 24, dst.b, 16);
	memcpy(out + 40, in + 20, len - 20);
	if (roce_parse(out, len + 20, &pkt) == ROCE_PARSE_OK)
		roce_icrc_store(&pkt);
	return len + 20;
}

static void from_host(struct site *s, const uint8_t *ip, uint32_t len)
{
	struct rwy_buf *b;

	if (!len)
		return;
	b = buf_new(s, RX_ROOM, len);
	memcpy(b->data, ip, len);
	memcpy(s->last, ip, len);
	s->last_len = len;
	if (s->w->mode & 128)
		eng_tenant_rx(s->e, &b, &(uint16_t){(uint16_t)(len & 4 ? 1 + s->idx : 0)}, 1, s->w->now);
	else
		eng_lan_rx(s->e, &b, 1, s->w->now);
}

static void send_mk(struct site *s, struct rc_mk *m, unsigned host, bool is6)
{
	struct rwy_ip src = host_ip(s->idx, host, false), dst = host_ip(!s->idx, host, false);
	uint8_t out[RC_PKT_MAX], out6[RC_PKT_MAX + 20];
	uint32_t len;

	memcpy(m->src, src.b + 12, 4);
	memcpy(m->dst, dst.b + 12, 4);
	len = rc_pkt_make(out, m);
	if (!is6)
		from_host(s, out, len);
	else if (len + 20 <= RC_PKT_MAX)
		from_host(s, out6, to_ip6(out6, out, len, s->idx, host));
}

static const uint32_t lengths[8] = {0, 1, 255, 256, 512, 1024, 2048, 4096};

/* A request of one of four queue pairs of the site. `how`: pair 0..1, IPv6 2, AckReq 3, PSN odd 4, length
 * 5..7. */
static void request(struct site *s, uint8_t opcode, uint8_t how)
{
	struct world *w = s->w;
	unsigned qp = how & 3;
	struct rc_mk m = {.opcode = opcode,
	    .psn = s->psn[qp],
	    .ack_req = how & 8,
	    .dqpn = 0x10 + qp,
	    .len = lengths[how >> 5],
	    .payload_len = lengths[how >> 5]};
	const struct roce_opinfo *info = roce_op(opcode);
	uint32_t cnt = 1;

	if (how & 16) {
		uint8_t b = u8(w);

		m.psn = b == 0x80 ? u24(w) : (m.psn + (uint32_t)(int32_t)(int8_t)b) & ROCE_PSN_MASK;
	}
	if (info->op == ROCE_OP_READ_REQ) {
		uint8_t b = u8(w);

		m.len = b & 1 ? u24(w) << (b >> 4) : lengths[b >> 5] * (1 + (b >> 1 & 15));
		cnt = roce_read_packets(m.len, 1024);
	}
	if (!(info->flags & ROCE_F_PAYLOAD))
		m.payload_len = 0;
	if (!(how & 16) || m.psn == s->psn[qp])
		s->psn[qp] = (m.psn + cnt) & ROCE_PSN_MASK;
	send_mk(s, &m, qp >> 1, how & 4);
}

/* The answer a host would give to a request that it got. */
static void answer(struct site *s, uint8_t which, uint8_t how)
{
	const struct got *g = &s->got[which % KEEP];
	struct rc_mk m = {
	    .psn = g->psn, .dqpn = g->qpn, .syndrome = 0x1f, .msn = which, .opcode = ROCE_RC_ACK};
	const struct roce_opinfo *info = roce_op(g->opcode);
	bool is6 = !rwy_ip_is4(&g->src);
	unsigned host = (g->dst.b[15] - 2u) & 1;
	uint32_t mtu = lengths[3 + (how & 3)], n;

	if (g->qpn == 0)
		return;
	if (how & 0x80) { /* another queue pair, another PSN */
		m.dqpn = 0x10 + (how >> 2 & 3);
		m.psn = (m.psn + (uint32_t)(int32_t)(int8_t)u8(s->w)) & ROCE_PSN_MASK;
	}
	if (how & 0x40) {
		m.syndrome = u8(s->w);
	} else if (roce_op_is_atomic(info)) {
		m.opcode = ROCE_RC_ATOMIC_ACK;
	} else if (info->op == ROCE_OP_READ_REQ) {
		n = roce_read_packets(g->len, mtu);
		n = n > 12 ? 12 : n;
		for (uint32_t i = 0; i < n; i++) {
			m.opcode = n == 1       ? ROCE_RC_READ_RESP_ONLY
			           : i == 0     ? ROCE_RC_READ_RESP_FIRST
			           : i + 1 == n ? ROCE_RC_READ_RESP_LAST
			                        : ROCE_RC_READ_RESP_MIDDLE;
			m.payload_len = i + 1 < n ? mtu : g->len - i * mtu;
			if (m.payload_len > mtu)
				m.payload_len = mtu;
			send_mk(s, &m, host, is6);
			m.psn = (m.psn + 1) & ROCE_PSN_MASK;
			if (how & 0x20 && i == (how >> 2 & 7u))
				return;
		}
		return;
	}
	send_mk(s, &m, host, is6);
}

static void any_response(struct site *s, uint8_t op)
{
	struct world *w = s->w;
	struct rc_mk m = {.opcode = (uint8_t)(ROCE_RC_READ_RESP_FIRST + op % 6)};
	uint8_t how = u8(w);

	m.dqpn = how & 0x80 ? u24(w) : 0x10u + (how & 3u);
	m.psn = how & 0x40 ? u24(w) : (s->psn[how & 3] + (uint32_t)(int32_t)(int8_t)u8(w)) & ROCE_PSN_MASK;
	m.syndrome = u8(w);
	m.msn = how;
	m.payload_len = roce_op(m.opcode)->flags & ROCE_F_PAYLOAD ? lengths[how >> 2 & 7] : 0;
	send_mk(s, &m, how >> 1 & 1, how & 4);
}

/* A CM message over few names. */
static void cm(struct site *s, uint8_t what)
{
	static const uint8_t attrs[8] = {0x10, 0x13, 0x14, 0x15, 0x16, 0x12, 0x11, 0x17};
	struct world *w = s->w;
	uint8_t mad[264] = {0x80, 0x01, 0, 0, 0, 0, 0, 1, 1, 7, 2, 3}, ids = u8(w), more = u8(w);
	uint8_t *b = mad + 8 + 24, out[RC_PKT_MAX], out6[RC_PKT_MAX];
	struct rc_mk m = {.opcode = ROCE_UD_SEND_ONLY, .dqpn = 1};
	struct rwy_ip src = host_ip(s->idx, what >> 3 & 1, what & 16);
	struct rwy_ip dst = host_ip(!s->idx, what >> 3 & 1, what & 16);
	struct roce_pkt pkt;
	uint32_t len;

	mad[8 + 15] = ids >> 6;
	rwy_put16(mad + 8 + 16, attrs[what & 7]);
	rwy_put32(b, 1 + (ids & 3));
	rwy_put32(b + 4, (what & 7) == 0 ? 0 : 1 + (ids >> 2 & 3));
	if ((what & 7) == 0) {
		rwy_put24(b + 32, 0x10 + (ids >> 4 & 3));
		rwy_put24(b + 44, s->psn[ids >> 4 & 3]);
		b[47] = more & 7;
		b[50] = (uint8_t)((more >> 3 & 7) << 4 | 7);
		memcpy(b + 56, src.b, 16);
		memcpy(b + 72, dst.b, 16);
	} else if ((what & 7) == 1) {
		rwy_put24(b + 12, 0x10 + (ids >> 4 & 3));
		rwy_put24(b + 20, s->psn[ids >> 4 & 3]);
		b[27] = (uint8_t)(more << 5);
	} else if ((what & 7) == 3) {
		rwy_put24(b + 8, 0x10 + (ids >> 4 & 3));
	}
	if (what & 32)
		mad[8 + more] ^= u8(w);
	/* rc_pkt_make knows no DETH: its bytes stand in front of the payload, and the length is right. */
	m.payload = mad + 8;
	m.payload_len = what & 64 ? more : 256;
	memcpy(m.src, src.b + 12, 4);
	memcpy(m.dst, dst.b + 12, 4);
	len = rc_pkt_make(out, &m);
	memmove(out + 28 + 12 + 8, out + 28 + 12, len - 28 - 12);
	memcpy(out + 28 + 12, mad, 8);
	len += 8;
	rwy_put16(out + 2, (uint16_t)len);
	rwy_put16(out + 24, (uint16_t)(len - 20));
	rwy_put16(out + 10, (uint16_t)0);
	{
		uint32_t sum = 0;

		for (int i = 0; i < 20; i += 2)
			sum += rwy_get16(out + i);
		sum = (sum & 0xffff) + (sum >> 16);
		rwy_put16(out + 10, (uint16_t) ~(sum + (sum >> 16)));
	}
	if (what & 16) {
		from_host(s, out6, to_ip6(out6, out, len, s->idx, what >> 3 & 1));
		return;
	}
	if (roce_parse(out, len, &pkt) == ROCE_PARSE_OK)
		roce_icrc_store(&pkt);
	from_host(s, out, len);
}

/* The last packet again, with bytes changed and cut. */
static void mutate(struct site *s, uint8_t how)
{
	uint8_t out[RC_PKT_MAX];
	uint32_t len = s->last_len;
	struct roce_pkt pkt;

	if (!len)
		return;
	memcpy(out, s->last, len);
	for (unsigned i = 0; i < (how & 3u); i++) {
		uint32_t at = u8(s->w);

		out[at % len] ^= u8(s->w);
	}
	if (how & 4)
		len = len * u8(s->w) / 256;
	if (how & 8 && len && roce_parse(out, len, &pkt) == ROCE_PARSE_OK)
		roce_icrc_store(&pkt);
	from_host(s, out, len);
}

static void garbage(struct site *s, uint8_t n)
{
	uint8_t out[256];

	for (unsigned i = 0; i < n; i++)
		out[i] = u8(s->w);
	from_host(s, out, n);
}

/* --- the WAN ---------------------------------------------------------------------------------- */

static void replay(struct site *s, uint8_t which)
{
	struct dgram *d = &s->old[which % KEEP];

	if (d->bytes)
		put(s, d->bytes, d->len);
}

/* Frames of the peer's address with a right checksum, saying anything. */
static void lie(struct site *s, uint8_t n)
{
	struct dgram *d = &s->old[(s->old_n - 1) % KEEP];
	uint8_t out[400];
	uint32_t len = 20;

	if (!s->old_n || d->len < 20 || s->w->mode & 32)
		return;
	s->w->evil = true;
	memcpy(out, d->bytes, 20);
	rwy_put64(out + 8, rwy_get64(d->bytes + 8) + 1 + (n >> 6));
	if (n & 32) { /* what a flow opens with, so that the engines see it */
		struct eng_open o = {.type = (uint8_t)(1 + u8(s->w) % 3), .rnr_retry = 7, .retry = 7};
		uint8_t which = u8(s->w), info[WAN_OPEN_MAX];
		struct wan_f_data f = {.open = true, .kind = which >> 6 & 1, .info = info};

		o.life = which;
		o.vni = s->w->mode & 128 && which & 64 ? VNI : 0;
		o.key.qpn = 0x10 + (which & 3);
		o.peer_qpn = which & 32 ? 0x10 + (which & 3) : 0;
		o.key.src = host_ip(o.type == ENG_OPEN_RSP ? s->idx : !s->idx, which >> 2 & 1, which & 8);
		o.key.dst = host_ip(o.type == ENG_OPEN_RSP ? !s->idx : s->idx, which >> 2 & 1, which & 16);
		f.flow = u8(s->w) & 15;
		f.info_len = (uint8_t)eng_open_encode(info, &o);
		len = (uint32_t)(wan_f_data_put(out + 20, &f) - out);
		if (which & 128 && s->last_len && s->last_len < sizeof(out) - len) {
			memcpy(out + len, s->last, s->last_len);
			len += s->last_len;
		}
	}
	for (unsigned i = 0; i < (n & 31u) * 2 && len < sizeof(out); i++)
		out[len++] = u8(s->w);
	rwy_put32(out + 16, 0);
	wan_pkt_seal(out, len, NULL, 0);
	put(s, out, len);
}

/* --- the script ------------------------------------------------------------------------------- */

static void step(struct world *w)
{
	static const rwy_dur units[4] = {20 * RWY_US, 2 * RWY_MS, 60 * RWY_MS, 700 * RWY_MS};
	static const uint8_t ops[16] = {ROCE_RC_SEND_ONLY, ROCE_RC_WRITE_ONLY, ROCE_RC_READ_REQ,
	    ROCE_RC_FETCH_ADD, ROCE_RC_CMP_SWAP, ROCE_RC_SEND_FIRST, ROCE_RC_SEND_MIDDLE, ROCE_RC_SEND_LAST,
	    ROCE_RC_WRITE_FIRST, ROCE_RC_WRITE_MIDDLE, ROCE_RC_WRITE_LAST, ROCE_RC_WRITE_LAST_IMM,
	    ROCE_RC_SEND_ONLY_INV, ROCE_RC_READ_REQ, ROCE_RC_SEND_ONLY, ROCE_RC_WRITE_ONLY_IMM};
	uint8_t c = u8(w), arg = u8(w);
	struct site *s = &w->site[c >> 7];

	switch (c & 15) {
	case 0:
	case 1:
	case 2:
		request(s, ops[(c >> 3 & 14) | (c & 1)], arg);
		break;
	case 3:
		request(s, u8(w), arg);
		break;
	case 4:
	case 5:
		answer(s, (uint8_t)(s->got_n - 1 - (c >> 4 & 7)), arg);
		break;
	case 6:
		any_response(s, arg);
		break;
	case 7:
		cm(s, arg);
		break;
	case 8:
		garbage(s, arg);
		break;
	case 9:
		mutate(s, arg);
		break;
	case 10:
		pass(w, units[arg & 3] * (1 + (arg >> 2)));
		break;
	case 11:
		s->fate = arg;
		break;
	case 12:
		if (arg & 1)
			look(s);
		else {
			site_stop(s);
			site_start(s);
		}
		break;
	case 13:
		lie(s, arg);
		break;
	case 14:
		replay(s, arg);
		break;
	case 15:
		for (unsigned i = 0; i < (arg >> 3 & 15u); i++)
			request(s, ROCE_RC_SEND_ONLY, (uint8_t)((arg & 7) | (arg >> 7) << 7));
		break;
	}
	if (!(c & 16) || c & 64)
		settle(w);
	check(&w->site[0]);
	check(&w->site[1]);
}

/* Everything works again: what is left must end by itself, and nothing may stay due. */
static void finish(struct world *w)
{
	w->alloc_fail = 0;
	w->site[0].fate = w->site[1].fate = 0;
	settle(w);
	for (unsigned i = 0; i < 12; i++) {
		pass(w, RWY_SEC);
		check(&w->site[0]);
		check(&w->site[1]);
	}
	for (unsigned i = 0; i < 2; i++) {
		struct site *s = &w->site[i];

		site_stop(s);
		for (uint32_t k = 0; k < s->in_n; k++)
			free(s->in[k].bytes);
		for (uint32_t k = 0; k < KEEP; k++)
			free(s->old[k].bytes);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct world *w;

	if (size < 2 || size > INPUT_MAX)
		return 0;
	w = calloc(1, sizeof(*w));
	CHECK(w);
	w->p = data;
	w->n = size;
	w->now = RWY_SEC;
	w->mode = u8(w);
	if (w->mode & 64)
		w->alloc_fail = 3 + (w->mode & 31);
	for (unsigned i = 0; i < 2; i++) {
		w->site[i].w = w;
		w->site[i].idx = i;
		w->site[i].psn[1] = 0xfffffd;
		w->site[i].psn[2] = 100;
		site_start(&w->site[i]);
	}
	pass(w, 100 * RWY_MS);
	while (w->n)
		step(w);
	finish(w);
	free(w);
	return 0;
}
