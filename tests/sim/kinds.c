/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/kinds.h"
#include "tests/sim/explore.h"

/* A single fault, or two that meet, chosen by the seed. */
static const unsigned kinds[] = {0, F_REUSE, F_LAN_LOSS, F_OUTAGE, F_CRASH_FAR, F_CRASH_NEAR, F_SQUEEZE,
    F_CRASH_BOTH, F_PAUSE, F_HOST, F_LAN_LOSS | F_OUTAGE, F_LAN_LOSS | F_CRASH_FAR, F_LAN_LOSS | F_CRASH_NEAR,
    F_LAN_LOSS | F_REUSE, F_PAUSE | F_OUTAGE, F_HOST | F_CRASH_FAR, F_SQUEEZE | F_REUSE,
    F_HOST | F_LAN_LOSS | F_REUSE, F_MASS, F_MASS | F_LAN_LOSS, F_MASS | F_CRASH_NEAR};
#define KINDS (sizeof(kinds) / sizeof(*kinds))

/* Turns of gateways take time in half of the worlds, whatever else is drawn. */
static uint64_t bursts_of(uint64_t seed, unsigned world)
{
	return (seed + world) * 0x9e3779b97f4a7c15u >> 63 ? F_BURSTS : 0;
}

/* What a seed without a kind draws. */
static unsigned calm_kind(uint64_t seed, bool cut)
{
	switch (seed / KINDS % 3) {
	case 1:
		return cut ? 0 : F_RESET;
	case 2:
		return F_IDLE;
	default:
		return 0;
	}
}

uint64_t sim_kind_of(uint64_t seed)
{
	unsigned kind = kinds[seed % KINDS];
	/* New connections of hosts that try for half a second are left out where a carrier may
	 * break, unnoticed, for as long, and where tenants may be guaranteed more than the path
	 * has. */
	bool calm = kind == (F_SQUEEZE | F_REUSE);

	/* Left out for drains: hosts that give up before a gateway is back, and more ATOMICs than a
	 * host remembers while several gateways in a row send them again. */
	bool drain = seed / KINDS % 16 == 15 && !(kind & (F_SQUEEZE | F_MASS));

	/*
	 * Resets are left out, too, when a gateway stops with custody: a request that the far host
	 * executed, unknown to the near gateway, would go again to a queue pair that begins at the
	 * same PSN.
	 */
	bool cut = drain && seed & 1;

	return kind | (kind ? 0 : calm_kind(seed, cut)) | bursts_of(seed, 0) |
	       (seed / KINDS % 2 ? F_KEYS : 0) | (seed / KINDS % 4 ? 0 : F_TENANTS) |
	       (seed / KINDS % 8 || calm ? 0 : F_CHANGES) | (seed / KINDS % 6 == 3 && !calm ? F_MOVES : 0) |
	       (drain ? F_DRAIN | (cut ? F_DRAIN_CUT : 0) : 0) |
	       (seed / KINDS % 5 == 2 && !(kind & F_SQUEEZE) && !drain ? F_SLOW : 0) |
	       (seed / KINDS % 7 == 4 && !(kind & F_SQUEEZE) && !drain ? F_BOUNDS : 0);
}

/* Hosts that are NICs, CM, resets of queue pairs, few packet buffers, a hostile host */
static const uint64_t nic_kinds[] = {F_NIC, F_NIC | F_RNR, F_NIC | F_LAN_LOSS, F_NIC | F_OUTAGE,
    F_NIC | F_CRASH_FAR, F_NIC | F_CRASH_NEAR, F_NIC | F_REUSE, F_NIC | F_RNR | F_LAN_LOSS, F_NIC | F_PAUSE,
    F_NIC | F_HOST, F_NIC | F_CRASH_BOTH, F_CM, F_CM | F_OUTAGE, F_CM | F_NIC | F_RNR, F_RESET_ALL,
    F_HOST | F_TOLD, F_IDLE | F_TOLD, F_NIC | F_OUTAGE | F_TOLD, F_POOL, F_HOSTILE | F_TENANTS, F_CAUSAL,
    F_CAUSAL | F_OUTAGE, F_CAUSAL | F_POOL, F_UNCARRIED, F_UNCARRIED | F_NIC | F_TOLD, F_CM | F_CRASH_NEAR,
    F_CM | F_CRASH_FAR, F_CM | F_IDLE, F_LAN_LOSS | F_RESET, F_LAN_LOSS | F_RESET_ALL};

