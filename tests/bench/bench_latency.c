/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a packet stays in the near or in the far gateway at some load, from memory-only ports:
 * the gateway's own time. Prints one line of JSON; run-scale makes the table.
 *
 * The gateways are those of bench_fastpath.c. The measured one has a clock of its own, which moves
 * by the time-stamp counter while its turn runs, and stands still while this program does the work
 * of hosts, wire and the other gateway. Packets arrive on that clock as a Poisson process. When
 * nothing waits the clock moves to the next arrival. A packet leaves at the end of the turn that
 * sends it, and packets leave in the order in which they came.
 *
 * First the gateway always has a ring of packets before it: that is its capacity, cycles a packet.
 * Then packets arrive at a part of that rate. The answers of the other side arrive after DELAY of
 * the same clock.
 *
 * A server with fixed costs can stand in the place of the gateway (--fixed CYCLES): a packet costs
 * it the same number of multiplications, whatever else waits, and no memory. Its times are those
 * that the load and the machine's own pauses make.
 *
 * There is no FEC: on a path without loss it is off after a while, and repairs are no packets of a
 * host. A turn in which the kernel used the CPU counts as long as a usual one. What a hypervisor takes
 * cannot be told from the gateway's own time: the longest times are an upper bound.
 */
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <rte_cycles.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/fp_reference.h"
#include "tests/bench/fp_run.h"
#include "tests/lib/rng.h"

#define WAITING  2048u /* most packets in the gateway */
#define FEED     256u  /* packets that wait for their arrival at the far gateway, at least */
#define SAMPLES  (1u << 22)
#define DELAY_US 20
#define SETTLED  1000 /* turns after which they count */
#define BURST    32   /* packets that the server with fixed costs takes in a turn */

static struct fp_run run;
static enum fp_site site; /* the measured gateway's */
static struct {
	double cycles; /* of a packet; 0: a gateway is measured */
	uint64_t steps;
} fixed;
static uint64_t rng = 1;

static struct {
	double now, next, gap; /* cycles of the gateway's clock; gap 0: packets always wait */
	double other_at;       /* when the other side works next */
	double usual;          /* cycles of a turn */
	double came[WAITING];  /* arrivals of what is in the gateway, a ring */
	unsigned head, n;
	struct rte_mbuf *wire[FP_WIRE]; /* of the far gateway: packets that have not arrived */
	unsigned wire_head, wire_n;
	uint64_t left;    /* packets */
	uint64_t repeats; /* of the near gateway */
	unsigned disturbed, begun_again;
} s;

static float sample[SAMPLES];
static unsigned samples;

static double exponential(double mean)
{
	return -mean * log(1 - (double)(rng_next(&rng) >> 11) / (double)(1ull << 53));
}

/* --- arrivals ----------------------------------------------------------------------------------- */

/* The near gateway sends what the far one is to get; its ACKs go past the measurement. */
static void feed(void)
{
	struct fp_wire *w = &run.wire[FP_B];

	while (s.wire_n < FEED) {
		fp_hosts_send(run.hosts, 32);
		do
			fp_run_turn(&run, FP_A);
		while (fp_waiting(&run.lab.gw[FP_A]));
		fp_hosts_read(run.hosts, FP_A);
		fp_run_wire_take(&run, FP_A);
		for (; w->head != w->tail; w->head++) {
			struct rte_mbuf *m = w->q[w->head % FP_WIRE];

			if (fp_run_is_large(&run, m))
				s.wire[(s.wire_head + s.wire_n++) % FP_WIRE] = m;
			else
				fp_arrive(&run.lab.gw[FP_B].port[FP_WAN], m);
		}
	}
}

static void arrive(void)
{
	if (fixed.steps) {
		/* nothing but its time of arrival */
	} else if (site == FP_A) {
		fp_hosts_send(run.hosts, 1);
	} else {
		feed();
		fp_arrive(&run.lab.gw[FP_B].port[FP_WAN], s.wire[s.wire_head++ % FP_WIRE]);
		s.wire_n--;
	}
	s.came[(s.head + s.n++) % WAITING] = s.gap > 0 ? s.next : s.now;
}

