/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LANs that are congested at times (F_MARKS): switches mark hosts' packets, so that gateways send
 * CNPs to these hosts, and hosts that receive send CNPs, which slow their gateway down (DCQCN's
 * reaction point). Hosts here ignore the CNPs that they get. Some CNPs are for nobody.
 */
#include "tests/sim/explore.h"

#include "roce/build.h"
#include "rwy/checksum.h"
#include "rwy/endian.h"
#include "rwy/hash.h"

#define SPELL    (30 * RWY_MS) /* a third of these is congested */
#define CNP_EACH (50 * RWY_US) /* of a queue pair, at most */
#define CE       3
#define TTL      64

static bool congested(const struct run *r, unsigned site, rwy_time now)
{
	return r->faults & F_MARKS && rwy_hash(r->cfg.seed + site, now / SPELL) % 3 == 0;
}

void sim_marks_sent(struct run *r, const struct side *s, uint8_t *ip, rwy_time now)
{
	if (congested(r, s->site, now) && sim_chance(&r->mark_rng, .3))
		rwy_ip4_set16(ip, 0, rwy_get16(ip) | CE);
}

void sim_marks_received(struct run *r, struct side *s, const struct roce_pkt *pkt, rwy_time now)
{
	uint8_t out[ROCE_BUILD_MAX];
	struct roce_addr a = {.src = pkt->dst,
	    .dst = pkt->src,
	    .dqpn = s->h.cfg.peer_qpn,
	    .sport = pkt->sport,
	    .pkey = pkt->pkey,
	    .ttl = TTL};

	if (!congested(r, s->site, now) || now < s->cnp_at || pkt->info->op == ROCE_OP_CNP ||
	    !sim_chance(&r->mark_rng, .5))
		return;
	s->cnp_at = now + CNP_EACH;
	if (sim_chance(&r->mark_rng, .02))
		a.dqpn = sim_below(&r->mark_rng, 1u << 24);
	sim_host_tx(r->w, s->site, s->tenant, out, roce_build_cnp(out, &a));
}