/* Tunnels of several paths */
static const uint64_t path_kinds[] = {0, F_NIC, F_CRASH_FAR, F_CRASH_NEAR, F_LAN_LOSS, F_REUSE, F_OUTAGE,
    F_NIC | F_RNR, F_MOVES, F_SQUEEZE, F_PAUSE, F_TENANTS | F_CHANGES, F_CAUSAL, F_CM, F_DRAIN, F_MASS,
    F_NIC | F_OUTAGE, F_POOL, F_BOUNDS};

/* Hosts that answer late */
static const uint64_t late_kinds[] = {0, F_TENANTS, F_LAN_LOSS, F_PATHS, F_MASS, F_OUTAGE, F_CRASH_FAR,
    F_PAUSE, F_RNR, F_MOVES, F_TENANTS | F_CHANGES, F_HOST, F_POOL, F_STANDBY, F_STANDBY | F_CRASH_FAR,
    F_CRASH_NEAR};

/* Pairs of gateways */
static const uint64_t pair_kinds[] = {0, F_CRASH_NEAR, F_NIC, F_CRASH_FAR, F_LAN_LOSS, F_NIC | F_CRASH_NEAR,
    F_OUTAGE, F_MASS, F_PAUSE, F_NIC | F_CRASH_FAR, F_TENANTS, F_REUSE, F_RNR, F_BOUNDS, F_POOL,
    F_TENANTS | F_CHANGES, F_TOLD, F_CRASH_BOTH, F_PATHS, F_HOSTILE | F_TENANTS, F_SQUEEZE, F_BOTH_DIE,
    F_BOTH_DIE | F_NIC, F_BOTH_DIE | F_TENANTS, F_CROSS, F_MOVES, F_MOVES | F_CRASH_NEAR,
    F_MOVES | F_BOTH_DIE, F_NIC | F_OUTAGE, F_UNCARRIED};

/* Pairs of gateways with several workers */
static const uint64_t follower_kinds[] = {0, F_PAUSE, F_CRASH_NEAR, F_NIC, F_CRASH_FAR, F_LAN_LOSS,
    F_NIC | F_CRASH_NEAR, F_OUTAGE, F_MASS, F_TENANTS, F_REUSE, F_RNR, F_TOLD, F_CRASH_BOTH, F_PATHS,
    F_SQUEEZE, F_BOTH_DIE, F_HEAP, F_BOTH_DIE | F_TENANTS, F_CROSS, F_SMALL, F_CM, F_CM | F_CRASH_NEAR,
    F_POOL, F_BOUNDS, F_RATES, F_HOSTILE | F_TENANTS, F_UNCARRIED, F_LATE};

/* Reservations */
static const uint64_t rate_kinds[] = {0, F_LAN_LOSS, F_REUSE, F_OUTAGE, F_CRASH_FAR, F_TENANTS, F_CRASH_NEAR,
    F_TENANTS | F_CHANGES, F_MOVES, F_PATHS, F_POOL, F_MASS, F_PAUSE, F_CAUSAL, F_SLOW, F_BOUNDS, F_DRAIN,
    F_LATE, F_CM, F_STANDBY, F_CRASH_BOTH};

/* Many small messages in a row */
static const uint64_t small_kinds[] = {0, F_LAN_LOSS, F_CRASH_NEAR, F_PATHS, F_OUTAGE, F_MOVES, F_NIC,
    F_CRASH_FAR, F_POOL, F_REUSE, F_CAUSAL, F_TENANTS | F_CHANGES, F_SQUEEZE, F_PAUSE, F_DRAIN,
    F_NIC | F_LAN_LOSS, F_BOUNDS, F_STANDBY | F_CRASH_NEAR, F_HOST, F_SLOW};

/* Detours of what is lost repeatedly */
static const uint64_t detour_kinds[] = {0, F_LAN_LOSS, F_MOVES, F_CRASH_FAR, F_PATHS, F_REUSE, F_CRASH_NEAR,
    F_OUTAGE, F_TENANTS | F_CHANGES, F_SMALL, F_MASS, F_CAUSAL, F_PAUSE, F_MOVES | F_LAN_LOSS, F_BOUNDS, F_CM,
    F_SLOW, F_RATES, F_CRASH_BOTH, F_POOL, F_LATE};

/* Gateways that lose their journals */
static const uint64_t machine_kinds[] = {F_IDLE, F_CRASH_NEAR, F_NIC, F_DRAIN, F_CM, F_CRASH_FAR, F_TENANTS,
    F_CRASH_NEAR | F_TOLD, F_PATHS, F_CRASH_FAR | F_NIC, F_LAN_LOSS, F_DRAIN | F_TENANTS, F_POOL, F_BOUNDS,
    F_CRASH_FAR | F_HOST, F_TENANTS | F_CHANGES, F_MOVES, F_SLOW, F_DRAIN | F_PATHS, F_LATE, F_MASS, F_OUTAGE,
    F_SMALL, F_RATES, F_DETOUR};

