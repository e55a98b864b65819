/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The further workers of gateways with several. Worker 0 runs in the caller's thread, each other one
 * in a thread of its own on the EAL's next lcore, and only one of them at a time: so a packet that
 * one worker hands to another crosses from one processor to another, as it does in a gateway, and
 * neither waits for the other.
 *
 * The hosts and the wire run in the caller's thread. So that the other workers have buffers and
 * frames in their caches as worker 0 has: before its time counts, a worker puts what came to its
 * queue into buffers of its own, and reads what it owns in other queues; it also frees itself what
 * it has sent.
 */
#ifndef TESTS_BENCH_FP_WORKERS_H
#define TESTS_BENCH_FP_WORKERS_H

#include "tests/bench/fp_lab.h"

/* Prepares what waits at the ports of site s. */
void fp_workers_receive(struct fp_lab *l, enum fp_site s);
/* One turn of worker k of site s, not of worker 0. Returns its cycles. */
uint64_t fp_worker_turn(struct fp_lab *l, enum fp_site s, unsigned k);
/* Worker k, not 0, has sent m. Returns a copy in a buffer of the caller. */
struct rte_mbuf *fp_workers_sent(unsigned k, struct rte_mbuf *m);
/* How often the kernel has used the processors of the further workers. */
long fp_workers_switches(void);

#endif
