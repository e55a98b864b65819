/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of a packet at a relay, in a gateway's cycles. Two gateways and two relays in one process,
 * with the same packet buffers and the same hosts' packets, run in turn: a few batches of the
 * gateways, then as many of the relays. The first batch after each change warms the caches and does
 * not count. A round takes a few milliseconds, so other users of the machine's caches and memory
 * disturb both of its halves. bench_fastpath.c says what the cycles are.
 *
 * Prints one line of JSON for one packet size and number of queue pairs; run-proxy makes the table.
 */
#include <getopt.h>
#include <inttypes.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/fp_run.h"

#define ROUNDS_MAX 16384
#define BATCHES    3 /* that count, of each half of a round */

enum { GATEWAY, RELAY, KINDS };

static struct fp_run run[KINDS];
static double cycles[KINDS][FP_SITES][ROUNDS_MAX], ratio[FP_SITES][ROUNDS_MAX];
static unsigned rounds, disturbed;

/* Cycles for each packet at both sites. */
static void half(struct fp_run *r, double out[FP_SITES])
{
	const struct fp_stats *st = fp_hosts_stats(r->hosts);
	uint64_t sent, received;

	fp_run_batch(r);
	memset(r->cycles, 0, sizeof(r->cycles));
	sent = st->sent;
	received = st->received;
	for (unsigned i = 0; i < BATCHES; i++)
		fp_run_batch(r);
	out[FP_A] = (double)r->cycles[FP_A] / (double)(st->sent - sent);
	out[FP_B] = (double)r->cycles[FP_B] / (double)(st->received - received);
}

static void one_round(void)
{
	const long before = fp_switches();
	double now[KINDS][FP_SITES];
	/* The halves take turns at being first: the second finds warmer code in the caches. */
	const unsigned first = rounds & 1;

	half(&run[first], now[first]);
	half(&run[!first], now[!first]);
	if (fp_switches() != before) {
		disturbed++;
		return;
	}
	for (unsigned s = 0; s < FP_SITES; s++) {
		for (unsigned k = 0; k < KINDS; k++)
			cycles[k][s][rounds] = now[k][s];
		ratio[s][rounds] = now[RELAY][s] / now[GATEWAY][s];
	}
	rounds++;
}

static int order(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v)
{
	qsort(v, rounds, sizeof(*v), order);
	return v[rounds / 2];
}

/* The gateways' tunnel went silent while the relays warmed up: it comes up again, without packets of
 * hosts. */
static void settle(uint64_t ticks)
{
	const uint64_t end = rte_rdtsc() + ticks;
	const unsigned batch = run[GATEWAY].lab.cfg.batch;

	for (unsigned k = 0; k < KINDS; k++)
		run[k].lab.cfg.batch = 0;
	while (fp_before(end))
		for (unsigned k = 0; k < KINDS; k++)
			fp_run_batch(&run[k]);
	for (unsigned k = 0; k < KINDS; k++)
		run[k].lab.cfg.batch = batch;
}

static void finish(struct fp_run *r)
{
	const struct fp_stats *st = fp_hosts_stats(r->hosts);

	fp_run_drain(r);
	if (st->received != st->sent || st->wrong || st->nak || !st->acks)
		fp_die("packets were lost, wrong or not acknowledged");
}

static void print(const struct fp_cfg *cfg)
{
	static const char *const name[FP_SITES] = {"near", "far"};
	uint64_t again = 0;

	printf(
	    "{\"payload\": %u, \"qps\": %u, \"tsc_hz\": %" PRIu64, cfg->payload, cfg->qps, rte_get_tsc_hz());
	for (unsigned s = 0; s < FP_SITES; s++)
		printf(", \"%s\": {\"ratio\": %.4f, \"gateway\": %.1f, \"relay\": %.1f}", name[s],
		    median(ratio[s]), median(cycles[GATEWAY][s]), median(cycles[RELAY][s]));
	for (unsigned k = 0; k < KINDS; k++) {
		struct wan_stats wan;

		eng_tunnel_stats(run[k].lab.gw[FP_A].w->eng, 0, &wan);
		again += wan.c.tx_retransmit;
	}
	printf(
	    ", \"retransmits\": %" PRIu64 ", \"rounds\": %u, \"disturbed\": %u}\n", again, rounds, disturbed);
}

/* bench_relay [EAL arguments] -- [--payload N] [--qps N] [--ms N] */
int main(int argc, char **argv)
{
	static const struct option opts[] = {{"payload", required_argument, NULL, 'p'},
	    {"qps", required_argument, NULL, 'q'}, {"ms", required_argument, NULL, 't'}, {0}};
	struct fp_cfg cfg = {.payload = 1024, .qps = 1, .message = 8, .batch = 512, .delay = 2};
	uint32_t ms = 2000;
	uint64_t end;
	int n, o;

	n = fp_begin(argc, argv, GW_LOG_WARNING);
	while ((o = getopt_long(argc - n, argv + n, "", opts, NULL)) != -1) {
		if (o == 'p')
			cfg.payload = fp_number(optarg, 256, 4096);
		else if (o == 'q')
			cfg.qps = fp_number(optarg, 1, 4096);
		else if (o == 't')
			ms = fp_number(optarg, 10, 60000);
		else
			return 2;
	}
	if (cfg.payload & (cfg.payload - 1))
		fp_die("--payload: a path MTU");
	for (unsigned k = 0; k < KINDS; k++) {
		cfg.relay = k == RELAY;
		cfg.pools = k == RELAY ? &run[GATEWAY].lab.pools : NULL;
		fp_lab_new(&run[k].lab, &cfg);
		run[k].hosts = fp_hosts_new(&run[k].lab);
		fp_run_warm_up(&run[k]);
	}
	settle(rte_get_tsc_hz() / 2);
	end = rte_rdtsc() + ms * (rte_get_tsc_hz() / 1000);
	while (fp_before(end) && rounds < ROUNDS_MAX)
		one_round();
	for (unsigned k = 0; k < KINDS; k++)
		finish(&run[k]);
	if (!rounds)
		fp_die("the CPU was taken away in each round");
	print(&cfg);
	return 0;
}
