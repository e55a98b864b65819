/* SPDX-License-Identifier: Apache-2.0 */
/* The tables that connect the rooms of the controller. */
#ifndef CONTROLLER_TABLES_H
#define CONTROLLER_TABLES_H

#include "controller/server/endpoint.h"
#include "controller/state/ctlr.h"

extern const struct ctlr_endpoint ctlr_endpoints[]; /* ends with a NULL method */
extern const struct ctlr_ops ctlr_ops;

/* Frees all that the controller knows, after its threads have ended. */
void ctlr_free(struct ctlr *c);

#endif
