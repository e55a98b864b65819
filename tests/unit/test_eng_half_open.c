/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections that nobody answers, in two engines with a perfect WAN between: they are bounded, they are
 * forgotten when the host gives up, at both ends, and others get their turn again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gateway/engine/engine.h"
#include "rc_pkt.h"

#define HALF_MAX 40
#define ROOM     320
#define QUEUE    4096

struct dgram {
	unsigned to;
	uint32_t len;
	uint8_t bytes[2048];
};

struct side {
	struct eng *e;
	unsigned idx;
	uint64_t bufs;
	unsigned requests; /* that reached the host */
	uint32_t qpn;      /* of the last */
	unsigned acks;
};

static struct side side[2];
static struct dgram *queue;
static unsigned queued;
static rwy_time now;

static struct rwy_buf *buf_alloc(void *ctx, uint32_t headroom, uint32_t len)
{
	struct side *s = ctx;
	struct rwy_buf *b = malloc(sizeof(*b) + headroom + len);

	assert_non_null(b);
	memset(b, 0, sizeof(*b));
	b->data = (uint8_t *)(b + 1) + headroom;
	b->len = len;
	b->headroom = (uint16_t)headroom;
	s->bufs++;
	return b;
}

static void buf_free(void *ctx, struct rwy_buf *b)
{
	struct side *s = ctx;

	s->bufs--;
	free(b);
}

static void lan_tx(void *ctx, const struct eng_lan_tx *tx)
{
	struct side *s = ctx;
	uint8_t copy[RC_PKT_MAX];
	struct roce_pkt pkt;

	memcpy(copy, tx->buf ? tx->buf->data : tx->bytes, tx->len);
	if (roce_parse(copy, tx->len, &pkt) == ROCE_PARSE_OK) {
		s->requests += roce_op_is_request(pkt.info);
		s->acks += pkt.info->op == ROCE_OP_ACK;
		s->qpn = pkt.dqpn;
	}
	if (tx->buf && tx->own)
		buf_free(s, tx->buf);
}

static void wan_tx(void *ctx, unsigned tunnel, const struct wan_tx *tx)
{
	struct side *s = ctx;
	struct dgram *d = &queue[queued++];

	assert_true(queued < QUEUE);
	d->to = !s->idx;
	d->len = tx->hdr_len;
	memcpy(d->bytes, tx->hdr, tx->hdr_len);
	if (tx->buf) {
		memcpy(d->bytes + d->len, tx->buf->data + tx->off, tx->len);
		d->len += tx->len;
		if (tx->own)
			buf_free(s, tx->buf);
	}
}

static void run(rwy_dur time)
{
	rwy_time end = now + time;

	while (now < end) {
		for (unsigned i = 0; i < 2; i++)
			eng_poll(side[i].e, now);
		now += RWY_MS;
		for (unsigned i = 0; i < queued; i++) {
			struct side *to = &side[queue[i].to];
			struct rwy_buf *b = buf_alloc(to, ROOM, queue[i].len);

			memcpy(b->data, queue[i].bytes, queue[i].len);
			eng_wan_rx(to->e, 0, 0, b, 0, now);
		}
		queued = 0;
	}
}

static void host_sends(unsigned from, const struct rc_mk *m)
{
	struct rwy_buf *b = buf_alloc(&side[from], ROOM, RC_PKT_MAX);

	b->len = rc_pkt_make(b->data, m);
	eng_lan_rx(side[from].e, &b, 1, now);
}

static void request(uint32_t qpn, uint8_t host)
{
	struct rc_mk m = {.opcode = ROCE_RC_SEND_ONLY,
	    .psn = 5,
	    .dqpn = qpn,
	    .ack_req = true,
	    .payload_len = 64,
	    .src = {10, 1, 0, host},
	    .dst = {10, 2, 0, host}};

	host_sends(0, &m);
}

