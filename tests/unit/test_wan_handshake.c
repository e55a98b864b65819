/* SPDX-License-Identifier: Apache-2.0 */
/* The handshake: coming up, restarts, replays, forgeries, unknown peers, silence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/wan_pair.h"
#include "wan/tunnel.h"

static void start(struct wan_pair *p, uint32_t loss_ppm, uint32_t streams, uint64_t total)
{
	struct wan_link_cfg l = {.delay = 10 * RWY_MS, .loss_ppm = loss_ppm};
	struct wan_cfg c;

	wan_cfg_default(&c);
	c.tx_pkts_max = 4096;
	c.keepalive = 300 * RWY_MS;
	wan_pair_init(p, &c, &l, &l, 11);
	if (streams)
		wan_pair_streams(p, streams, total, 100, 1000, 50);
}

static void inject(struct wan_pair *p, int end, const void *bytes, uint32_t len)
{
	struct rwy_buf *b = rwy_buf_alloc(&p->pool.bufs, 64, len);

	memcpy(b->data, bytes, len);
	wan_recv(p->end[end].t, 0, b, 0, p->now);
}

static rwy_time since(struct wan_pair *p, unsigned end)
{
	struct wan_stats s;

	wan_get_stats(p->end[end].t, &s);
	return s.since;
}

static void test_up(void **state)
{
	struct wan_pair p;

	start(&p, 0, 0, 0);
	assert_false(wan_hs_up(p.end[0].t));
	while (wan_pair_step(&p, 1500 * RWY_MS) && !(p.end[0].up && p.end[1].up))
		;
	assert_true(p.end[0].up && p.end[1].up);
	assert_true(p.now <= RWY_SEC + 31 * RWY_MS); /* a round trip and a half */
	assert_int_equal(wan_pair_stats(&p, 0).c.peer_restarts, 0);
	/* and it stays quiet: keep-alives only */
	struct wan_counters before = wan_pair_stats(&p, 0).c;

	wan_pair_run(&p, p.now + 3 * RWY_SEC);
	while (wan_pair_step(&p, 5 * RWY_SEC))
		;
	assert_true(wan_pair_stats(&p, 0).c.tx_datagrams - before.tx_datagrams < 40);
	assert_int_equal(wan_pair_stats(&p, 0).c.went_down, 0);
	assert_in_range(since(&p, 0), RWY_SEC, RWY_SEC + 31 * RWY_MS);
	assert_true(wan_pair_finish(&p));
}

static void test_up_under_loss(void **state)
{
	for (uint64_t seed = 0; seed < 50; seed++) {
		struct wan_pair p;

		start(&p, 500000, 0, 0);
		p.link[0].rng = seed;
		while (wan_pair_step(&p, 60 * RWY_SEC) && !(p.end[0].up && p.end[1].up))
			;
		assert_true(p.end[0].up && p.end[1].up);
		assert_true(wan_pair_finish(&p));
	}
}

/* The end that is accepted first sends data at once; the last HELLO, by which it is accepted, is
 * lost with the first data. It is repeated soon, and then it is quiet. */
static void test_last_hello_lost(void **state)
{
	struct wan_pair p;

	start(&p, 0, 2, 500);
	for (int i = 0; i < 2; i++) {
		p.link[i].cfg.outage_from = p.now + (i ? 0 : 19 * RWY_MS);
		p.link[i].cfg.outage_to = p.now + (i ? RWY_MS : 25 * RWY_MS);
	}
	rwy_time from = p.now;

	while (wan_pair_step(&p, from + 90 * RWY_MS) && !p.end[1].up)
		;
	assert_true(p.end[0].up);
	assert_true(p.end[1].up);
	assert_true(p.now <= from + 37 * RWY_MS);
	/* Nor do losses with it make the path look slow. */
	assert_true(wan_pair_run(&p, from + 400 * RWY_MS));
	assert_int_equal(p.end[0].t->hs.repeats, 0);
	assert_int_equal(p.end[1].t->hs.repeats, 0);
	assert_true(wan_pair_finish(&p));
}

/* One end is accepted, then nothing passes for a while. Its data cause the other end to ask again
 * at once, instead of after most of a second. */
static void test_data_ask(void **state)
{
	struct wan_pair p;
	rwy_time from, clear;

	start(&p, 0, 2, 500);
	from = p.now;
	clear = from + 701 * RWY_MS; /* end 1 asked at 0.7 s, and would ask again at 1.5 s */
	p.link[0].cfg.outage_from = from + 19 * RWY_MS;
	p.link[0].cfg.outage_to = clear;
	p.link[1].cfg.outage_from = from;
	p.link[1].cfg.outage_to = from + RWY_MS;
	while (wan_pair_step(&p, from + 30 * RWY_MS))
		;
	assert_true(p.end[0].up && !p.end[1].up);
	p.link[1].cfg.outage_from = from + 30 * RWY_MS;
	p.link[1].cfg.outage_to = clear;
	while (wan_pair_step(&p, clear + 250 * RWY_MS) && !p.end[1].up)
		;
	assert_true(p.end[1].up);
	assert_true(wan_pair_run(&p, clear + RWY_SEC));
	assert_true(wan_pair_finish(&p));
}

