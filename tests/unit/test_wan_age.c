/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tunnel that lives long meets numbers that wrap, queues that were full once, reports that come
 * behind later ones, paths that lead elsewhere, flows that end for want of memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cc/dcqcn.h"
#include "tests/lib/wan_pair.h"
#include "wan/tunnel.h"

static struct wan_pair p;

static struct wan_cfg config(const char *cc, uint64_t rate_Bps)
{
	struct wan_cfg cfg;

	wan_cfg_default(&cfg);
	cfg.cc = cc_find(cc);
	cfg.cc_cfg.rate_Bps = rate_Bps;
	cfg.fec = WAN_FEC_OFF;
	return cfg;
}

/* Streams 0, 2 and so on go from end 0; the others carry nothing. */
static void streams(uint32_t n, uint64_t total, uint32_t len, uint32_t queue)
{
	wan_pair_streams(&p, 2 * n, total, len, len, queue);
	for (uint32_t i = 1; i < 2 * n; i += 2)
		p.stream[i].total = 0;
}

static uint64_t got_in(const struct wan_stream *s, rwy_dur t)
{
	const uint64_t before = s->got;

	wan_pair_settle(&p, t);
	return s->got - before;
}

/* --- shares (sched.c) -------------------------------------------------------------------------- */

#define FAR (((uint64_t)1 << 63) + ((uint64_t)1 << 50)) /* of virtual time: terabytes */

static void two_classes(bool made_late)
{
	const struct wan_link_cfg l = {.delay = 2 * RWY_MS, .rate_Bps = 12500000, .queue_bytes = 200000};
	const struct wan_cfg cfg = config("fixed", 12000000);
	const struct wan_class_cfg share = {.weight = 1};
	struct wan_sched *s;
	uint64_t first, second;

	wan_pair_init(&p, &cfg, &l, &l, 7);
	s = &p.end[0].t->sched;
	assert_int_equal(wan_class_set(p.end[0].t, 1, &share), 0);
	streams(2, 100000000, 1000, 400);
	p.stream[2].total = made_late ? 0 : 50; /* a little, then it is idle */
	wan_tx_class(p.stream[0].tx, 1);
	if (!made_late) {
		assert_int_equal(wan_class_set(p.end[0].t, 2, &share), 0);
		wan_tx_class(p.stream[2].tx, 2);
	}
	wan_pair_settle(&p, RWY_SEC);
	s->vtime += FAR;
	s->table[0].v[1]->key[WAN_HEAP_SHARE] += FAR;
	if (made_late) {
		assert_int_equal(wan_class_set(p.end[0].t, 2, &share), 0);
		wan_tx_class(p.stream[2].tx, 2);
	}
	p.stream[2].total = 100000000;
	wan_pair_settle(&p, RWY_SEC / 2);
	first = p.stream[0].got;
	second = got_in(&p.stream[2], RWY_SEC);
	first = p.stream[0].got - first;
	assert_in_range(10 * second, 9 * first, 11 * first);
	wan_pair_fini(&p);
}

/* A class was idle while others sent so much that their virtual time is half of all numbers on. */
static void test_idle_class(void **state)
{
	two_classes(false);
}

static void test_new_class(void **state)
{
	two_classes(true);
}

/*
 * Responses go ahead of requests that have no credit left. When these may go again, the responses
 * have their share at once: they owe nothing.
 */
static void test_ahead_of_bulk(void **state)
{
	const struct wan_link_cfg l = {.delay = RWY_MS, .rate_Bps = 62500000, .queue_bytes = 400000};
	struct wan_cfg cfg = config("fixed", 62000000);
	struct wan_stream *bulk, *responses;
	uint64_t requests;

	cfg.rx_bytes = 2 << 20;
	wan_pair_init(&p, &cfg, &l, &l, 7);
	streams(2, 100000000, 1400, 4000);
	bulk = &p.stream[0];
	responses = &p.stream[2];
	responses->queue_max = 150;
	wan_tx_bulk(bulk->tx);
	p.end[1].stall = true; /* the requests' host takes nothing; the responses' does */
	for (unsigned i = 0; i < 1000; i++) {
		const rwy_time at = p.now + RWY_MS;

		wan_pair_settle(&p, RWY_MS);
		p.now = rwy_time_max(p.now, at);
		if (responses->rx && responses->got)
			wan_rx_delivered(responses->rx, responses->got - 1, p.now);
	}
	assert_true(responses->got > 10000);
	p.end[1].stall = false;
	wan_pair_settle(&p, 100 * RWY_MS);
	requests = bulk->got;
	assert_true(got_in(responses, RWY_SEC / 2) > 2000);
	assert_true(bulk->got > requests + 2000);
	wan_pair_fini(&p);
}

