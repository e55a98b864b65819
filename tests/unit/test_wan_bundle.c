/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bundles: small packets of several flows in one datagram. Two tunnels whose datagrams the test
 * carries or loses one by one; then whole transfers over bad links.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/wan_pair.h"
#include "wan/tunnel.h"

#define MTU   1472
#define SENT  64 /* datagrams that are kept */
#define FLOWS 24

static struct wan_pool pool;
static struct wan_tunnel *end[2];
static rwy_time now;
static unsigned fail_after; /* so many buffers more are there, then none is; 0: all are */

static struct flow {
	struct wan_txflow *tx;
	struct wan_rxflow *rx;
	unsigned sent, got, acked, delivered;
} flow[FLOWS];

/* The datagrams that end 0 sent last. */
static struct dgram {
	uint32_t len;
	uint8_t bytes[MTU];
} sent[SENT];
static unsigned sents;

static struct rwy_buf *alloc(void *ctx, uint32_t headroom, uint32_t len)
{
	if (fail_after == 1)
		return NULL;
	fail_after -= fail_after > 0;
	return pool.bufs.ops->alloc(ctx, headroom, len);
}

static void release(void *ctx, struct rwy_buf *b)
{
	pool.bufs.ops->free(ctx, b);
}

static const struct rwy_buf_ops buf_ops = {.alloc = alloc, .free = release};

/* Packet n of flow i: its ToS, and both numbers in each byte behind. */
static uint32_t length(unsigned i, unsigned n)
{
	return 40 + (i * 5 + n * 7) % 60;
}

static void *rx_open(void *ctx, struct wan_rxflow *f, const uint8_t *info, size_t len, rwy_time t)
{
	flow[info[0]].rx = f;
	return &flow[info[0]];
}

static void rx_data(void *ctx, void *user, struct rwy_buf *b, rwy_time t)
{
	struct flow *f = user;
	const unsigned i = (unsigned)(f - flow);

	assert_int_equal(b->seq, f->got);
	assert_int_equal(b->len, length(i, f->got));
	for (uint32_t k = 2; k < b->len; k++)
		assert_int_equal(b->data[k], (uint8_t)(i * 16 + f->got));
	f->got++;
	wan_rx_delivered(f->rx, b->seq, t);
	rwy_buf_free(&pool.bufs, b);
}

static void rx_close(void *ctx, void *user, enum wan_close_reason why, rwy_time t)
{
}

static void tx_acked(void *ctx, void *user, const struct rwy_buf *b, rwy_time t)
{
	struct flow *f = user;

	assert_true(b->seq >= f->acked);
	f->acked = (unsigned)b->seq + 1;
}

static void tx_delivered(void *ctx, void *user, const struct rwy_buf *b, rwy_time t)
{
	struct flow *f = user;

	assert_int_equal(b->seq, f->delivered);
	f->delivered++;
}

static size_t tx_reopen(void *ctx, void *user, uint8_t info[WAN_OPEN_MAX], rwy_time t)
{
	info[0] = (uint8_t)((struct flow *)user - flow);
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

/* The packets of the BUNDLE that a datagram begins with; 0: it begins otherwise. */
static unsigned bundled(const struct dgram *d)
{
	return d->bytes[WAN_PKT_HDR] == WAN_F_BUNDLE ? d->bytes[WAN_PKT_HDR + 1] : 0;
}

static void send_as(unsigned i, uint8_t kind, uint8_t tos)
{
	struct flow *f = &flow[i];
	struct rwy_buf *b = wan_pool_get(&pool, length(i, f->sent));

	memset(b->data, (int)(i * 16 + f->sent), b->len);
	b->data[0] = 0x45;
	b->data[1] = tos;
	b->kind = kind & 15;
	b->pcp = 0;
	wan_tx_send(f->tx, b, now);
	f->sent++;
}

/* A packet of each of n flows. */
static void send_each(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		send_as(i, RWY_BUF_PACKET, 0);
}

/* All n flows' packets came, and the sender knows. */
static void assert_done(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(flow[i].got, flow[i].sent);
		assert_int_equal(flow[i].acked, flow[i].sent);
		assert_int_equal(flow[i].delivered, flow[i].sent);
	}
	assert_int_equal(end[0]->tx_out, 0);
}

