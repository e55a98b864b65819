/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work queues of the next tick: gateways whose documents may have changed or which may have other tunnels
 * now, tunnels that are decided again, sites whose routes changed. A tick costs what there is to do, however
 * many gateways there are. Locked.
 */
#ifndef CONTROLLER_STATE_WORK_H
#define CONTROLLER_STATE_WORK_H

#include "controller/state/ctlr.h"

void gateway_soon(struct ctlr *c, struct gateway *g, enum soon what);
void gateway_not_soon(struct ctlr *c, struct gateway *g, enum soon what);
struct gateway *gateway_next_soon(struct ctlr *c, enum soon what); /* off the queue; NULL: none is left */
void gateway_dirty(struct ctlr *c, struct gateway *g);             /* SOON_DOCUMENT, it and its siblings */
void site_dirty(struct ctlr *c, struct site *s); /* its gateways, and those with tunnels to them */
void tunnel_plan(struct ctlr *c, struct tunnel *t);
void tunnel_unplan(struct ctlr *c, struct tunnel *t);
/* The routes of a site have a new generation; NULL: of all sites. */
void routes_changed(struct ctlr *c, struct site *s);

#endif
