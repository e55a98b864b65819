/* SPDX-License-Identifier: Apache-2.0 */
/* The benchmarks' loop: see fp_run.h. */
#include "tests/bench/fp_run.h"

#include <rte_cycles.h>
#include <string.h>
#include <sys/resource.h>

#include "tests/bench/fp_workers.h"

#define WARM_PACKETS (1u << 16)
#define BURST        32
#define WINDOW       256  /* packets of a queue pair, where connections may go to another worker */
#define STAGGER      4096 /* queue pairs above which their messages do not begin together */
#define TOGETHER     128  /* queue pairs that begin together: fewer than a host's unpaired flows may be */

long fp_switches(void)
{
	struct rusage u;

	getrusage(RUSAGE_THREAD, &u);
	return u.ru_nivcsw + u.ru_nvcsw;
}

bool fp_before(uint64_t end)
{
	return rte_rdtsc() < end;
}

/* --- the wire ----------------------------------------------------------------------------------- */

unsigned fp_run_wire_take(struct fp_run *r, enum fp_site from)
{
	struct fp_wire *w = &r->wire[1 - from];
	struct rte_mbuf *m[BURST];
	unsigned n, large = 0;

	while ((n = fp_sent(&r->lab.gw[from].port[FP_WAN], m, BURST)) > 0)
		for (unsigned i = 0; i < n; i++) {
			if (w->tail - w->head == FP_WIRE)
				fp_die("the wire is full");
			large += fp_run_is_large(r, m[i]);
			w->due[w->tail % FP_WIRE] = r->batch_no + r->lab.cfg.delay;
			w->q[w->tail++ % FP_WIRE] = fp_carry(&r->lab, m[i]);
		}
	return large;
}

void fp_run_wire_give(struct fp_run *r, enum fp_site to)
{
	struct fp_wire *w = &r->wire[to];
	struct fp_port *p = &r->lab.gw[to].port[FP_WAN];

	while (w->head != w->tail && w->due[w->head % FP_WIRE] <= r->batch_no && fp_port_room(p))
		fp_arrive(p, w->q[w->head++ % FP_WIRE]);
}

/* --- turns -------------------------------------------------------------------------------------- */

bool fp_waiting(const struct fp_gw *g)
{
	for (unsigned k = 0; k < g->app.workers; k++) {
		const struct gw_worker *w = g->app.worker[k];

		if ((w->handoff && !rte_ring_empty(w->handoff)) || (w->notes && !rte_ring_empty(w->notes)))
			return true;
	}
	return fp_port_waits(&g->port[FP_LAN]) || fp_port_waits(&g->port[FP_WAN]);
}

/* Only batches that count call these two: a profiler that follows calls tells them from the warm-up
 * and the gateways apart. */
static __attribute__((noinline)) void near_turn(struct gw_worker *w)
{
	gw_worker_turn(w);
	__asm__ volatile("# near"); /* two equal functions would become one */
}

static __attribute__((noinline)) void far_turn(struct gw_worker *w)
{
	gw_worker_turn(w);
	__asm__ volatile("# far");
}

static uint64_t first_turn(const struct fp_run *r, enum fp_site s)
{
	const uint64_t t = rte_rdtsc_precise();

	if (!r->counted)
		gw_worker_turn(r->lab.gw[s].w);
	else if (s == FP_A)
		near_turn(r->lab.gw[s].w);
	else
		far_turn(r->lab.gw[s].w);
	return rte_rdtsc_precise() - t;
}

void fp_run_turn(struct fp_run *r, enum fp_site s)
{
	for (unsigned k = 0; k < r->lab.gw[s].app.workers; k++) {
		const uint64_t cycles = k ? fp_worker_turn(&r->lab, s, k) : first_turn(r, s);

		r->by_worker[s][k] += cycles;
		r->cycles[s] += cycles;
	}
	r->turns[s]++;
}

