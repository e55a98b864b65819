/* SPDX-License-Identifier: Apache-2.0 */
/* Flows: custody, credit, fragments, ends of every kind, many of them, best-effort packets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/wan_pair.h"
#include "wan/tunnel.h"

static void start_cfg(struct wan_pair *p, struct wan_cfg *c, uint32_t loss_ppm, rwy_dur delay)
{
	struct wan_link_cfg l = {.delay = delay, .loss_ppm = loss_ppm};

	wan_pair_init(p, c, &l, &l, 5);
}

static void start(struct wan_pair *p, uint32_t loss_ppm)
{
	struct wan_cfg c;

	wan_cfg_default(&c);
	c.tx_pkts_max = 4096;
	start_cfg(p, &c, loss_ppm, 5 * RWY_MS);
}

/* The peer's gateway has it, the peer's host not: acked, but in custody. */
static void test_custody(void **state)
{
	struct wan_pair p;

	start(&p, 0);
	wan_pair_streams(&p, 1, 10, 500, 500, 10);
	p.end[1].stall = true;
	wan_pair_settle(&p, RWY_SEC);
	assert_int_equal(p.stream[0].got, 10);
	assert_int_equal(p.stream[0].acked, 10);
	assert_int_equal(p.stream[0].delivered, 0);
	assert_int_equal(wan_tx_queued(p.stream[0].tx), 10);
	assert_int_equal(wan_tx_bytes(p.stream[0].tx), 5000);
	assert_int_equal(wan_pair_stats(&p, 0).tx_queued_bytes, 5000);
	assert_int_equal(wan_pair_stats(&p, 1).rx_held_bytes, 5000);
	wan_rx_delivered(p.stream[0].rx, 3, p.now);
	wan_pair_settle(&p, 100 * RWY_MS);
	assert_int_equal(p.stream[0].delivered, 4);
	assert_int_equal(wan_tx_queued(p.stream[0].tx), 6);
	p.end[1].stall = false;
	wan_pair_settle(&p, 100 * RWY_MS);
	assert_int_equal(p.stream[0].delivered, 10);
	assert_int_equal(wan_pair_stats(&p, 0).tx_queued_bytes, 0);
	assert_int_equal(wan_pair_stats(&p, 1).rx_held_bytes, 0);
	assert_int_equal(wan_pair_stats(&p, 0).c.tx_data, 10);
	assert_int_equal(wan_pair_stats(&p, 0).c.tx_retransmit, 0);
	assert_true(wan_pair_finish(&p));
}

static void test_flow_credit(void **state)
{
	struct wan_pair p;
	struct wan_cfg c;

	wan_cfg_default(&c);
	c.rx_window = 7;
	start_cfg(&p, &c, 0, 5 * RWY_MS);
	wan_pair_streams(&p, 4, 100, 500, 500, 100);
	p.end[0].stall = p.end[1].stall = true;
	wan_pair_settle(&p, RWY_SEC);
	for (int i = 0; i < 4; i++)
		assert_int_equal(p.stream[i].got, 7);
	wan_rx_credit(p.end[1].t, 11, 1u << 30, p.now); /* more, while running */
	wan_pair_settle(&p, RWY_SEC);
	assert_int_equal(p.stream[0].got, 11);
	assert_int_equal(p.stream[1].got, 7);
	p.end[0].stall = p.end[1].stall = false;
	assert_true(wan_pair_run(&p, p.now + 10 * RWY_SEC));
	assert_int_equal(wan_pair_stats(&p, 0).c.drop_no_credit + wan_pair_stats(&p, 1).c.drop_no_credit, 0);
	assert_true(wan_pair_finish(&p));
}

static void test_tunnel_credit(void **state)
{
	struct wan_pair p;
	struct wan_cfg c;

	wan_cfg_default(&c);
	c.rx_bytes = 10000;
	start_cfg(&p, &c, 0, 5 * RWY_MS);
	wan_pair_streams(&p, 20, 100, 700, 700, 100);
	p.end[1].stall = true;
	wan_pair_settle(&p, RWY_SEC);
	assert_int_equal(wan_pair_stats(&p, 1).rx_held_bytes, 9800);
	p.end[1].stall = false;
	assert_true(wan_pair_run(&p, p.now + 20 * RWY_SEC));
	assert_int_equal(wan_pair_stats(&p, 1).c.drop_no_credit, 0);
	assert_true(wan_pair_finish(&p));
}