static void arrivals(void)
{
	if (s.gap > 0 && !s.n && s.next > s.now && (fixed.steps || !fp_waiting(&run.lab.gw[site])))
		s.now = s.next < s.other_at ? s.next : s.other_at;
	while (s.n < (s.gap > 0 ? WAITING : 512) && (s.gap <= 0 || s.next <= s.now)) {
		arrive();
		s.next += s.gap > 0 ? exponential(s.gap) : 0;
	}
	if (s.n == WAITING)
		fp_die("the gateway does not keep up with this load");
}

/* --- turns -------------------------------------------------------------------------------------- */

/* The other gateway and its hosts work, and what they sent arrives. */
static void other_side(void)
{
	const enum fp_site other = (enum fp_site) !site;

	if (s.now < s.other_at)
		return;
	s.other_at = s.now + DELAY_US * 1e-6 * (double)rte_get_tsc_hz();
	fp_run_wire_give(&run, other);
	do {
		fp_run_turn(&run, other);
		fp_hosts_read(run.hosts, other);
	} while (fp_waiting(&run.lab.gw[other]));
	if (site == FP_A)
		fp_run_wire_take(&run, FP_B);
	else
		feed();
	fp_run_wire_give(&run, site);
}

/* Returns the packets that left in this turn. */
static uint64_t turn(void)
{
	const struct fp_stats *st = fp_hosts_stats(run.hosts);
	const uint64_t received = st->received;
	const long before = fp_switches();
	double took;
	uint64_t left;

	run.cycles[site] = 0;
	fp_run_turn(&run, site);
	took = (double)run.cycles[site];
	if (fp_switches() != before) {
		took = s.usual;
		s.disturbed++;
	}
	s.usual += (took - s.usual) / 64;
	s.now += took;
	left = site == FP_A ? fp_run_wire_take(&run, FP_A) : 0;
	fp_hosts_read(run.hosts, site);
	if (site == FP_B) {
		fp_run_wire_take(&run, FP_B);
		left = st->received - received;
	}
	return left;
}

/* The same of the server with fixed costs. */
static uint64_t fixed_turn(void)
{
	const uint64_t n = s.n < BURST ? s.n : BURST;
	const long before = fp_switches();
	const uint64_t start = rte_rdtsc_precise();
	double took;

	fp_reference_spend(n * fixed.steps);
	took = (double)(rte_rdtsc_precise() - start);
	if (fp_switches() != before) {
		took = (double)n * fixed.cycles;
		s.disturbed++;
	}
	s.now += took;
	return n;
}

static void one(bool count)
{
	uint64_t left;

	arrivals();
	left = fixed.steps ? fixed_turn() : turn();
	if (left > s.n)
		fp_die("more packets left than came");
	for (; left; left--, s.n--, s.left++) {
		const double came = s.came[s.head++ % WAITING];

		if (count && samples < SAMPLES)
			sample[samples++] = (float)(s.now - came);
	}
	if (!fixed.steps)
		other_side();
}

/* The near gateway has sent a packet again: it waited for an ACK, in a time that does not count. */
static bool repeated(void)
{
	const uint64_t before = s.repeats;
	struct wan_stats st;

	eng_tunnel_stats(run.lab.gw[FP_A].w->eng, 0, &st);
	s.repeats = st.c.tx_retransmit;
	return s.repeats != before;
}

/* A repeat would be taken for one packet more: all that is under way goes, and is not counted. */
static void begin_again(void)
{
	struct fp_wire *w = &run.wire[FP_B];

	for (; s.wire_n; s.wire_n--, s.wire_head++)
		w->q[w->tail++ % FP_WIRE] = s.wire[s.wire_head % FP_WIRE];
	fp_run_drain(&run);
	fp_hosts_verify(run.hosts, false);
	s.n = 0;
	s.next = s.now;
	s.begun_again++;
	(void)repeated();
}

/* --- the measurement ---------------------------------------------------------------------------- */

/* Cycles a packet of a gateway that always has packets before it. */
static double capacity(uint64_t ticks)
{
	const uint64_t end = rte_rdtsc() + ticks;
	double cycles = 0, from = s.now;
	uint64_t left = s.left, packets = 0;

	for (unsigned i = 0; fp_before(end); i++) {
		one(false);
		if (repeated()) {
			begin_again();
			i = 0;
		}
		if (i > SETTLED) {
			cycles += s.now - from;
			packets += s.left - left;
		}
		from = s.now;
		left = s.left;
	}
	if (!packets)
		fp_die("no packet gets through");
	return cycles / (double)packets;
}

