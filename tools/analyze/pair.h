/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which flow's requests the responses in a flow answer, where CM does not say it. PSNs decide; what
 * they decided is undone when later responses contradict it. Private to tools/analyze.
 */
#ifndef TOOLS_ANALYZE_PAIR_H
#define TOOLS_ANALYZE_PAIR_H

#include "tools/analyze/open.h"

/* They are each other's peers; whose peers they were before have none. */
void an_pair_set(struct an_flow *x, struct an_flow *y);
/*
 * A response with this PSN is in flow f: its peer, which may be another one than before; NULL: it
 * is not known. all: the list of flows.
 */
struct an_flow *an_pair_of(
    struct an_flow *all, const struct an_openings *o, struct an_flow *f, roce_psn psn, rwy_time now);

#endif
