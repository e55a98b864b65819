/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of all threads of the gateway: the CPU's time stamp counter in nanoseconds. */
#include <rte_cycles.h>
#include <time.h>

#include "gateway/setup.h"

#define MEASURE (50 * RWY_MS) /* of the frequency: a reading's error is below 1 ppm of it */
#define TRIES   16            /* for a reading that no interrupt delayed */

/* Converts TSC to ns by a 32.32 fixed-point factor: no system call, no division. */
static uint64_t clock_mult;
static uint64_t clock_base;

struct reading {
	uint64_t tsc, ns;
};

/* The counter at a time of the kernel's clock that NTP does not bend: of several readings the one
 * that took the least time. */
static struct reading read_both(void)
{
	uint64_t least = UINT64_MAX;
	struct reading best = {0};

	for (unsigned i = 0; i < TRIES; i++) {
		struct timespec ts;
		const uint64_t before = rte_rdtsc_precise();

		clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
		const uint64_t took = rte_rdtsc_precise() - before;

		if (took < least) {
			least = took;
			best.tsc = before + took / 2;
			best.ns = (uint64_t)ts.tv_sec * RWY_SEC + (uint64_t)ts.tv_nsec;
		}
	}
	return best;
}

/* DPDK rounds the frequency to 10 MHz, which is minutes a day: it is measured here. */
void gw_clock_init(void)
{
	const struct reading a = read_both();
	struct reading b;

	do {
		nanosleep(&(struct timespec){.tv_nsec = MEASURE}, NULL);
		b = read_both();
	} while (b.ns - a.ns < MEASURE);
	clock_mult = (uint64_t)(((unsigned __int128)(b.ns - a.ns) << 32) / (b.tsc - a.tsc));
	clock_base = b.tsc;
}

rwy_time gw_now(void)
{
	/* One second is added: zero means "never happened". */
	return (rwy_time)(((unsigned __int128)(rte_rdtsc() - clock_base) * clock_mult) >> 32) + RWY_SEC;
}