static void test_restart_of_each(void **state)
{
	for (int end = 0; end < 2; end++) {
		struct wan_pair p;

		start(&p, 0, 6, 3000);
		wan_pair_run(&p, p.now + 200 * RWY_MS);
		wan_pair_restart(&p, end);
		assert_true(wan_pair_run(&p, p.now + 30 * RWY_SEC));
		assert_int_equal(p.end[!end].restarts_seen, 1);
		assert_int_equal(p.end[end].restarts_seen, 0);
		assert_int_equal(wan_pair_stats(&p, !end).c.peer_restarts, 1);
		assert_true(wan_pair_finish(&p));
	}
}

/* All datagrams ever sent arrive again: only counters change. */
static void test_replay(void **state)
{
	struct wan_pair p;
	struct wan_link_pkt *kept[3000];
	uint32_t n = 0;

	start(&p, 0, 4, 300);
	/* An earlier session of end 0... */
	for (int life = 0; life < 2; life++) {
		for (int i = 0; i < 400; i++) {
			for (uint32_t k = 0; k < p.link[0].due.n && n < 3000; k++) {
				struct wan_link_pkt *q = p.link[0].due.v[k].what;

				kept[n] = malloc(sizeof(*q) + q->len);
				memcpy(kept[n++], q, sizeof(*q) + q->len);
			}
			wan_pair_step(&p, RWY_NEVER - 1);
		}
		if (!life)
			wan_pair_restart(&p, 0);
	}
	assert_true(wan_pair_run(&p, p.now + 30 * RWY_SEC));
	uint64_t restarts = wan_pair_stats(&p, 1).c.peer_restarts, data = wan_pair_stats(&p, 1).c.rx_data;

	/* ... and all of it again, with HELLOs of that session. */
	for (uint32_t i = 0; i < n; i++) {
		inject(&p, 1, kept[i]->data, kept[i]->len);
		if (i % 50 == 0)
			for (int k = 0; k < 20; k++)
				wan_pair_step(&p, RWY_NEVER - 1);
		free(kept[i]);
	}
	for (int k = 0; k < 2000; k++)
		wan_pair_step(&p, RWY_NEVER - 1);
	assert_int_equal(wan_pair_stats(&p, 1).c.peer_restarts, restarts);
	assert_int_equal(wan_pair_stats(&p, 1).c.rx_data, data);
	assert_true(p.end[0].up && p.end[1].up);
	assert_int_equal(p.end[1].restarts_seen, 1);
	assert_true(wan_pair_finish(&p));
}

/* A HELLO with an invented epoch is answered, never accepted. */
static void test_forged(void **state)
{
	struct wan_pair p;

	start(&p, 0, 2, 2000);
	wan_pair_run(&p, p.now + 100 * RWY_MS);
	for (uint64_t i = 0; i < 50; i++) {
		uint8_t d[WAN_PKT_HDR + WAN_HELLO_LEN];
		struct wan_f_hello f = {.flags = WAN_HELLO_WANT,
		    .mtu = 1472,
		    .index = 1,
		    .tunnel_id = 77,
		    .epoch = 666 + i,
		    .nonce = i + 1,
		    .echo = i + 5,
		    .echo_epoch = p.end[1].cfg.epoch,
		    .rx_window = 10,
		    .rx_bytes = 1};

		wan_pkt_put(d, &(struct wan_pkt){.version = WAN_VERSION, .type = WAN_PKT_HELLO});
		wan_f_hello_put(d + WAN_PKT_HDR, &f);
		wan_pkt_seal(d, sizeof(d), NULL, 0);
		inject(&p, 1, d, sizeof(d));
		wan_pair_run(&p, p.now + 10 * RWY_MS);
	}
	assert_true(wan_pair_run(&p, p.now + 30 * RWY_SEC));
	assert_int_equal(wan_pair_stats(&p, 1).c.peer_restarts, 0);
	assert_int_equal(wan_pair_stats(&p, 0).c.peer_restarts, 0);
	assert_true(wan_pair_finish(&p));
}

