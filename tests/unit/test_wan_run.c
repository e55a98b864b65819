/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs: several small packets in one datagram. Two tunnels whose datagrams the test carries, loses
 * or holds back one by one. test_wan_run_transfer.c has whole transfers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/wan_pair.h"
#include "wan/tunnel.h"

#define MTU  1472
#define SENT 32 /* datagrams that are kept */

static struct wan_pool pool;
static struct wan_tunnel *end[2];
static struct wan_txflow *flow;
static struct wan_rxflow *rx;
static rwy_time now;
static unsigned got, last_acked, delivered;
static uint8_t got_kind, got_pcp;
static bool keep;           /* the far host takes nothing */
static unsigned fail_after; /* so many buffers more are there, then one is missing; 0: none is */

/* The datagrams that end 0 sent last. */
static struct dgram {
	uint32_t len, class_id;
	uint8_t dscp; /* 0: the class says none */
	uint8_t bytes[MTU];
} sent[SENT];
static unsigned sents;

static struct rwy_buf *alloc(void *ctx, uint32_t headroom, uint32_t len)
{
	if (fail_after && !--fail_after)
		return NULL;
	return pool.bufs.ops->alloc(ctx, headroom, len);
}

static void release(void *ctx, struct rwy_buf *b)
{
	pool.bufs.ops->free(ctx, b);
}

static const struct rwy_buf_ops buf_ops = {.alloc = alloc, .free = release};

static void *rx_open(void *ctx, struct wan_rxflow *f, const uint8_t *info, size_t len, rwy_time t)
{
	rx = f;
	return &got;
}

/* Buffer n has the length that it was sent with, and its number in each byte. */
static uint32_t length(unsigned n)
{
	return 20 + n * 7 % 200;
}

static void rx_data(void *ctx, void *user, struct rwy_buf *b, rwy_time t)
{
	assert_int_equal(b->seq, got);
	assert_int_equal(b->len, length(got));
	for (uint32_t i = 0; i < b->len; i++)
		assert_int_equal(b->data[i], (uint8_t)got);
	got_kind = b->kind;
	got_pcp = b->pcp;
	got++;
	if (!keep)
		wan_rx_delivered(rx, b->seq, t);
	rwy_buf_free(&pool.bufs, b);
}

static void rx_close(void *ctx, void *user, enum wan_close_reason why, rwy_time t)
{
}

static void tx_acked(void *ctx, void *user, const struct rwy_buf *b, rwy_time t)
{
	assert_true(b->seq >= last_acked);
	last_acked = (unsigned)b->seq + 1;
}

static void tx_delivered(void *ctx, void *user, const struct rwy_buf *b, rwy_time t)
{
	assert_int_equal(b->seq, delivered);
	delivered++;
}

static size_t tx_reopen(void *ctx, void *user, uint8_t info[WAN_OPEN_MAX], rwy_time t)
{
	return 1;
}

static void state_changed(void *ctx, bool up, bool restarted, rwy_time t)
{
}

static const struct wan_ops ops = {.rx_open = rx_open,
    .rx_data = rx_data,
    .rx_close = rx_close,
    .tx_acked = tx_acked,
    .tx_delivered = tx_delivered,
    .tx_reopen = tx_reopen,
    .state = state_changed};

static void arrive(unsigned i, const struct dgram *d)
{
	struct rwy_buf *b = wan_pool_get(&pool, d->len);

	memcpy(b->data, d->bytes, d->len);
	wan_recv(end[i], 0, b, 0, now);
}

/* Sends what end i has to send, and keeps it. Returns the number of datagrams. */
static unsigned emit(unsigned i)
{
	struct wan_tx tx;

	wan_tick(end[i], now);
	for (sents = 0; sents < SENT && wan_poll(end[i], &tx, 1, now); sents++) {
		struct dgram *d = &sent[sents];

		d->len = wan_tx_size(&tx);
		d->class_id = tx.class_id;
		d->dscp = tx.has_dscp ? tx.dscp : 0;
		assert_true(d->len <= MTU);
		wan_tx_write(&tx, d->bytes);
		if (tx.own)
			rwy_buf_free(&pool.bufs, tx.buf);
	}
	return sents;
}

