/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The paths that two gateways' tunnel gets in granted tunnels of the network (place.h): by which
 * addresses, DSCP and source port datagrams get into each, and which number it has. Both gateways
 * know a path by its number, so it keeps that for as long as it is granted. Pure.
 */
#ifndef PLAN_STEER_H
#define PLAN_STEER_H

#include "controller/plan/place.h"

#define PLAN_PATHS_MAX 7 /* of a tunnel besides its own: a gateway's bound (conf/conf.h) */

/* A leg that the network granted, and what the tunnel has of it. */
struct plan_granted {
	char edge[PLAN_NAME_MAX], name[PLAN_NAME_MAX];
	uint64_t bps; /* at the network's edge */
	struct plan_steer steer;
};

struct plan_steered {
	char edge[PLAN_NAME_MAX], name[PLAN_NAME_MAX];
	uint64_t bps;                /* at the network's edge; 0: no path has this number now */
	char addr[2][PLAN_NAME_MAX]; /* of the gateways at the first and second site; "": any */
	uint16_t source_port;        /* 0: any */
	uint8_t dscp;                /* 0: any */
};

struct plan_paths {
	unsigned n;
	struct plan_steered path[PLAN_PATHS_MAX]; /* [i]: path i + 1 */
	/* "": all legs have a path. Else none has: the gateways cannot send along a leg, and would
	 * send more along the others than was granted there. */
	char why[256];
};

/* A gateway: its underlay addresses, the one that its tunnels use first; without ports. */
struct plan_underlay {
	const char *name;
	unsigned n;
	const char (*addr)[PLAN_NAME_MAX];
};

/*
 * Finds the paths for n legs. Legs of the same edge and name count as one, with the steering of the
 * last. was: the paths so far. end: the gateways at the first and the second site. `six`: the
 * tunnel's own addresses are IPv6.
 */
void plan_steer_paths(struct plan_paths *out, const struct plan_paths *was, const struct plan_granted *leg,
    unsigned n, const struct plan_underlay end[2], bool six);

#endif
