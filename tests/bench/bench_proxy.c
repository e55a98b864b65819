/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections through two relays: how fast they are set up, how many stand, what a link takes.
 * Prints one line of JSON; run-proxy makes the table. bench_relay has the cost of data.
 *
 * The relays are those of fp_lab.h: the program's own ports, worker and edge, with memory-only
 * ports. The hosts (cm_hosts.h) are a model that speaks CM: REQ, REP, RTU, a WRITE and its ACK,
 * DREQ, DREP. Relays and hosts run in one thread. A datagram between the relays arrives
 * `delay` after it was sent, by the clock.
 *
 *   standing  `links` connections, a WRITE on each; memory before and after, by the allocators
 *   paced     beside them `rate` connections begin each second, each with a WRITE, and end after it
 *   burst     beside them connections as fast as they go: cycles of each relay for one
 */
#include <getopt.h>
#include <inttypes.h>
#include <malloc.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gateway/datapath/edge.h"
#include "tests/bench/cm_hosts.h"

#define WIRE     (1u << 16)
#define BURST    32
#define AT_ONCE  512 /* connections that are being set up, in `burst` and `standing` */
#define LATE     (20 * RWY_SEC)
#define SETTLING (3 * RWY_SEC) /* after the last DREP */

struct wire {
	struct {
		struct rte_mbuf *m;
		rwy_time due;
	} q[WIRE];
	uint32_t head, tail;
};

static struct fp_lab lab;
static struct wire wire[FP_SITES]; /* by destination */
static struct cmh_stats *st;
static rwy_dur delay;
static uint64_t cycles[FP_SITES];

static void conf(struct conf *c, enum fp_site s)
{
	c->half_open_max = 1024; /* the default */
	if (s != FP_A)
		return;
	c->relay.maps = CMH_HOSTS;
	for (uint8_t h = 0; h < CMH_HOSTS; h++) {
		struct conf_map *m = &c->relay.map[h];

		snprintf(m->name, sizeof(m->name), "host%u", h);
		m->listen = fp_relay_ip(FP_A);
		m->port = (uint16_t)(CMH_PORT + h);
		m->target = rwy_ip_from4((uint8_t[4]){10, 2, 0, (uint8_t)(2 + h)});
	}
}

static void hops(struct fp_gw *g, enum fp_site s)
{
	for (uint8_t h = 1; h < CMH_HOSTS; h++)
		fp_neighbour(g, FP_LAN, rwy_ip_from4((uint8_t[4]){10, (uint8_t)(s + 1), 0, (uint8_t)(2 + h)}),
		    fp_host_mac);
}

/* --- the relays --------------------------------------------------------------------------------- */

static void wire_take(enum fp_site from)
{
	struct wire *w = &wire[!from];
	struct rte_mbuf *m[BURST];
	unsigned n;

	while ((n = fp_sent(&lab.gw[from].port[FP_WAN], m, BURST)) > 0)
		for (unsigned i = 0; i < n; i++) {
			if (w->tail - w->head == WIRE)
				fp_die("the wire is full");
			w->q[w->tail % WIRE].m = fp_carry(&lab, m[i]);
			w->q[w->tail++ % WIRE].due = gw_now() + delay;
		}
}

static bool wire_give(enum fp_site to)
{
	struct wire *w = &wire[to];
	struct fp_port *p = &lab.gw[to].port[FP_WAN];
	bool any = false;

	for (; w->head != w->tail && w->q[w->head % WIRE].due <= gw_now() && fp_port_room(p); w->head++) {
		fp_arrive(p, w->q[w->head % WIRE].m);
		any = true;
	}
	return any;
}

/* One turn of everything. False: nobody had anything to do. */
static bool turn(void)
{
	bool any = false;

	for (unsigned s = 0; s < FP_SITES; s++) {
		uint64_t t;

		any |= wire_give((enum fp_site)s) || fp_port_waits(&lab.gw[s].port[FP_LAN]);
		t = rte_rdtsc_precise();
		gw_worker_turn(lab.gw[s].w);
		cycles[s] += rte_rdtsc_precise() - t;
		cmh_read((enum fp_site)s);
		wire_take((enum fp_site)s);
	}
	return any;
}

static void turns(rwy_dur time)
{
	rwy_time end = gw_now() + time;

	while (gw_now() < end)
		if (!turn())
			usleep(100);
}

/* --- figures ------------------------------------------------------------------------------------ */

