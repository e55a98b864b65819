/* SPDX-License-Identifier: Apache-2.0 */
/* Index of the carriers that jobs want, by the gateways that their plans name. A tunnel keeps to
 * the carrier of its jobs; a job with another one is placed elsewhere. All locked. */
#ifndef CONTROLLER_STATE_PINNED_H
#define CONTROLLER_STATE_PINNED_H

#include "controller/state/ctlr.h"

/* The carrier that a job as posted wants: the one that it names, native with a `dscp`, else
 * PLAN_ANY. */
enum plan_carrier ctlr_pinned_wanted(const json_t *job);
/* Adds the job's pairs of gateways to the index (add), or removes them. */
void ctlr_pinned_set_job(struct ctlr *c, const struct ctlr_job *j, bool add);
/* The carrier that jobs other than `but` (NULL: none) want between two gateways; PLAN_ANY: any. */
enum plan_carrier ctlr_pinned_get(
    const struct ctlr *c, const char *a, const char *b, const struct ctlr_job *but);

#endif
