/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weights by the capacity of each gateway. They are scaled by a power of two: when a gateway comes
 * or goes the others keep their weights, except that all may be halved, and rendezvous moves
 * nothing between them.
 */
#include "controller/plan/weight.h"

static uint64_t divisor(uint64_t a, uint64_t b)
{
	uint64_t r;

	while (b) {
		r = a % b;
		a = b;
		b = r;
	}
	return a;
}

static void weigh(const struct plan_gateway_load *g, unsigned n, uint32_t *w)
{
	unsigned i, shift = 0;
	uint64_t most = 0, unit = 0;

	for (i = 0; i < n; i++) {
		if (g[i].up && g[i].bandwidth_bps > most)
			most = g[i].bandwidth_bps;
		if (g[i].up)
			unit = divisor(unit, g[i].bandwidth_bps);
	}
	if (unit == 0)
		unit = 1;
	while (most / unit >> shift > PLAN_WEIGHT_MAX)
		shift++;
	for (i = 0; i < n; i++) {
		w[i] = (uint32_t)(g[i].bandwidth_bps / unit >> shift) * g[i].up;
		if (g[i].up && w[i] == 0)
			w[i] = 1; /* its capacity is small or unknown: it still gets a little */
	}
}

const struct plan_weight_ops plan_weight_bandwidth = {
    .name = "bandwidth",
    .help = "in proportion to the bandwidth that a gateway registered",
    .weigh = weigh,
};
