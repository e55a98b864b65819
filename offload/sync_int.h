/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to sync.c and part.c: entries, and the parts that hold them. */
#ifndef OFFLOAD_SYNC_INT_H
#define OFFLOAD_SYNC_INT_H

#include "offload/sync.h"

#define OFFLOAD_WHYS 64 /* distinct reasons that are stored as text */

/* The entries of one tenant; part 0: those common to all tenants. */
struct offload_part {
	uint64_t changed; /* the tenant's `changed` when the part was made */
	struct offload_entry **e;
	unsigned n;
	bool due; /* changed since the last commit */
};

struct offload_sync {
	struct offload_cfg cfg;
	const struct offload_ops *ops;
	void *ctx;
	struct offload_part *part; /* indexed by tenant */
	uint32_t parts;
	struct offload_entry **by_handle;
	uint32_t handles, handle_free; /* size of by_handle; lower bound of free handles */
	/* a rule vanished or fell back to the kernel; rules that need it may still be installed */
	bool fell;
	bool off; /* out of memory: nothing is installed until a whole set was made */
	unsigned whys;
	char *why[OFFLOAD_WHYS];
};

static inline bool offload_installed(const struct offload_entry *e)
{
	return e->where != OFFLOAD_SOFTWARE;
}

/* Makes a part from a list of rules: keeps entries of equal rules and makes new ones. Entries of
 * removed rules that the device still has go to the end as stale. RWY_ENOMEM: nothing changed. */
RWY_MUST_CHECK int offload_part_make(
    struct offload_sync *s, struct offload_part *p, const struct offload_list *l);
/* Makes room for parts below `top`. */
RWY_MUST_CHECK int offload_parts_room(struct offload_sync *s, uint32_t top);
void offload_part_free(struct offload_sync *s, struct offload_part *p);
void offload_entry_free(struct offload_sync *s, struct offload_entry *e);
extern const char offload_why_next[]; /* "not installed yet" */

#endif