static int order(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void print_series(const char *name, struct cmh_series *s)
{
	qsort(s->v, s->n, sizeof(s->v[0]), order);
	printf(", \"%s\": {\"n\": %u, \"min_ms\": %.3f, \"median_ms\": %.3f, \"p99_ms\": %.3f}", name, s->n,
	    s->v[0], s->v[s->n / 2], s->v[s->n * 99 / 100]);
	s->n = 0;
}

/* Bytes that malloc() gave away, and packet buffers, of both relays. */
struct memory {
	size_t heap;
	unsigned buffers;
};

static struct memory memory(void)
{
	struct mallinfo2 m = mallinfo2();

	return (struct memory){m.uordblks + m.hblkhd,
	    rte_mempool_in_use_count(lab.pools.big) + rte_mempool_in_use_count(lab.pools.small)};
}

static struct proxy_map_now links(enum fp_site s)
{
	struct proxy_map_now n;

	proxy_map_count(lab.gw[s].w->edge->core.map, &n);
	return n;
}

/* Begins n connections, at most AT_ONCE of them without a completed WRITE, and waits for `count`. */
static void many(unsigned n, const unsigned *count)
{
	unsigned end = st->began + n, goal = *count + n;
	rwy_time late = gw_now() + LATE + n * RWY_MS;

	while (*count < goal && gw_now() < late) {
		while (st->began < end && st->began - st->written < AT_ONCE)
			cmh_ask();
		turn();
	}
	if (*count < goal || st->refused)
		fp_die("connections were refused, or did not come");
}

static void burst(unsigned n)
{
	many(n / 8, &st->ended); /* warms up */
	memset(cycles, 0, sizeof(cycles));
	many(n, &st->ended);
	printf(", \"burst\": {\"n\": %u, \"near_cycles\": %.0f, \"far_cycles\": %.0f}", n,
	    (double)cycles[FP_A] / n, (double)cycles[FP_B] / n);
}

static void paced(unsigned rate, unsigned seconds, rwy_dur one_way)
{
	unsigned from = st->began, n = rate * seconds, was = st->ended;
	rwy_time begin = gw_now(), late = begin + seconds * RWY_SEC + LATE;
	rwy_dur took = 0;

	delay = one_way;
	while (st->ended - was < n && gw_now() < late) {
		while (st->began - from < n &&
		       (gw_now() - begin) >= (rwy_dur)(st->began - from) * (RWY_SEC / (rwy_dur)rate))
			cmh_ask();
		if (!took && st->began - from == n)
			took = gw_now() - begin;
		if (!turn())
			usleep(100);
	}
	if (st->ended - was < n || st->refused)
		fp_die("connections were refused, or did not come");
	printf(", \"paced\": {\"rate\": %u, \"n\": %u, \"seconds\": %.2f, \"rtt_ms\": %.1f", rate, n,
	    (double)took / (double)RWY_SEC, 2 * (double)one_way / (double)RWY_MS);
	print_series("setup", &st->setup);
	print_series("first_write", &st->first);
	printf("}");
	turns(2 * one_way + RWY_MS);
	delay = 0;
}

static void standing(unsigned n)
{
	struct memory before, now;

	turns(SETTLING);
	before = memory();
	st->keep = true;
	many(n, &st->written);
	st->keep = false;
	st->setup.n = st->first.n = 0;
	turns(SETTLING);
	now = memory();
	printf(", \"standing\": {\"n\": %u, \"open\": [%u, %u], \"half_open\": %u, \"heap\": %zd, "
	       "\"buffers\": %d}",
	    n, links(FP_A).open, links(FP_B).open, links(FP_A).half_open + links(FP_B).half_open,
	    (ssize_t)(now.heap - before.heap), (int)(now.buffers - before.buffers));
	if (links(FP_A).open != n || links(FP_B).open != n)
		fp_die("links are missing");
}

/* A relay's tables, which are allocated at its start. */
static void table(void)
{
	struct proxy_map_cfg cfg;
	struct proxy_map *m;
	size_t before = memory().heap;

	proxy_map_cfg_default(&cfg);
	if (proxy_map_new(&m, &cfg) != 0)
		fp_die("no memory");
	printf(", \"table\": {\"links_max\": %u, \"heap\": %zu, \"link\": %zu}", cfg.links_max,
	    memory().heap - before, sizeof(struct proxy_link));
	proxy_map_free(m);
}

/* bench_proxy [EAL arguments] -- [--links N] [--rate N] [--seconds N] [--delay MS] [--burst N] */
int main(int argc, char **argv)
{
	static const struct option opts[] = {{"links", required_argument, NULL, 'l'},
	    {"rate", required_argument, NULL, 'r'}, {"seconds", required_argument, NULL, 's'},
	    {"delay", required_argument, NULL, 'd'}, {"burst", required_argument, NULL, 'b'}, {0}};
	struct fp_cfg cfg = {
	    .payload = 1024, .qps = 1, .message = 8, .batch = 512, .relay = true, .conf = conf, .hops = hops};
	unsigned n_links = 10000, rate = 1000, seconds = 10, ms = 10, n_burst = 4000;
	int n, o;

	n = fp_begin(argc, argv, GW_LOG_INFO); /* the default: a line for each event of a link */
	while ((o = getopt_long(argc - n, argv + n, "", opts, NULL)) != -1) {
		if (o == 'l')
			n_links = fp_number(optarg, 1, 16000);
		else if (o == 'r')
			rate = fp_number(optarg, 1, 10000);
		else if (o == 's')
			seconds = fp_number(optarg, 1, 10);
		else if (o == 'd')
			ms = fp_number(optarg, 0, 200);
		else if (o == 'b')
			n_burst = fp_number(optarg, 8, 20000);
		else
			return 2;
	}
	fp_lab_new(&lab, &cfg);
	st = cmh_begin(&lab);
	turns(RWY_SEC);
	printf("{\"tsc_hz\": %" PRIu64, rte_get_tsc_hz());
	table();
	standing(n_links);
	paced(rate, seconds, ms * RWY_MS);
	burst(n_burst);
	printf("}\n");
	return 0;
}