static void carry(unsigned i)
{
	emit(i);
	for (unsigned k = 0; k < sents; k++)
		arrive(!i, &sent[k]);
}

/* Both ends send all they have, for a time. */
static void pass(rwy_dur t)
{
	for (rwy_time until = now + t; now < until; now += RWY_MS) {
		carry(0);
		carry(1);
	}
}

/* The packets of the RUN or DATA that ends a datagram; 0: there is none. *seq: the first. */
static unsigned packets(const struct dgram *d, uint32_t *seq)
{
	/* Only datagrams without other frames are asked about. */
	struct wan_f_data f;

	if (d->bytes[WAN_PKT_HDR] < WAN_F_DATA ||
	    !wan_f_data_get(d->bytes + WAN_PKT_HDR, d->bytes + d->len, &f))
		return 0;
	*seq = f.seq;
	return f.run ? f.run : 1;
}

static void send_one(unsigned n, uint8_t kind, uint8_t pcp)
{
	struct rwy_buf *b = wan_pool_get(&pool, length(n));

	memset(b->data, (int)n, b->len);
	b->kind = kind & 15;
	b->pcp = pcp & 15;
	wan_tx_send(flow, b, now);
}

static void send_some(unsigned from, unsigned n)
{
	for (unsigned i = from; i < from + n; i++)
		send_one(i, RWY_BUF_PACKET, 0);
}

static int set_up(void **state)
{
	struct wan_cfg c;

	wan_pool_init(&pool);
	now = RWY_SEC;
	got = last_acked = delivered = 0;
	keep = false;
	fail_after = 0;
	wan_cfg_default(&c);
	c.ops = &ops;
	c.bufs = (struct rwy_bufs){&buf_ops, pool.bufs.ctx};
	c.cc = &cc_fixed;
	c.cc_cfg.rate_Bps = 125000000;
	c.mtu[0] = MTU;
	c.tunnel_id = 3;
	c.tx_pkts_max = 4096;
	for (unsigned i = 0; i < 2; i++) {
		c.epoch = c.index = i + 100;
		assert_int_equal(wan_new(&end[i], &c, now), 0);
	}
	assert_int_equal(wan_tx_open(end[0], &flow, (const uint8_t *)"x", 1, &flow, now), 0);
	/* buffer 0 opens the flow */
	pass(20 * RWY_MS);
	send_some(0, 1);
	pass(100 * RWY_MS);
	assert_true(got == 1 && flow->open_acked && delivered == 1);
	return 0;
}

static int tear_down(void **state)
{
	wan_free(end[0]);
	wan_free(end[1]);
	assert_int_equal(pool.live, 0);
	return 0;
}

/* --- what goes together ------------------------------------------------------------------------ */
static void test_forms(void **state)
{
	uint64_t before = end[0]->c.tx_datagrams;
	uint32_t seq;

	send_some(1, 5);
	emit(0);
	assert_int_equal(sents, 1);
	assert_int_equal(packets(&sent[0], &seq), 5);
	assert_int_equal(seq, 1);
	assert_int_equal(end[0]->c.tx_data, 6);
	assert_true(end[0]->c.tx_datagrams == before + 1 && end[0]->c.tx_runs == 1);
	assert_int_equal(end[0]->tx_sent, flow->bytes);
	arrive(1, &sent[0]);
	assert_int_equal(got, 6);
	assert_int_equal(end[1]->c.rx_data, 6);
	pass(50 * RWY_MS);
	assert_true(last_acked == 6 && delivered == 6);
	assert_int_equal(end[0]->tx_out, 0);
	/* one that waits alone goes at once, as DATA */
	send_some(6, 1);
	emit(0);
	assert_true(sents == 1 && sent[0].bytes[WAN_PKT_HDR] == WAN_F_DATA);
	arrive(1, &sent[0]);
	assert_int_equal(got, 7);
}

