/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop of the benchmarks on memory-only ports: hosts, two gateways, and the wire between them,
 * batch by batch. bench_fastpath.c says what is timed, and why so.
 */
#ifndef TESTS_BENCH_FP_RUN_H
#define TESTS_BENCH_FP_RUN_H

#include "tests/bench/fp_lab.h"

#define FP_WIRE 32768 /* datagrams on the wire, a power of two */

/* One direction of the WAN: datagrams in order, each due some batches after it was sent. */
struct fp_wire {
	struct rte_mbuf *q[FP_WIRE];
	uint64_t due[FP_WIRE];
	uint32_t head, tail;
};

/* The caller makes the lab and the hosts. */
struct fp_run {
	struct fp_lab lab;
	struct fp_hosts *hosts;
	struct fp_wire wire[FP_SITES]; /* by destination site */
	uint64_t batch_no;
	/* of the gateways' turns, of all workers and of each; the caller clears them */
	uint64_t cycles[FP_SITES], turns[FP_SITES], by_worker[FP_SITES][FP_QUEUES];
	bool counted; /* near_turn() and far_turn() run it, for a profiler */
	bool harmed;  /* so many packets of `way` beside each batch */
	enum fp_hostile way;
};

/* One timed turn of each of a gateway's workers. */
void fp_run_turn(struct fp_run *r, enum fp_site s);
/* cfg.batch packets of the host at A, until both gateways have nothing to do. */
void fp_run_batch(struct fp_run *r);
/*
 * Sends one packet of each queue pair, and waits for up to a minute until the gateways have paired
 * all of them; then 65,536 packets, and two of each at least. From then on hosts do not check ICRCs.
 */
void fp_run_warm_up(struct fp_run *r);
/* Batches without packets until everything is delivered and acknowledged, for 5 s at most. Hosts
 * check ICRCs again. */
void fp_run_drain(struct fp_run *r);

/* The datagram has a packet of the requester: all others are shorter. */
static inline bool fp_run_is_large(const struct fp_run *r, const struct rte_mbuf *m)
{
	return m->pkt_len >= r->lab.cfg.payload;
}
/* All that this site has sent goes on the wire. Returns how many of these datagrams are large. */
unsigned fp_run_wire_take(struct fp_run *r, enum fp_site from);
/* Datagrams that are due arrive at this site. */
void fp_run_wire_give(struct fp_run *r, enum fp_site to);

/* Something waits at a port of the gateway, or for one of its workers. */
bool fp_waiting(const struct fp_gw *g);
/* Packets of hosts that wait at the gateways for the peer's report (custody). */
uint64_t fp_run_custody(const struct fp_run *r, enum fp_site s);
/* How often the kernel has used the thread's CPU. */
long fp_switches(void);
/* end: of rte_rdtsc(). */
bool fp_before(uint64_t end);

#endif
