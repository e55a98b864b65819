/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps one device's rules in step with the set of tenants. The device is behind offload_ops:
 * rte_flow, tc, or a test's. What it refuses stays in software, with the reason.
 *
 * A change of the set has three steps:
 *
 *   offload_sync_prepare(next)  installs the passes that `next` needs; removes drops and forwards
 *                               that `next` does not have or that lack a pass. Afterwards no rule
 *                               contradicts the present set or the next one.
 *   (the set is published, all workers run it)
 *   offload_sync_commit         removes passes that nothing needs; installs new drops and forwards
 *
 * So hardware never drops or forwards a packet against the policy in force, whichever operation
 * fails. A rule that cannot be installed stays out, and so do rules that need it. When a rule
 * cannot be removed, everything is flushed; if that fails as well, prepare fails and the change
 * must be refused. A change refused later is undone by preparing and committing the present set
 * again.
 *
 * Thread: any but a worker's: the one that changes tenants, or the control thread. Calls must not
 * overlap: gateway/offload/offload.c has a lock. Allocates memory.
 */
#ifndef OFFLOAD_SYNC_H
#define OFFLOAD_SYNC_H

#include <stddef.h>

#include "offload/offload.h"

#define OFFLOAD_WHY 128 /* bytes of a reason, with the terminating 0 */

enum offload_where { OFFLOAD_SOFTWARE, OFFLOAD_KERNEL, OFFLOAD_HARDWARE };
/* The name for API and CLI; static text. */
const char *offload_where_name(enum offload_where w);

struct offload_entry {
	struct offload_rule rule;
	uint32_t handle; /* never 0; unique within this device */
	enum offload_where where;
	bool stale;      /* entry of an earlier set; to be removed */
	bool again;      /* refused for a reason that may be temporary */
	bool seen;       /* found by the last read */
	bool counted;    /* packets and bytes come from the device */
	const char *why; /* reason why it is in software; NULL: it is not */
	uint64_t packets, bytes;
};

struct offload_sync;
struct offload_ops {
	/* Installs a rule, at most as far as *where says, which is as far as the passes in front of
	 * it are. Returns 0 and sets *where to its place; RWY_ENOMEM: no room, RWY_EAGAIN: not now,
	 * both temporary; other errors: refused for good. `why`, of OFFLOAD_WHY bytes: the device's
	 * reason. */
	int (*add)(
	    void *ctx, const struct offload_rule *r, uint32_t handle, enum offload_where *where, char *why);
	/* Removes a rule. Returns 0; RWY_ENOENT: it was already gone, which is as good; other
	 * errors: it may still be there. */
	int (*del)(void *ctx, const struct offload_rule *r, uint32_t handle);
	/* Removes all our rules at once. Returns 0: none is left. */
	int (*flush)(void *ctx);
	/* Calls offload_sync_seen for each of our rules that the device has. Negative: the device
	 * cannot be read. */
	int (*read)(void *ctx, struct offload_sync *s);
};

/* Creates the object and flushes what a predecessor left on the device. RWY_ENOMEM; RWY_EAGAIN: the
 * flush failed. */
RWY_MUST_CHECK int offload_sync_new(
    struct offload_sync **out, const struct offload_cfg *cfg, const struct offload_ops *ops, void *ctx);
/* Removes all rules. NULL is allowed. Returns 0, or RWY_EAGAIN: some may be left. */
int offload_sync_free(struct offload_sync *s);

/* Returns 0; RWY_EAGAIN: the device keeps a rule that `next` forbids, so the change must be
 * refused. When memory is short, everything is flushed and stays in software. */
RWY_MUST_CHECK int offload_sync_prepare(struct offload_sync *s, const struct tenant_set *next);
/* Workers run the prepared set: installs its rules; failures stay in software. */
void offload_sync_commit(struct offload_sync *s);

/* The device lost all rules (a reset): they are in software now; commit or retry installs them
 * again. */
void offload_sync_lost(struct offload_sync *s, const char *why);
/* Retries up to `budget` rules that were refused for lack of room or lost, and removals that
 * failed. Returns the number tried. */
unsigned offload_sync_retry(struct offload_sync *s, unsigned budget);

/* Reads counters and the rules still present; vanished rules, and rules that needed them, go to
 * software. Returns the number vanished; RWY_EAGAIN: the device cannot be read or keeps a forbidden
 * rule. */
int offload_sync_read(struct offload_sync *s);
/* Called by ops.read only. counted: packets and bytes are known. */
void offload_sync_seen(struct offload_sync *s, uint32_t handle, enum offload_where where, bool counted,
    uint64_t packets, uint64_t bytes);

struct offload_counts {
	unsigned hardware, kernel, software; /* rules, and what could not become a rule */
};
/* Counts entries by place, and their packets and bytes. */
void offload_sync_count(const struct offload_sync *s, struct offload_counts *out);
/* Calls fn for each entry, by tenant. The entry is valid during the call. */
void offload_sync_each(
    const struct offload_sync *s, void (*fn)(void *arg, const struct offload_entry *e), void *arg);

#endif
