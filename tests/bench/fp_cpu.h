/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU time of two gateways of fp_lab.h: that of their workers' turns and of their carriers' threads,
 * the kernel's part in it included (CLOCK_THREAD_CPUTIME_ID). Other programs on the machine are not
 * in it. Not counted: hosts, wire, and turns without work, which a worker does only because it polls.
 */
#ifndef TESTS_BENCH_FP_CPU_H
#define TESTS_BENCH_FP_CPU_H

#include "tests/bench/fp_lab.h"

struct fp_cpu {
	uint64_t worker[FP_SITES];  /* ns */
	uint64_t carrier[FP_SITES]; /* ns */
	uint64_t turns[FP_SITES];   /* with work */
	uint64_t began[FP_SITES];   /* of the carrier's thread */
	uint64_t clock;             /* ns that reading the clock adds to a turn */
};

/* Sets everything to 0, for gateways whose carriers run. */
void fp_cpu_begin(struct fp_cpu *c, const struct fp_lab *l);
/* A turn of the site's first worker; returns its amount of work. */
unsigned fp_cpu_turn(struct fp_cpu *c, struct fp_lab *l, enum fp_site s);
/* Fills `carrier`. */
void fp_cpu_end(struct fp_cpu *c, const struct fp_lab *l);

#endif
