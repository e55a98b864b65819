/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rate of a tunnel, divided among its halves: one in each worker, and each with a congestion
 * control of its own. An address pair belongs to one worker, so equal parts would give it a part of
 * the rate while the other workers send nothing. So the halves lease parts by demand, with max-min
 * fairness (Bertsekas and Gallager, Data Networks, 6.5.2): a half that wants less than an equal
 * part gets its demand; the others share the rest equally.
 *
 * The leases, what halves are about to give back, and the free part add up to the whole at every
 * moment. Each path of a half keeps the least rate (cc_cfg.min_rate_Bps) beyond its lease. A half
 * publishes its demand, computes what all should have, gives back what it holds above that, and
 * takes what is free.
 */
#ifndef WAN_LEASE_H
#define WAN_LEASE_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>

#define WAN_LEASE_WHOLE 65536u /* the tunnel's rate */
#define WAN_HALVES_MAX  64u
/* Each half keeps an equal part divided by this: little enough not to be missed, and enough for a
 * flow to begin with at once. */
#define WAN_LEASE_LEAST 16u

/* Shared by the halves of a tunnel. */
struct wan_leases {
	unsigned halves;
	alignas(64) _Atomic uint32_t free;
	/* of the whole, as each half published its own; it falls by at most a quarter a turn */
	_Atomic uint32_t demand[WAN_HALVES_MAX];
};

/* A half's lease; only its thread uses it. */
struct wan_lease {
	uint32_t held;
	uint32_t giving; /* held no more, and not free yet */
};

/* Divides the whole equally among 1 to WAN_HALVES_MAX halves, which then call
 * wan_lease_begin. No half may use it meanwhile. */
void wan_leases_init(struct wan_leases *all, unsigned halves);
/* A half's first lease. On its thread. */
void wan_lease_begin(struct wan_lease *l, const struct wan_leases *all);
/*
 * Publishes that the half wants `demand` of the whole, then gives up or takes. Returns the lease,
 * which the half must apply before it calls wan_lease_release. On its thread, every few
 * milliseconds: two or three rounds of all halves bring them what they should have. Other halves
 * may call it at the same time.
 */
uint32_t wan_lease_turn(struct wan_lease *l, struct wan_leases *all, unsigned half, uint32_t demand);
/* Frees for others the part that the half gave up. On its thread. */
void wan_lease_release(struct wan_lease *l, struct wan_leases *all);

#endif