/* No datagram is longer than the MTU, and each could be protected by repairs. */
static void test_fills(void **state)
{
	unsigned n = 1, all = 0;
	uint32_t seq;

	send_some(1, 60);
	emit(0);
	assert_true(sents > 3 && sents < 10);
	for (unsigned k = 0; k < sents; k++) {
		unsigned here = packets(&sent[k], &seq);

		assert_true(here >= 2 && seq == n);
		assert_true(sent[k].len + WAN_FEC_ROOM <= MTU);
		/* another one would not have fit */
		assert_true(
		    k + 1 == sents || sent[k].len + WAN_RUN_NEXT + length(n + here) > MTU - WAN_FEC_ROOM);
		n += here;
		all += here;
		arrive(1, &sent[k]);
	}
	assert_int_equal(all, 60);
	assert_int_equal(got, 61);
}

static void test_kinds_apart(void **state)
{
	static const uint8_t kind[] = {0, 0, 1, 1, 1, 0, 0, 0, 0};
	static const uint8_t pcp[] = {0, 0, 0, 0, 0, 0, 13, 13, 13};
	static const unsigned want[] = {2, 3, 1, 3};
	uint32_t seq;

	for (unsigned i = 0; i < 9; i++)
		send_one(i + 1, kind[i], pcp[i]);
	emit(0);
	assert_int_equal(sents, 4);
	for (unsigned k = 0; k < 4; k++) {
		assert_int_equal(packets(&sent[k], &seq), want[k]);
		arrive(1, &sent[k]);
		assert_true(got_kind == (k == 1) && got_pcp == (k == 3 ? 13 : 0));
	}
	assert_int_equal(got, 10);
}

/* What must wait for another flow at the far end is not in a run, nor first in one. */
static void test_after(void **state)
{
	struct wan_txflow *other;
	struct rwy_after a;
	struct rwy_buf *b;
	uint32_t seq;

	assert_int_equal(wan_tx_open(end[0], &other, (const uint8_t *)"y", 1, &got, now), 0);
	b = wan_pool_get(&pool, 10);
	wan_tx_send(other, b, now);
	a = wan_tx_mark(other, 1);
	send_some(1, 2);
	b = wan_pool_get(&pool, length(3));
	memset(b->data, 3, b->len);
	b->kind = b->pcp = 0;
	wan_tx_send_after(flow, b, &a, now);
	send_some(4, 2);
	emit(0);
	assert_int_equal(sents, 4);
	for (unsigned k = 0, of_flow = 0; k < sents; k++)
		if (sent[k].bytes[WAN_PKT_HDR + 5] == (flow->id & 0xff)) {
			assert_int_equal(packets(&sent[k], &seq), of_flow == 1 ? 1 : 2);
			of_flow++;
		}
	wan_tx_abort(other, now);
}

static void test_old_peer(void **state)
{
	uint32_t seq;

	assert_true(end[0]->peer.run && end[1]->peer.run);
	end[0]->peer.run = false;
	send_some(1, 5);
	emit(0);
	assert_int_equal(sents, 5);
	for (unsigned k = 0; k < 5; k++) {
		assert_int_equal(sent[k].bytes[WAN_PKT_HDR], WAN_F_DATA);
		assert_int_equal(packets(&sent[k], &seq), 1);
		arrive(1, &sent[k]);
	}
	assert_true(got == 6 && !end[0]->c.tx_runs);
}

/* Credit bounds each packet of a run, and the peer's window. */
static void test_credit(void **state)
{
	uint32_t seq;

	end[0]->peer.rx_window = 3;
	send_some(1, 5);
	emit(0);
	assert_true(sents == 1 && packets(&sent[0], &seq) == 3);
	arrive(1, &sent[0]);
	end[0]->peer.rx_window = 100;
	end[0]->peer.rx_bytes =
	    end[0]->tx_out + wan_tx_credit(end[0], flow->ring[flow->next_send & flow->mask]);
	pass(50 * RWY_MS);
	assert_true(got == 6 && delivered == 6);
}

/* --- loss -------------------------------------------------------------------------------------- */
static struct wan_sent entry(unsigned first, unsigned n)
{
	return (struct wan_sent){
	    .flags = WAN_S_DATA | WAN_S_WHOLE, .flow = flow->id, .seq = first, .more = (uint8_t)(n - 1)};
}

