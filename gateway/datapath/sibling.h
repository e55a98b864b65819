/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's view of siblings (siblings.h). Only the worker writes it, except the set, which
 * another thread replaces between two of its turns. */
#ifndef GATEWAY_DATAPATH_SIBLING_H
#define GATEWAY_DATAPATH_SIBLING_H

#include "gateway/datapath/pkt.h"
#include "gateway/gw.h"

/* An assigned address pair, or one destination QP of the local host within it. */
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

/* The site's siblings and assigned pairs; constant. */
struct gw_sib_set {
	uint32_t gen; /* unique per content */
	unsigned n;   /* number of entries */
	struct {
		uint64_t id; /* rwy_spread_id; 0: a free entry */
		struct rwy_ip addr;
		bool lost;
	} sib[CONF_SIBLINGS_MAX];
	uint32_t own; /* factor of our tunnels' weights */
	unsigned rivals;
	struct eng_candidate *rival; /* tunnels of present siblings, */
	uint8_t *rival_of;           /* sibling of each rival */
	uint32_t mask;
	struct gw_sib_pair *pair; /* open addressing by gw_sib_hash; NULL: no pair is assigned */
};

/* The cached decision about a host's packets to one QP. */
struct gw_sib_flow {
	_Alignas(64) struct rwy_ip src;
	struct rwy_ip dst;
	uint64_t id;   /* id of the sibling */
	rwy_time last; /* time of the last packet; 0: empty */
	uint32_t dqpn;
	uint32_t gen;
	int8_t who; /* index in the set; -1: this gateway */
};
static_assert(sizeof(struct gw_sib_flow) == 64, "one cache line");

#define GW_SIB_WAYS  4
#define GW_SIB_FLOWS 16384 /* power of two */

struct gw_sib_worker {
	/* GW_SIB_WAYS entries per hash; the oldest is replaced */
	struct gw_sib_flow flow[GW_SIB_FLOWS];
	/* valid for table nt_gen and set gen; NULL: unknown */
	const struct gw_nh *hop[CONF_SIBLINGS_MAX];
	uint64_t nt_gen;
	uint32_t gen;
	bool all_known; /* the next hop of every present sibling is known */
	uint64_t sent[CONF_SIBLINGS_MAX];
};

/* Takes a packet that belongs to a sibling. False: it is ours. Call it only with siblings, on the
 * flow's owner. */
bool gw_sibling_take(struct gw_worker *w, struct rte_mbuf *m, const struct gw_pkt *k);

/* Frees a set and everything in it; NULL is allowed. control/siblings.c makes sets. */
void gw_sib_set_free(struct gw_sib_set *s);

#endif
