/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Offload: the tenants' rules in the hardware of LAN ports that are configured for it (`offload`,
 * `offload_device`). offload/offload.h defines rules, offload/sync.h the order of changes.
 * Backends: rte.c (rte_flow), tc.c (tc flower).
 *
 * Thread: any except a worker's; calls wait for each other.
 */
#ifndef GATEWAY_OFFLOAD_OFFLOAD_H
#define GATEWAY_OFFLOAD_OFFLOAD_H

#include <net/if.h>

#include "gateway/app.h"
#include "offload/sync.h"

struct gw_offload;

/* Starts offload and installs the first set. Call it after gw_tenants_new and before the workers
 * run. A port whose backend does not start is logged, shown, and stays in software. RWY_ENOMEM. */
RWY_MUST_CHECK int gw_offload_new(struct gw_app *app);
void gw_offload_free(struct gw_app *app); /* removes all rules */

/* A change of the set calls these hooks (app->offload_hooks) in this order, on its thread, one
 * change at a time. */
struct gw_offload_hooks {
	/* Called before `next` is published: afterwards no rule contradicts the present set or
	 * `next`. RWY_EAGAIN with one sentence: hardware keeps a rule that `next` forbids; the
	 * change must be refused. */
	int (*prepare)(struct gw_app *app, const struct tenant_set *next, char why[OFFLOAD_WHY]);
	/* The change is withdrawn, prepared or not: `present` stays in force. */
	void (*back)(struct gw_app *app, const struct tenant_set *present);
	/* Every worker runs the prepared set: installs new rules. When a hanging worker prevents
	 * this call, gw_offload_tick does it later. */
	void (*commit)(struct gw_app *app);
};

/* Called once a second by the control thread: reads counters, notices resets and vanished rules,
 * retries; commits the prepared set when all workers run generation `running` or a later one. */
void gw_offload_tick(struct gw_app *app, uint64_t running);

struct gw_offload_port {
	const char *name;                             /* name of the port */
	const char *backend;                          /* "rte_flow", "tc" */
	char device[IF_NAMESIZE], vxlan[IF_NAMESIZE]; /* tc: kernel devices; "" */
	char error[OFFLOAD_WHY];                      /* "": no error */
	struct offload_counts count;
};
/* Calls `port` for each port with offload, then `rule` for each of its entries. */
void gw_offload_each(struct gw_app *app, void (*port)(void *arg, const struct gw_offload_port *p),
    void (*rule)(void *arg, const struct offload_entry *e), void *arg);

/* Writes a rule's match or action as text, cut to fit; returns buf (text.c). */
const char *gw_offload_match_text(const struct offload_rule *r, char *buf, size_t size);
const char *gw_offload_act_text(const struct offload_rule *r, char *buf, size_t size);

#endif
