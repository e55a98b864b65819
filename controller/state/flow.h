/* SPDX-License-Identifier: Apache-2.0 */
/* Flows and their sessions. A flow is what stays together on one tunnel. All locked. */
#ifndef CONTROLLER_STATE_FLOW_H
#define CONTROLLER_STATE_FLOW_H

#include "controller/state/ctlr.h"

/*
 * Finds or makes the flow between two addresses and chooses its tunnel. qpn: of source and
 * destination; 0: unknown. at: the site that reports it, which stands for an address at no known
 * site. now: the tunnel that the flow uses already and keeps; NULL: unknown. The result is NULL, or
 * has no tunnel, when *reason says why.
 */
struct ctlr_flow *ctlr_flow_decide(struct ctlr *c, uint32_t vni, const char *source, const char *destination,
    const uint32_t qpn[2], struct ctlr_site *at, struct ctlr_tunnel *now, const char **reason);
/* Writes a flow's key. The addresses are in the order of their sites' names; QPNs 0, 0: all between
 * them. */
void ctlr_flow_key(char key[sizeof(((struct ctlr_flow *)0)->key)], uint32_t vni, const char *first,
    const char *second, uint32_t first_qpn, uint32_t second_qpn);
/* A flow on no tunnel; NULL: out of memory. */
struct ctlr_flow *ctlr_flow_new(struct ctlr *c, const char *key);
void ctlr_flow_link(struct ctlr_flow *f, struct ctlr_tunnel *t); /* adds it to the tunnel's list */
void ctlr_flow_unlink(struct ctlr_flow *f);                      /* sets its tunnel to NULL */
/* The flow between two addresses, in any order, with these QPNs (0, 0: all). NULL: no session is
 * open. */
struct ctlr_flow *ctlr_flow_find(
    struct ctlr *c, uint32_t vni, const char *a, const char *b, uint32_t a_qpn, uint32_t b_qpn);
/* Chooses a tunnel if it has none that is up. */
void ctlr_flow_settle(struct ctlr *c, struct ctlr_flow *f);
/* Frees the session, and its flow with the last session. */
void ctlr_session_free(struct ctlr *c, struct ctlr_session *s);
/* Moves flows off its tunnels that are down. */
void ctlr_flow_replan_gateway(struct ctlr *c, struct ctlr_gateway *g);
/* Takes the flows off a tunnel that is about to be freed: they have none then. */
void ctlr_flow_lost_tunnel(struct ctlr *c, struct ctlr_tunnel *t);

#endif
