/* SPDX-License-Identifier: Apache-2.0 */
/* Bandwidth that networks reserved for jobs, by the tunnels between gateways that it is for. Locked. */
#ifndef CONTROLLER_STATE_RESERVED_H
#define CONTROLLER_STATE_RESERVED_H

#include "controller/state/ctlr.h"

#define CTLR_RESERVED_SOURCE UINT32_MAX /* of a plan_obs */

/* One tunnel's, all jobs together: the sum of the bandwidth, the worst of the rest. */
struct ctlr_reserved_sum {
	uint64_t bps; /* at the network's edge; 0: nothing */
	uint32_t delay_us, jitter_us, loss_ppm;
	uint64_t at_ms; /* of the wall's clock: when the last of it was granted */
};

/* Adds the reservations of the job's record to the index, or removes them. */
void ctlr_reserved_set_job(struct ctlr *c, const struct ctlr_job *j, bool add);
void ctlr_reserved_get(const struct ctlr *c, const char *tunnel, struct ctlr_reserved_sum *out);
/* As the planner sees it. false: nothing is reserved. */
bool ctlr_reserved_obs(const struct ctlr *c, const char *tunnel, struct plan_obs *out, rwy_time now);
/* For people: one object for each tunnel in a network. */
void ctlr_reserved_list(struct ctlr *c, json_t *list);
void ctlr_reserved_free(struct ctlr *c);

#endif
