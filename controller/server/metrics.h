/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics as Prometheus text. */
#ifndef CONTROLLER_SERVER_METRICS_H
#define CONTROLLER_SERVER_METRICS_H

#include "controller/state/ctlr.h"

char *ctlr_metrics_text(struct ctlr *c); /* locked; the caller frees it; NULL: out of memory */
/* Adds the duration of a report's decisions to the histogram. */
void ctlr_metrics_decision(struct ctlr *c, rwy_dur took);

#endif
