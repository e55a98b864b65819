/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of all threads of the gateway: the CPU's time stamp counter in nanoseconds. */
#include <rte_cycles.h>

#include "gateway/setup.h"

/* Converts TSC to ns by a 32.32 fixed-point factor: no system call, no division. */
static uint64_t clock_mult;
static uint64_t clock_base;

void gw_clock_init(void)
{
	clock_mult = (uint64_t)(((unsigned __int128)1000000000u << 32) / rte_get_tsc_hz());
	clock_base = rte_rdtsc();
}

rwy_time gw_now(void)
{
	/* One second is added: zero means "never happened". */
	return (rwy_time)(((unsigned __int128)(rte_rdtsc() - clock_base) * clock_mult) >> 32) + RWY_SEC;
}
