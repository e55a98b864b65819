/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tunnels are added, changed and removed while traffic runs; other tunnels go on undisturbed. Those
 * of eng_cfg are there from the start. A tunnel is a number below ENG_TUNNELS_MAX; a free one may
 * be used.
 */
#ifndef ENGINE_TUNNEL_H
#define ENGINE_TUNNEL_H

#include "engine/engine.h"

struct eng_tunnel_new; /* a tunnel that no engine has yet */
/*
 * Any thread: allocates a tunnel, so that the worker need not. cfg->wan must have an epoch and an
 * index. The caller frees *out with eng_tunnel_unmake or adds it. RWY_EINVAL, RWY_ENOMEM.
 */
RWY_MUST_CHECK int eng_tunnel_make(struct eng_tunnel_new **out, struct eng *e, unsigned tunnel,
    const struct eng_tunnel_cfg *cfg, rwy_time now);
/* Any thread: frees one that eng_tunnel_add did not take. NULL allowed. */
void eng_tunnel_unmake(struct eng_tunnel_new *n);
/*
 * Takes n. No destination is behind the tunnel before eng_prefixes_set or eng_tenant_set names it;
 * a tenant's share of it is set with the next eng_tenant_set. RWY_EINVAL: the number is in use; n
 * stays the caller's.
 */
RWY_MUST_CHECK int eng_tunnel_add(struct eng *e, unsigned tunnel, struct eng_tunnel_new *n);
struct eng_tunnel_tune {
	uint64_t rate_Bps;  /* of all workers together */
	uint32_t rx_window; /* this and the next two as in wan_cfg */
	uint64_t rx_bytes;
	struct wan_congest_cfg congest;
	uint16_t weight;
	unsigned paths; /* this and the next three as in wan_cfg; 0: all as they are */
	enum wan_path_use use[WAN_PATHS_MAX];
	uint32_t mtu[WAN_PATHS_MAX];
	uint64_t path_rate_Bps[WAN_PATHS_MAX]; /* of all workers together */
	uint32_t anew;                         /* bit mask of paths whose addresses changed */
	rwy_dur path_probe;
};
/*
 * Sets another rate, credit, weight and other thresholds, and what paths are used for; a path above
 * `paths` is used no more. Does nothing for a free number. RWY_ENOMEM, RWY_EINVAL (wan_retune_use):
 * a path is used as before; all else is set.
 */
RWY_MUST_CHECK int eng_tunnel_set(
    struct eng *e, unsigned tunnel, const struct eng_tunnel_tune *tune, rwy_time now);
/* This worker's lease of the rates, and the one that it would use (wan_retune_lease,
 * wan_lease_wanted). A free number: the first does nothing, the second returns 0. */
void eng_tunnel_lease_set(struct eng *e, unsigned tunnel, uint32_t lease);
uint32_t eng_tunnel_lease_wanted(struct eng *e, unsigned tunnel, rwy_dur span);
/* Keys of a tunnel: wan_keys_offer, wan_keys_reserve, wan_keys_kept, wan_keys_keep, wan_keys_use,
 * wan_keys_end. RWY_ENOENT: a free number, for which those without a result do nothing. */
RWY_MUST_CHECK int eng_tunnel_keys_offer(
    struct eng *e, unsigned tunnel, const struct wan_secrets *secrets, rwy_time now);
RWY_MUST_CHECK int eng_tunnel_keys_reserve(
    struct eng *e, unsigned tunnel, const struct wan_secrets *secrets, rwy_time now);
void eng_tunnel_keys_kept(struct eng *e, unsigned tunnel);
RWY_MUST_CHECK int eng_tunnel_keys_keep(
    struct eng *e, unsigned tunnel, const struct wan_secrets *secrets, rwy_time now);
void eng_tunnel_keys_use(struct eng *e, unsigned tunnel, rwy_time now);
void eng_tunnel_keys_end(struct eng *e, unsigned tunnel, rwy_time now);
struct eng_tunnel_old; /* a tunnel that is in no engine */
/*
 * The tunnel accepts no new connection; the sweep removes its connections in steps, and releases
 * their custody. If its far end is asked which gateway of the pair serves, it stays until that has
 * answered, for at most five seconds. True: it is removed, and the caller owns *out, for
 * eng_tunnel_gone(); *out is NULL if the number was free. False: call again later.
 */
bool eng_tunnel_remove(struct eng *e, unsigned tunnel, struct eng_tunnel_old **out, rwy_time now);
/* It stays for that reason: what comes from its far end is for the engine, as before. */
bool eng_tunnel_asked(const struct eng *e, unsigned tunnel);
/* Any thread: frees it. NULL allowed. */
void eng_tunnel_gone(struct eng_tunnel_old *t);
/* The tunnel exists and is not being removed. */
bool eng_tunnel_there(const struct eng *e, unsigned tunnel);

#endif