/*
 * A bulk flow leaves an eighth of the tunnel's credit, 2 of 16 buffers. Another flow gets it at once,
 * although the bulk flow has been first in line all the time.
 */
static void test_bulk_credit(void **state)
{
	struct wan_pair p;
	struct wan_cfg c;

	wan_cfg_default(&c);
	c.rx_bytes = 16 * 700;
	start_cfg(&p, &c, 0, 5 * RWY_MS);
	wan_pair_streams(&p, 3, 100, 700, 700, 100);
	p.stream[2].total = 0;
	p.end[1].stall = true;
	while (!p.stream[0].tx)
		assert_true(wan_pair_step(&p, p.now + RWY_MS));
	wan_tx_bulk(p.stream[0].tx);
	wan_pair_settle(&p, RWY_SEC);
	assert_int_equal(p.stream[0].got, 14);
	assert_true(wan_tx_blocked(p.stream[0].tx));
	p.stream[2].total = 100;
	wan_pair_settle(&p, RWY_SEC);
	assert_int_equal(p.stream[0].got, 14);
	assert_int_equal(p.stream[2].got, 2);
	p.end[1].stall = false;
	assert_true(wan_pair_run(&p, p.now + 20 * RWY_SEC));
	assert_int_equal(wan_pair_stats(&p, 1).c.drop_no_credit, 0);
	assert_true(wan_pair_finish(&p));
}

/* Such a flow goes on as fast as the limit of its class lets it, and not faster, although nothing
 * else can send. */
static void test_bulk_limit(void **state)
{
	struct wan_class_cfg slow = {.guarantee_Bps = 70000, .limit_Bps = 70000, .weight = 1};
	struct wan_pair p;
	struct wan_cfg c;

	wan_cfg_default(&c);
	c.rx_bytes = 1600 * 700;
	start_cfg(&p, &c, 0, 5 * RWY_MS);
	wan_pair_streams(&p, 3, 10000, 700, 700, 10000);
	p.stream[2].total = 0;
	p.end[1].stall = true;
	while (!p.stream[0].tx || !p.stream[2].tx)
		assert_true(wan_pair_step(&p, p.now + RWY_MS));
	assert_int_equal(wan_class_set(p.end[0].t, 1, &slow), 0);
	wan_tx_class(p.stream[2].tx, 1);
	wan_tx_bulk(p.stream[0].tx);
	wan_pair_settle(&p, RWY_SEC);
	assert_int_equal(p.stream[0].got, 1400);
	p.stream[2].total = 10000;
	wan_pair_settle(&p, RWY_SEC);
	assert_in_range(p.stream[2].got, 60, 110); /* 100 less what headers take */
	wan_pair_settle(&p, 3 * RWY_SEC);
	assert_int_equal(p.stream[2].got, 200);
	assert_true(p.steps < 100000); /* in between the ends rest */
	p.end[1].stall = false;
	assert_true(wan_pair_run(&p, p.now + 200 * RWY_SEC));
	assert_true(wan_pair_finish(&p));
}

/* A sender that ignores credit: its data is dropped, counted, and not acknowledged. */
static void test_beyond_credit(void **state)
{
	struct wan_pair p;
	struct wan_cfg c;

	wan_cfg_default(&c);
	c.rx_window = 5;
	start_cfg(&p, &c, 0, 5 * RWY_MS);
	wan_pair_streams(&p, 1, 50, 500, 500, 50);
	p.end[1].stall = true;
	wan_pair_settle(&p, 200 * RWY_MS);
	p.end[0].t->peer.rx_window = 20;
	wan_tx_wake_all(p.end[0].t);
	wan_stir(p.end[0].t);
	wan_pair_settle(&p, 500 * RWY_MS);
	assert_int_equal(p.stream[0].got, 5);
	assert_int_equal(p.stream[0].acked, 5);
	assert_true(wan_pair_stats(&p, 1).c.drop_no_credit > 0);
	p.end[1].stall = false;
	assert_true(wan_pair_run(&p, p.now + 20 * RWY_SEC));
	assert_true(wan_pair_finish(&p));
}