static void test_strangers(void **state)
{
	struct wan_pair p;
	uint8_t d[WAN_PKT_HDR + 200];

	start(&p, 0, 0, 0);
	wan_pair_run(&p, p.now + 50 * RWY_MS);
	while (wan_pair_step(&p, 2 * RWY_SEC))
		;
	struct wan_counters was = wan_pair_stats(&p, 0).c;

	memset(d, 0, sizeof(d));
	d[WAN_PKT_HDR] = WAN_F_PING;
	struct wan_pkt h = {.version = WAN_VERSION, .index = p.end[0].t->index ^ 1, .pn = 1u << 30};

	wan_pkt_put(d, &h);
	wan_pkt_seal(d, WAN_PKT_HDR + 1, NULL, 0);
	inject(&p, 0, d, WAN_PKT_HDR + 1);
	assert_int_equal(wan_pair_stats(&p, 0).c.drop_unknown_tunnel, was.drop_unknown_tunnel + 1);
	h.index ^= 1;
	wan_pkt_put(d, &h);
	d[16] = 1;
	inject(&p, 0, d, WAN_PKT_HDR + 1);
	assert_int_equal(wan_pair_stats(&p, 0).c.drop_crc, was.drop_crc + 1);
	d[0] = 0x70;
	inject(&p, 0, d, WAN_PKT_HDR + 1);
	assert_int_equal(wan_pair_stats(&p, 0).c.drop_version, was.drop_version + 1);
	inject(&p, 0, d, 3);
	inject(&p, 0, d, WAN_PKT_HDR);
	assert_int_equal(wan_pair_stats(&p, 0).c.drop_short, was.drop_short + 2);
	/* a HELLO of another pair of gateways */
	struct wan_f_hello f = {
	    .flags = WAN_HELLO_WANT, .mtu = 1472, .tunnel_id = 78, .epoch = 9, .nonce = 1, .rx_window = 1};

	wan_pkt_put(d, &(struct wan_pkt){.version = WAN_VERSION, .type = WAN_PKT_HELLO});
	wan_f_hello_put(d + WAN_PKT_HDR, &f);
	wan_pkt_seal(d, WAN_PKT_HDR + WAN_HELLO_LEN, NULL, 0);
	inject(&p, 0, d, WAN_PKT_HDR + WAN_HELLO_LEN);
	assert_int_equal(wan_pair_stats(&p, 0).c.drop_unknown_tunnel, was.drop_unknown_tunnel + 2);
	assert_int_equal(wan_pair_stats(&p, 0).c.rx_datagrams, was.rx_datagrams);
	assert_false(p.end[0].t->hs.reply);
	assert_true(wan_pair_finish(&p));
}

/* Silence for four keep-alives is "down"; custody stays; the first datagram is "up". */
static void test_silence(void **state)
{
	struct wan_pair p;

	start(&p, 0, 2, 100000);
	wan_pair_run(&p, p.now + 100 * RWY_MS);
	assert_true(p.end[0].up);
	for (int i = 0; i < 2; i++) {
		p.link[i].cfg.outage_from = p.now;
		p.link[i].cfg.outage_to = p.now + 2 * RWY_SEC;
	}
	rwy_time from = p.now;

	wan_pair_run(&p, from + 1190 * RWY_MS);
	assert_true(p.end[0].up && p.end[1].up);
	wan_pair_run(&p, from + 1300 * RWY_MS);
	assert_false(p.end[0].up || p.end[1].up);
	assert_in_range(since(&p, 0), from + 1190 * RWY_MS, p.now);
	assert_true(wan_tx_queued(p.stream[0].tx) > 0);
	wan_pair_run(&p, from + 2 * RWY_SEC + 300 * RWY_MS);
	assert_true(p.end[0].up && p.end[1].up);
	assert_int_equal(wan_pair_stats(&p, 0).c.went_down, 1);
	assert_in_range(since(&p, 0), from + 2 * RWY_SEC, p.now);
	assert_int_equal(wan_pair_stats(&p, 0).c.peer_restarts, 0);
	assert_true(wan_pair_run(&p, p.now + 60 * RWY_SEC));
	assert_true(wan_pair_finish(&p));
}

/* Both restart at the same time, repeatedly. */
static void test_both_restart(void **state)
{
	struct wan_pair p;

	start(&p, 20000, 4, 3000);
	for (int i = 0; i < 10; i++) {
		wan_pair_run(&p, p.now + 77 * RWY_MS);
		wan_pair_restart(&p, 0);
		wan_pair_restart(&p, 1);
	}
	assert_true(wan_pair_run(&p, p.now + 60 * RWY_SEC));
	assert_true(wan_pair_finish(&p));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_up),
	    cmocka_unit_test(test_up_under_loss),
	    cmocka_unit_test(test_last_hello_lost),
	    cmocka_unit_test(test_data_ask),
	    cmocka_unit_test(test_restart_of_each),
	    cmocka_unit_test(test_replay),
	    cmocka_unit_test(test_forged),
	    cmocka_unit_test(test_strangers),
	    cmocka_unit_test(test_silence),
	    cmocka_unit_test(test_both_restart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
