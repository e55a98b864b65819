/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's side of tenants*.c, in a file of its own: the rest knows no DPDK type and is tested without. */
#include "gateway/gw.h"
#include "gateway/control/tenants_int.h"

uint64_t gw_tenants_worker_gen(const struct gw_app *app, unsigned worker)
{
	const struct gw_worker *w = app->worker[worker];

	return w ? atomic_load_explicit(&w->ts_gen, memory_order_acquire) : UINT64_MAX;
}

void gw_tenants_worker_wake(struct gw_app *app, unsigned worker)
{
	if (app->worker[worker])
		gw_worker_wake(app->worker[worker]);
}

bool gw_tenants_worker_clear(struct gw_app *app, unsigned worker, uint32_t index)
{
	return gw_hosts_clear(app->worker[worker], index);
}