static void test_fragments(void **state)
{
	for (uint32_t len = 1; len <= 9000; len += len < 1500 && len > 1380 ? 1 : 97) {
		struct wan_pair p;
		struct wan_cfg c;

		wan_cfg_default(&c);
		start_cfg(&p, &c, 100000, RWY_MS);
		c.mtu[0] = 1472;
		wan_pair_streams(&p, 2, 5, len, len, 5);
		assert_true(wan_pair_run(&p, p.now + 60 * RWY_SEC));
		assert_true(wan_pair_finish(&p));
	}
}

/* RoCE MTU 4096 over a 1500-byte path once the flow is known: three datagrams per packet, each with
 * a small header. */
static void test_fragment_count(void **state)
{
	struct wan_pair p;

	start(&p, 0);
	wan_pair_streams(&p, 1, 1000, 4096 + 58, 4096 + 58, 1);
	assert_true(wan_pair_run(&p, p.now + 100 * RWY_SEC));
	assert_in_range(
	    wan_pair_stats(&p, 0).c.tx_datagrams, 3000, 3300 + 1000); /* and acknowledgements of DELIVERED */
	assert_true(wan_pair_finish(&p));
}

static void test_reassembly(void **state)
{
	struct wan_pool pool;
	struct wan_tunnel t;
	struct wan_f_data d = {.frag = true, .total = 250, .fsize = 100, .kind = 1};
	uint8_t bytes[250];

	memset(&t, 0, sizeof(t));
	wan_pool_init(&pool);
	t.cfg.bufs = pool.bufs;
	for (int i = 0; i < 250; i++)
		bytes[i] = (uint8_t)i;
	struct rwy_buf *b = wan_reasm_new(&t, &d);

	assert_non_null(b);
	assert_int_equal(b->len, 250);
	assert_int_equal(b->kind, 1);
	assert_true(b->headroom >= WAN_REASM_ROOM);
	d.index = 2;
	assert_true(wan_reasm_add(b, &d, bytes + 200, 50));
	assert_false(wan_reasm_add(b, &d, bytes, 50)); /* duplicate */
	struct wan_f_data other = d;

	other.index = 1;
	other.fsize = 90;
	assert_false(wan_reasm_add(b, &other, bytes, 90)); /* would overlap */
	other.fsize = 100;
	other.total = 260;
	assert_false(wan_reasm_add(b, &other, bytes, 100)); /* of another size */
	d.index = 0;
	assert_true(wan_reasm_add(b, &d, bytes, 100));
	assert_false(wan_reasm_done(b));
	d.index = 1;
	assert_true(wan_reasm_add(b, &d, bytes + 100, 100));
	assert_true(wan_reasm_done(b));
	assert_memory_equal(b->data, bytes, 250);
	rwy_buf_free(&pool.bufs, b);
	pool.fail_ppm = 1000000;
	assert_null(wan_reasm_new(&t, &d));
	assert_int_equal(pool.live, 0);
}

static void test_end(void **state)
{
	for (uint32_t loss = 0; loss < 400000; loss += 100000) {
		struct wan_pair p;

		start(&p, loss);
		wan_pair_streams(&p, 50, 7, 100, 3000, 3);
		p.deliver_delay = 3 * RWY_MS;
		for (uint32_t i = 0; i < p.streams; i++)
			p.stream[i].close_after = true;
		assert_true(wan_pair_run(&p, p.now + 100 * RWY_SEC));
		wan_pair_settle(&p, 10 * RWY_SEC);
		for (int i = 0; i < 2; i++) {
			assert_int_equal(wan_pair_stats(&p, i).tx_flows, 0);
			assert_int_equal(wan_pair_stats(&p, i).rx_flows, 0);
		}
		assert_true(wan_pair_finish(&p));
	}
}

