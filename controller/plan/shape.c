/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes and a time as a rate: see shape.h. */
#include "controller/plan/shape.h"

#include "controller/plan/ranks.h"

#define US_PER_S    1000000u
#define US_PER_YEAR UINT64_C(31536000000000)

static uint64_t usable(uint64_t us)
{
	const uint64_t left = us - us / PLAN_SHAPE_SPARE;

	return left ? left : 1;
}

int plan_shape_bps(uint64_t *bps, uint64_t bytes, uint64_t us, uint64_t max_bps)
{
	unsigned __int128 rate;

	*bps = 0;
	if (!bytes || !us)
		return RWY_EINVAL;
	rate = ((unsigned __int128)bytes * 8 * US_PER_S + usable(us) - 1) / usable(us);
	*bps = rate > max_bps ? max_bps : (uint64_t)rate;
	return rate > max_bps ? PLAN_ERANGE : 0;
}

uint64_t plan_shape_us(uint64_t bytes, uint64_t bps)
{
	unsigned __int128 us;

	if (!bps)
		return 0;
	us = ((unsigned __int128)bytes * 8 * US_PER_S + bps - 1) / bps;
	us = us * PLAN_SHAPE_SPARE / (PLAN_SHAPE_SPARE - 1);
	if (us > US_PER_YEAR)
		return 0;
	/* The divisions round: the right time is one of those around this one. */
	us = us > 2 ? us - 2 : 1;
	while ((unsigned __int128)usable((uint64_t)us) * bps < (unsigned __int128)bytes * 8 * US_PER_S)
		us++;
	return (uint64_t)us;
}
