/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Made-up workers and engines for gateway/control/tenants*.c: nobody reads what is published,
 * engines take everything. The set itself, its checks and its transactions are the real ones.
 */
#include "gateway/control/tenants_int.h"

static struct eng_tenant_cfg told[GW_TENANT_COUNTS];

bool gw_tenants_worker_clear(struct gw_app *app, unsigned worker, uint32_t index)
{
	return true;
}

int eng_tenant_set(struct eng *e, uint32_t idx, const struct eng_tenant_cfg *cfg, rwy_time now)
{
	told[idx] = *cfg;
	return 0;
}

bool eng_tenant_remove(struct eng *e, uint32_t idx)
{
	told[idx].vni = 0;
	return true;
}

bool eng_tenant_stats(const struct eng *e, uint32_t idx, struct eng_tenant_stats *out)
{
	*out = (struct eng_tenant_stats){.accepted = 100 * idx,
	    .accepted_bytes = (uint64_t)idx << 30,
	    .delivered = 99 * idx,
	    .custody = 1 << 20,
	    .flows = 8,
	    .held = 1 << 20,
	    .most = 2 << 20,
	    .max = 96u << 20,
	    .reserve = 5u << 20,
	    .hosts = 4,
	    .kind = {1 << 20}};
	return !idx || told[idx].vni;
}

uint64_t eng_custody_max(const struct eng *e)
{
	return UINT64_C(77) << 20;
}
