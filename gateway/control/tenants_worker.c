/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's side of tenants*.c. It is a separate file because the others know no DPDK type and
 * are tested without DPDK. */
#include "gateway/gw.h"
#include "gateway/control/tenants_int.h"

bool gw_tenants_worker_clear(struct gw_app *app, unsigned worker, uint32_t index)
{
	return gw_hosts_clear(app->worker[worker], index);
}