/* Gateways of several workers */
static const uint64_t worker_kinds[] = {0, F_CM, F_LAN_LOSS, F_CRASH_FAR, F_REUSE, F_CRASH_NEAR, F_TENANTS,
    F_REUSE | F_LAN_LOSS, F_OUTAGE, F_CM | F_CRASH_NEAR, F_CRASH_BOTH, F_MASS, F_PAUSE, F_CM | F_CRASH_FAR,
    F_HOST, F_REUSE | F_TENANTS, F_IDLE, F_TOLD, F_MACHINE, F_SMALL, F_CM | F_OUTAGE, F_PATHS,
    F_REUSE | F_CRASH_FAR, F_RNR, F_UNCARRIED, F_SLOW, F_CM | F_REUSE, F_SQUEEZE, F_LATE, F_HEAP,
    F_CM | F_MACHINE};

static const uint64_t worker_kinds_more[] = {0, F_NIC, F_DRAIN, F_MOVES, F_TENANTS | F_CHANGES, F_CRASH_FAR,
    F_BOUNDS, F_POOL, F_NIC | F_CRASH_NEAR, F_DRAIN | F_REUSE, F_DETOUR, F_CRASH_NEAR | F_MOVES,
    F_NIC | F_RNR, F_REUSE, F_DRAIN | F_DRAIN_CUT, F_NIC | F_OUTAGE | F_TOLD, F_LAN_LOSS | F_MOVES,
    F_POOL | F_MASS, F_TENANTS | F_CHANGES | F_REUSE, F_NIC | F_REUSE, F_DRAIN | F_TENANTS,
    F_CM | F_NIC | F_RNR, F_BOUNDS | F_LAN_LOSS, F_PAUSE, F_NIC | F_CRASH_FAR, F_PATHS, F_MACHINE | F_DRAIN,
    F_CM | F_MOVES, F_HEAP, F_RESET, F_RESET_ALL, F_RESET | F_LAN_LOSS, F_RATES, F_RATES | F_REUSE,
    F_RATES | F_CRASH_NEAR, F_CM | F_MACHINE | F_HEAP};

/* Allocations fail */
static const uint64_t heap_kinds[] = {0, F_CRASH_FAR, F_MASS, F_CRASH_NEAR, F_REUSE, F_STANDBY, F_LAN_LOSS,
    F_TENANTS, F_CRASH_BOTH, F_DETOUR, F_CM, F_STANDBY | F_CRASH_NEAR, F_MOVES, F_CAUSAL, F_PATHS, F_IDLE,
    F_DRAIN, F_SMALL, F_OUTAGE, F_CRASH_FAR | F_SMALL, F_STANDBY | F_NIC, F_IDLE | F_CM,
    F_CRASH_NEAR | F_SMALL, F_CM | F_CRASH_NEAR, F_CRASH_BOTH | F_SMALL, F_CM | F_CRASH_FAR, F_LATE,
    F_MACHINE, F_MACHINE | F_REUSE, F_UNCARRIED, F_RESET_ALL, F_RESET, F_MACHINE | F_CM};

/* Gateways of several workers that keep causal order, or steer by address pair anyway */
static const uint64_t causal_worker_kinds[] = {F_CAUSAL, F_CAUSAL | F_OUTAGE, F_BY_PAIR,
    F_CAUSAL | F_CRASH_FAR, F_CAUSAL | F_REUSE, F_BY_PAIR | F_REUSE, F_CAUSAL | F_TENANTS,
    F_CAUSAL | F_CRASH_NEAR, F_BY_PAIR | F_CRASH_NEAR, F_CAUSAL | F_POOL, F_CAUSAL | F_PATHS,
    F_BY_PAIR | F_TENANTS | F_CHANGES, F_CAUSAL | F_MOVES, F_CAUSAL | F_SMALL, F_CAUSAL | F_DETOUR,
    F_BY_PAIR | F_NIC, F_CAUSAL | F_LAN_LOSS, F_CAUSAL | F_RATES, F_CAUSAL | F_PAUSE, F_CAUSAL | F_HEAP,
    F_BY_PAIR | F_CM, F_BY_PAIR | F_IDLE, F_BY_PAIR | F_RESET, F_BY_PAIR | F_DRAIN, F_CAUSAL | F_DRAIN,
    F_BY_PAIR | F_DRAIN | F_REUSE, F_BY_PAIR | F_DRAIN | F_TENANTS, F_BY_PAIR | F_DRAIN | F_DRAIN_CUT};