static void test_lost(void **state)
{
	send_some(1, 5);
	emit(0);
	assert_int_equal(sents, 1);
	pass(2 * RWY_SEC); /* it never arrives: a probe repeats it */
	assert_true(got == 6 && delivered == 6 && last_acked == 6);
	assert_true(end[0]->c.tx_retransmit > 0 && end[0]->c.tx_runs > 1);
	assert_int_equal(end[0]->c.tx_data, 6);
}

/* A run whose parts were acknowledged with other datagrams: what is missing goes again, from the
 * first to the last of it. */
static void test_parts(void **state)
{
	struct wan_sent all = entry(1, 5), middle = entry(2, 2), first = entry(1, 1), end_of = entry(5, 1);
	uint32_t seq;

	send_some(1, 5);
	emit(0);
	wan_tx_on_acked(end[0], &middle, now);
	assert_int_equal(last_acked, 1);
	assert_true(wan_tx_on_lost(end[0], &all, false));
	emit(0);
	assert_true(sents == 1 && packets(&sent[0], &seq) == 5 && seq == 1);
	wan_tx_on_acked(end[0], &first, now);
	assert_int_equal(last_acked, 4);
	assert_true(wan_tx_on_lost(end[0], &all, false));
	emit(0);
	assert_true(sents == 1 && packets(&sent[0], &seq) == 2 && seq == 4);
	wan_tx_on_acked(end[0], &end_of, now);
	assert_true(wan_tx_on_lost(end[0], &all, false));
	emit(0);
	/* one is left, and it is no run */
	assert_true(sents == 1 && sent[0].bytes[WAN_PKT_HDR] == WAN_F_DATA);
	assert_true(packets(&sent[0], &seq) == 1 && seq == 4);
	wan_tx_on_acked(end[0], &all, now);
	assert_int_equal(last_acked, 6);
	assert_true(wan_tx_on_lost(end[0], &all, false));
	assert_int_equal(emit(0), 0);
	assert_int_equal(got, 1);
}

/* Two copies are under way: the packets are lost when both are. */
static void test_copies(void **state)
{
	struct wan_sent copied = entry(1, 5), middle = entry(3, 1);
	uint32_t seq;

	send_some(1, 5);
	emit(0);
	copied.flags |= WAN_S_COPIED;
	assert_true(wan_tx_on_lost(end[0], &copied, false));
	assert_int_equal(emit(0), 0);
	wan_tx_on_acked(end[0], &middle, now);
	assert_true(wan_tx_on_lost(end[0], &copied, false));
	emit(0);
	assert_true(sents == 1 && packets(&sent[0], &seq) == 5);
	arrive(1, &sent[0]);
	assert_int_equal(got, 6);
}

/* The receiver has no buffer for a packet: what is before it is handed over, the datagram is not
 * acknowledged, and comes again. */
static void test_no_buffer(void **state)
{
	send_some(1, 8);
	emit(0);
	assert_int_equal(sents, 1);
	fail_after = 4;
	arrive(1, &sent[0]);
	assert_true(end[1]->c.drop_no_buffer == 1 && got == 4);
	assert_false(wan_ranges_has(&end[1]->path[0].seen, end[0]->path[0].next_pn - 1));
	/* the same datagram later: the first three are duplicates */
	fail_after = 8;
	arrive(1, &sent[0]);
	assert_true(end[1]->c.drop_no_buffer == 2 && got == 8 && end[1]->c.rx_duplicate == 3);
	fail_after = 0;
	pass(2 * RWY_SEC);
	assert_true(got == 9 && delivered == 9);
}

