/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's side of tenants*.c. It is a separate file because the others know no DPDK type and
 * are tested without DPDK. */
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