static int set_up(void **state)
{
	struct wan_cfg c;

	wan_pool_init(&pool);
	now = RWY_SEC;
	fail_after = 0;
	memset(flow, 0, sizeof(flow));
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
	for (unsigned i = 0; i < FLOWS; i++) {
		uint8_t info = (uint8_t)i;

		assert_int_equal(wan_tx_open(end[0], &flow[i].tx, &info, 1, &flow[i], now), 0);
	}
	send_each(FLOWS); /* the first packet opens a flow, and goes alone */
	pass(100 * RWY_MS);
	assert_done(FLOWS);
	assert_int_equal(end[0]->c.tx_bundles, 0);
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
	const uint64_t before = end[0]->c.rx_datagrams + end[0]->c.tx_datagrams;

	send_each(FLOWS);
	emit(0);
	assert_true(sents == 3 && bundled(&sent[0]) == 9 && bundled(&sent[1]) == 9);
	assert_int_equal(bundled(&sent[2]), FLOWS - 18);
	assert_true(end[0]->c.tx_bundles == 3 && before);
	for (unsigned k = 0; k < 3; k++)
		arrive(1, &sent[k]);
	pass(50 * RWY_MS);
	assert_done(FLOWS);
	assert_int_equal(end[0]->c.tx_retransmit, 0);
	/* one that waits alone goes at once, as DATA */
	send_each(1);
	emit(0);
	assert_true(sents == 1 && sent[0].bytes[WAN_PKT_HDR] == WAN_F_DATA);
	arrive(1, &sent[0]);
}

/* Several packets of some flows: in their order. A flow that fills a datagram has a run of its own. */
static void test_several(void **state)
{
	for (unsigned k = 0; k < 3; k++)
		send_each(4);
	emit(0);
	assert_true(sents == 2 && bundled(&sent[0]) == 9);
	assert_int_equal(sent[1].bytes[WAN_PKT_HDR], WAN_F_RUN); /* flow 3 is left */
	arrive(1, &sent[1]);
	arrive(1, &sent[0]);
	pass(50 * RWY_MS);
	assert_done(FLOWS);
	for (unsigned k = 0; k < 9; k++)
		send_as(0, RWY_BUF_PACKET, 0);
	send_as(1, RWY_BUF_PACKET, 0);
	emit(0);
	assert_true(sents == 2 && sent[0].bytes[WAN_PKT_HDR] == WAN_F_RUN);
	arrive(1, &sent[0]);
	arrive(1, &sent[1]);
	pass(50 * RWY_MS);
	assert_done(FLOWS);
}

/* A datagram has one DSCP, and one tenant. */
static void test_apart(void **state)
{
	const struct wan_class_cfg tenant = {.weight = 1};

	for (unsigned i = 0; i < 4; i++)
		send_as(i, RWY_BUF_PACKET, i < 2 ? 0 : 46 << 2);
	emit(0);
	assert_true(sents == 2 && bundled(&sent[0]) == 2 && bundled(&sent[1]) == 2);
	arrive(1, &sent[0]);
	arrive(1, &sent[1]);
	assert_int_equal(wan_class_set(end[0], 3, &tenant), 0);
	wan_tx_class(flow[2].tx, 3);
	wan_tx_class(flow[3].tx, 3);
	send_each(4);
	emit(0);
	assert_true(sents == 2 && bundled(&sent[0]) == 2 && bundled(&sent[1]) == 2);
	arrive(1, &sent[0]);
	arrive(1, &sent[1]);
	send_as(4, RWY_BUF_CTRL, 0);
	send_as(5, RWY_BUF_PACKET, 0);
	emit(0);
	assert_true(sents == 2 && !bundled(&sent[0]) && !bundled(&sent[1]));
	arrive(1, &sent[0]);
	arrive(1, &sent[1]);
	pass(50 * RWY_MS);
	assert_done(FLOWS);
}

/* A peer of an earlier version gets each packet alone. */
static void test_old_peer(void **state)
{
	end[0]->peer.bundle = false;
	send_each(FLOWS);
	emit(0);
	assert_int_equal(sents, FLOWS);
	for (unsigned k = 0; k < sents; k++) {
		assert_int_equal(sent[k].bytes[WAN_PKT_HDR], WAN_F_DATA);
		arrive(1, &sent[k]);
	}
	assert_int_equal(end[0]->c.tx_bundles, 0);
}

/* --- what is lost ------------------------------------------------------------------------------ */
static void test_lost(void **state)
{
	send_each(FLOWS);
	emit(0);
	assert_int_equal(sents, 3);
	arrive(1, &sent[2]);
	pass(2 * RWY_SEC);
	assert_done(FLOWS);
	assert_int_equal(end[0]->c.retransmit_lost + end[0]->c.retransmit_probe, 18);
}

