/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weights: by what each gateway can do. Scaled by a power of two, so that a gateway that comes or goes leaves
 * the others' weights as they are (but for a halving), and rendezvous moves nothing between them.
 */
#include "controller/plan/weight.h"

static void weigh(const struct plan_gateway_load *g, unsigned n, uint32_t *w)
{
	unsigned i, shift = 0;
	uint64_t most = 0;

	for (i = 0; i < n; i++)
		if (g[i].up && g[i].bandwidth_bps > most)
			most = g[i].bandwidth_bps;
	while (most >> shift > PLAN_WEIGHT_MAX)
		shift++;
	for (i = 0; i < n; i++) {
		w[i] = (uint32_t)(g[i].bandwidth_bps >> shift) * g[i].up;
		if (g[i].up && w[i] == 0)
			w[i] = 1; /* it can do little, or did not say: little is better than nothing */
	}
}

const struct plan_weight_ops plan_weight_bandwidth = {
    .name = "bandwidth",
    .help = "in proportion to the bandwidth that a gateway registered",
    .weigh = weigh,
};
