/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/eng_pair.h"

#include <stdio.h>

#include "rwy/endian.h"
#include "tests/lib/heap_buf.h"

#define ROOM  320
#define QUEUE 16384

struct dgram {
	rwy_time at;
	unsigned to, tunnel;
	uint32_t len;
	uint8_t bytes[2048];
};

struct eng_site site[2];
static struct dgram *queue;
static unsigned q_head, q_tail; /* of a ring */
static rwy_dur wan_delay;
static bool wan_cut;
rwy_time eng_now;
void (*eng_pair_tune)(struct eng_cfg *c);
struct eng_journal_entry eng_pair_journal[ENG_PAIR_JOURNAL];

void eng_pair_with_journal(struct eng_cfg *c)
{
	if (c->prefix[0].addr.b[13] != 2) /* site 1 */
		return;
	c->journal = eng_pair_journal;
	c->journal_n = ENG_PAIR_JOURNAL;
	c->journal_whole = true;
	c->journal_for = 60 * RWY_SEC;
}
uint8_t eng_host_pcp;

static struct rwy_buf *site_alloc(void *bufs, uint32_t headroom, uint32_t len)
{
	for (unsigned i = 0; i < 2; i++)
		if (bufs == &site[i].bufs && site[i].starved)
			return NULL;
	return heap_buf_alloc(bufs, headroom, len);
}

static const struct rwy_buf_ops site_ops = {site_alloc, heap_buf_free};

static uint16_t ip_sum(const uint8_t *ip)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < 20; i += 2)
		sum += rwy_get16(ip + i);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)(sum + (sum >> 16));
}

static void count_of(struct eng_site *s, uint32_t tenant, const struct roce_pkt *pkt)
{
	bool ack = pkt->info->op == ROCE_OP_ACK;

	if (pkt->info->transport == ROCE_RC && roce_op_is_request(pkt->info)) {
		s->of[tenant].requests++;
		s->of[tenant].psn = pkt->psn;
	} else if (ack && roce_aeth_type(roce_aeth_syndrome(pkt)) == ROCE_AETH_ACK) {
		s->of[tenant].acks++;
		s->of[tenant].ack_psn = pkt->psn;
	} else if (ack) {
		s->of[tenant].naks++;
	} else {
		s->of[tenant].others++;
	}
	if (!roce_op_is_response(pkt->info) || ack)
		return;
	s->responses++;
	s->response = pkt->opcode;
	s->response_psn = pkt->psn;
	if (pkt->opcode == ROCE_RC_ATOMIC_ACK)
		s->original = rwy_get64(pkt->ext + 4);
}

static void lan_tx(void *ctx, const struct eng_lan_tx *tx)
{
	struct eng_site *s = ctx;
	uint8_t copy[RC_PKT_MAX];
	struct roce_pkt pkt;

	memcpy(copy, tx->buf ? tx->buf->data : tx->bytes, tx->len);
	if (tx->foreign) { /* shown, not to be sent */
		s->foreign++;
		heap_buf_free(&s->bufs, tx->buf);
		return;
	}
	if (s->edge) {
		uint8_t *ip = tx->buf ? tx->buf->data : copy;

		if (!s->edge(s, ip, tx->len)) {
			if (tx->buf && tx->own)
				heap_buf_free(&s->bufs, tx->buf);
			return;
		}
		memmove(copy, ip, tx->len);
	}
	assert_true(tx->tenant < PAIR_TENANTS);
	s->tenant = tx->tenant;
	s->pcp = tx->pcp;
	if (roce_parse(copy, tx->len, &pkt) == ROCE_PARSE_OK) {
		s->cnps += pkt.info->transport == ROCE_CNP_T;
		s->acks += pkt.info->op == ROCE_OP_ACK;
		count_of(s, tx->tenant, &pkt);
		s->qpn = pkt.dqpn;
		if (s->heard)
			s->heard(s, &pkt);
		if (roce_op_is_request(pkt.info)) {
			s->requests++;
			s->of_qpn[pkt.dqpn & 255]++;
			s->psn_of[pkt.dqpn & 255] = pkt.psn;
			s->ecn = pkt.ecn;
			s->psn = pkt.psn;
			s->ip_sum_ok = ip_sum(copy) == 0xffff;
		}
	}
	if (tx->buf && tx->own)
		heap_buf_free(&s->bufs, tx->buf);
}

static void wan_tx(void *ctx, unsigned tunnel, const struct wan_tx *tx)
{
	struct eng_site *s = ctx;
	struct dgram *d = &queue[q_tail & (QUEUE - 1)];

	assert_true(q_tail - q_head < QUEUE);
	q_tail += !wan_cut;
	d->at = eng_now + wan_delay;
	d->to = !s->idx;
	d->tunnel = tunnel;
	d->len = tx->hdr_len;
	memcpy(d->bytes, tx->hdr, tx->hdr_len);
	if (tx->buf) {
		memcpy(d->bytes + d->len, tx->buf->data + tx->off, tx->len);
		d->len += tx->len;
		if (tx->own)
			heap_buf_free(&s->bufs, tx->buf);
	}
}

static void session(void *ctx, bool open, const struct eng_session *s)
{
	struct eng_site *side_of = ctx;

	*(open ? &side_of->opened : &side_of->closed) += 1;
	side_of->session = *s;
}