static void test_abort_unused(void **state)
{
	struct wan_pair p;

	start(&p, 0);
	wan_pair_streams(&p, 1, 0, 1, 1, 1);
	wan_tx_abort(p.stream[0].tx, p.now);
	wan_pair_settle(&p, RWY_SEC);
	assert_int_equal(wan_pair_stats(&p, 0).tx_flows, 0);
	assert_int_equal(wan_pair_stats(&p, 1).tx_flows, 0);
	assert_int_equal(p.end[0].closes + p.end[1].closes, 0);
	assert_true(wan_pair_finish(&p));
}

/* Aborted in the middle, at every moment: custody is freed at once, the peer is informed, the slot
 * is reused. */
static void test_abort(void **state)
{
	for (rwy_dur at = 0; at < 60 * RWY_MS; at += 3 * RWY_MS) {
		struct wan_pair p;
		struct wan_txflow *again;
		bool known = true; /* the peer may know all flows of end 0 */

		start(&p, 100000);
		p.deliver_delay = 5 * RWY_MS;
		wan_pair_streams(&p, 4, 400, 100, 3000, 300);
		wan_pair_settle(&p, at);
		for (int i = 0; i < 4; i++) {
			known &= i % 2 || p.stream[i].tx->next_send > 0;
			wan_tx_abort(p.stream[i].tx, p.now);
			p.stream[i].tx = NULL;
		}
		assert_int_equal(wan_pair_stats(&p, 0).tx_queued_bytes, 0);
		wan_pair_settle(&p, 10 * RWY_SEC);
		for (int i = 0; i < 2; i++) {
			assert_int_equal(wan_pair_stats(&p, i).tx_flows, 0);
			assert_int_equal(wan_pair_stats(&p, i).rx_flows, 0);
			assert_int_equal(wan_pair_stats(&p, i).rx_held_bytes, 0);
			assert_int_equal(p.end[i].t->tx_out, 0);
		}
		assert_int_equal(wan_tx_open(p.end[0].t, &again, (const uint8_t *)"x", 1, NULL, p.now), 0);
		assert_true(WAN_USE(again->id) >= 1 || !known);
		assert_true(wan_pair_finish(&p));
	}
}

static void test_refuse(void **state)
{
	struct wan_pair p;

	start(&p, 100000);
	wan_pair_streams(&p, 8, 20, 100, 3000, 20);
	p.end[1].refuse = true;
	wan_pair_settle(&p, 10 * RWY_SEC);
	assert_int_equal(p.end[0].resets, 4);
	assert_int_equal(p.end[1].resets, 0);
	assert_int_equal(wan_pair_stats(&p, 0).tx_flows, 0);
	assert_int_equal(wan_pair_stats(&p, 0).tx_queued_bytes, 0);
	assert_int_equal(wan_pair_stats(&p, 1).rx_flows, 0);
	assert_int_equal(wan_pair_stats(&p, 0).rx_flows, 4);
	assert_true(wan_pair_finish(&p));
}

static void test_reset_later(void **state)
{
	struct wan_pair p;

	start(&p, 0);
	wan_pair_streams(&p, 2, 10, 100, 3000, 10);
	p.end[1].stall = true;
	wan_pair_settle(&p, 200 * RWY_MS);
	assert_int_equal(wan_tx_queued(p.stream[0].tx), 10);
	wan_rx_reset(p.stream[0].rx, p.now);
	p.stream[0].rx = NULL;
	wan_pair_settle(&p, 200 * RWY_MS); /* nothing more is sent: RESET goes by itself */
	assert_int_equal(p.end[0].resets, 1);
	assert_int_equal(wan_pair_stats(&p, 0).tx_queued_bytes, 0);
	assert_int_equal(wan_pair_stats(&p, 1).rx_held_bytes, 0);
	assert_true(wan_pair_finish(&p));
}

