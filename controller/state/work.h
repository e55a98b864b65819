/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work queues of the next tick: gateways whose documents may have changed or that may need other
 * tunnels, tunnels to decide again, sites whose routes changed. The cost of a tick depends on the
 * work, not on the number of gateways. All locked.
 */
#ifndef CONTROLLER_STATE_WORK_H
#define CONTROLLER_STATE_WORK_H

#include "controller/state/ctlr.h"

/* Queues the gateway, unless it is queued. */
void ctlr_work_add(struct ctlr *c, struct ctlr_gateway *g, enum ctlr_work what);
/* No effect if it is not queued. */
void ctlr_work_remove(struct ctlr *c, struct ctlr_gateway *g, enum ctlr_work what);
/* Removes the first one from the queue and returns it; NULL: the queue is empty. */
struct ctlr_gateway *ctlr_work_next(struct ctlr *c, enum ctlr_work what);
/* Queues the documents of the gateway and of its siblings. */
void ctlr_work_add_documents(struct ctlr *c, struct ctlr_gateway *g);
/* Queues the site's gateways, their tunnels and their peers' documents. All routes change. */
void ctlr_work_add_site(struct ctlr *c, struct ctlr_site *s);
/* Queues the tunnel for a new decision. */
void ctlr_work_add_tunnel(struct ctlr *c, struct ctlr_tunnel *t);
/* No effect if it is not queued. */
void ctlr_work_remove_tunnel(struct ctlr *c, struct ctlr_tunnel *t);
/* Gives the routes of a site a new generation; NULL: those of all sites. */
void ctlr_work_routes_changed(struct ctlr *c, struct ctlr_site *s);

#endif
