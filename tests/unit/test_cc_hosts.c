/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Real hosts on a path that changes: they send far less than the path's rate, in bursts and with
 * pauses, and the gateway's process shares its processor. The path's round trip, loss or rate steps
 * up and down. Within two seconds, or 40 of the new round trips, each host has nine tenths of its
 * rate on the constant path.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cc/limits.h"
#include "tests/lib/long_case.h"
#include "tests/lib/cc_bottleneck.h"

#define GBIT    ((uint64_t)125000000)
#define SEEDS   5
#define HOLD    (3 * RWY_SEC) /* duration of a state of the path */
#define COUNTED (3 * RWY_SEC)

struct link {
	rwy_dur rtt;
	uint32_t loss_ppm;
	uint64_t rate_Bps;
};

/* The names say RTT in ms, loss in percent, rate in Mbit/s where it is less than 10 Gbit/s. */
static const struct change {
	const char *name;
	struct link from, to;
	uint64_t queue; /* bytes; 0: a BDP, and half a megabyte at least */
} changes[] = {
    {"0.2 to 20", {RWY_MS / 5, 0, 10 * GBIT}, {20 * RWY_MS, 0, 10 * GBIT}, 0},
    {"0.2 to 20, 1 %", {RWY_MS / 5, 0, 10 * GBIT}, {20 * RWY_MS, 10000, 10 * GBIT}, 0},
    {"0.2 to 20, 1 % before", {RWY_MS / 5, 10000, 10 * GBIT}, {20 * RWY_MS, 10000, 10 * GBIT}, 0},
    {"0.2 to 100, 1 %", {RWY_MS / 5, 0, 10 * GBIT}, {100 * RWY_MS, 10000, 10 * GBIT}, 0},
    {"2 to 10, 1 %", {2 * RWY_MS, 0, 10 * GBIT}, {10 * RWY_MS, 10000, 10 * GBIT}, 0},
    {"20 to 60", {20 * RWY_MS, 0, 10 * GBIT}, {60 * RWY_MS, 0, 10 * GBIT}, 0},
    {"60 to 20", {60 * RWY_MS, 0, 10 * GBIT}, {20 * RWY_MS, 0, 10 * GBIT}, 0},
    {"30 to 60, 0.1 %", {30 * RWY_MS, 1000, 10 * GBIT}, {60 * RWY_MS, 1000, 10 * GBIT}, 0},
    {"60 to 30, 0.1 %", {60 * RWY_MS, 1000, 10 * GBIT}, {30 * RWY_MS, 1000, 10 * GBIT}, 0},
    {"loss 0 to 1 %", {20 * RWY_MS, 0, 10 * GBIT}, {20 * RWY_MS, 10000, 10 * GBIT}, 0},
    {"loss 1 to 0 %", {20 * RWY_MS, 10000, 10 * GBIT}, {20 * RWY_MS, 0, 10 * GBIT}, 0},
    {"loss 0 to 5 %", {20 * RWY_MS, 0, 10 * GBIT}, {20 * RWY_MS, 50000, 10 * GBIT}, 0},
    {"100 to 20 Mbit/s", {20 * RWY_MS, 0, GBIT / 10}, {20 * RWY_MS, 0, GBIT / 50}, 0},
    {"100 to 20 Mbit/s, short queue", {20 * RWY_MS, 0, GBIT / 10}, {20 * RWY_MS, 0, GBIT / 50}, 235000},
    {"100 to 20 Mbit/s, shorter", {20 * RWY_MS, 0, GBIT / 10}, {20 * RWY_MS, 0, GBIT / 50}, 50000},
    {"20 to 100 Mbit/s", {20 * RWY_MS, 0, GBIT / 50}, {20 * RWY_MS, 0, GBIT / 10}, 0},
    {"100 Mbit/s, 20 to 60", {20 * RWY_MS, 0, GBIT / 10}, {60 * RWY_MS, 0, GBIT / 10}, 0},
    {"100 Mbit/s, 20 to 60, 1 %", {20 * RWY_MS, 0, GBIT / 10}, {60 * RWY_MS, 10000, GBIT / 10}, 0},
};
#define CHANGES (sizeof(changes) / sizeof(changes[0]))

