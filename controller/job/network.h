/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way from the server to networks' controllers (provider/): each has a thread of its own and a queue, so
 * that one that is slow or down holds up nobody else, and no call is made under the lock. Not here: what is
 * asked for and why (query.c, reservation.c).
 */
#ifndef CONTROLLER_JOB_NETWORK_H
#define CONTROLLER_JOB_NETWORK_H

#include "controller/state/ctlr.h"
#include "controller/provider/provider.h"

#define NETWORK_STOPS (-220) /* the controller stops: nothing was asked */
#define NETWORK_BUSY  (-221) /* too much is waiting for it, or for too long: nothing was asked */

enum ctlr_network_what { NETWORK_QUERY, NETWORK_MAKE, NETWORK_DROP };

struct ctlr_network_call;
/* Called once, locked. The call is freed afterwards. */
typedef void ctlr_network_cb(struct ctlr *c, struct ctlr_network_call *call);

struct ctlr_network_call {
	struct ctlr_network_call *next;
	unsigned net; /* which: its place in the configuration */
	enum ctlr_network_what what;
	bool patient; /* however long others take */
	char name[PROVIDER_TUNNEL_MAX], first[MDL_NAME], second[MDL_NAME];
	struct plan_route *route;        /* ASK: the answer. MAKE: the legs'. PLAN_ROUTES_MAX of them */
	struct plan_placement placement; /* MAKE: its legs */
	int n;                           /* of ASK: how many */
	int rc;                          /* 0, PROVIDER_E, NETWORK_ */
	struct provider_err err;
	ctlr_network_cb *done;
	void *ctx;
	rwy_time since;
};

/* Opens the configured ones and starts their threads. RWY_EINVAL, told in the log. */
RWY_MUST_CHECK int ctlr_networks_open(struct ctlr *c);
/* Calls that wait end with NETWORK_STOPS, those under way are waited for. Not locked. */
void ctlr_networks_stop(struct ctlr *c);
void ctlr_networks_close(struct ctlr *c);

/* With room for routes if it is to ask or make. NULL: out of memory. */
struct ctlr_network_call *ctlr_network_call_new(
    enum ctlr_network_what what, unsigned net, const char *name, const char *first, const char *second);
void ctlr_network_call_free(struct ctlr_network_call *call);
/* Takes it; `done` comes later, locked, never from in here. false: the controller stops, it is still the
 * caller's. */
RWY_MUST_CHECK bool ctlr_network_submit(struct ctlr *c, struct ctlr_network_call *call);

/* Is asked about these two sites. */
bool ctlr_network_serves(const struct ctlr *c, unsigned net, const char *first, const char *second);
/* Paths at this edge are taken. */
bool ctlr_network_edge(const struct ctlr *c, unsigned net, const char *edge);
/* The network names its sites: between them there is no path but those it knows. */
bool ctlr_network_sure(const struct ctlr *c, unsigned net);
/* -1: none has that name. */
int ctlr_network_find(const struct ctlr *c, const char *name);
/* The network's tunnels end with this process, so each replica makes them for itself. */
bool ctlr_network_forgets(const struct ctlr *c, unsigned net);
/* For people: "network NAME: TEXT". */
void ctlr_network_text(const struct ctlr *c, const struct ctlr_network_call *call, char *out, size_t len);

#endif