static void measure(uint64_t ticks)
{
	const uint64_t end = rte_rdtsc() + ticks;

	for (unsigned i = 0; fp_before(end); i++) {
		one(i > SETTLED);
		if (!fixed.steps && repeated()) {
			begin_again();
			i = 0;
		}
	}
}

static int order(const void *a, const void *b)
{
	const float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

static double us(double part)
{
	const double hz = (double)rte_get_tsc_hz();

	return (double)sample[(unsigned)(part * (samples - 1))] / hz * 1e6;
}

static void without_fec(struct conf *c, enum fp_site at)
{
	c->tunnel[0].fec = CONF_FEC_OFF;
}

/* Brings the gateways to their work. Returns the cycles of a packet at full load. */
static double begin(const struct fp_cfg *cfg, uint64_t ticks)
{
	double full;

	fp_lab_new(&run.lab, cfg);
	run.hosts = fp_hosts_new(&run.lab);
	fp_run_warm_up(&run);
	fp_run_drain(&run);
	fp_hosts_verify(run.hosts, false);
	(void)repeated();
	full = capacity(ticks / 4);
	begin_again();
	s.disturbed = s.begun_again = 0;
	return full;
}

static void report(const struct fp_cfg *cfg, double full, uint32_t load)
{
	qsort(sample, samples, sizeof(sample[0]), order);
	printf(
	    "{\"payload\": %u, \"qps\": %u, \"load\": %u, \"tsc_hz\": %" PRIu64
	    ", \"cycles\": %.1f, \"p50\": %.3f, \"p99\": %.3f, \"p999\": %.3f, \"max\": %.3f, \"packets\": "
	    "%u, \"disturbed\": %u, \"begun_again\": %u}\n",
	    cfg->payload, cfg->qps, load, rte_get_tsc_hz(), full, us(0.5), us(0.99), us(0.999), us(1),
	    samples, s.disturbed, s.begun_again);
}

/*
 * bench_latency [EAL arguments] -- [--far] [--payload N] [--qps N] [--load PERCENT] [--ms N]
 *               [--fixed CYCLES]
 */
int main(int argc, char **argv)
{
	static const struct option opts[] = {{"far", no_argument, NULL, 'f'},
	    {"payload", required_argument, NULL, 'p'}, {"qps", required_argument, NULL, 'q'},
	    {"load", required_argument, NULL, 'l'}, {"ms", required_argument, NULL, 't'},
	    {"fixed", required_argument, NULL, 'x'}, {0}};
	struct fp_cfg cfg = {.payload = 1024, .qps = 16, .message = 8, .batch = 512, .conf = without_fec};
	uint32_t ms = 1000, load = 80;
	uint64_t ticks;
	int n, o;

	n = fp_begin(argc, argv, GW_LOG_WARNING);
	while ((o = getopt_long(argc - n, argv + n, "", opts, NULL)) != -1) {
		if (o == 'f')
			site = FP_B;
		else if (o == 'p')
			cfg.payload = fp_number(optarg, 256, 4096);
		else if (o == 'q')
			cfg.qps = fp_number(optarg, 1, 4096);
		else if (o == 'l')
			load = fp_number(optarg, 1, 95);
		else if (o == 't')
			ms = fp_number(optarg, 10, 60000);
		else if (o == 'x')
			fixed.cycles = fp_number(optarg, 100, 100000);
		else
			return 2;
	}
	if (cfg.payload & (cfg.payload - 1))
		fp_die("--payload: a path MTU");
	ticks = ms * (rte_get_tsc_hz() / 1000);
	if (fixed.cycles > 0) {
		fixed.steps = fp_reference_steps(fixed.cycles);
		s.other_at = HUGE_VAL;
	}
	const double full = fixed.cycles > 0 ? fixed.cycles : begin(&cfg, ticks);

	s.gap = full * 100 / load;
	s.next = s.now;
	measure(ticks);
	if (samples < 1000)
		fp_die("too few packets");
	report(&cfg, full, load);
	return 0;
}
