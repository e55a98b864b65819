/* SPDX-License-Identifier: Apache-2.0 */
/* Input for the planner from the state. All locked; nothing changes here. */
#ifndef CONTROLLER_STATE_PATH_H
#define CONTROLLER_STATE_PATH_H

#include "controller/state/ctlr.h"

/* The path from end[from] to the other end, from all measurements, promises and reservations. */
void ctlr_path_get(
    struct ctlr *c, const struct ctlr_tunnel *t, unsigned from, struct plan_path *out, rwy_time now);
/* The path between two sites, as the first tunnel that is up knows it; without one: the default. */
void ctlr_path_between(struct ctlr *c, const char *first, const char *second, struct plan_path *out);
/* True if tunnels connect the gateways of these sites: each names the other, or nobody, as a peer.
 */
bool ctlr_sites_want(const struct ctlr_site *a, const struct ctlr_site *b);
/*
 * True if new flows may be sent by this tunnel: relays go to relays and gateways to gateways, where
 * one of the same kind is up at the other site. A host behind a relay is reached by a relay.
 */
bool ctlr_path_serves(const struct ctlr_tunnel *t);
/* The gateway's capabilities in the planner's form. */
void ctlr_path_caps(const struct ctlr_gateway *g, struct plan_caps *out);
/* A tunnel between them can go by RDMA: both have it, with addresses of one family and the same
 * port. */
bool ctlr_path_rdma(const struct ctlr_gateway *a, const struct ctlr_gateway *b);
/* Fills the question for plan_decide() about this tunnel. */
void ctlr_path_question(struct ctlr *c, const struct ctlr_tunnel *t, struct plan_question *q, rwy_time now);
/* The weights of a site's gateways, in the order of its list. Returns how many. */
unsigned ctlr_path_weights(const struct ctlr_site *s, struct ctlr_gateway **g, uint32_t *w, unsigned max);

#endif