/* The sender has no buffer for a run: packets go one by one, new ones and repeated ones. */
static void test_no_buffer_for_run(void **state)
{
	struct wan_sent all = entry(1, 5);
	uint32_t seq;

	pool.fail_ppm = 1000000;
	send_some(1, 5);
	emit(0);
	assert_int_equal(sents, 5);
	assert_true(wan_tx_on_lost(end[0], &all, false));
	emit(0);
	assert_int_equal(sents, 5);
	for (unsigned k = 0; k < 5; k++) {
		assert_true(packets(&sent[k], &seq) == 1 && seq == k + 1);
		arrive(1, &sent[k]);
	}
	pool.fail_ppm = 0;
	assert_int_equal(got, 6);
	assert_int_equal(end[0]->c.tx_runs, 0);
	pass(2 * RWY_SEC);
	assert_int_equal(delivered, 6);
}

/* The same for a run that is lost: probes are PINGs, and the packets go one by one. */
static void test_no_buffer_for_probe(void **state)
{
	send_some(1, 5);
	emit(0);
	assert_true(sents == 1 && end[0]->c.tx_runs == 1);
	pool.fail_ppm = 1000000;
	pass(2 * RWY_SEC);
	assert_true(got == 6 && delivered == 6 && end[0]->c.pto > 0);
	assert_true(end[0]->c.tx_runs == 1 && !end[1]->c.drop_bad_frame);
}

/* A malformed run: counted, and nothing of it is taken. */
static void test_malformed(void **state)
{
	struct dgram d;

	send_some(1, 5);
	emit(0);
	d = sent[0];
	d.bytes[WAN_PKT_HDR + 10]++; /* one packet more than there is */
	memset(d.bytes + 16, 0, 4);
	wan_pkt_seal(d.bytes, d.len, NULL, 0);
	arrive(1, &d);
	assert_true(got == 1 && end[1]->c.drop_bad_frame == 1);
	arrive(1, &sent[0]);
	assert_int_equal(got, 6);
}

/* A run has its tenant and its reservation's DSCP, as a packet alone has. */
static void test_class(void **state)
{
	const struct wan_class_cfg tenant = {.weight = 1};
	const struct wan_class_cfg reserved = {.weight = 1, .parent = 3, .has_dscp = true, .dscp = 46};

	assert_int_equal(wan_class_set(end[0], 3, &tenant), 0);
	assert_int_equal(wan_class_set(end[0], 7, &reserved), 0);
	wan_tx_class(flow, 7);
	send_some(1, 1);
	emit(0);
	assert_true(sents == 1 && sent[0].class_id == 3 && sent[0].dscp == 46);
	carry(1);
	arrive(1, &sent[0]);
	send_some(2, 5);
	emit(0);
	assert_true(sents == 1 && end[0]->c.tx_runs == 1);
	assert_true(sent[0].class_id == 3 && sent[0].dscp == 46);
	arrive(1, &sent[0]);
}

/* The flow's numbers pass 2^32 within a run. */
static void test_wrap(void **state)
{
	uint64_t far = ((uint64_t)1 << 32) - 2;
	uint32_t seq;

	flow->base = flow->acked = flow->next_send = flow->end = far;
	rx->next = rx->delivered = rx->reported = rx->confirmed = far;
	keep = true;
	for (unsigned i = 0; i < 5; i++) {
		struct rwy_buf *b = wan_pool_get(&pool, length(1));

		memset(b->data, 1, b->len);
		b->kind = b->pcp = 0;
		wan_tx_send(flow, b, now);
	}
	emit(0);
	assert_true(sents == 1 && packets(&sent[0], &seq) == 5 && seq == (uint32_t)far);
	struct wan_sent s = {
	    .flags = WAN_S_DATA | WAN_S_WHOLE, .flow = flow->id, .seq = (uint32_t)far, .more = 4};

	last_acked = 0;
	wan_tx_on_acked(end[0], &s, now);
	assert_true(flow->acked == far + 5);
	flow->base = flow->next_send; /* for tear_down: nothing is in custody */
	for (uint64_t k = far; k < far + 5; k++)
		rwy_buf_free(&pool.bufs, flow->ring[k & flow->mask]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_forms, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_fills, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_class, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_kinds_apart, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_after, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_old_peer, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_credit, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_lost, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_parts, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_copies, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_no_buffer, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_no_buffer_for_run, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_no_buffer_for_probe, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_malformed, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_wrap, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
