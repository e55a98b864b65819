/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The VTEP of each learned host: (tenant, inner address) -> (VTEP, inner MAC). Entries are learned
 * from decapsulated packets and age. Each tenant has a bound: a tenant that invents sources
 * displaces its own oldest entries, never another tenant's. Configured hosts are elsewhere
 * (tenant/tenant.h). The key is the tenant's index in place of its VNI, so that the bound is a
 * counter.
 *
 * Thread: a table belongs to one worker.
 */
#ifndef TENANT_VTEP_H
#define TENANT_VTEP_H

#include <stdbool.h>
#include <stdint.h>

#include "rwy/err.h"
#include "rwy/ip.h"
#include "rwy/time.h"

struct vtep_cfg {
	uint32_t entries;    /* total, 1 .. 2^24 */
	uint32_t per_tenant; /* most learned entries of one tenant, 1 .. entries */
	uint32_t tenants;    /* bound of tenant indices, 1 .. 65536 */
	rwy_dur age;         /* a learned entry expires when it was not confirmed for this long */
	rwy_dur hold;        /* after a move an entry stays for at least this long */
};
/* Defaults: 65536 entries, 4096 per tenant, 16384 tenants, 300 s, 100 ms. */
void vtep_cfg_default(struct vtep_cfg *cfg);

/* X(field, sentence): counters, never reset. */
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

/* The result of learning. HELD: drop the packet, its source belongs to another host. */
enum vtep_learn { VTEP_KNOWN, VTEP_NEW, VTEP_MOVED, VTEP_HELD, VTEP_FULL };

struct vtep_host {
	struct rwy_ip vtep;
	uint8_t mac[6];
};

struct vtep_tab;
/* Makes a table. RWY_EINVAL: a limit is out of range; RWY_ENOMEM. */
RWY_MUST_CHECK int vtep_new(struct vtep_tab **out, const struct vtep_cfg *cfg);
void vtep_free(struct vtep_tab *t); /* NULL is allowed */

/* Returns the place of a host; NULL: unknown. Valid until the next call other than vtep_find. */
const struct vtep_host *vtep_find(
    const struct vtep_tab *t, uint32_t tenant, const struct rwy_ip *host, rwy_time now);
/* Learns from a packet of `host` that came through `vtep` with source `mac`. The caller has checked
 * the tenant and that the tenant may have this host and this VTEP (tenant_of_vxlan, tenant_find).
 * Called per packet: when nothing changed it only compares and notes the time. tenant: below
 * cfg.tenants. */
enum vtep_learn vtep_learn(struct vtep_tab *t, uint32_t tenant, const struct rwy_ip *host,
    const struct rwy_ip *vtep, const uint8_t mac[6], rwy_time now);

/* Removes up to `budget` entries of a tenant. True: none is left; else call again. Call it before
 * the tenant's index is released. */
bool vtep_clear(struct vtep_tab *t, uint32_t tenant, uint32_t budget);

/* Checks up to `budget` slots and frees expired entries. Call it from time to time: it only makes
 * room, as expired entries are not found anyway. Returns the number freed. */
unsigned vtep_age(struct vtep_tab *t, uint32_t budget, rwy_time now);

uint32_t vtep_total(const struct vtep_tab *t); /* entries, including expired ones not yet freed */
const struct vtep_counters *vtep_counters(const struct vtep_tab *t);

#endif
