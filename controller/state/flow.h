/* SPDX-License-Identifier: Apache-2.0 */
/* Flows and the sessions that they have: which tunnel each takes. Locked. */
#ifndef CONTROLLER_STATE_FLOW_H
#define CONTROLLER_STATE_FLOW_H

#include "controller/state/ctlr.h"

/* now: the tunnel that it is on already, which it keeps; NULL: not known. QPNs of source and destination; 0:
 * not known. */
struct ctlr_flow *ctlr_flow_decide(struct ctlr *c, uint32_t vni, const char *source, const char *destination,
    const uint32_t qpn[2], struct ctlr_site *at, struct ctlr_tunnel *now, const char **reason);
/* Its key, for addresses in the order of their sites' names and their QPNs (0, 0: of all). */
void ctlr_flow_key(char key[sizeof(((struct ctlr_flow *)0)->key)], uint32_t vni, const char *first,
    const char *second, uint32_t first_qpn, uint32_t second_qpn);
struct ctlr_flow *ctlr_flow_new(struct ctlr *c, const char *key); /* NULL: out of memory */
void ctlr_flow_link(struct ctlr_flow *f, struct ctlr_tunnel *t);  /* into the tunnel's list */
void ctlr_flow_unlink(struct ctlr_flow *f);                       /* NULL tunnel afterwards */
/* Between two addresses, in any order, and these QPNs (0, 0: all of them); NULL: no session is open. */
struct ctlr_flow *ctlr_flow_find(
    struct ctlr *c, uint32_t vni, const char *a, const char *b, uint32_t a_qpn, uint32_t b_qpn);
void ctlr_flow_settle(struct ctlr *c, struct ctlr_flow *f); /* one without a tunnel that is up gets one */
void ctlr_session_free(struct ctlr *c, struct ctlr_session *s);
void ctlr_flow_replan_gateway(struct ctlr *c, struct ctlr_gateway *g); /* those whose tunnel is down */
void ctlr_flow_lost_tunnel(struct ctlr *c, struct ctlr_tunnel *t);

#endif