/* The first datagram of a flow arrives after the flow has ended: it must not open it again. */
static void test_late_opener(void **state)
{
	struct wan_pair p;
	struct wan_link_pkt *late = NULL;

	start(&p, 0);
	wan_pair_streams(&p, 1, 5, 500, 500, 5);
	p.stream[0].close_after = true;
	while (!late && wan_pair_step(&p, 5 * RWY_SEC))
		for (uint32_t i = 0; i < p.link[0].due.n && !late; i++) {
			struct wan_link_pkt *k = p.link[0].due.v[i].what;

			if (k->len < 500)
				continue;
			late = malloc(sizeof(*late) + k->len);
			memcpy(late, k, sizeof(*late) + k->len);
			k->data[WAN_PKT_HDR] ^= 0xff; /* the original is lost */
		}
	assert_non_null(late);
	assert_true(wan_pair_run(&p, p.now + 10 * RWY_SEC));
	wan_pair_settle(&p, RWY_SEC);
	assert_int_equal(wan_pair_stats(&p, 1).rx_flows, 0);
	struct rwy_buf *b = rwy_buf_alloc(&p.pool.bufs, 64, late->len);

	memcpy(b->data, late->data, late->len);
	wan_recv(p.end[1].t, 0, b, 0, p.now);
	assert_int_equal(wan_pair_stats(&p, 1).rx_flows, 0);
	assert_int_equal(wan_pair_stats(&p, 1).c.drop_unknown_flow, 1);
	wan_pair_settle(&p, RWY_SEC);
	assert_int_equal(p.end[0].resets, 0);
	free(late);
	assert_true(wan_pair_finish(&p));
}

/* No buffer for a while: data that was not kept is not acknowledged. */
static void test_no_buffers(void **state)
{
	struct wan_pair p;

	start(&p, 0);
	p.pool.fail_ppm = 300000;
	wan_pair_streams(&p, 4, 50, 3000, 4000, 50);
	assert_true(wan_pair_run(&p, p.now + 100 * RWY_SEC));
	assert_true(wan_pair_stats(&p, 0).c.drop_no_buffer > 0);
	assert_true(wan_pair_finish(&p));
}

static void test_many(void **state)
{
	struct wan_pair p;
	struct wan_cfg c;

	wan_cfg_default(&c);
	start_cfg(&p, &c, 5000, 5 * RWY_MS);
	wan_pair_streams(&p, 10000, 3, 64, 300, 3);
	assert_true(wan_pair_run(&p, p.now + 60 * RWY_SEC));
	assert_int_equal(wan_pair_stats(&p, 0).tx_flows, 5000);
	assert_int_equal(wan_pair_stats(&p, 0).rx_flows, 5000);
	/* deliveries were told many in a datagram */
	assert_true(wan_pair_stats(&p, 0).c.tx_datagrams < 5000 * 3 * 2);
	assert_true(wan_pair_finish(&p));
}

/* One flow with much data, many with little: none waits for the long one. */
static void test_fair(void **state)
{
	struct wan_link_cfg l = {
	    .delay = 5 * RWY_MS, .rate_Bps = 12500000, .overhead = 42, .queue_bytes = 500000};
	struct wan_cfg c;
	struct wan_pair p;

	wan_cfg_default(&c);
	c.cc = &cc_fixed;
	c.cc_cfg.rate_Bps = 12500000;
	wan_pair_init(&p, &c, &l, &l, 5);
	wan_pair_streams(&p, 20, 4000, 1000, 1000, 4000);
	wan_pair_run(&p, p.now + 2 * RWY_SEC);
	uint64_t least = UINT64_MAX, most = 0;

	for (uint32_t i = 0; i < p.streams; i += 2) {
		least = p.stream[i].got < least ? p.stream[i].got : least;
		most = p.stream[i].got > most ? p.stream[i].got : most;
	}
	assert_true(least > 1000);
	assert_true(most - least <= 60);
	assert_true(wan_pair_finish(&p));
}

static void test_dgrams(void **state)
{
	struct wan_pair p;

	start(&p, 0);
	wan_pair_settle(&p, 50 * RWY_MS);
	for (uint32_t i = 0; i < 300; i++)
		wan_pair_dgram(&p, (int)i & 1, 1 + i * 30);
	wan_pair_settle(&p, RWY_SEC);
	assert_int_equal(p.end[0].dgrams_got, 150);
	assert_int_equal(p.end[1].dgrams_got, 150);
	wan_pair_dgram(&p, 0, 65000); /* more fragments than allowed */
	for (uint32_t i = 0; i < WAN_DGRAMS_MAX + 10; i++)
		wan_pair_dgram(&p, 0, 100);
	wan_pair_settle(&p, RWY_SEC);
	assert_int_equal(p.end[1].dgrams_got, 150 + WAN_DGRAMS_MAX);
	assert_int_equal(wan_pair_stats(&p, 0).c.drop_dgram_queue, 11);
	assert_true(wan_pair_finish(&p));
}

