/* SPDX-License-Identifier: Apache-2.0 */
/* Counters, sizes and times as Prometheus reads them. */
#ifndef CONTROLLER_SERVER_METRICS_H
#define CONTROLLER_SERVER_METRICS_H

#include "controller/state/ctlr.h"

char *ctlr_metrics_text(struct ctlr *c); /* locked; to free; NULL: out of memory */
/* How long a report's decisions took, for the histogram. */
void ctlr_metrics_decision(struct ctlr *c, rwy_dur took);

#endif
