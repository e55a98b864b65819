/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cycles per packet of the near and the far gateway on one core, from memory-only ports. Prints one
 * line of JSON for one packet size and number of queue pairs; run-fastpath makes the table.
 *
 * The program runs the gateway itself: its ports, its worker's turn (rte_eth_rx_burst, rx.c,
 * engine, tx_lan.c, tx_wan.c, rte_eth_tx_burst), its engine. Two of them, A and B, run in one
 * thread, since each needs the other's datagrams: A takes the requests of a host into custody and
 * sends them on, B passes them to a host and reports them delivered, A frees them. They take turns:
 *
 *   1. the host behind A fills A's LAN ring with a batch of requests, the wire A's WAN ring with what B
 *      sent `delay` batches ago;
 *   2. A runs until its rings are empty                                          <- near gateway's cycles
 *   3. the wire copies A's datagrams and fills B's WAN ring with those of `delay` batches ago;
 *   4. B runs until its rings are empty; after each turn the host behind B reads <- far gateway's cycles
 *      its packets and acknowledges those with AckReq.
 *
 * Cycles are time-stamp counter ticks around each whole turn: with ACKs and DELIVERED, timers, and
 * the port's own cost. The cost of hosts and wire is outside, as with real ones, and is printed
 * separately (`harness`). The batch is as long as a NIC's ring and is written before it is read, so
 * a packet comes from the second- or third-level cache, as from a NIC that writes there. A ring
 * port lacks a NIC's descriptors, buffer refill and completion. testpmd on the same kind of port
 * shows the cost of such a port, and `port` here is the same bursts through the same rings without
 * a gateway.
 *
 * With --packets it ends after so many packets instead of a time and times no fixed loop: for a
 * profiler that counts instructions (`valgrind --tool=callgrind --toggle-collect=near_turn`).
 *
 * A hundred times a second, between batches, a fixed loop is timed (fp_reference.h), and then a
 * batch that does not count warms the caches again.
 *
 * `state`: bytes that a gateway holds by malloc for the tunnel and its queue pairs, in the end, when
 * nothing is under way. Of one queue pair more: the difference of two runs. `quiet`, with --rest:
 * the same some seconds later, when quiet connections have given memory back; `spare`: the part of
 * that which is ready for other connections.
 *
 * With --workers each gateway has several, and its ports as many queues (fp_workers.h): LAN ports
 * spread frames over them by RSS, and so does the WAN port, or gives each worker its datagrams, as a
 * NIC with rules does (--steered). `near_busiest` and `far_busiest` are the cycles of the worker
 * that had most to do, for each packet of all: they tell what all workers together can do.
 *
 * Figures are the median of many batches. Batches in which the kernel used the CPU are left out and
 * counted, since they would measure other programs.
 */
#include <getopt.h>
#include <inttypes.h>
#include <malloc.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/eng.h"
#include "gateway/capture/capture.h"
#include "gateway/datapath/sibling.h"
#include "tests/bench/fp_reference.h"
#include "tests/bench/fp_run.h"
#include "tests/bench/fp_workers.h"
#include "wan/tunnel.h"

#define SLICES_MAX 32768
#define BURST      32
#define REST       8 /* seconds */
#define REFERENCES 4

static bool rest; /* --rest */

struct run {
	struct fp_run f;
	uint64_t most; /* packets after which it ends; 0: after a time */
};

struct series {
	double v[SLICES_MAX];
	unsigned n;
};

/* The same bursts from A's LAN port to its WAN port, without a gateway. */
static void port_batch(struct run *r)
{
	struct fp_port *p = r->f.lab.gw[FP_A].port;
	struct rte_mbuf *m[BURST];
	uint64_t t;
	uint16_t n;

	fp_hosts_send(r->f.hosts, r->f.lab.cfg.batch);
	t = rte_rdtsc_precise();
	while ((n = rte_eth_rx_burst(p[FP_LAN].id, 0, m, BURST)) > 0)
		rte_eth_tx_burst(p[FP_WAN].id, 0, m, n);
	r->f.cycles[FP_A] += rte_rdtsc_precise() - t;
	while ((n = (uint16_t)fp_sent(&p[FP_WAN], m, BURST)) > 0)
		rte_pktmbuf_free_bulk(m, n);
}