static void log_line(void *ctx, int level, const char *msg)
{
	struct eng_site *s = ctx;

	if (level > 1)
		return;
	s->warnings++;
	snprintf(s->warning, sizeof(s->warning), "%s", msg);
}

void eng_pair_run(rwy_dur time)
{
	rwy_time end = eng_now + time;

	while (eng_now < end) {
		for (unsigned i = 0; i < 2; i++)
			eng_poll(site[i].e, eng_now);
		for (unsigned i = 0; i < 2; i++)
			if (site[i].bufs > site[i].bufs_most)
				site[i].bufs_most = site[i].bufs;
		eng_now += RWY_MS;
		for (unsigned n = q_tail; q_head != n && queue[q_head & (QUEUE - 1)].at <= eng_now;
		     q_head++) {
			const struct dgram *d = &queue[q_head & (QUEUE - 1)];
			struct eng_site *to = &site[d->to];
			struct rwy_buf *b = heap_buf_alloc(&to->bufs, ROOM, d->len);

			memcpy(b->data, d->bytes, d->len);
			eng_wan_rx(to->e, d->tunnel, 0, b, 0, eng_now);
		}
	}
}

struct eng_flow_info eng_pair_flow(unsigned at)
{
	struct eng_flow_info f[4];
	uint32_t cursor = 0;
	unsigned n = 0;

	do
		n += eng_flows(site[at].e, &cursor, f + n, 4 - n);
	while (cursor && n < 4);
	assert_int_equal(n, 1);
	return f[0];
}

void eng_pair_delay(rwy_dur one_way)
{
	wan_delay = one_way;
}

void eng_pair_cut(bool cut)
{
	wan_cut = cut;
}

void eng_host_sends_bytes(unsigned from, const uint8_t *ip, uint32_t len)
{
	struct rwy_buf *b = heap_buf_alloc(&site[from].bufs, ROOM, len);
	uint16_t tenant = 0;

	memcpy(b->data, ip, len);
	b->pcp = eng_host_pcp & 15;
	eng_tenant_rx(site[from].e, &b, &tenant, 1, eng_now);
}

static void set_ip_sum(uint8_t *ip)
{
	rwy_put16(ip + 10, 0);
	rwy_put16(ip + 10, (uint16_t)~ip_sum(ip));
}

void eng_host_sends(unsigned from, const struct rc_mk *m, uint8_t tos)
{
	eng_host_sends_as(from, 0, m, tos);
}

void eng_host_sends_as(unsigned from, uint16_t tenant, const struct rc_mk *m, uint8_t tos)
{
	struct rwy_buf *b = heap_buf_alloc(&site[from].bufs, ROOM, RC_PKT_MAX);

	b->len = rc_pkt_make(b->data, m);
	b->data[1] = tos; /* not in the ICRC */
	set_ip_sum(b->data);
	b->pcp = eng_host_pcp & 15;
	eng_tenant_rx(site[from].e, &b, &tenant, 1, eng_now);
}

static bool note(void *ctx, unsigned worker, const struct eng_note *n)
{
	struct eng_site *s = ctx;

	return s->note && s->note(s, worker, n);
}

/* A test that has workers besides plays them itself. */
static void nobody_else(void *ctx)
{
}

static void start(unsigned at, uint64_t seed)
{
	static const struct eng_ops ops = {.lan_tx = lan_tx,
	    .wan_tx = wan_tx,
	    .session = session,
	    .log = log_line,
	    .note = note,
	    .board_changed = nobody_else};
	uint8_t net[4] = {10, (uint8_t)(2 - at), 0, 0};
	struct eng_cfg *c = malloc(sizeof(*c));

	assert_non_null(c);
	site[at] = (struct eng_site){.idx = at};
	eng_cfg_default(c);
	c->tunnels = c->prefixes = 1;
	c->prefix[0] = (struct eng_prefix){.addr = rwy_ip_from4(net), .len = 120};
	c->half_open_max = HALF_MAX;
	c->conns_max = 1000;
	c->seed = seed;
	wan_cfg_default(&c->tunnel[0].wan);
	c->tunnel[0].wan.cc_cfg.rate_Bps = 1250000000;
	if (eng_pair_tune)
		eng_pair_tune(c);
	assert_int_equal(
	    eng_new(&site[at].e, c, &ops, &site[at], (struct rwy_bufs){&site_ops, &site[at].bufs}, eng_now),
	    0);
	free(c);
}

void eng_pair_restart(unsigned at)
{
	eng_free(site[at].e);
	assert_int_equal(site[at].bufs, 0);
	start(at, (uint64_t)eng_now);
}

int eng_pair_set_up(void **state)
{
	queue = calloc(QUEUE, sizeof(*queue));
	assert_non_null(queue);
	eng_now = RWY_SEC;
	q_head = q_tail = 0;
	wan_delay = RWY_MS;
	wan_cut = false;
	eng_host_pcp = 0;
	for (unsigned i = 0; i < 2; i++)
		start(i, i + 1);
	eng_pair_run(RWY_SEC);
	return 0;
}

int eng_pair_tear_down(void **state)
{
	for (unsigned i = 0; i < 2; i++) {
		eng_free(site[i].e);
		if (site[i].bufs)
			return -1;
	}
	free(queue);
	return 0;
}
