/* SPDX-License-Identifier: Apache-2.0 */
/* Steering: which tunnel a connection goes through (steer.c), and prefixes (route.c). */
#ifndef ENGINE_STEER_H
#define ENGINE_STEER_H

#include "engine/eng.h"
#include "engine/steering.h"

#define ENG_NO_TUNNEL ENG_TUNNELS_MAX

struct eng_share {
	uint32_t reservation;
	struct wan_class_cfg cfg;
};

/*
 * The tunnel for packets of a local host to a remote one: the assigned one, else one by prefix.
 * dqpn is the destination QPN, 0 for packets that are not of one QP. -1: none.
 */
int eng_steer(const struct eng *e, uint32_t tenant, const struct rwy_ip *local, const struct rwy_ip *remote,
    uint32_t dqpn);
/* An assignment names these packets, with or without their QP, and with or without a tunnel. */
bool eng_steer_names(
    const struct eng *e, uint32_t vni, const struct rwy_ip *src, const struct rwy_ip *dst, uint32_t dqpn);
/* The peer of the tunnel may speak for that remote host. */
bool eng_steer_allows(const struct eng *e, uint32_t tenant, const struct rwy_ip *local,
    const struct rwy_ip *remote, unsigned tunnel);
/* The assignment of these packets, by QP before by pair; NULL: none. */
const struct eng_steer_cfg *eng_steer_find(
    const struct eng *e, uint32_t vni, const struct rwy_ip *src, const struct rwy_ip *dst, uint32_t dqpn);
/* The shares of all reservations in the set. */
const struct eng_share *eng_steering_shares(const struct eng_steering *w, uint32_t *n);
/* Counts the side in another tunnel; its flows must be closed. */
void eng_side_move(struct eng_side *side, unsigned tunnel);

/* --- route.c: longest prefix match, pure functions --- */
/* A bit for each tunnel that has the longest prefix of dst; 0: none. */
uint64_t eng_route_set(const struct eng_prefix *prefix, unsigned n, const struct rwy_ip *dst);
/* The first of those tunnels; -1: none. */
int eng_route_of(const struct eng_prefix *prefix, unsigned n, const struct rwy_ip *dst);

#endif
