/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places a demand between two sites in the network: one path at every edge (PE) if those suffice;
 * else several paths at every edge, shared by their bandwidth; else it fails and says what would
 * fit. Pure: the caller passes what the network offers and makes the tunnels
 * (controller/provider/).
 */
#ifndef PLAN_PLACE_H
#define PLAN_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "rwy/err.h"

#define PLAN_NAME_MAX   64  /* bytes with the 0: sites, gateways, edges, paths, jobs */
#define PLAN_ROUTES_MAX 256 /* routes that a placement considers */

/* How a gateway's datagrams get into a path: what the edge classifies by. */
struct plan_steer {
	/* underlay address or prefix, ADDRESS[/LENGTH], of the gateway at the first and at the
	 * second site; "": any */
	char net[2][PLAN_NAME_MAX];
	uint16_t source_port; /* UDP; 0: any */
	uint8_t dscp;         /* 0: any */
};
/* True if it says something. */
static inline bool plan_steers(const struct plan_steer *s)
{
	return *s->net[0] || *s->net[1] || s->source_port || s->dscp;
}

/* A path through the network between two sites, at one edge. */
struct plan_route {
	char edge[PLAN_NAME_MAX]; /* paths at one edge have the same word */
	char name[PLAN_NAME_MAX]; /* the network's name of the path */
	uint64_t free_bps;
	uint32_t delay_us; /* one way */
	uint32_t jitter_us, loss_ppm;
	struct plan_steer steer; /* all empty: a gateway cannot choose it */
};

/* The demand. A bound of 0: any. bandwidth_bps is the rate at the edge, n/(a*b). */
struct plan_want {
	uint64_t bandwidth_bps;
	uint32_t delay_us, jitter_us, loss_ppm;
};

#define PLAN_SHAPES(X)                                                                                       \
	X(PLAN_SAME_PATH, "same-path", "one path at each edge")                                              \
	X(PLAN_MULTI_PATH, "multi-path", "several paths at an edge, shared by their bandwidth")

enum plan_shape {
#define X(e, w, s) e,
	PLAN_SHAPES(X)
#undef X
	    PLAN_SHAPE_COUNT
};
/* The shape's word; static text. */
const char *plan_shape_name(enum plan_shape s);
/* The sentence for a shape's word; "" for an unknown word. */
const char *plan_shape_text(const char *name);

#define PLAN_PLACE_FAILS(X)                                                                                  \
	X(PLAN_PLACED, "placed", "the demand fits")                                                          \
	X(PLAN_NO_ROUTE, "no-path", "the network offers no path between these sites")                        \
	X(PLAN_NO_DELAY, "delay", "no path is short enough")                                                 \
	X(PLAN_NO_JITTER, "jitter", "no path that is short enough is steady enough")                         \
	X(PLAN_NO_LOSS, "loss", "no path within delay and jitter loses little enough")                       \
	X(PLAN_NO_BANDWIDTH, "bandwidth", "the paths within these bounds together lack the bandwidth")

enum plan_place_fail {
#define X(e, w, s) e,
	PLAN_PLACE_FAILS(X)
#undef X
	    PLAN_PLACE_FAIL_COUNT
};
/* The failure as a sentence; static text. */
const char *plan_place_fail_text(enum plan_place_fail f);

/* A share of the demand on one path. The paths of one edge make one tunnel, and stand together. */
struct plan_leg_share {
	uint16_t route; /* index into the routes */
	uint64_t bps;
};

struct plan_placement {
	enum plan_place_fail fail; /* PLAN_PLACED: the fields up to `fits` are valid */
	enum plan_shape shape;
	unsigned n;
	/* the shares add up to the demand exactly; none is 0 */
	struct plan_leg_share leg[PLAN_ROUTES_MAX];
	/* The demand that would fit, whether placed or not: the most bandwidth within the wanted
	 * bounds, the shortest delay of all paths, the least jitter within that delay bound, and
	 * the least loss within both. 0: there is none. */
	uint64_t fits_bps;
	uint32_t fits_delay_us, fits_jitter_us, fits_loss_ppm;
};

/* Places `want` on the n routes. Returns 0 with the outcome in out->fail. RWY_EINVAL: more than
 * PLAN_ROUTES_MAX routes, or a demand of 0. */
RWY_MUST_CHECK int plan_place(
    struct plan_placement *out, const struct plan_want *want, const struct plan_route *routes, unsigned n);

#endif