/* Some wrong arguments that must not do harm. */
static void test_arguments(void **state)
{
	struct wan_pair p;
	struct wan_cfg c;
	struct wan_tunnel *t;
	struct wan_txflow *f;
	uint8_t info[WAN_OPEN_MAX + 1] = {0};

	start(&p, 0);
	assert_int_equal(wan_tx_open(p.end[0].t, &f, info, sizeof(info), NULL, p.now), RWY_EINVAL);
	c = p.end[0].cfg;
	c.paths = 0;
	assert_int_equal(wan_new(&t, &c, p.now), RWY_EINVAL);
	c = p.end[0].cfg;
	c.tx_pkts_max = 1000;
	assert_int_equal(wan_new(&t, &c, p.now), RWY_EINVAL);
	c = p.end[0].cfg;
	c.mtu[0] = 500;
	assert_int_equal(wan_new(&t, &c, p.now), RWY_EINVAL);
	wan_free(NULL);
	assert_true(wan_pair_finish(&p));
}

/* Two paths; one of them dies in the middle. */
static void test_paths(void **state)
{
	struct wan_link_cfg l = {
	    .delay = 5 * RWY_MS, .rate_Bps = 12500000, .overhead = 42, .queue_bytes = 500000};
	struct wan_cfg c;
	struct wan_pair p;

	wan_cfg_default(&c);
	c.paths = 2;
	c.cc = &cc_fixed;
	c.cc_cfg.rate_Bps = 6000000;
	c.keepalive = 200 * RWY_MS;
	wan_pair_init(&p, &c, &l, &l, 5);
	wan_pair_streams(&p, 4, 20000, 1000, 1000, 1000);
	wan_pair_run(&p, p.now + RWY_SEC);
	assert_true(wan_path_usable(&p.end[0].t->path[0]) && wan_path_usable(&p.end[0].t->path[1]));
	assert_true(p.end[0].t->path[1].next_pn > 500 && p.end[0].t->path[0].next_pn > 500);
	p.dead_path = 2; /* path 1 */
	uint64_t before = p.stream[0].got;

	/* Three probe timeouts, although the window would stay open long. */
	wan_pair_run(&p, p.now + 200 * RWY_MS);
	assert_false(wan_path_usable(&p.end[0].t->path[1]));
	assert_true(p.stream[0].got > before + 100);
	p.dead_path = 0;
	wan_pair_run(&p, p.now + 500 * RWY_MS);
	assert_true(wan_path_usable(&p.end[0].t->path[1]));
	assert_true(wan_pair_run(&p, p.now + 60 * RWY_SEC));
	assert_true(wan_pair_finish(&p));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_custody),
	    cmocka_unit_test(test_flow_credit),
	    cmocka_unit_test(test_tunnel_credit),
	    cmocka_unit_test(test_bulk_credit),
	    cmocka_unit_test(test_bulk_limit),
	    cmocka_unit_test(test_beyond_credit),
	    cmocka_unit_test(test_fragments),
	    cmocka_unit_test(test_fragment_count),
	    cmocka_unit_test(test_reassembly),
	    cmocka_unit_test(test_end),
	    cmocka_unit_test(test_abort_unused),
	    cmocka_unit_test(test_abort),
	    cmocka_unit_test(test_refuse),
	    cmocka_unit_test(test_reset_later),
	    cmocka_unit_test(test_late_opener),
	    cmocka_unit_test(test_no_buffers),
	    cmocka_unit_test(test_many),
	    cmocka_unit_test(test_fair),
	    cmocka_unit_test(test_dgrams),
	    cmocka_unit_test(test_arguments),
	    cmocka_unit_test(test_paths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