/* The host's demand, and how the gateway's processor is shared. */
static const struct host {
	const char *name;
	uint64_t demand_Bps, burst;
	uint32_t stalls;
	rwy_dur stall_most;
} hosts[] = {
    {"even", 17000000, 1500, 0, 0},
    {"bursts", 17000000, 65536, 0, 0},
    {"stalls", 17000000, 65536, 40, 4 * RWY_MS},
    {"many stalls", 17000000, 65536, 300, 6 * RWY_MS},
    {"long stalls", 17000000, 131072, 20, 12 * RWY_MS},
    {"little", 2000000, 16384, 100, 4 * RWY_MS},
    {"between", 4000000, 1500, 0, 0}, /* more than the slowest of these paths, less than others */
    {"between, stalls", 4000000, 16384, 100, 4 * RWY_MS},
    {"all it can", 2 * GBIT, 131072, 0, 0},
};
#define HOSTS (sizeof(hosts) / sizeof(hosts[0]))

static void set_link(struct cc_bn *b, const struct link *l)
{
	b->cfg.rtt = l->rtt;
	b->cfg.loss_ppm = l->loss_ppm;
	b->cfg.rate_Bps = l->rate_Bps;
}

static void begin(struct cc_bn *b, const struct cc_ops *ops, const struct host *h, const struct link *l,
    uint64_t queue, uint64_t seed)
{
	struct cc_bn_cfg c;
	struct cc_bn_flow *f;

	cc_bn_default(&c);
	c.ack_gap = RWY_MS;
	c.stalls = h->stalls;
	c.stall_most = h->stall_most;
	c.queue_bytes = queue;
	c.seed = seed;
	cc_bn_init(b, &c);
	set_link(b, l);
	f = &b->flow[cc_bn_add(b, ops, 10 * GBIT)];
	f->demand_Bps = h->demand_Bps;
	f->burst_bytes = h->burst;
	f->burst_at = b->now;
}

static double counted(struct cc_bn *b, rwy_dur t)
{
	cc_bn_measure(b);
	cc_bn_run(b, t);
	return cc_bn_total(b) * (double)b->cfg.rate_Bps;
}

static uint64_t queue_of(const struct link *l)
{
	uint64_t bdp = cc_bytes_in(l->rate_Bps, rwy_time_max(l->rtt, 10 * RWY_MS));

	return bdp > 500000 ? bdp : 500000;
}

/* The share of the constant path's goodput after the change. */
static double share_after(
    const struct cc_ops *ops, const struct change *c, const struct host *h, uint64_t seed, bool fresh)
{
	uint64_t queue = c->queue ? c->queue : queue_of(&c->to);
	struct cc_bn b;
	double alone, after;

	begin(&b, ops, h, &c->to, queue, seed);
	cc_bn_run(&b, HOLD);
	alone = counted(&b, COUNTED);
	cc_bn_fini(&b);
	begin(&b, ops, h, &c->from, queue, seed);
	cc_bn_run(&b, HOLD);
	if (!fresh) { /* a pause between transfers, as programs make them */
		uint64_t was = b.flow[0].demand_Bps;

		b.flow[0].demand_Bps = 1000;
		cc_bn_run(&b, RWY_SEC);
		b.flow[0].demand_Bps = was;
		b.flow[0].burst_at = b.now;
		cc_bn_run(&b, HOLD);
	}
	set_link(&b, &c->to);
	cc_bn_run(&b, rwy_time_max(2 * RWY_SEC, 40 * c->to.rtt));
	after = counted(&b, COUNTED);
	if (getenv("RWY_SHOW") && after < 0.9 * alone) {
		char line[96];

		cc_guard_print(b.flow[0].ops, b.flow[0].state, line, sizeof(line));
		print_message("    %s, %s, seed %llu: %.1f of %.1f MB/s; %s\n", c->name, h->name,
		    (unsigned long long)seed, after / 1e6, alone / 1e6, line);
	}
	cc_bn_fini(&b);
	return alone > 0 ? after / alone : 1;
}

static void all(const struct cc_ops *ops, double least)
{
	unsigned bad = 0;

	for (size_t k = 0; k < CHANGES; k++)
		for (size_t i = 0; i < HOSTS; i++) {
			double worst = 9;

			for (uint64_t seed = 1; seed <= SEEDS; seed++) {
				double x = share_after(ops, &changes[k], &hosts[i], seed, seed & 1);

				worst = x < worst ? x : worst;
			}
			if (worst < least)
				print_message("%s: %s, %s: %.2f of the constant path\n", ops->name,
				    changes[k].name, hosts[i].name, worst);
			bad += worst < least;
		}
	assert_int_equal(bad, 0);
}

static void test_auto(void **state)
{
	long_case();
	all(&cc_auto, 0.9);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {cmocka_unit_test(test_auto)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
