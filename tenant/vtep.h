/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The VTEP of each learned host: (tenant, inner address) -> (VTEP, inner MAC). Entries are learned from
 * decapsulated packets, age, and are bounded per tenant: a tenant that invents sources pushes out its own
 * oldest entries, never another's. Configured hosts are not here (tenant/tenant.h). The key is the tenant's
 * index, which stands for its VNI and makes the bound a counter.
 *
 * Memory is allocated once. Lookups and learning are O(1). Time is an argument.
 * Thread: one table belongs to one worker.
 */
#ifndef TENANT_VTEP_H
#define TENANT_VTEP_H

#include <stdbool.h>
#include <stdint.h>

#include "rwy/err.h"
#include "rwy/ip.h"
#include "rwy/time.h"

struct vtep_cfg {
	uint32_t entries;    /* in all, 1 .. 2^24 */
	uint32_t per_tenant; /* learned entries of one tenant at most, 1 .. entries */
	uint32_t tenants;    /* tenant indices are below, 1 .. 65536 */
	rwy_dur age;         /* a learned entry that was not confirmed for so long is gone */
	rwy_dur hold;        /* an entry that moved stays where it is for so long at least */
};
void vtep_cfg_default(struct vtep_cfg *cfg); /* 65536 entries, 4096 a tenant, 16384 tenants, 300 s, 100 ms */

/* X(field, sentence): monotonic counts */
#define VTEP_COUNTERS(X)                                                                                     \
	X(learned, "hosts learned")                                                                          \
	X(moved, "hosts that moved to another VTEP or MAC address")                                          \
	X(held, "moves refused because the host had moved a moment ago: two claim one address")              \
	X(forged, "packets that contradicted a configured entry")                                            \
	X(aged, "learned entries that were not confirmed in time")                                           \
	X(pushed_out, "learned entries that made room for another one of their tenant")                      \
	X(full, "hosts not learned because the table is full of other tenants' entries")
struct vtep_counters {
#define X(f, s) uint64_t f;
	VTEP_COUNTERS(X)
#undef X
};

/* Result of learning. HELD: the packet should be dropped, its source is somebody else's. */
enum vtep_learn { VTEP_KNOWN, VTEP_NEW, VTEP_MOVED, VTEP_HELD, VTEP_FULL };

struct vtep_host {
	struct rwy_ip vtep;
	uint8_t mac[6];
};

struct vtep_tab;
/* RWY_EINVAL: a bound out of range; RWY_ENOMEM. */
RWY_MUST_CHECK int vtep_new(struct vtep_tab **out, const struct vtep_cfg *cfg);
void vtep_free(struct vtep_tab *t); /* NULL is allowed */

/* Where a host is; NULL: not known. Valid until the next call that is not a find. */
const struct vtep_host *vtep_find(
    const struct vtep_tab *t, uint32_t tenant, const struct rwy_ip *host, rwy_time now);
/* A packet from `host` came through `vtep` with source `mac`. Its tenant, and that host and VTEP may be that
 * tenant's, have been checked (tenant_of_vxlan, tenant_find). Per packet: does nothing but compare and note
 * the time when all is as before. tenant: below cfg.tenants. */
enum vtep_learn vtep_learn(struct vtep_tab *t, uint32_t tenant, const struct rwy_ip *host,
    const struct rwy_ip *vtep, const uint8_t mac[6], rwy_time now);

/* Forgets up to `budget` entries of a tenant. True: none is left; else call again. To be
 * called before the tenant's index is released. */
bool vtep_clear(struct vtep_tab *t, uint32_t tenant, uint32_t budget);

/* Looks at up to `budget` slots and frees what has aged; call now and then. Entries that have aged are not
 * found even if this was not called: it only makes room. The number freed. */
unsigned vtep_age(struct vtep_tab *t, uint32_t budget, rwy_time now);

uint32_t vtep_total(const struct vtep_tab *t); /* entries; aged ones not yet freed too */
const struct vtep_counters *vtep_counters(const struct vtep_tab *t);

#endif
