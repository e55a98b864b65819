/* SPDX-License-Identifier: Apache-2.0 */
/* Planner input from the state. Locked; nothing changes here. */
#ifndef CONTROLLER_STATE_PATH_H
#define CONTROLLER_STATE_PATH_H

#include "controller/state/ctlr.h"

/* What is known between the ends, first end[from]. */
void tunnel_path(struct ctlr *c, const struct tunnel *t, unsigned from, struct plan_path *out, rwy_time now);
void tunnel_caps(const struct gateway *g, struct plan_caps *out);
void tunnel_question(struct ctlr *c, const struct tunnel *t, struct plan_question *q, rwy_time now);
/* The weights of a site's gateways, in its list's order; returns how many. */
unsigned site_weights(const struct site *s, struct gateway **g, uint32_t *w, unsigned max);

#endif
