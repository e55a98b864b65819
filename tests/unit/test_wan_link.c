/* SPDX-License-Identifier: Apache-2.0 */
/* Two tunnels over virtual links: hundreds of seeds of random loss and delay, restarts, outages,
 * and limits of goodput. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/lib/long_case.h"
#include "tests/lib/aead_test.h"
#include "tests/lib/wan_pair.h"

#define GBIT     ((uint64_t)125000000)
#define OVERHEAD 42

static void base_cfg(struct wan_cfg *c)
{
	wan_cfg_default(c);
	c->tx_pkts_max = 1u << 14;
	c->rx_window = 1u << 12;
	c->rx_bytes = (uint64_t)64 << 20;
	c->cc_cfg.initial_rtt = 20 * RWY_MS;
}

static uint32_t below(uint64_t *rng, uint32_t n)
{
	return wan_rng_below(rng, n);
}

static void weather(struct wan_link_cfg *l, uint64_t *rng)
{
	*l = (struct wan_link_cfg){.overhead = OVERHEAD};
	l->delay = below(rng, 50) * RWY_MS;
	l->jitter = below(rng, 2) ? below(rng, 2000) * RWY_US : 0;
	l->rate_Bps = below(rng, 3) ? 1000000 + below(rng, 200) * 1000000 : 0;
	l->queue_bytes = 50000 + below(rng, 1000000);
	l->ecn_bytes = below(rng, 3) ? 0 : 30000;
	l->loss_ppm = below(rng, 3) ? below(rng, 50000) : 0;
	if (!below(rng, 4)) {
		l->burst_ppm = below(rng, 2000);
		l->burst_len = 1 + below(rng, 40);
	}
	l->reorder_ppm = below(rng, 3) ? 0 : below(rng, 30000);
	l->reorder_extra = below(rng, 10000) * RWY_US;
	l->dup_ppm = below(rng, 3) ? 0 : below(rng, 50000);
	l->corrupt_ppm = below(rng, 3) ? 0 : below(rng, 20000);
	if (!below(rng, 5)) {
		l->outage_from = RWY_SEC + below(rng, 500) * RWY_MS;
		l->outage_to = l->outage_from + below(rng, 3000) * RWY_MS;
	}
}

static void explain(struct wan_pair *p, uint64_t seed)
{
	fprintf(stderr, "seed %llu, t=%.3f s, %lld buffers live\n", (unsigned long long)seed,
	    (double)p->now / 1e9, (long long)p->pool.live);
	for (int i = 0; i < 2; i++) {
		struct wan_stats s;

		wan_get_stats(p->end[i].t, &s);
		fprintf(stderr, " end %d: %s queued %llu held %llu inflight %llu cwnd %llu srtt %.2f ms\n", i,
		    s.cc, (unsigned long long)s.tx_queued_bytes, (unsigned long long)s.rx_held_bytes,
		    (unsigned long long)s.inflight, (unsigned long long)s.cwnd, (double)s.srtt / 1e6);
#define X(f, sentence)                                                                                       \
	if (s.c.f)                                                                                           \
		fprintf(stderr, "  %s=%llu", #f, (unsigned long long)s.c.f);
		WAN_COUNTERS(X)
#undef X
		fprintf(stderr, "\n");
	}
	for (uint32_t i = 0; i < p->streams; i++)
		if (p->stream[i].delivered != p->stream[i].total)
			fprintf(stderr, "  stream %u: sent %llu got %llu delivered %llu of %llu\n", i,
			    (unsigned long long)p->stream[i].sent, (unsigned long long)p->stream[i].got,
			    (unsigned long long)p->stream[i].delivered,
			    (unsigned long long)p->stream[i].total);
}

/* Everything arrived: bytes, order, once, custody empty, flows gone, no leak. */
static void finish(struct wan_pair *p, bool done, uint64_t seed)
{
	struct wan_stats s[2];
	rwy_time until = p->now + 5 * RWY_SEC;

	while (wan_pair_step(p, until)) /* still in flight: reports, information about a restart */
		;
	for (int i = 0; i < 2; i++)
		wan_get_stats(p->end[i].t, &s[i]);
	if (!done || p->errors)
		explain(p, seed);
	assert_true(done);
	assert_int_equal(p->errors, 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(s[i].tx_queued_bytes, 0);
		assert_int_equal(s[i].rx_held_bytes, 0);
		assert_int_equal(s[i].c.drop_bad_frame, 0);
	}
	wan_pair_fini(p);
	assert_int_equal(p->pool.live, 0);
}

