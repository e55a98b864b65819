/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's tables for tenants' packets (overlay.h): creation, ageing, counters, end. */
#include "gateway/datapath/overlay.h"

#include <stdlib.h>
#include <string.h>

#define AGE_BUDGET 64
#define AGE_EVERY  (10 * RWY_MS) /* the whole host table is checked in some 10 s */
/* least time between two reports of one host's place to other workers, */
#define SPREAD_AGAIN (50 * RWY_MS)
#define SPREAD_BURST 256    /* reports of one tenant at once, */
#define SPREAD_EVERY RWY_MS /* time after which a tenant gets one more report */

void gw_overlay_turn(struct gw_worker *w)
{
	if (w->now < w->ov->age_at)
		return;
	w->ov->age_at = w->now + AGE_EVERY;
	vtep_age(w->ov->hosts, AGE_BUDGET, w->now);
}

static void *lines(size_t n, size_t size)
{
	void *p = aligned_alloc(64, n * size);

	if (p)
		memset(p, 0, n * size);
	return p;
}

int gw_overlay_new(struct gw_worker *w)
{
	struct gw_overlay *ov = calloc(1, sizeof(*ov));
	struct vtep_cfg hosts;
	struct arp_rate_cfg asks, copies;
	int rc = ov ? 0 : RWY_ENOMEM;

	w->ov = ov;
	if (rc)
		return rc;
	vxlan_cfg_default(&ov->vxlan);
	vtep_cfg_default(&hosts);
	hosts.tenants = GW_TENANT_COUNTS;
	arp_rate_cfg_default(&asks);
	asks.tenants = GW_TENANT_COUNTS;
	copies = asks;
	copies.again = SPREAD_AGAIN;
	copies.burst = SPREAD_BURST;
	copies.every = SPREAD_EVERY;
	ov->admission = lines(GW_ADMISSIONS, sizeof(*ov->admission));
	ov->binding = lines(GW_BINDINGS, sizeof(*ov->binding));
	ov->adjacency = lines(GW_ADJACENCIES, sizeof(*ov->adjacency));
	rc = ov->admission && ov->binding && ov->adjacency ? vtep_new(&ov->hosts, &hosts) : RWY_ENOMEM;
	if (!rc)
		rc = arp_rate_new(&ov->asks, &asks);
	if (!rc && w->app->workers > 1)
		rc = arp_rate_new(&ov->spread, &copies);
	return rc;
}

void gw_overlay_free(struct gw_worker *w)
{
	struct gw_overlay *ov = w->ov;

	if (!ov)
		return;
	vtep_free(ov->hosts);
	arp_rate_free(ov->asks);
	arp_rate_free(ov->spread);
	free(ov->admission);
	free(ov->binding);
	free(ov->adjacency);
	free(ov);
	w->ov = NULL;
}

void gw_overlay_counters_get(const struct gw_app *app, unsigned worker, struct gw_overlay_counters *out)
{
	unsigned from = worker == app->workers ? 0 : worker;
	unsigned to = worker == app->workers ? app->workers : worker + 1;

	memset(out, 0, sizeof(*out));
	for (unsigned i = from; i < to; i++) {
		const struct gw_overlay *ov = app->worker[i] ? app->worker[i]->ov : NULL;
		const struct vtep_counters *h;
		struct gw_overlay_counters c;
		uint64_t *sum = (uint64_t *)(void *)out;

		if (!ov)
			continue;
		c = ov->c;
		h = vtep_counters(ov->hosts);
#define X(f, s) c.host.f += h->f;
		VTEP_COUNTERS(X)
#undef X
		for (unsigned k = 0; k < GW_OVERLAY_COUNTERS; k++)
			sum[k] += ((const uint64_t *)(const void *)&c)[k];
	}
}
