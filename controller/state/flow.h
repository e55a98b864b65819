/* SPDX-License-Identifier: Apache-2.0 */
/* Flows and the sessions that they have: which tunnel each takes. Locked. */
#ifndef CONTROLLER_STATE_FLOW_H
#define CONTROLLER_STATE_FLOW_H

#include "controller/state/ctlr.h"

/* now: the tunnel that it is on already, which it keeps; NULL: not known. QPNs of source and destination; 0:
 * not known. */
struct flow *flow_decide(struct ctlr *c, uint32_t vni, const char *source, const char *destination,
    const uint32_t qpn[2], struct site *at, struct tunnel *now, const char **reason);
/* Its key, for addresses in the order of their sites' names and their QPNs (0, 0: of all). */
void flow_key(char key[sizeof(((struct flow *)0)->key)], uint32_t vni, const char *first, const char *second,
    uint32_t first_qpn, uint32_t second_qpn);
struct flow *flow_new(struct ctlr *c, const char *key); /* NULL: out of memory */
void flow_link(struct flow *f, struct tunnel *t);       /* into the tunnel's list */
void flow_unlink(struct flow *f);                       /* NULL tunnel afterwards */
/* Between two addresses, in any order, and these QPNs (0, 0: all of them); NULL: no session is open. */
struct flow *flow_find(
    struct ctlr *c, uint32_t vni, const char *a, const char *b, uint32_t a_qpn, uint32_t b_qpn);
void flow_settle(struct ctlr *c, struct flow *f); /* one without a tunnel that is up gets one */
void session_free(struct ctlr *c, struct session *s);
void flows_replan(struct ctlr *c, struct gateway *g); /* those whose tunnel is down */
void flow_lost_tunnel(struct ctlr *c, struct tunnel *t);

#endif