static void one_seed(uint64_t seed, bool restarts)
{
	uint64_t rng = seed * 7919 + restarts;
	struct wan_link_cfg ab, ba;
	struct wan_cfg c;
	struct wan_pair p;

	base_cfg(&c);
	weather(&ab, &rng);
	weather(&ba, &rng);
	if (below(&rng, 2)) {
		c.cc = &cc_fixed;
		c.cc_cfg.rate_Bps = 1000000 + below(&rng, 40) * 1000000;
	}
	c.paths = 1 + below(&rng, 3) / 2 * below(&rng, 3);
	for (unsigned i = 0; i < c.paths; i++)
		c.mtu[i] = below(&rng, 3) ? 1472 : 576 + below(&rng, 4000);
	c.rx_window = 1 + below(&rng, below(&rng, 2) ? 8 : 3000);
	c.rx_bytes = 100000 + below(&rng, 10000000);
	c.keepalive = (200 + below(&rng, 1000)) * RWY_MS;
	if (seed % 3 == 0) { /* sealed, with keys that change all the time */
		uint64_t r = seed;

		c.aead = &aead_test;
		c.rekey = RWY_MS * (10 + below(&r, 500));
	}
	wan_pair_init(&p, &c, &ab, &ba, seed);
	p.deliver_delay = below(&rng, 2) ? below(&rng, 5000) * RWY_US : 0;
	p.wake = below(&rng, 3) ? 0 : below(&rng, 2000) * RWY_US;
	p.pool.fail_ppm = below(&rng, 4) ? 0 : 10000;
	wan_pair_streams(
	    &p, 1 + below(&rng, 20), 1 + below(&rng, 200), 12, 12 + below(&rng, 4150), 1 + below(&rng, 100));
	bool close = below(&rng, 2);

	for (uint32_t i = 0; i < p.streams; i++)
		p.stream[i].close_after = close && !restarts;
	for (unsigned i = below(&rng, 2) ? below(&rng, 200) : 0; i > 0; i--)
		wan_pair_dgram(&p, (int)(i & 1), 1 + below(&rng, 5000));
	for (int i = 0; restarts && i < 3; i++) {
		wan_pair_run(&p, p.now + below(&rng, 700) * RWY_MS);
		wan_pair_restart(&p, (int)below(&rng, 2));
	}
	finish(&p, wan_pair_run(&p, p.now + 300 * RWY_SEC), seed);
}

static unsigned seeds(void)
{
	const char *s = getenv("SEEDS");

	return s ? (unsigned)atoi(s) : long_rounds(200);
}

static void test_weather(void **state)
{
	for (unsigned i = 1; i <= seeds(); i++)
		one_seed(i, false);
}

static void test_restarts(void **state)
{
	for (unsigned i = 1; i <= seeds(); i++)
		one_seed(i, true);
}

struct goodput {
	const struct cc_ops *cc;
	rwy_dur rtt, reorder, wake;
	uint32_t loss_ppm;
	double at_least, spurious_most;
};

/* The share of the link's capacity for inner bytes that is used, after a second or 20 round
 * trips. */