/* --- reports (ctl.c) --------------------------------------------------------------------------- */

/*
 * More flows are refused at once than RESETs fit the queue, and the log of what is under way: each
 * sender hears of it, and then there is rest.
 */
static void test_many_resets(void **state)
{
	const struct wan_link_cfg l = {.delay = 25 * RWY_MS, .rate_Bps = 1250000000};
	const uint32_t n = 12 * WAN_RESETS_MAX;
	uint64_t sent;
	struct wan_cfg cfg;

	wan_cfg_default(&cfg);
	cfg.tx_pkts_max = 1024;
	wan_pair_init(&p, &cfg, &l, &l, 7);
	streams(n, 1, 100, 1);
	p.end[1].stall = true;
	wan_pair_settle(&p, 3 * RWY_SEC);
	for (uint32_t i = 0; i < 2 * n; i += 2) {
		assert_non_null(p.stream[i].rx);
		wan_rx_reset(p.stream[i].rx, p.now);
		p.stream[i].rx = NULL;
	}
	wan_pair_settle(&p, 2 * RWY_SEC);
	assert_int_equal(p.end[0].resets, n);
	assert_int_equal(wan_pair_stats(&p, 0).tx_queued_bytes, 0);
	sent = wan_pair_stats(&p, 1).c.tx_datagrams;
	wan_pair_settle(&p, 2 * RWY_SEC);
	assert_in_range(wan_pair_stats(&p, 1).c.tx_datagrams - sent, 0, 50); /* keepalives */
	wan_pair_fini(&p);
}

/* Takes the next RATE of end 1 off the wire. */
static struct rwy_buf *rate_taken(void)
{
	for (unsigned step = 0; step < 2000 && wan_pair_step(&p, p.now + RWY_SEC); step++)
		for (uint32_t i = 0; i < p.link[1].due.n; i++) {
			struct wan_link_pkt *x = p.link[1].due.v[i].what;

			for (uint32_t at = WAN_PKT_HDR; at + 1 < x->len; at++) {
				struct rwy_buf *b;

				if (x->data[at] != WAN_F_RATE || x->data[at + 1] != 1)
					continue;
				b = rwy_buf_alloc(&p.pool.bufs, 64, x->len);
				assert_non_null(b);
				memcpy(b->data, x->data, x->len);
				x->data[WAN_PKT_HDR] ^= 0xff; /* this one is lost */
				return b;
			}
		}
	fail_msg("no RATE");
	return NULL;
}

/* A RATE that a later one overtook is acknowledged like any other; the later one comes again. */
static void late_rate(uint64_t window, uint64_t drain_Bps)
{
	const struct wan_link_cfg l = {.delay = 25 * RWY_MS, .rate_Bps = 62500000};
	struct wan_stream *s;
	struct rwy_buf *late;
	struct wan_cfg cfg;
	uint64_t drain;

	wan_cfg_default(&cfg);
	wan_pair_init(&p, &cfg, &l, &l, 7);
	streams(1, 100000000, 1400, 6000);
	s = &p.stream[0];
	wan_pair_settle(&p, RWY_SEC);
	wan_rx_window(s->rx, 65536, 1000000);
	late = rate_taken();
	wan_rx_window(s->rx, window, drain_Bps);
	wan_pair_settle(&p, 100 * RWY_MS);
	assert_int_equal(wan_tx_window(s->tx, &drain), window);
	assert_int_equal(drain, drain_Bps);
	wan_recv(p.end[0].t, 0, late, 0, p.now);
	assert_int_equal(wan_tx_window(s->tx, &drain), 65536);
	assert_int_equal(drain, 1000000);
	wan_pair_settle(&p, RWY_SEC);
	assert_int_equal(wan_tx_window(s->tx, &drain), window);
	assert_int_equal(drain, drain_Bps);
	wan_pair_fini(&p);
}

static void test_late_rate(void **state)
{
	late_rate(0, 0);
}

/* They differ in the host's rate alone, or in the upper half of the window. */
static void test_late_rate_alike(void **state)
{
	late_rate(65536, 2000000);
	late_rate(((uint64_t)1 << 32) + 65536, 1000000);
}

