/* SPDX-License-Identifier: Apache-2.0 */
/* Which tunnel a connection goes through (steer.c), and prefixes (route.c). */
#ifndef ENGINE_STEER_H
#define ENGINE_STEER_H

#include "engine/eng.h"

#define ENG_NO_TUNNEL ENG_TUNNELS_MAX

/* The tunnel for what a local host sends to a remote one, -1: none. */
int eng_steer(const struct eng *e, uint32_t tenant, const struct rwy_ip *local, const struct rwy_ip *remote,
    uint32_t dqpn);
/* Whether the peer of a tunnel may speak for that remote host. */
bool eng_steer_allows(const struct eng *e, uint32_t tenant, const struct rwy_ip *local,
    const struct rwy_ip *remote, unsigned tunnel);
void eng_side_move(struct eng_side *side, unsigned tunnel);

/* --- route.c --- */
/* The set of tunnels that the longest prefix of dst is behind. */
uint64_t eng_route_set(const struct eng_prefix *prefix, unsigned n, const struct rwy_ip *dst);
int eng_route_of(const struct eng_prefix *prefix, unsigned n, const struct rwy_ip *dst);

#endif
