/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Offload: the tenants' rules in the hardware of those LAN ports that are configured for it (`offload`,
 * `offload_device`). What a rule is, and in which order they come and go: offload/offload.h, offload/sync.h.
 * Backends: rte.c (rte_flow), tc.c (tc flower).
 *
 * Thread: any but a worker's; calls wait for each other.
 */
#ifndef GATEWAY_OFFLOAD_OFFLOAD_H
#define GATEWAY_OFFLOAD_OFFLOAD_H

#include <net/if.h>

#include "gateway/app.h"
#include "offload/sync.h"

struct gw_offload;

/* After gw_tenants_new and before the workers run: the first set goes in. A port whose backend does not start
 * is logged, shown, and in software. RWY_ENOMEM. */
RWY_MUST_CHECK int gw_offload_new(struct gw_app *app);
void gw_offload_free(struct gw_app *app); /* removes all rules */

/* A change of the set calls these (app->offload_hooks), in this order, on its thread, one change at a time.
 */
struct gw_offload_hooks {
	/* Before `next` is published: no rule contradicts the present set nor `next` any more. RWY_EAGAIN
	 * with one sentence: hardware keeps a rule that `next` forbids; the change must be refused. */
	int (*prepare)(struct gw_app *app, const struct tenant_set *next, char why[OFFLOAD_WHY]);
	/* The change is taken back, prepared or not: `present` holds. */
	void (*back)(struct gw_app *app, const struct tenant_set *present);
	/* Every worker runs what was prepared: what is new goes in. When it is not called because a worker
	 * hangs, gw_offload_tick does it later. */
	void (*commit)(struct gw_app *app);
};

/* Once a second, control thread: reads counters, notices resets and what vanished, tries again; commits what
 * was prepared when all workers run generation `running` or a later one. */
void gw_offload_tick(struct gw_app *app, uint64_t running);

struct gw_offload_port {
	const char *name;                             /* the port's */
	const char *backend;                          /* "rte_flow", "tc" */
	char device[IF_NAMESIZE], vxlan[IF_NAMESIZE]; /* tc: the kernel's; "" */
	char error[OFFLOAD_WHY];                      /* "": it works */
	struct offload_counts count;
};
/* One call of `port` for every port with offload, followed by calls of `rule` for what it has or lacks. */
void gw_offload_each(struct gw_app *app, void (*port)(void *arg, const struct gw_offload_port *p),
    void (*rule)(void *arg, const struct offload_entry *e), void *arg);

/* A rule's match and action in words, cut to fit; returns buf (text.c). */
const char *gw_offload_match_text(const struct offload_rule *r, char *buf, size_t size);
const char *gw_offload_act_text(const struct offload_rule *r, char *buf, size_t size);

#endif