/* A window that changes all the time is told once or twice for each change. */
static void test_many_rates(void **state)
{
	const struct wan_link_cfg l = {.delay = 25 * RWY_MS, .rate_Bps = 62500000};
	const unsigned changes = 100;
	struct wan_cfg cfg;
	uint64_t sent;

	wan_cfg_default(&cfg);
	wan_pair_init(&p, &cfg, &l, &l, 7);
	streams(1, 10, 1400, 10);
	wan_pair_settle(&p, RWY_SEC);
	sent = wan_pair_stats(&p, 1).c.tx_datagrams;
	for (unsigned i = 0; i < changes; i++) {
		const rwy_time at = p.now + 47 * RWY_MS; /* a little less than a round trip */

		wan_rx_window(p.stream[0].rx, 65536 + 4096 * i, 1000000);
		wan_pair_settle(&p, 47 * RWY_MS);
		p.now = rwy_time_max(p.now, at);
	}
	wan_pair_settle(&p, RWY_SEC);
	assert_in_range(wan_pair_stats(&p, 1).c.tx_datagrams - sent, changes, 3 * changes);
	wan_pair_fini(&p);
}

/* A carrier is proven by way of the path that works, whichever that is. */
static void test_carrier_beside_dead_path(void **state)
{
	static const struct wan_pipe_cfg pipe = {
	    .conns = 4, .run = 16, .delay = 10 * RWY_MS, .rate_Bps = 20000000, .room = 262144, .room_n = 512};
	const struct wan_link_cfg l = {.delay = 10 * RWY_MS, .rate_Bps = 62500000};

	for (uint32_t dead = 0; dead < 3; dead++) {
		struct wan_cfg cfg;

		wan_cfg_default(&cfg);
		cfg.paths = 2;
		cfg.mtu[1] = cfg.mtu[0];
		wan_pair_init(&p, &cfg, &l, &l, 7);
		wan_pair_path(&p, &l, &l);
		for (unsigned i = 0; i < 2; i++)
			wan_pipe_init(&p.pipe[i], &pipe, 11 + i);
		wan_pair_settle(&p, RWY_SEC);
		p.dead_path = dead; /* none, path 0, path 1 */
		wan_pair_settle(&p, 2 * RWY_SEC);
		for (unsigned i = 0; i < 2; i++)
			assert_int_equal(wan_stream_detour(p.end[i].t, 2, p.now), 0);
		wan_pair_settle(&p, 5 * RWY_SEC);
		for (int i = 0; i < 2; i++)
			assert_true(wan_pair_stats(&p, i).detour_proven);
		wan_pair_fini(&p);
	}
}

/* --- marks (ecn.c) ----------------------------------------------------------------------------- */

static void marked(void)
{
	const struct wan_link_cfg ab = {
	    .delay = 2 * RWY_MS, .rate_Bps = 125000000, .queue_bytes = 4000000, .ecn_bytes = 100000};
	const struct wan_link_cfg ba = {.delay = 2 * RWY_MS};
	const struct wan_cfg cfg = config("dcqcn", 250000000);

	wan_pair_init(&p, &cfg, &ab, &ba, 7);
	streams(1, 100000000, 1400, 6000);
	wan_pair_settle(&p, RWY_SEC);
	assert_string_equal(wan_ecn_name(p.end[0].t->path), "on");
}

/* The count of marks wraps. */
static void test_marks_wrap(void **state)
{
	uint32_t seen, add;

	marked();
	add = 0xffffff00u - p.end[1].t->path->ce;
	p.end[1].t->path->ce += add;
	p.end[0].t->path->ce_seen += add;
	wan_pair_settle(&p, RWY_SEC);
	seen = p.end[0].t->path->ce_seen;
	assert_true(seen < 0x80000000u);
	wan_pair_settle(&p, RWY_SEC);
	assert_true(p.end[0].t->path->ce_seen > seen + 500);
	wan_pair_fini(&p);
}

/* A path that leads elsewhere is judged by what it does from then on. */
static void test_marks_elsewhere(void **state)
{
	marked();
	assert_true(p.end[0].t->path->ce_seen > 200);
	assert_int_equal(wan_retune_use(p.end[0].t, 0, WAN_USE_ALWAYS, 1472, true, p.now), 0);
	wan_pair_settle(&p, 2 * RWY_SEC);
	assert_string_equal(wan_ecn_name(p.end[0].t->path), "on");
	wan_pair_fini(&p);
}

/* --- memory ------------------------------------------------------------------------------------ */

/*
 * A flow that ends for want of memory ends at the peer, too: the next one in its place is open. So
 * does one that the engine ends before it hears of that, when nothing of it is acknowledged.
 */
