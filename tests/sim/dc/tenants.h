/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tenants of the data-center simulator: lists in the scenario, `guarantee=50G,30G,10G`, one value a tenant,
 * or one for all. All tenants have the same hosts and addresses; a connection is of one tenant. Tenant 0 is
 * the plain LAN.
 */
#ifndef SIM_DC_TENANTS_H
#define SIM_DC_TENANTS_H

#include "engine/engine.h"
#include "tests/sim/dc/scen.h"

struct dc_tenant {
	double guarantee, limit, weight, priority; /* bits a second; 0: none */
	double custody, reserve; /* bytes at most, 0: what all have; share of it that is its own */
	double flows, start;     /* how many of the long-lived flows, and when they begin */
};

/* False: err says which list is wrong. t[0] is the plain LAN. */
bool dc_tenants_read(const struct scen *s, struct dc_tenant t[DC_TENANTS_MAX + 1], char *err, size_t size);
/* What an engine is told of tenant i. *prefix is filled and referred to. */
struct eng_tenant_cfg dc_tenant_cfg(
    const struct dc_tenant *t, unsigned i, unsigned site, uint64_t custody, struct eng_prefix *prefix);

#endif
