/* SPDX-License-Identifier: Apache-2.0 */
/* The tables that join the rooms of the controller. */
#ifndef CONTROLLER_TABLES_H
#define CONTROLLER_TABLES_H

#include "controller/server/endpoint.h"
#include "controller/state/ctlr.h"

extern const struct ctlr_endpoint ctlr_endpoints[]; /* ends with a method of NULL */
extern const struct ctlr_ops ctlr_ops;

/* Frees all that the controller knows; its threads have ended. */
void ctlr_free(struct ctlr *c);

#endif