static void broken_flow(bool ended)
{
	const struct wan_link_cfg l = {.delay = 5 * RWY_MS, .rate_Bps = 1250000000};
	struct wan_stream *s, *next;
	struct wan_cfg cfg;
	uint8_t info[12];
	uint32_t slot;

	wan_cfg_default(&cfg);
	wan_pair_init(&p, &cfg, &l, &l, 7);
	streams(2, 8, 100, 8);
	s = &p.stream[0];
	next = &p.stream[2];
	p.end[1].stall = true;
	s->total = ended ? 0 : 8;
	wan_pair_settle(&p, 500 * RWY_MS);
	s->total = 8;
	if (ended) /* its first datagrams are under way */
		wan_pair_settle(&p, 4 * RWY_MS);
	slot = WAN_SLOT(s->tx->id);
	s->tx->broken = true; /* as flow_tx.c does when its ring cannot grow */
	p.end[0].t->broken = true;
	if (ended) {
		assert_false(s->tx->open_acked);
		wan_tx_abort(s->tx, p.now);
		s->tx = NULL;
	}
	wan_pair_settle(&p, 500 * RWY_MS);
	assert_int_equal(p.end[0].resets, !ended);
	assert_int_equal(wan_pair_stats(&p, 1).rx_flows, 1);
	p.end[1].stall = false;
	wan_tx_abort(next->tx, p.now);
	wan_pair_settle(&p, 500 * RWY_MS);
	do {
		rwy_put32(info, next->id);
		rwy_put64(info + 4, 0);
		assert_int_equal(wan_tx_open(p.end[0].t, &next->tx, info, sizeof(info), next, p.now), 0);
	} while (WAN_SLOT(next->tx->id) != slot);
	next->tx_first = next->sent = next->delivered = next->got = 0;
	wan_pair_settle(&p, RWY_SEC);
	assert_int_equal(next->got, next->total);
	wan_pair_fini(&p);
}

static void test_broken_flow(void **state)
{
	broken_flow(false);
	broken_flow(true);
}

/* More flows end unsent in one slot than there are numbers of its uses: the next one is heard. */
static void test_unsent_flows(void **state)
{
	const struct wan_link_cfg l = {.delay = 5 * RWY_MS, .rate_Bps = 1250000000};
	struct wan_stream *s;
	struct wan_cfg cfg;
	uint8_t info[12] = {0};

	wan_cfg_default(&cfg);
	wan_pair_init(&p, &cfg, &l, &l, 7);
	streams(1, 5, 100, 5);
	s = &p.stream[0];
	s->close_after = true;
	wan_pair_settle(&p, RWY_SEC); /* the slot was used, and its flow has ended */
	assert_int_equal(s->got, 5);
	for (unsigned i = 0; i < 2100; i++) {
		struct wan_txflow *f;

		assert_int_equal(wan_tx_open(p.end[0].t, &f, info, sizeof(info), NULL, p.now), 0);
		wan_tx_abort(f, p.now);
	}
	s->got = s->sent = s->delivered = s->acked = 0;
	s->tx_closed = false;
	s->rx = NULL;
	assert_int_equal(wan_tx_open(p.end[0].t, &s->tx, info, sizeof(info), s, p.now), 0);
	wan_pair_settle(&p, RWY_SEC);
	assert_int_equal(s->got, 5);
	wan_pair_fini(&p);
}

/* The first of the best-effort packets is dropped when a part of it is on its way. */
static void test_cut_datagram(void **state)
{
	const struct wan_link_cfg l = {.delay = 5 * RWY_MS};
	const struct wan_cfg cfg = config("fixed", 125000);

	wan_pair_init(&p, &cfg, &l, &l, 7);
	wan_pair_settle(&p, 500 * RWY_MS);
	for (unsigned i = 0; i < WAN_DGRAMS_MAX; i++)
		wan_pair_dgram(&p, 0, 4000);
	while (!p.end[0].t->dgram_off)
		assert_true(wan_pair_step(&p, p.now + RWY_SEC));
	wan_pair_dgram(&p, 0, 4000);
	wan_pair_settle(&p, 60 * RWY_SEC);
	assert_int_equal(wan_pair_stats(&p, 0).c.drop_dgram_queue, 1);
	assert_int_equal(p.end[1].dgrams_got, WAN_DGRAMS_MAX);
	assert_int_equal(wan_pair_stats(&p, 1).c.drop_bad_frame, 0);
	wan_pair_fini(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_idle_class),
	    cmocka_unit_test(test_new_class),
	    cmocka_unit_test(test_ahead_of_bulk),
	    cmocka_unit_test(test_many_resets),
	    cmocka_unit_test(test_late_rate),
	    cmocka_unit_test(test_late_rate_alike),
	    cmocka_unit_test(test_many_rates),
	    cmocka_unit_test(test_carrier_beside_dead_path),
	    cmocka_unit_test(test_marks_wrap),
	    cmocka_unit_test(test_marks_elsewhere),
	    cmocka_unit_test(test_broken_flow),
	    cmocka_unit_test(test_unsent_flows),
	    cmocka_unit_test(test_cut_datagram),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