/* A datagram that was declared lost arrives: its packets are acknowledged, once. */
static void test_late(void **state)
{
	struct dgram late;

	send_each(9);
	emit(0);
	assert_true(sents == 1 && bundled(&sent[0]) == 9);
	late = sent[0];
	now += 2 * RWY_SEC;
	for (unsigned k = 0; k < 4; k++, now += 500 * RWY_MS) { /* probes, and what they bring */
		emit(0);
		for (unsigned d = 0; d < sents; d++)
			if (sent[d].bytes[WAN_PKT_HDR] < WAN_F_DATA)
				arrive(1, &sent[d]);
		emit(1);
		for (unsigned d = 0; d < sents; d++)
			arrive(0, &sent[d]);
	}
	assert_true(end[0]->c.lost > 0);
	arrive(1, &late);
	assert_int_equal(flow[8].got, 2);
	pass(RWY_SEC);
	assert_done(FLOWS);
	assert_true(end[0]->c.spurious_retransmit > 0);
}

/* --- without memory ---------------------------------------------------------------------------- */
/* No buffer for the bundle: each packet goes alone. */
static void test_no_buffer(void **state)
{
	send_each(4);
	pool.fail_ppm = 1000000;
	emit(0);
	pool.fail_ppm = 0;
	assert_int_equal(sents, 4);
	for (unsigned k = 0; k < sents; k++) {
		assert_int_equal(sent[k].bytes[WAN_PKT_HDR], WAN_F_DATA);
		arrive(1, &sent[k]);
	}
	pass(50 * RWY_MS);
	assert_done(FLOWS);
}

/* The receiver has no buffer for some packets: it acknowledges nothing, and takes the rest later. */
static void test_receiver_short(void **state)
{
	send_each(9);
	emit(0);
	assert_int_equal(sents, 1);
	struct rwy_buf *b = wan_pool_get(&pool, sent[0].len);

	memcpy(b->data, sent[0].bytes, sent[0].len);
	fail_after = 5; /* four, and then none */
	wan_recv(end[1], 0, b, 0, now);
	fail_after = 0;
	assert_true(flow[3].got == 2 && flow[4].got == 1 && end[1]->c.drop_no_buffer == 1);
	pass(2 * RWY_SEC);
	assert_done(FLOWS);
	assert_true(end[0]->c.tx_retransmit >= 5);
}

/* --- whole transfers --------------------------------------------------------------------------- */
static void finish(struct wan_pair *p)
{
	assert_true(wan_pair_run(p, p->now + 100 * RWY_SEC));
	assert_true(wan_pair_stats(p, 0).c.tx_bundles > 50);
	assert_true(wan_pair_finish(p));
}

static void transfer(unsigned streams, uint32_t len_max, uint32_t fail_ppm)
{
	struct wan_link_cfg l = wan_pair_bad_link();
	struct wan_pair p;

	wan_pair_begin(&p, 1, &l);
	p.pool.fail_ppm = fail_ppm;
	wan_pair_streams(&p, streams, 200, 20, len_max, 2);
	finish(&p);
}

static void test_small(void **state)
{
	transfer(40, 130, 0);
}

static void test_mixed(void **state)
{
	transfer(40, 600, 0);
}

static void test_few_buffers(void **state)
{
	transfer(40, 130, 100000);
}

static void test_restarts(void **state)
{
	struct wan_link_cfg l = wan_pair_bad_link();
	struct wan_pair p;

	wan_pair_begin(&p, 1, &l);
	wan_pair_streams(&p, 40, 400, 20, 200, 2);
	for (int i = 0; i < 4; i++) {
		wan_pair_run(&p, p.now + 60 * RWY_MS);
		wan_pair_restart(&p, i & 1);
	}
	finish(&p);
}

/* The map of sent datagrams grows while bundles are under way, and a path falls silent. */
static void test_moves(void **state)
{
	struct wan_link_cfg l = {.delay = 50 * RWY_MS, .rate_Bps = 125000000};
	struct wan_pair p;

	wan_pair_begin(&p, 2, &l);
	wan_pair_path(&p, &l, &l);
	wan_pair_streams(&p, 3000, 30, 20, 130, 2);
	wan_pair_run(&p, p.now + 300 * RWY_MS);
	p.dead_path = 1;
	wan_pair_run(&p, p.now + 600 * RWY_MS);
	assert_true(wan_pair_stats(&p, 0).c.retransmit_moved > 0);
	p.dead_path = 0;
	finish(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_forms, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_several, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_apart, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_old_peer, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_lost, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_late, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_no_buffer, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_receiver_short, set_up, tear_down),
	    cmocka_unit_test(test_small),
	    cmocka_unit_test(test_mixed),
	    cmocka_unit_test(test_few_buffers),
	    cmocka_unit_test(test_restarts),
	    cmocka_unit_test(test_moves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