/* Pairs of gateways with several workers, whose tunnels move and whose tenants change */
static const uint64_t follower_kinds_more[] = {F_MOVES, F_TENANTS | F_CHANGES, F_MOVES | F_CRASH_NEAR,
    F_TENANTS | F_CHANGES | F_CRASH_FAR, F_MOVES | F_BOTH_DIE, F_TENANTS | F_CHANGES | F_MOVES,
    F_MOVES | F_CROSS, F_TENANTS | F_CHANGES | F_CRASH_NEAR, F_MOVES | F_LAN_LOSS,
    F_TENANTS | F_CHANGES | F_CROSS, F_MOVES | F_OUTAGE, F_TENANTS | F_CHANGES | F_LAN_LOSS,
    F_MOVES | F_REUSE, F_TENANTS | F_CHANGES | F_BOTH_DIE, F_MOVES | F_PATHS, F_TENANTS | F_CHANGES | F_REUSE,
    F_MOVES | F_PAUSE, F_MOVES | F_POOL, F_MOVES | F_MASS, F_MOVES | F_HEAP};

/* A hostile host beside hosts that CM connects, also at gateways of several workers */
static const uint64_t hostile_kinds[] = {
    0, F_WORKERS, F_STANDBY, F_WORKERS | F_BY_PAIR, F_STANDBY | F_FOLLOWERS};

/* Congested LANs */
static const uint64_t mark_kinds[] = {0, F_CRASH_FAR, F_WORKERS, F_REUSE, F_STANDBY, F_TENANTS | F_CHANGES,
    F_CRASH_NEAR, F_HOST, F_CAUSAL, F_LAN_LOSS | F_CRASH_FAR, F_WORKERS | F_CM, F_RESET_ALL, F_DRAIN, F_MOVES,
    F_STANDBY | F_FOLLOWERS, F_POOL, F_HEAP, F_MASS, F_OUTAGE, F_WORKERS | F_REUSE, F_CRASH_BOTH, F_PAUSE,
    F_SLOW, F_TENANTS | F_BOUNDS, F_RNR, F_MACHINE, F_RATES, F_LATE, F_PATHS, F_SMALL};

#define LIST(kinds) kinds, sizeof(kinds) / sizeof(*(kinds))

/* Every each-th seed has a world of each of these. */
static const struct further {
	const uint64_t *kinds;
	unsigned n;
	unsigned each;   /* seeds */
	uint64_t always; /* faults of all of them */
	/* Faults that are added to each kind one time of `of`. */
	uint64_t sometimes;
	unsigned of, at;
} further[SIM_FURTHER] = {
    /* without F_MOVES: a carrier may be broken, unnoticed, for longer than NICs wait */
    {LIST(nic_kinds), 4, 0, F_TENANTS, 3, 0},
    {LIST(path_kinds), 5, F_PATHS, F_KEYS, 2, 1},
    {LIST(late_kinds), 7, F_LATE, F_KEYS, 2, 1},
    {LIST(pair_kinds), 6, F_STANDBY, F_KEYS, 2, 1},
    {LIST(rate_kinds), 8, F_RATES, F_KEYS, 2, 1},
    {LIST(small_kinds), 8, F_SMALL, F_KEYS, 2, 1},
    {LIST(detour_kinds), 6, F_DETOUR, F_KEYS, 2, 1},
    {LIST(machine_kinds), 9, F_MACHINE, F_KEYS, 2, 1},
    {LIST(worker_kinds), 4, F_WORKERS, F_LAN_LOSS, 2, 1},
    {LIST(worker_kinds_more), 5, F_WORKERS, F_KEYS, 2, 1},
    {LIST(heap_kinds), 9, F_HEAP, F_KEYS, 2, 1},
    {LIST(follower_kinds), 5, F_STANDBY | F_FOLLOWERS, F_KEYS, 2, 1},
    {LIST(causal_worker_kinds), 6, F_WORKERS, F_KEYS, 2, 1},
    {LIST(follower_kinds_more), 7, F_STANDBY | F_FOLLOWERS, F_KEYS, 2, 1},
    {LIST(hostile_kinds), 10, F_HOSTILE | F_TENANTS | F_CM, F_KEYS, 2, 1},
    {LIST(mark_kinds), 6, F_MARKS, F_KEYS, 2, 1},
};

bool sim_kind_of_further(unsigned world, uint64_t seed, uint64_t *faults)
{
	const struct further *f = &further[world];
	uint64_t i = seed / f->each;

	if (seed % f->each)
		return false;
	*faults = f->always | f->kinds[i % f->n] | bursts_of(seed, world + 1) |
	          (i / f->n % f->of == f->at ? f->sometimes : 0);
	return true;
}
