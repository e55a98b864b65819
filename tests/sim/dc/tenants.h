/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tenants of the data-center simulator. The scenario has lists, `guarantee=50G,30G,10G`: one value
 * per tenant, or one for all. All tenants have the same hosts and addresses, and each connection
 * belongs to one tenant. Tenant 0 is the plain LAN.
 */
#ifndef SIM_DC_TENANTS_H
#define SIM_DC_TENANTS_H

#include "engine/engine.h"
#include "tests/sim/dc/scen.h"

struct dc_tenant {
	double guarantee, limit, weight, priority; /* bit/s; 0: none */
	/* bytes at most, 0: the common limit; share of it that is reserved */
	double custody, reserve;
	double flows, start; /* number of long-lived flows, and when they begin */
};

/* False: err names the faulty list. t[0] is the plain LAN. */
bool dc_tenants_read(const struct scen *s, struct dc_tenant t[DC_TENANTS_MAX + 1], char *err, size_t size);
/* The engine's configuration of tenant i. It refers to *prefix, which is filled. */
struct eng_tenant_cfg dc_tenant_cfg(
    const struct dc_tenant *t, unsigned i, unsigned site, uint64_t custody, struct eng_prefix *prefix);

#endif