static void goodput(const struct goodput *g)
{
	struct wan_link_cfg l = {.delay = g->rtt / 2,
	    .rate_Bps = GBIT,
	    .overhead = OVERHEAD,
	    .queue_bytes = 2500000,
	    .loss_ppm = g->loss_ppm,
	    .reorder_ppm = g->reorder ? 10000 : 0,
	    .reorder_extra = g->reorder};
	struct wan_cfg c;
	struct wan_pair p;
	struct wan_stats s;

	wan_cfg_default(&c);
	c.cc = g->cc;
	c.cc_cfg.rate_Bps = g->cc == &cc_fixed ? GBIT : 0;
	c.rx_window = 1u << 17;
	wan_pair_init(&p, &c, &l, &l, 3);
	p.wake = g->wake;
	wan_pair_streams(&p, 1, 1u << 24, 1024, 1024, 1u << 17);
	wan_pair_run(&p, p.now + rwy_time_max(RWY_SEC, 20 * g->rtt));
	uint64_t bytes = p.stream[0].bytes;
	rwy_time from = p.now;

	wan_pair_run(&p, p.now + 3 * RWY_SEC);
	wan_get_stats(p.end[0].t, &s);
	double link = GBIT * 1024.0 / (1024 + 30 + OVERHEAD) * (1 - g->loss_ppm / 1e6);
	double share = (double)(p.stream[0].bytes - bytes) * 1e9 / (double)(p.now - from) / link;
	double spurious = (double)s.c.spurious_retransmit / (double)s.c.tx_datagrams;

	print_message("%s rtt %.0f ms loss %u ppm reorder %.0f ms wake %.1f ms: %.3f of the link, spurious "
	              "%.4f, PTO %llu\n",
	    g->cc->name, (double)g->rtt / 1e6, g->loss_ppm, (double)g->reorder / 1e6, (double)g->wake / 1e6,
	    share, spurious, (unsigned long long)s.c.pto);
	assert_true(share >= g->at_least);
	assert_true(spurious <= g->spurious_most);
	assert_int_equal(p.errors, 0);
	wan_pair_fini(&p);
}

static void test_goodput(void **state)
{
	static const struct goodput all[] = {
	    {&cc_fixed, 20 * RWY_MS, 0, 0, 10000, 0.97, 0.001},
	    {&cc_fixed, 100 * RWY_MS, 0, 0, 10000, 0.97, 0.001},
	    {&cc_auto, 20 * RWY_MS, 0, 0, 0, 0.98, 0.001},
	    {&cc_auto, 20 * RWY_MS, 0, 0, 10000, 0.97, 0.001},
	    {&cc_auto, 100 * RWY_MS, 0, 0, 10000, 0.97, 0.001},
	    {&cc_auto, 20 * RWY_MS, 0, 0, 100000, 0.95, 0.001},
	    {&cc_auto, 20 * RWY_MS, 5 * RWY_MS, 0, 10000, 0.97, 0.005},
	    {&cc_auto, 20 * RWY_MS, 1 * RWY_MS, 0, 10000, 0.97, 0.005},
	    {&cc_auto, 20 * RWY_MS, 0, 200 * RWY_US, 10000, 0.97, 0.001},
	    {&cc_auto, 20 * RWY_MS, 0, 3 * RWY_MS, 10000, 0.93, 0.002},
	};

	long_case();
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		goodput(&all[i]);
}

/* Three seconds of outage: traffic flows one round trip and one probe timeout after its end. */
static void test_outage(void **state)
{
	struct wan_link_cfg l = {.delay = 10 * RWY_MS,
	    .rate_Bps = GBIT,
	    .overhead = OVERHEAD,
	    .queue_bytes = 2500000,
	    .outage_from = 2 * RWY_SEC,
	    .outage_to = 5 * RWY_SEC};
	struct wan_cfg c;
	struct wan_pair p;

	wan_cfg_default(&c);
	wan_pair_init(&p, &c, &l, &l, 3);
	wan_pair_streams(&p, 1, 1u << 24, 1024, 1024, 1u << 15);
	wan_pair_run(&p, 5 * RWY_SEC);
	uint64_t before = p.stream[0].bytes;

	wan_pair_run(&p, 5 * RWY_SEC + 250 * RWY_MS);
	assert_true(p.stream[0].bytes > before);
	before = p.stream[0].bytes;
	wan_pair_run(&p, 5 * RWY_SEC + 750 * RWY_MS); /* and at rate: the model was kept */
	print_message("half a second after the outage: %.3f of the link\n",
	    (double)(p.stream[0].bytes - before) / (GBIT * 0.5 * 1024 / 1096));
	assert_true(p.stream[0].bytes - before > GBIT / 2 * 8 / 10 * 1024 / 1096);
	wan_pair_fini(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_weather),
	    cmocka_unit_test(test_restarts),
	    cmocka_unit_test(test_outage),
	    cmocka_unit_test(test_goodput),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
