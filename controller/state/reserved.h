/* SPDX-License-Identifier: Apache-2.0 */
/* Index of the bandwidth that networks reserved for jobs, by the tunnel that it is for. All
 * locked. */
#ifndef CONTROLLER_STATE_RESERVED_H
#define CONTROLLER_STATE_RESERVED_H

#include "controller/state/ctlr.h"

#define CTLR_RESERVED_SOURCE UINT32_MAX /* source number of its plan_obs */

/* The reservations of one tunnel, all jobs together: sum of the bandwidths, worst of the other
 * values. */
struct ctlr_reserved_sum {
	uint64_t bps; /* at the network's edge; 0: none */
	uint32_t delay_us, jitter_us, loss_ppm;
	uint64_t at_ms; /* wall clock: time of the last grant */
};

/* Adds the reservations of the job's record to the index (add), or removes them. */
void ctlr_reserved_set_job(struct ctlr *c, const struct ctlr_job *j, bool add);
/* The reservations of a tunnel, "GATEWAY/GATEWAY"; all 0: there are none. */
void ctlr_reserved_get(const struct ctlr *c, const char *tunnel, struct ctlr_reserved_sum *out);
typedef void ctlr_reserved_cb(void *ctx, const json_t *entry, uint64_t bps);
/* Calls fn for each entry of "network" in a job's record of which the tunnel has a part, bps. */
void ctlr_reserved_each(const struct ctlr *c, const char *tunnel, ctlr_reserved_cb *fn, void *ctx);
/* The reservations in the planner's form. false: there are none. */
bool ctlr_reserved_obs(const struct ctlr *c, const char *tunnel, struct plan_obs *out, rwy_time now);
/* Appends one object for each tunnel in a network to `list`, for the API. */
void ctlr_reserved_list(struct ctlr *c, json_t *list);
void ctlr_reserved_free(struct ctlr *c);

#endif
