/* SPDX-License-Identifier: Apache-2.0 */
/*
 * REQs that a relay has passed on lately, by their links, with their hop limits: each relay between
 * two others takes one off. So a REQ that comes back with a lower one goes in a circle of relays,
 * and one that its host has sent again has the same. A table of sets, in which the oldest gives
 * way: it is not a limit on links. Thread: the one that owns the edge.
 */
#ifndef PROXY_HOPS_H
#define PROXY_HOPS_H

#include <stdbool.h>
#include <stdint.h>

#include "rwy/time.h"

#define PROXY_HOPS_SETS 1024
#define PROXY_HOPS_WAYS 4
#define PROXY_HOPS_TTL  (70 * RWY_SEC) /* as of half-open links */
#define PROXY_HOPS_OWN  256            /* of a local host's REQ: above each that comes back */

struct proxy_hops {
	struct {
		uint64_t link;
		rwy_time at;
		unsigned limit; /* 0: free */
	} set[PROXY_HOPS_SETS][PROXY_HOPS_WAYS];
};

enum proxy_hop {
	PROXY_HOP_NEW,   /* it is noted now */
	PROXY_HOP_AGAIN, /* its host has sent it again */
	PROXY_HOP_CIRCLE /* it was here before, with more */
};
/* A REQ of this link passes with this hop limit, 1..256. */
enum proxy_hop proxy_hops_pass(struct proxy_hops *h, uint64_t link, unsigned limit, rwy_time now);
/* Whether a REQ of this link has passed, with a higher hop limit. */
bool proxy_hops_know(const struct proxy_hops *h, uint64_t link, unsigned limit, rwy_time now);

#endif
