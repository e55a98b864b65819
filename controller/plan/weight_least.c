/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weights by what each gateway has left of its bandwidth, processor and custody memory, in eighths
 * of its capacity: a small change of load moves no connections.
 */
#include "controller/plan/weight.h"

#define STEPS 8u

static uint64_t free_ppm(uint32_t used)
{
	return used < 1000000 ? 1000000 - used : 0;
}

/* The free share of the gateway's scarcest resource, 1..STEPS. */
static uint32_t headroom(const struct plan_gateway_load *g)
{
	uint64_t left = free_ppm(g->cpu_ppm), x = free_ppm(g->custody_ppm);
	double share;

	left = x < left ? x : left;
	if (g->bandwidth_bps) {
		share = (double)g->rate_bps / (double)g->bandwidth_bps;
		x = free_ppm(share < 1 ? (uint32_t)(share * 1e6) : 1000000);
		left = x < left ? x : left;
	}
	return 1 + (uint32_t)(left * (STEPS - 1) / 1000000);
}

static void weigh(const struct plan_gateway_load *g, unsigned n, uint32_t *w)
{
	uint32_t most = 0, shift;
	unsigned i;

	plan_weight_bandwidth.weigh(g, n, w);
	for (i = 0; i < n; i++)
		most = w[i] > most ? w[i] : most;
	shift = most > PLAN_WEIGHT_MAX / STEPS ? 3 : 0; /* STEPS is 2^3 */
	for (i = 0; i < n; i++)
		if (w[i])
			w[i] = (w[i] >> shift ? w[i] >> shift : 1) * headroom(&g[i]);
}

const struct plan_weight_ops plan_weight_least = {
    .name = "least",
    .help = "in proportion to a gateway's free bandwidth, processor and memory",
    .weigh = weigh,
};
