/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flows that have requests and no peer, by their hosts and by the PSNs that they have outstanding:
 * which of them does a response answer? Private to tools/analyze.
 */
#ifndef TOOLS_ANALYZE_OPEN_H
#define TOOLS_ANALYZE_OPEN_H

#include "tools/analyze/analyze.h"

struct an_openings;

struct an_openings *an_openings_new(void); /* NULL: no memory */
/* The flows were removed. NULL is allowed. */
void an_openings_free(struct an_openings *o);
/* Adds the flow, or notes what it has outstanding now. RWY_ENOMEM. */
RWY_MUST_CHECK int an_open_follow(struct an_openings *o, struct an_flow *f);
void an_open_remove(struct an_flow *f); /* no effect if it is not there */
/*
 * The flow that a response with this PSN in flow f answers; NULL: there is none, or several. One of
 * which nothing was acknowledged yet may have sent PSNs before the first one that was seen.
 */
struct an_flow *an_open_find(const struct an_openings *o, const struct an_flow *f, roce_psn psn);

#endif