static int set_up(void **state)
{
	static const struct rwy_buf_ops buf_ops = {buf_alloc, buf_free};
	static const struct eng_ops ops = {.lan_tx = lan_tx, .wan_tx = wan_tx};
	struct eng_cfg *c = malloc(sizeof(*c));

	queue = calloc(QUEUE, sizeof(*queue));
	assert_true(c && queue);
	now = RWY_SEC;
	queued = 0;
	for (unsigned i = 0; i < 2; i++) {
		uint8_t net[4] = {10, (uint8_t)(2 - i), 0, 0};

		side[i] = (struct side){.idx = i};
		eng_cfg_default(c);
		c->tunnels = c->prefixes = 1;
		c->prefix[0] = (struct eng_prefix){.addr = rwy_ip_from4(net), .len = 120};
		c->half_open_max = HALF_MAX;
		c->conns_max = 1000;
		c->seed = i + 1;
		wan_cfg_default(&c->tunnel[0].wan);
		c->tunnel[0].wan.cc_cfg.rate_Bps = 1250000000;
		assert_int_equal(
		    eng_new(&side[i].e, c, &ops, &side[i], (struct rwy_bufs){&buf_ops, &side[i]}, now), 0);
	}
	free(c);
	run(RWY_SEC);
	return 0;
}

static int tear_down(void **state)
{
	for (unsigned i = 0; i < 2; i++) {
		eng_free(side[i].e);
		if (side[i].bufs)
			return -1;
	}
	free(queue);
	return 0;
}

/* A connection of another pair of hosts comes about. */
static void assert_others_work(uint32_t qpn, uint8_t host)
{
	struct rc_mk ack = {.opcode = ROCE_RC_ACK,
	    .psn = 5,
	    .dqpn = qpn + 1,
	    .syndrome = 0x1f,
	    .msn = 1,
	    .src = {10, 2, 0, host},
	    .dst = {10, 1, 0, host}};
	unsigned acks = side[0].acks;

	request(qpn, host);
	run(20 * RWY_MS);
	assert_int_equal(side[1].qpn, qpn);
	host_sends(1, &ack);
	run(20 * RWY_MS);
	assert_int_equal(side[0].acks, acks + 1);
}

static void flood(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		request(0x1000 + i, 3);
}

static void test_bounded(void **state)
{
	const struct eng_counters *c = eng_counters(side[0].e);

	flood(1000);
	run(100 * RWY_MS);
	assert_int_equal(eng_flow_count(side[0].e), HALF_MAX);
	assert_int_equal(eng_flow_count(side[1].e), HALF_MAX);
	assert_int_equal(c->drop_half_open, 1000 - HALF_MAX);
	assert_int_equal(c->accepted, HALF_MAX);
	assert_true(side[1].requests >= 1);
}

/* The host is silent: both ends forget, nothing stays in custody, and a new connection has its turn. */
static void test_forgotten(void **state)
{
	flood(100);
	run(15 * RWY_SEC);
	assert_int_equal(eng_flow_count(side[0].e), 0);
	assert_int_equal(eng_flow_count(side[1].e), 0);
	assert_int_equal(eng_custody_bytes(side[0].e), 0);
	assert_int_equal(side[0].bufs, 0);
	assert_int_equal(side[1].bufs, 0);
	assert_others_work(0x50, 3);
}

/* What is paired as it is made is not half open: the bound does not hold it back. */
static void test_paired_is_exempt(void **state)
{
	struct rc_mk m = {.opcode = ROCE_RC_SEND_ONLY,
	    .psn = 5,
	    .ack_req = true,
	    .payload_len = 64,
	    .src = {10, 2, 0, 9},
	    .dst = {10, 1, 0, 9}};

	for (unsigned i = 0; i < HALF_MAX; i++) { /* side 1 is full of what its own hosts began */
		m.dqpn = 0x2000 + i;
		host_sends(1, &m);
	}
	run(50 * RWY_MS);
	assert_int_equal(eng_flow_count(side[1].e), HALF_MAX);
	assert_others_work(0x50, 3); /* what comes from afar is answered by its host, and so paired */
	assert_int_equal(eng_counters(side[1].e)->drop_half_open, 0);
}

/* A host that goes on asking keeps its place. */
static void test_patient_host(void **state)
{
	request(0x70, 3);
	for (unsigned i = 0; i < 4; i++) {
		run(6 * RWY_SEC);
		request(0x70, 3);
	}
	assert_int_equal(eng_counters(side[0].e)->conns_expired, 0);
	assert_int_equal(eng_flow_count(side[0].e), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_bounded, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_forgotten, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_paired_is_exempt, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_patient_host, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
