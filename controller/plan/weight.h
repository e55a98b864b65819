/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weights of a site's gateways. An algorithm is one file (weight_NAME.c) with one `const struct
 * plan_weight_ops` and one line in PLAN_WEIGHTS. Pure; integers, so the same everywhere.
 */
#ifndef PLAN_WEIGHT_H
#define PLAN_WEIGHT_H

#include <stdbool.h>
#include <stdint.h>

#define PLAN_WEIGHT_MAX 65535u

/* X(word): plan_weight_WORD in weight_WORD.c. The first is the default. */
#define PLAN_WEIGHTS(X)                                                                                      \
	X(bandwidth)                                                                                         \
	X(equal)                                                                                             \
	X(least)

struct plan_gateway_load {
	bool up;                /* its lease runs */
	uint64_t bandwidth_bps; /* it can do */
	uint64_t rate_bps;      /* it does */
	uint32_t sessions;
	uint32_t cpu_ppm, custody_ppm; /* used; above 10^6 counts as 10^6 */
};

struct plan_weight_ops {
	const char *name, *help;
	/* w[i] 0..PLAN_WEIGHT_MAX; 0: nothing new goes there. A gateway that is down gets 0. If any is up,
	 * one weight at least is not 0. */
	void (*weigh)(const struct plan_gateway_load *g, unsigned n, uint32_t *w);
};

#define X(word) extern const struct plan_weight_ops plan_weight_##word;
PLAN_WEIGHTS(X)
#undef X

/* NULL: no such algorithm. */
const struct plan_weight_ops *plan_weight_find(const char *name);
/* The i-th, NULL behind the last: for lists in help texts and messages. */
const struct plan_weight_ops *plan_weight_at(unsigned i);

#endif
