/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's view of siblings (siblings.h): the published set, and what the worker alone writes. */
#ifndef GATEWAY_DATAPATH_SIBLING_H
#define GATEWAY_DATAPATH_SIBLING_H

#include "gateway/datapath/sibling_seal.h"
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

/*
 * The site's siblings and assigned pairs; does not change. Made and published by
 * control/siblings.c.
 */
struct gw_sib_set {
	uint32_t gen; /* 1..; another one for each content */
	unsigned n;   /* places */
	struct {
		uint64_t id; /* rwy_spread_id; 0: a free entry */
		struct rwy_ip addr;
		bool lost;
	} sib[CONF_SIBLINGS_MAX];
	bool sealed; /* packets are handed on with the site's seal (sibling_seal.h) */
	uint8_t key[BASE_SIPHASH_KEY];
	uint32_t own; /* factor of our tunnels' weights */
	unsigned candidates;
	struct eng_candidate *candidate; /* tunnels of present siblings, */
	uint8_t *candidate_of;           /* sibling of each */
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
	bool all_known;                 /* every sibling that lives */
	uint64_t id[CONF_SIBLINGS_MAX]; /* who has the place; 0: nobody */
	uint64_t sent[CONF_SIBLINGS_MAX];
};

/* NULL: this gateway is alone. Workers, for a turn. */
static inline const struct gw_sib_set *gw_sib_set_of(const struct gw_app *app)
{
	return gw_published_get(app->publisher, GW_SIBLINGS);
}

/* The worker has another set than in the turn before. */
void gw_sibling_begin(struct gw_worker *w);

/*
 * Takes a packet that is a sibling's. False: it is ours. There are siblings; the worker is the
 * flow's owner.
 */
bool gw_sibling_take(struct gw_worker *w, struct rte_mbuf *m, const struct gw_pkt *k);

#endif
