/* SPDX-License-Identifier: Apache-2.0 */
/* Tenants as a worker has them: the set of its turn, and what it counts of each. Who makes the set and tells
 * engines: gateway/control/tenants.h. */
#ifndef GATEWAY_DATAPATH_TENANTS_H
#define GATEWAY_DATAPATH_TENANTS_H

#include "gateway/app.h"
#include "rwy/err.h"
#include "tenant/tenant.h"

/* Counts of one tenant, allocated by gw_tenants_new: gw_app.tenant_count. The worker alone writes.
 * gw_worker.tenants[index]: all zeroes when an index is given to a tenant. [0] has the drops before the
 * tenant is known (TENANT_UNKNOWN_VNI, TENANT_UNKNOWN_VLAN).
 */
#define GW_TENANT_COUNTS 65536 /* every index is below */
struct gw_tenant_count {
	_Alignas(64) uint64_t rx_packets;  /* admitted from its hosts */
	uint64_t rx_bytes;                 /* from the IP header on */
	uint64_t tx_packets, tx_bytes;     /* sent to its hosts, the same */
	uint64_t forged_host;              /* not as configured, or VTEP_HELD */
	uint64_t drop[TENANT_ADMIT_COUNT]; /* by reason; [TENANT_OK] stays 0 */
};

/* The set of this turn: never NULL. Workers; the pointer holds until the worker reports a later generation.
 */
static inline const struct tenant_set *gw_tenants_of(const struct gw_app *app)
{
	return atomic_load_explicit(&app->tenant_set, memory_order_acquire);
}

#endif
