/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's view of siblings (siblings.h): written by it alone, but for the set, which another thread
 * exchanges between two of its turns. */
#ifndef GATEWAY_DATAPATH_SIBLING_H
#define GATEWAY_DATAPATH_SIBLING_H

#include "gateway/datapath/pkt.h"
#include "gateway/gw.h"

/* An address pair that is assigned, or one QP of it that the local host sends to. */
struct gw_sib_pair {
	struct rwy_ip local, remote;
	uint32_t dqpn; /* 0: all */
	int8_t who;
	bool used;
};

static inline uint32_t gw_sib_hash(const struct rwy_ip *local, const struct rwy_ip *remote, uint32_t dqpn)
{
	const uint32_t h = eng_owner_hash(local, remote) ^ dqpn * 0x9e3779b1u;

	return h ^ h >> 15;
}

static inline bool gw_sib_is(
    const struct gw_sib_pair *p, const struct rwy_ip *local, const struct rwy_ip *remote, uint32_t dqpn)
{
	return p->dqpn == dqpn && rwy_ip_eq(&p->local, local) && rwy_ip_eq(&p->remote, remote);
}

/* The site's siblings and assigned pairs; does not change. */
struct gw_sib_set {
	uint32_t gen; /* another one for each content */
	unsigned n;   /* places */
	struct {
		uint64_t id; /* rwy_spread_id; 0: a free place */
		struct rwy_ip addr;
		bool lost;
	} sib[CONF_SIBLINGS_MAX];
	uint32_t own; /* our tunnels' weights are times this */
	unsigned rivals;
	struct eng_candidate *rival; /* tunnels of siblings that live, */
	uint8_t *rival_of;           /*   whose each is */
	uint32_t mask;
	struct gw_sib_pair *pair; /* open addressing by gw_sib_hash; NULL: none is assigned */
};

/* The decision about a host's packets to one QP. */
struct gw_sib_flow {
	_Alignas(64) struct rwy_ip src;
	struct rwy_ip dst;
	uint64_t id;   /* of the sibling */
	rwy_time last; /* packet; 0: empty */
	uint32_t dqpn;
	uint32_t gen;
	int8_t who; /* place in the set; -1: here */
};
static_assert(sizeof(struct gw_sib_flow) == 64, "one cache line");

#define GW_SIB_WAYS  4
#define GW_SIB_FLOWS 16384 /* power of two */

struct gw_sib_worker {
	struct gw_sib_flow flow[GW_SIB_FLOWS];      /* GW_SIB_WAYS to a hash, the oldest is replaced */
	const struct gw_nh *hop[CONF_SIBLINGS_MAX]; /* of the table nt_gen and the set gen; NULL: not known */
	uint64_t nt_gen;
	uint32_t gen;
	bool all_known; /* every sibling that lives */
	uint64_t sent[CONF_SIBLINGS_MAX];
};

/* Takes a packet that is a sibling's. False: it is ours. There are siblings; the worker is the flow's owner.
 */
bool gw_sibling_take(struct gw_worker *w, struct rte_mbuf *m, const struct gw_pkt *k);

/* A set and what it points to; NULL is allowed. Sets are made by control/siblings.c. */
void gw_sib_set_free(struct gw_sib_set *s);

#endif
