/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to sync.c and part.c: entries, and the parts they are kept in. */
#ifndef OFFLOAD_SYNC_INT_H
#define OFFLOAD_SYNC_INT_H

#include "offload/sync.h"

#define OFFLOAD_WHYS 64 /* different reasons that are remembered word by word */

struct offload_part {
	uint64_t changed; /* of the tenant it was made from */
	struct offload_entry **e;
	unsigned n;
	bool due; /* for commit: changed since the last one */
};

struct offload_sync {
	struct offload_cfg cfg;
	const struct offload_ops *ops;
	void *ctx;
	struct offload_part *part; /* by tenant index */
	uint32_t parts;
	struct offload_entry **by_handle;
	uint32_t handles, handle_free; /* room; none below is free */
	bool fell; /* a rule vanished or went back to the kernel, and what needs it may still be in */
	bool off;  /* out of memory: nothing goes in until a set was taken whole */
	unsigned whys;
	char *why[OFFLOAD_WHYS];
};

static inline bool offload_installed(const struct offload_entry *e)
{
	return e->where != OFFLOAD_SOFTWARE;
}

/* A part from a list of rules: entries of the old one where they are the same, new ones else; what the device
 * still has of the old one goes to the end as stale. RWY_ENOMEM: nothing has changed. */
RWY_MUST_CHECK int offload_part_make(
    struct offload_sync *s, struct offload_part *p, const struct offload_list *l);
/* Parts below `top` are there. */
RWY_MUST_CHECK int offload_parts_room(struct offload_sync *s, uint32_t top);
void offload_part_free(struct offload_sync *s, struct offload_part *p);
void offload_entry_free(struct offload_sync *s, struct offload_entry *e);
extern const char offload_why_next[]; /* "not installed yet" */

#endif
