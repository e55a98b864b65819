/* SPDX-License-Identifier: Apache-2.0 */
/* An ordinary tenant and its database, for the tests of tenant/tenant.h. */
#ifndef TESTS_LIB_TENANT_SAMPLE_H
#define TESTS_LIB_TENANT_SAMPLE_H

#include "tenant/tenant.h"

/* A prefix and an address of IPv4. */
struct prefix ts_net4(uint8_t a, uint8_t b, uint8_t c, uint8_t d, uint8_t len);
struct rwy_ip ts_ip4(uint8_t a, uint8_t b, uint8_t c, uint8_t d);

/* Places of a prefix: initialisers of struct tenant_at. */
#define TS_LAN                                                                                               \
	{                                                                                                    \
		TENANT_LAN, 0                                                                                \
	}
#define TS_VTEP                                                                                              \
	{                                                                                                    \
		TENANT_VTEP, 0                                                                               \
	}
#define TS_TUNNEL(n)                                                                                         \
	{                                                                                                    \
		TENANT_TUNNEL, n                                                                             \
	}

/*
 * Hosts behind VTEPs and on a VLAN, a network behind tunnel 0 and a part of it behind tunnel 1. All
 * tenants have the same addresses. cfg has pointers into the rest; its hosts are not counted.
 */
struct tenant_sample {
	struct tenant_cfg cfg;
	struct tenant_prefix prefix[5];
	struct rwy_ip vtep[3];
	struct acl_rule rule[4];
	struct tenant_host host[2];
};

/* Makes one; vlan 0: none. */
void ts_sample(struct tenant_sample *s, const char *name, uint32_t vni, uint16_t vlan);
/* An empty database for so many tenants and two tunnels: 1 MB/s, and an unknown rate. */
struct tenant_db *ts_db(uint32_t tenants);
/* Commits; the test fails if that is refused. Returns the new set. */
const struct tenant_set *ts_commit(struct tenant_txn *x);
/* Commits; `ask`: after a prepare, which must have the same result and set. Returns the result. */
int ts_commit_shown(struct tenant_txn *x, const struct tenant_set **s, struct tenant_err *err, bool ask);

#endif
