/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/fp_cpu.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "gateway/carrier/internal.h"

#define READINGS 1000

static uint64_t ns_of(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t carrier_ns(const struct fp_lab *l, unsigned s)
{
	clockid_t id;

	if (pthread_getcpuclockid(l->gw[s].app.carriers->thread, &id) != 0)
		fp_die("no clock of a carrier's thread");
	return ns_of(id);
}

void fp_cpu_begin(struct fp_cpu *c, const struct fp_lab *l)
{
	uint64_t from = ns_of(CLOCK_THREAD_CPUTIME_ID);

	memset(c, 0, sizeof(*c));
	for (unsigned i = 0; i < READINGS; i++)
		(void)ns_of(CLOCK_THREAD_CPUTIME_ID);
	c->clock = (ns_of(CLOCK_THREAD_CPUTIME_ID) - from) / READINGS;
	for (unsigned s = 0; s < FP_SITES; s++)
		c->began[s] = carrier_ns(l, s);
}

unsigned fp_cpu_turn(struct fp_cpu *c, struct fp_lab *l, enum fp_site s)
{
	uint64_t from = ns_of(CLOCK_THREAD_CPUTIME_ID), took;
	unsigned work = gw_worker_turn(l->gw[s].w);

	took = ns_of(CLOCK_THREAD_CPUTIME_ID) - from;
	if (work) {
		c->worker[s] += took > c->clock ? took - c->clock : 0;
		c->turns[s]++;
	}
	return work;
}

void fp_cpu_end(struct fp_cpu *c, const struct fp_lab *l)
{
	for (unsigned s = 0; s < FP_SITES; s++)
		c->carrier[s] = carrier_ns(l, s) - c->began[s];
}
