/* SPDX-License-Identifier: Apache-2.0 */
/* Records of tunnels whose gateway has no record: one change cannot remove a gateway together with
 * all of hundreds of tunnels, and another replica may have decided a tunnel at that moment. All
 * locked. */
#ifndef CONTROLLER_STATE_ORPHAN_H
#define CONTROLLER_STATE_ORPHAN_H

#include "controller/state/ctlr.h"

struct ctlr_orphan {
	struct ctlr_orphan *next;
	struct ctlr *c;
	char tunnel[2 * MDL_NAME], gateway[MDL_NAME];
	uint64_t mod_rev;
};

/* The record tunnel/NAME of that revision is to go, because `gateway` is not there. */
void ctlr_orphan_add(struct ctlr *c, const char *tunnel, const char *gateway, uint64_t mod_rev);
struct ctlr_orphan *ctlr_orphan_take(struct ctlr *c); /* the caller frees it; NULL: there is none */
void ctlr_orphan_put(struct ctlr_orphan *o);          /* puts back what was taken */
void ctlr_orphans_free(struct ctlr *c);

#endif
