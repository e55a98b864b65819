/* SPDX-License-Identifier: Apache-2.0 */
/* Tenants in a worker: the set of its turn, and the counts per tenant. gateway/control/tenants.h
 * makes the set and tells the engines. */
#ifndef GATEWAY_DATAPATH_TENANTS_H
#define GATEWAY_DATAPATH_TENANTS_H

#include "gateway/app.h"
#include "gateway/publish.h"
#include "rwy/err.h"
#include "tenant/tenant.h"

/* Counts of one tenant, allocated by gw_tenants_new: gw_app.tenant_count. Only the worker writes.
 * gw_worker.tenants[index] is zeroed when an index is given to a tenant. [0] has the drops before
 * the tenant is known (TENANT_UNKNOWN_VNI, TENANT_UNKNOWN_VLAN). */
#define GW_TENANT_COUNTS 65536 /* bound of all indices */
struct gw_tenant_count {
	_Alignas(64) uint64_t rx_packets;  /* admitted from its hosts */
	uint64_t rx_bytes;                 /* bytes of these packets, from the IP header on */
	uint64_t tx_packets, tx_bytes;     /* sent to its hosts; bytes from the IP header on */
	uint64_t forged_host;              /* contradicts the configuration, or VTEP_HELD */
	uint64_t drop[TENANT_ADMIT_COUNT]; /* drops by reason; [TENANT_OK] stays 0 */
};

/*
 * The present set, never NULL. Workers, for a turn; others under the lock of
 * gateway/control/tenants.c.
 */
static inline const struct tenant_set *gw_tenants_of(const struct gw_app *app)
{
	return gw_published_get(app->publisher, GW_TENANTS);
}

#endif
