/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weights of a site's gateways. An algorithm is one file (weight_NAME.c) with one `const struct
 * plan_weight_ops`, and one line in PLAN_WEIGHTS. Pure; integers only, so the same on every
 * machine.
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
	bool up;                /* its lease is valid */
	uint64_t bandwidth_bps; /* capacity */
	uint64_t rate_bps;      /* current rate */
	uint32_t sessions;
	uint32_t cpu_ppm, custody_ppm; /* used; above 10^6 counts as 10^6 */
};

struct plan_weight_ops {
	const char *name, *help;
	/* Fills w[i] with 0..PLAN_WEIGHT_MAX; 0: the gateway gets nothing new. A gateway that is
	 * down gets 0. If one is up, at least one weight is not 0. */
	void (*weigh)(const struct plan_gateway_load *g, unsigned n, uint32_t *w);
};

#define X(word) extern const struct plan_weight_ops plan_weight_##word;
PLAN_WEIGHTS(X)
#undef X

/* NULL: there is no such algorithm. */
const struct plan_weight_ops *plan_weight_find(const char *name);
/* The i-th algorithm, NULL after the last: for help texts and messages. */
const struct plan_weight_ops *plan_weight_at(unsigned i);

#endif
