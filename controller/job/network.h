/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls to networks' controllers (controller/provider/). Each controller has a thread and queues of
 * its own: a slow one delays nobody else, and no call happens under the lock. A NETWORK_ASK has its
 * turn while no other call waits, or after some of them. query.c, reservation.c and ask.c decide
 * what to ask.
 */
#ifndef CONTROLLER_JOB_NETWORK_H
#define CONTROLLER_JOB_NETWORK_H

#include "controller/state/ctlr.h"
#include "controller/provider/provider.h"

#define NETWORK_STOPS (-220) /* the controller stops; nothing was asked */
#define NETWORK_BUSY  (-221) /* the queue is full, or the wait was too long; nothing was asked */

enum ctlr_network_what { NETWORK_QUERY, NETWORK_MAKE, NETWORK_DROP, NETWORK_ASK };

struct ctlr_network_call;
/* Called once, locked. The call is freed afterwards. */
typedef void ctlr_network_cb(struct ctlr *c, struct ctlr_network_call *call);

struct ctlr_network_call {
	struct ctlr_network_call *next;
	unsigned net; /* index of the network in the configuration */
	enum ctlr_network_what what;
	bool patient; /* never NETWORK_BUSY, however long the queue */
	char name[PROVIDER_TUNNEL_MAX], first[MDL_NAME], second[MDL_NAME];
	/* QUERY: the answer; MAKE: the routes of the legs; ASK: the legs that are there. Room for
	 * PLAN_ROUTES_MAX */
	struct plan_route *route;
	struct plan_placement placement; /* MAKE: the legs */
	int n;                           /* QUERY: number of routes; ASK: as provider_ops.has */
	int rc;                          /* 0, PROVIDER_E or NETWORK_ */
	struct provider_err err;
	ctlr_network_cb *done;
	void *ctx;
	rwy_time since;
};

/* Opens the configured networks and starts their threads. RWY_EINVAL: the log says why.
 * RWY_ENOMEM. */
RWY_MUST_CHECK int ctlr_networks_open(struct ctlr *c);
/* Ends queued calls with NETWORK_STOPS and waits for running ones. The caller does not hold the
 * lock. */
void ctlr_networks_stop(struct ctlr *c);
/* Frees the networks, after ctlr_networks_stop(); tunnels stay where the network keeps them. */
void ctlr_networks_close(struct ctlr *c);

/* Makes a call; for QUERY and MAKE with room for routes. NULL: out of memory. */
struct ctlr_network_call *ctlr_network_call_new(
    enum ctlr_network_what what, unsigned net, const char *name, const char *first, const char *second);
void ctlr_network_call_free(struct ctlr_network_call *call);
/* Queues the call and takes it over. `done` runs later, locked, never during this function. false:
 * the controller stops, and the call stays the caller's. */
RWY_MUST_CHECK bool ctlr_network_submit(struct ctlr *c, struct ctlr_network_call *call);

/* True if the network is responsible for this pair of sites. */
bool ctlr_network_serves(const struct ctlr *c, unsigned net, const char *first, const char *second);
/* True if paths at this edge may be used. */
bool ctlr_network_edge(const struct ctlr *c, unsigned net, const char *edge);
/* True if the network names its sites: then between them there are no paths but its own. */
bool ctlr_network_sure(const struct ctlr *c, unsigned net);
/* The index of a network's name; -1: there is none. */
int ctlr_network_find(const struct ctlr *c, const char *name);
/* True if the network's tunnels end with this process, so that each replica makes them. */
bool ctlr_network_forgets(const struct ctlr *c, unsigned net);
/* True if the network can be asked for a tunnel (NETWORK_ASK). */
bool ctlr_network_tells(const struct ctlr *c, unsigned net);
/* True if a NETWORK_ASK waits for its turn. */
bool ctlr_network_asks(const struct ctlr *c, unsigned net);
/* The call's outcome as text: "network NAME: TEXT". */
void ctlr_network_text(const struct ctlr *c, const struct ctlr_network_call *call, char *out, size_t len);

#endif
