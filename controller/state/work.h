/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work queues of the next tick: gateways whose documents may have changed or which may have other tunnels
 * now, tunnels that are decided again, sites whose routes changed. A tick costs what there is to do, however
 * many gateways there are. Locked.
 */
#ifndef CONTROLLER_STATE_WORK_H
#define CONTROLLER_STATE_WORK_H

#include "controller/state/ctlr.h"

/* Queues the gateway, unless it is queued. */
void ctlr_work_add(struct ctlr *c, struct ctlr_gateway *g, enum ctlr_work what);
/* Nothing when it is not queued. */
void ctlr_work_remove(struct ctlr *c, struct ctlr_gateway *g, enum ctlr_work what);
/* Takes one off the queue; NULL: none is left. */
struct ctlr_gateway *ctlr_work_next(struct ctlr *c, enum ctlr_work what);
/* Queues the documents of the gateway and of its siblings. */
void ctlr_work_add_documents(struct ctlr *c, struct ctlr_gateway *g);
/* Queues the site's gateways, their tunnels, and the documents of their peers; all routes change. */
void ctlr_work_add_site(struct ctlr *c, struct ctlr_site *s);
/* The tunnel is decided again. */
void ctlr_work_add_tunnel(struct ctlr *c, struct ctlr_tunnel *t);
void ctlr_work_remove_tunnel(struct ctlr *c, struct ctlr_tunnel *t);
/* The routes of a site have a new generation; NULL: of all sites. */
void ctlr_work_routes_changed(struct ctlr *c, struct ctlr_site *s);

#endif
