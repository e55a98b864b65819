/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/fp_reference.h"

#include <isa-l/crc.h>
#include <rte_cycles.h>
#include <stdalign.h>

#define LINES 2048 /* of 64 bytes: between the sizes of the two cache levels */
#define STEPS 1024
#define CRCS  32

struct line {
	const struct line *next;
	uint8_t pad[56];
};

static alignas(64) struct line chain[LINES];
static alignas(64) uint8_t text[1024];
static volatile uint32_t crc; /* keeps the compiler from removing the work */
static const struct line *at;

/* One circle through all lines. Multiplier and increment give a permutation of 0 .. LINES - 1 (Hull
 * and Dobell). Neighbours in the circle are far apart, so prefetchers do not help. */
void fp_reference_init(void)
{
	unsigned i = 0;

	for (unsigned n = 0; n < LINES; n++) {
		const unsigned next = (i * 1021 + 911) % LINES;

		chain[i].next = &chain[next];
		i = next;
	}
	at = chain;
	for (unsigned n = 0; n < sizeof(text); n++)
		text[n] = (uint8_t)(n * 7);
}

static void work(unsigned steps)
{
	const struct line *l = at;
	uint32_t sum = crc;

	for (unsigned n = 0; n < steps; n++)
		l = l->next;
	for (unsigned n = 0; n < CRCS; n++)
		sum = crc32_gzip_refl(sum, text, sizeof(text));
	crc = sum;
	at = l;
}

uint64_t fp_reference_round(void)
{
	uint64_t t;

	work(LINES);
	t = rte_rdtsc_precise();
	work(STEPS);
	return rte_rdtsc_precise() - t;
}

void fp_reference_spend(uint64_t steps)
{
	uint64_t x = crc;

	for (uint64_t n = 0; n < steps; n++)
		x = x * 6364136223846793005u + 1442695040888963407u;
	crc = (uint32_t)x;
}

uint64_t fp_reference_steps(double cycles)
{
	enum { CHAIN = 1000, TRIES = 1000 };
	uint64_t best = UINT64_MAX;

	for (unsigned n = 0; n < TRIES; n++) {
		uint64_t t = rte_rdtsc_precise();

		fp_reference_spend(CHAIN);
		t = rte_rdtsc_precise() - t;
		if (t < best)
			best = t;
	}
	return (uint64_t)(cycles * CHAIN / (double)best);
}
