/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps one device's rules in step with the set of tenants. The device is behind offload_ops: rte_flow, tc, a
 * test's. What it refuses stays in software, with its reason.
 *
 * A change of the set goes
 *
 *   offload_sync_prepare(next)   passes that `next` needs go in; drops and forwards that it does not have, or
 *                                that lack a pass, come out: from here on no rule contradicts the present set
 *                                nor the next
 *   (the set is published, all workers run it)
 *   offload_sync_commit          passes nobody needs come out; new drops and forwards go in
 *
 * so that no packet is dropped or forwarded by hardware against the policy in force, whichever operation
 * fails: a rule that cannot be installed stays out, and so do those that need it. One that cannot be removed
 * has everything flushed; if that fails as well, prepare says so and the change must be refused. A change
 * that is refused later is undone by preparing and committing the present set again.
 *
 * Thread: the control thread's; calls must not overlap. Allocates.
 */
#ifndef OFFLOAD_SYNC_H
#define OFFLOAD_SYNC_H

#include <stddef.h>

#include "offload/offload.h"

#define OFFLOAD_WHY 128 /* with the 0 at the end */

enum offload_where { OFFLOAD_SOFTWARE, OFFLOAD_KERNEL, OFFLOAD_HARDWARE };
const char *offload_where_name(enum offload_where w);

struct offload_entry {
	struct offload_rule rule;
	uint32_t handle; /* never 0, unique among those of this device */
	enum offload_where where;
	bool stale;      /* of an earlier set; to be removed */
	bool again;      /* refused for a reason that may pass */
	bool seen;       /* in the last reading */
	bool counted;    /* packets and bytes are the device's */
	const char *why; /* it is in software; NULL: it is not */
	uint64_t packets, bytes;
};

struct offload_sync;
struct offload_ops {
	/* Installs a rule no further than *where says (what must stand in front of it is no further): 0 and
	 * *where it is now; RWY_ENOMEM: no room, RWY_EAGAIN: not now, both may pass; else refused for good.
	 * `why`, of OFFLOAD_WHY bytes: the reason in the device's words. */
	int (*add)(
	    void *ctx, const struct offload_rule *r, uint32_t handle, enum offload_where *where, char *why);
	/* 0; RWY_ENOENT: it was not there any more, which is as good; else it may still be there. */
	int (*del)(void *ctx, const struct offload_rule *r, uint32_t handle);
	/* Removes all of ours at once. 0: none is there. */
	int (*flush)(void *ctx);
	/* Calls offload_sync_seen for every rule of ours that the device has. Negative: it cannot be read. */
	int (*read)(void *ctx, struct offload_sync *s);
};

/* RWY_ENOMEM. Flushes what a predecessor left there: RWY_EAGAIN if that fails. */
RWY_MUST_CHECK int offload_sync_new(
    struct offload_sync **out, const struct offload_cfg *cfg, const struct offload_ops *ops, void *ctx);
/* Removes all rules. NULL is allowed. 0, or RWY_EAGAIN: some may have stayed. */
int offload_sync_free(struct offload_sync *s);

/* 0; RWY_EAGAIN: the device keeps a rule that `next` forbids, the change must be refused. Without memory
 * everything is flushed and stays in software. */
RWY_MUST_CHECK int offload_sync_prepare(struct offload_sync *s, const struct tenant_set *next);
void offload_sync_commit(struct offload_sync *s);

/* The device has lost all rules (a reset): they go to software; commit, or retry, brings them back. */
void offload_sync_lost(struct offload_sync *s, const char *why);
/* Tries again up to `budget` rules that were refused for want of room, or lost, and to remove what should
 * have gone. How many were tried. */
unsigned offload_sync_retry(struct offload_sync *s, unsigned budget);

/* Reads counters and what is still there; what vanished, and what needed it, goes to software. Number of
 * rules that had vanished; negative: RWY_EAGAIN, the device cannot be read or keeps what it must not. */
int offload_sync_read(struct offload_sync *s);
/* From ops.read only. counted: packets and bytes are known. */
void offload_sync_seen(struct offload_sync *s, uint32_t handle, enum offload_where where, bool counted,
    uint64_t packets, uint64_t bytes);

struct offload_counts {
	unsigned hardware, kernel, software; /* rules, and what never became one */
};
void offload_sync_count(const struct offload_sync *s, struct offload_counts *out);
/* Every entry, by tenant. The entry is valid during the call. */
void offload_sync_each(
    const struct offload_sync *s, void (*fn)(void *arg, const struct offload_entry *e), void *arg);

#endif
