/* SPDX-License-Identifier: Apache-2.0 */
/* Weights: the same for every gateway that is up. */
#include "controller/plan/weight.h"

static void weigh(const struct plan_gateway_load *g, unsigned n, uint32_t *w)
{
	unsigned i;

	for (i = 0; i < n; i++)
		w[i] = g[i].up ? 1 : 0;
}

const struct plan_weight_ops plan_weight_equal = {
    .name = "equal",
    .help = "every gateway the same",
    .weigh = weigh,
};