void fp_run_batch(struct fp_run *r)
{
	fp_hosts_send(r->hosts, r->lab.cfg.batch);
	if (r->harmed && r->way == FP_REPEATS)
		fp_hosts_repeat(r->hosts, r->lab.cfg.batch);
	else if (r->harmed)
		fp_hostile_send(&r->lab, r->way, r->lab.cfg.batch);
	fp_run_wire_give(r, FP_A);
	fp_workers_receive(&r->lab, FP_A);
	do
		fp_run_turn(r, FP_A);
	while (fp_waiting(&r->lab.gw[FP_A]));
	fp_hosts_read(r->hosts, FP_A);
	fp_run_wire_take(r, FP_A);
	fp_run_wire_give(r, FP_B);
	fp_workers_receive(&r->lab, FP_B);
	do {
		fp_run_turn(r, FP_B);
		fp_hosts_read(r->hosts, FP_B);
	} while (fp_waiting(&r->lab.gw[FP_B]));
	fp_run_wire_take(r, FP_B);
	fp_capture_drain();
	r->batch_no++;
}

/* --- begin and end ------------------------------------------------------------------------------- */

static uint64_t paired(const struct fp_gw *g)
{
	uint64_t n = 0;

	for (unsigned k = 0; k < g->app.workers; k++)
		n += eng_counters(g->app.worker[k]->eng)->conns_paired;
	return n;
}

uint64_t fp_run_custody(const struct fp_run *r, enum fp_site s)
{
	const struct gw_app *app = &r->lab.gw[s].app;
	uint64_t n = 0;

	for (unsigned k = 0; k < app->workers; k++) {
		const struct eng_counters *c = eng_counters(app->worker[k]->eng);

		n += c->accepted - c->delivered;
	}
	return n;
}

static void pair_all(struct fp_run *r)
{
	const uint64_t end = rte_rdtsc() + 60 * rte_get_tsc_hz();
	const unsigned qps = r->lab.cfg.qps;

	for (unsigned begun = 0, n; begun < qps; begun += n) {
		n = RTE_MIN(qps - begun, (unsigned)TOGETHER);
		r->lab.cfg.batch = n;
		fp_run_batch(r);
		/* A connection that goes to another worker asks its host for its packet again. */
		r->lab.cfg.batch = r->lab.cfg.workers > 1 ? 1 : 0;
		while (fp_before(end) && paired(&r->lab.gw[FP_A]) < begun + n)
			fp_run_batch(r);
	}
}

/*
 * A run has few messages of so many queue pairs: they begin at different times, so that messages
 * end all the time.
 */
static void stagger(struct fp_run *r)
{
	const unsigned qps = r->lab.cfg.qps, message = r->lab.cfg.message, full = r->lab.cfg.batch;

	for (unsigned phase = 1; qps > STAGGER && phase < message; phase++) {
		fp_hosts_phase(r->hosts, phase);
		for (unsigned left = qps / message * (message - phase); left; left -= r->lab.cfg.batch) {
			r->lab.cfg.batch = RTE_MIN(left, full);
			fp_run_batch(r);
		}
	}
	r->lab.cfg.batch = full;
	fp_hosts_phase(r->hosts, 0);
}

void fp_run_warm_up(struct fp_run *r)
{
	const struct fp_stats *st = fp_hosts_stats(r->hosts);
	unsigned full = r->lab.cfg.batch;

	if (r->lab.cfg.workers > 1)
		fp_hosts_window(r->hosts, 1);
	pair_all(r);
	if (r->lab.cfg.workers > 1)
		fp_hosts_window(r->hosts, WINDOW);
	r->lab.cfg.batch = full;
	stagger(r);
	for (unsigned n = 0; n < RTE_MAX(WARM_PACKETS, 2 * r->lab.cfg.qps); n += full)
		fp_run_batch(r);
	fp_hosts_verify(r->hosts, false);
	if (st->received + 4096 * 4 < st->sent)
		fp_die("packets do not get through");
}

void fp_run_drain(struct fp_run *r)
{
	uint64_t end = rte_rdtsc() + 5 * rte_get_tsc_hz();
	const struct fp_stats *st = fp_hosts_stats(r->hosts);
	unsigned full = r->lab.cfg.batch;

	r->lab.cfg.batch = 0;
	fp_hosts_verify(r->hosts, true);
	while (fp_before(end) && (st->received < st->sent || fp_run_custody(r, FP_A)))
		fp_run_batch(r);
	r->lab.cfg.batch = full;
}