/* Assigns all flows to the sibling: the hosts' packets leave through A's LAN port again. */
static void hand_over(struct run *r)
{
	struct gw_worker *w = r->f.lab.gw[FP_A].w;

	for (unsigned i = 0; i < GW_SIB_FLOWS; i++) {
		w->sibw->flow[i].who = 0;
		w->sibw->flow[i].id = w->sib->sib[0].id;
	}
}

static void handed_batch(struct run *r)
{
	struct fp_gw *g = &r->f.lab.gw[FP_A];
	struct rte_mbuf *m[BURST];
	unsigned n;

	fp_hosts_send(r->f.hosts, r->f.lab.cfg.batch);
	do
		fp_run_turn(&r->f, FP_A);
	while (fp_waiting(g));
	while ((n = fp_sent(&g->port[FP_LAN], m, BURST)) > 0)
		rte_pktmbuf_free_bulk(m, n);
	while ((n = fp_sent(&g->port[FP_WAN], m, BURST)) > 0)
		rte_pktmbuf_free_bulk(m, n);
}

/* --- figures ------------------------------------------------------------------------------------ */

static int order(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void add(struct series *s, double v)
{
	if (s->n < SLICES_MAX)
		s->v[s->n++] = v;
}

static void print_series(const char *name, struct series *s)
{
	qsort(s->v, s->n, sizeof(s->v[0]), order);
	printf(", \"%s\": {\"median\": %.2f, \"min\": %.2f, \"p10\": %.2f}", name, s->v[s->n / 2], s->v[0],
	    s->v[s->n / 10]);
}

static struct series near, far, near_busiest, far_busiest, harness, port, handed, both, reference;
static unsigned disturbed;
static uint64_t counted; /* packets of the batches that count */

enum kind { GATEWAYS, PORT, HANDED };

static double busiest(const struct run *r, enum fp_site s)
{
	uint64_t most = 0;

	for (unsigned k = 0; k < r->f.lab.gw[s].app.workers; k++)
		most = RTE_MAX(most, r->f.by_worker[s][k]);
	return (double)most;
}

static long switches(void)
{
	return fp_switches() + fp_workers_switches();
}

static void slice(struct run *r, enum kind kind)
{
	const struct fp_stats *st = fp_hosts_stats(r->f.hosts);
	uint64_t sent = st->sent, received = st->received, start, all;
	long before_it = switches();
	double n;

	memset(r->f.cycles, 0, sizeof(r->f.cycles));
	memset(r->f.by_worker, 0, sizeof(r->f.by_worker));
	r->f.counted = kind == GATEWAYS;
	start = rte_rdtsc_precise();
	kind == PORT ? port_batch(r) : kind == HANDED ? handed_batch(r) : fp_run_batch(&r->f);
	all = rte_rdtsc_precise() - start;
	r->f.counted = false;
	counted += kind == GATEWAYS ? st->sent - sent : 0;
	n = (double)(st->sent - sent);
	if (switches() != before_it || (kind == GATEWAYS && st->received == received)) {
		disturbed++;
		return;
	}
	if (kind != GATEWAYS) {
		add(kind == PORT ? &port : &handed, (double)r->f.cycles[FP_A] / n);
		return;
	}
	add(&near, (double)r->f.cycles[FP_A] / n);
	add(&far, (double)r->f.cycles[FP_B] / (double)(st->received - received));
	add(&near_busiest, busiest(r, FP_A) / n);
	add(&far_busiest, busiest(r, FP_B) / (double)(st->received - received));
	add(&harness, (double)(all - r->f.cycles[FP_A] - r->f.cycles[FP_B]) / n);
	add(&both, (double)all / n);
}

/* Times the fixed loop; then runs a batch that does not count. */
static void refer(struct run *r)
{
	long before_it = fp_switches();

	for (unsigned i = 0; i < REFERENCES; i++) {
		uint64_t t = fp_reference_round();

		if (fp_switches() == before_it)
			add(&reference, (double)t);
		before_it = fp_switches();
	}
	fp_run_batch(&r->f);
}

static void print_counters(const struct run *r, uint64_t custody)
{
	const struct fp_stats *st = fp_hosts_stats(r->f.hosts);
	const struct gw_counters *a = &r->f.lab.gw[FP_A].w->c, *b = &r->f.lab.gw[FP_B].w->c;
	struct wan_stats wa;

	eng_tunnel_stats(r->f.lab.gw[FP_A].w->eng, 0, &wa);
	printf(", \"counted\": %" PRIu64 ", \"packets\": %" PRIu64 ", \"received\": %" PRIu64
	       ", \"acks\": %" PRIu64 ", \"naks\": %" PRIu64 ", \"wrong\": %" PRIu64 ", \"again\": %" PRIu64
	       ", \"wan_lost\": %" PRIu64 ", \"wan_retransmit\": %" PRIu64 ", \"datagrams\": %" PRIu64
	       ", \"wan_bytes\": %" PRIu64 ", \"custody\": %" PRIu64
	       ", \"in_place_pct\": %.1f, \"payload_copied\": %" PRIu64,
	    counted, st->sent, st->received, st->acks, st->nak, st->wrong, st->again, wa.c.lost,
	    wa.c.tx_retransmit, wa.c.tx_datagrams, wa.c.tx_bytes, custody,
	    100.0 * (double)(a->tx_in_place + b->tx_in_place) / (double)(a->tx_packets + b->tx_packets),
	    a->tx_payload_copied + b->tx_payload_copied);
	printf(", \"captured\": %" PRIu64 ", \"capture_lost\": %" PRIu64,
	    fp_capture_packets(&r->f.lab, FP_A) + fp_capture_packets(&r->f.lab, FP_B),
	    fp_capture_lost(&r->f.lab, FP_A) + fp_capture_lost(&r->f.lab, FP_B));
}

/*
 * Batches with as many hostile packets as others, and batches without, in turn. Medians of their
 * cycles, for each of the others; the difference is what a hostile packet costs.
 */
static void print_harm(struct run *r, enum fp_hostile way, const char *name, uint64_t ticks)
{
	static struct series with[FP_SITES], without[FP_SITES];
	uint64_t end = rte_rdtsc() + ticks;

	memset(with, 0, sizeof(with));
	memset(without, 0, sizeof(without));
	r->f.way = way;
	for (uint64_t n = 0; fp_before(end); n++) {
		long before_it = fp_switches();

		r->f.harmed = n & 1;
		memset(r->f.cycles, 0, sizeof(r->f.cycles));
		fp_run_batch(&r->f);
		for (unsigned s = 0; s < FP_SITES && fp_switches() == before_it && n > 64; s++)
			add(n & 1 ? &with[s] : &without[s], (double)r->f.cycles[s] / r->f.lab.cfg.batch);
	}
	r->f.harmed = false;
	for (unsigned s = 0; s < FP_SITES; s++) {
		if (!with[s].n || !without[s].n)
			fp_die("the CPU was taken away in each batch");
		qsort(with[s].v, with[s].n, sizeof(double), order);
		qsort(without[s].v, without[s].n, sizeof(double), order);
	}
	printf(", \"%s\": {\"near\": %.2f, \"near_without\": %.2f, \"far\": %.2f, \"far_without\": %.2f}",
	    name, with[FP_A].v[with[FP_A].n / 2], without[FP_A].v[without[FP_A].n / 2],
	    with[FP_B].v[with[FP_B].n / 2], without[FP_B].v[without[FP_B].n / 2]);
}

static void print_harms(struct run *r, uint64_t hz)
{
	static const char *const name[] = {
	    [FP_BOGUS] = "bogus", [FP_CM_FLOOD] = "cm_flood", [FP_REPEATS] = "repeats"};

	for (unsigned w = 0; w < FP_HOSTILE_N; w++)
		print_harm(r, (enum fp_hostile)w, name[w], hz / 2);
}

/* Adds bytes that malloc does not know of, and bytes of objects that were given back. */
static void add_slab(const struct rwy_slab *s, size_t *mapped, size_t *spare)
{
	*mapped += rwy_slab_mapped(s);
	*spare += rwy_slab_spare(s) * s->size;
}

static void add_engine(const struct eng *e, size_t *mapped, size_t *spare)
{
	add_slab(&e->responder_slab, mapped, spare);
	add_slab(&e->requester_slab, mapped, spare);
	for (unsigned i = 0; i < e->cfg.tunnels; i++) {
		const struct wan_tunnel *t = e->tunnel[i].wan;

		if (!t)
			continue;
		add_slab(&t->tx_slab, mapped, spare);
		add_slab(&t->rx_slab, mapped, spare);
		add_slab(&t->ring_slab, mapped, spare);
	}
}

/* Bytes that the gateways hold; packet buffers and journals are elsewhere. *spare: of them. */
static size_t memory(const struct run *r, size_t *spare)
{
	const struct mallinfo2 m = mallinfo2();
	size_t n = m.uordblks + m.hblkhd;

	*spare = 0;
	for (unsigned s = 0; s < FP_SITES; s++)
		for (unsigned k = 0; k < r->f.lab.gw[s].app.workers; k++)
			add_engine(r->f.lab.gw[s].app.worker[k]->eng, &n, spare);
	return n;
}

/* The memory that is left after a rest: the gateways' sweep comes to each connection in it. */
static void print_quiet(struct run *r, size_t before)
{
	size_t held, spare;
	const unsigned full = r->f.lab.cfg.batch;
	const uint64_t end = rte_rdtsc() + REST * rte_get_tsc_hz();

	r->f.lab.cfg.batch = 0;
	while (fp_before(end))
		fp_run_batch(&r->f);
	r->f.lab.cfg.batch = full;
	held = memory(r, &spare) - before;
	printf(", \"quiet\": %zu, \"spare\": %zu", held / FP_SITES, spare / FP_SITES);
}

/* The busiest worker sets the rate of a gateway. */
static void print_workers(const struct run *r)
{
	uint64_t handed_over = 0;

	print_series("near_busiest", &near_busiest);
	print_series("far_busiest", &far_busiest);
	for (unsigned s = 0; s < FP_SITES; s++)
		for (unsigned k = 0; k < r->f.lab.gw[s].app.workers; k++)
			handed_over += r->f.lab.gw[s].app.worker[k]->c.handoff;
	printf(", \"handed_over\": %" PRIu64 ", \"back\": %" PRIu64, handed_over,
	    fp_hosts_stats(r->f.hosts)->back);
}

static int run(struct run *r, double seconds)
{
	const struct fp_stats *st;
	uint64_t hz = rte_get_tsc_hz(), custody, end;
	size_t held, before, spare;

	fp_reference_init();
	r->f.hosts = fp_hosts_new(&r->f.lab);
	st = fp_hosts_stats(r->f.hosts);
	before = memory(r, &spare);
	fp_run_warm_up(&r->f);
	end = rte_rdtsc() + (uint64_t)(seconds * (double)hz);
	for (uint64_t next = 0; r->most ? counted < r->most : fp_before(end);) {
		if (!r->most && !fp_before(next)) {
			refer(r);
			next = rte_rdtsc() + hz / 100;
		}
		slice(r, GATEWAYS);
	}
	custody = fp_run_custody(&r->f, FP_A);
	fp_run_drain(&r->f);
	held = memory(r, &spare) - before;
	printf("{\"payload\": %u, \"qps\": %u, \"tsc_hz\": %" PRIu64, r->f.lab.cfg.payload, r->f.lab.cfg.qps,
	    hz);
	print_series("near", &near);
	print_series("far", &far);
	if (r->f.lab.cfg.workers > 1)
		print_workers(r);
	print_series("harness", &harness);
	print_series("both", &both);
	print_series("reference", &reference);
	printf(", \"state\": %zu", held / FP_SITES);
	if (rest)
		print_quiet(r, before);
	if (r->f.lab.cfg.hostile) {
		print_harms(r, hz);
		fp_run_drain(&r->f);
	}
	print_counters(r, custody);
	if (st->received != st->sent || st->wrong || st->nak || !st->acks) {
		printf("}\n");
		fp_die("packets were lost, wrong or not acknowledged");
	}
	end = rte_rdtsc() + hz / 5;
	while (r->f.lab.cfg.queues <= 1 && fp_before(end))
		slice(r, PORT);
	if (port.n)
		print_series("port", &port);
	if (r->f.lab.gw[FP_A].w->sib) {
		hand_over(r);
		end = rte_rdtsc() + hz / 2;
		while (fp_before(end))
			slice(r, HANDED);
		print_series("handed", &handed);
		if (r->f.lab.gw[FP_A].w->c.sibling_tx < (uint64_t)handed.n * r->f.lab.cfg.batch)
			fp_die("packets were not handed to the sibling");
	}
	printf(", \"slices\": %u, \"disturbed\": %u}\n", near.n, disturbed);
	return 0;
}

static enum fp_overlay overlay(const char *s)
{
	static const char *const name[] = {"plain", "vxlan", "vxlan6", "vlan"};

	for (unsigned i = 0; i < RTE_DIM(name); i++)
		if (!strcmp(s, name[i]))
			return (enum fp_overlay)i;
	fp_die("--overlay plain, vxlan, vxlan6 or vlan");
}

/* Adds another gateway at A: each packet is looked up, and stays with A, since the far gateway's
 * name is not given. */
static void with_sibling(struct conf *c, enum fp_site s)
{
	if (s != FP_A)
		return;
	c->siblings = 1;
	snprintf(c->sibling[0].name, CONF_NAME, "sibling");
	c->sibling[0].address = rwy_ip_from4((const uint8_t[4]){10, 1, 0, 3});
	c->sibling[0].weight = 1;
}

static unsigned idle_tunnels;

/* --capture near|far, with --snap and --filter */
static struct {
	const char *at, *filter;
	uint32_t snap;
} capture = {.filter = "", .snap = GW_CAP_SNAP_MAX};

static enum fp_site capture_site(void)
{
	if (strcmp(capture.at, "near") != 0 && strcmp(capture.at, "far") != 0)
		fp_die("--capture near or far");
	return *capture.at == 'n' ? FP_A : FP_B;
}

/* Adds tunnels to gateways that do not answer, with prefixes that no packet goes to. */
static void with_tunnels(struct conf *c, enum fp_site s)
{
	for (; c->tunnels <= idle_tunnels; c->tunnels++) {
		struct conf_tunnel *t = &c->tunnel[c->tunnels];

		*t = c->tunnel[0];
		snprintf(t->name, sizeof(t->name), "idle%u", c->tunnels);
		t->remote.b[15] = (uint8_t)(100 + c->tunnels);
		t->prefix[0].addr = rwy_ip_from4((const uint8_t[4]){10, 200, (uint8_t)c->tunnels, 0});
	}
}

static void with_steering(struct conf *c, enum fp_site s)
{
	(void)s;
	c->steering = CONF_STEER_QP;
}

static void sibling_hop(struct fp_gw *g, enum fp_site s)
{
	static const uint8_t mac[6] = {0x02, 0xbb, 0, 0, 0, 1};

	if (s == FP_A)
		fp_neighbour(g, FP_LAN, rwy_ip_from4((const uint8_t[4]){10, 1, 0, 3}), mac);
}

/* bench_fastpath [EAL arguments] -- [--payload N] [--qps N] [--batch N] [--delay N]
 *                                   [--ms N | --packets N]
 *                                   [--overlay plain|vxlan|vxlan6|vlan] [--sibling] [--idle-tunnels N]
 *                                   [--hostile] (not plain) [--keys]
 *                                   [--capture near|far [--snap N] [--filter TEXT]]
 *                                   [--relay] (plain) [--rest]
 *                                   [--workers N [--steered]] (plain, as many lcores) */
int main(int argc, char **argv)
{
	static const struct option opts[] = {{"payload", required_argument, NULL, 'p'},
	    {"qps", required_argument, NULL, 'q'}, {"batch", required_argument, NULL, 'b'},
	    {"delay", required_argument, NULL, 'd'}, {"ms", required_argument, NULL, 't'},
	    {"overlay", required_argument, NULL, 'o'}, {"sibling", no_argument, NULL, 's'},
	    {"hostile", no_argument, NULL, 'h'}, {"keys", no_argument, NULL, 'k'},
	    {"packets", required_argument, NULL, 'n'}, {"idle-tunnels", required_argument, NULL, 'i'},
	    {"capture", required_argument, NULL, 'c'}, {"snap", required_argument, NULL, 'S'},
	    {"filter", required_argument, NULL, 'f'}, {"relay", no_argument, NULL, 'r'},
	    {"rest", no_argument, NULL, 'R'}, {"workers", required_argument, NULL, 'w'},
	    {"steered", no_argument, NULL, 'W'}, {0}};
	struct fp_cfg cfg = {.payload = 1024, .qps = 1, .message = 8, .batch = 512, .delay = 2};
	static struct run r;
	uint32_t ms = 2000;
	int n, o;

	n = fp_begin(argc, argv, GW_LOG_WARNING);
	while ((o = getopt_long(argc - n, argv + n, "", opts, NULL)) != -1) {
		if (o == 'p')
			cfg.payload = fp_number(optarg, 4, 4096) & ~3u;
		else if (o == 'q')
			cfg.qps = fp_number(optarg, 1, 65536);
		else if (o == 'b')
			cfg.batch = fp_number(optarg, BURST, FP_RING / 2);
		else if (o == 'd')
			cfg.delay = fp_number(optarg, 0, 8);
		else if (o == 'o')
			cfg.overlay = overlay(optarg);
		else if (o == 's')
			cfg.conf = with_sibling;
		else if (o == 'h')
			cfg.hostile = true;
		else if (o == 'k')
			cfg.keys = true;
		else if (o == 'c')
			capture.at = optarg;
		else if (o == 'S')
			capture.snap = fp_number(optarg, 1, GW_CAP_SNAP_MAX);
		else if (o == 'f')
			capture.filter = optarg;
		else if (o == 'r')
			cfg.relay = true;
		else if (o == 'R')
			rest = true;
		else if (o == 'W')
			cfg.steered = true;
		else if (o == 'w')
			cfg.workers = cfg.queues = fp_number(optarg, 2, FP_QUEUES);
		else if (o == 'i')
			idle_tunnels = fp_number(optarg, 1, CONF_TUNNELS_MAX - 1);
		else if (o == 'n')
			r.most = fp_number(optarg, 1, 1u << 30);
		else if (o == 't')
			ms = fp_number(optarg, 10, 60000);
		else
			return 2;
	}
	if (cfg.hostile && cfg.overlay == FP_PLAIN)
		fp_die("--hostile: with an --overlay");
	if (cfg.relay && cfg.overlay != FP_PLAIN)
		fp_die("--relay: without an --overlay");
	/* FIRST and MIDDLE packets have the length of the path MTU, at least 256 (IBA 9.7.4.1.6).
	 * Shorter ones are whole messages. */
	if (cfg.payload < 256 || (cfg.payload & (cfg.payload - 1)))
		cfg.message = 1;
	if (cfg.workers && (cfg.overlay != FP_PLAIN || cfg.conf || cfg.relay))
		fp_die("--workers: alone");
	cfg.hops = cfg.conf ? sibling_hop : NULL;
	if (cfg.workers)
		cfg.conf = with_steering;
	if (idle_tunnels)
		cfg.conf = with_tunnels;
	fp_lab_new(&r.f.lab, &cfg);
	if (capture.at)
		fp_capture_begin(&r.f.lab, capture_site(), capture.snap, capture.filter);
	return run(&r, ms / 1000.0);
}
