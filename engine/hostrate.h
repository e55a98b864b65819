/* SPDX-License-Identifier: Apache-2.0 */
/* The reaction point of one local host: what hostrate.c and turns.c share. */
#ifndef ENGINE_HOSTRATE_H
#define ENGINE_HOSTRATE_H

#include "cc/cc.h"
#include "engine/requester.h"

#define ENG_RP_PACE_BITS 26 /* fraction bits of ns a byte, as in wan/pace.c */

struct eng_rp {
	struct rwy_ip host;
	uint32_t tenant;
	struct eng_rp *chain, *next;       /* of its bucket; of all */
	struct eng_requester *head, *tail; /* flows that have something for it, in turn */
	struct cc_cfg cfg;
	const struct cc_ops *ops;
	rwy_time ticked, last_cnp;
	rwy_time at; /* when the next packet may go */
	uint32_t frac;
	uint64_t ns_fp;
	rwy_dur late;
	uint64_t rate_Bps;
	uint64_t taken; /* bytes the host acknowledged, of all flows, since: */
	rwy_time taken_at;
	_Alignas(64) uint8_t state[CC_STATE_SIZE];
};

struct eng_rp *eng_rp_find(struct eng *e, uint32_t tenant, const struct rwy_ip *host); /* NULL: none */
/* Flows that have something for it, in turn. */
void eng_rp_push(struct eng_rp *p, struct eng_requester *rq);
struct eng_requester *eng_rp_pop(struct eng_rp *p);
void eng_rp_apply(struct eng_rp *p);                    /* after anything that its rate depends on */
bool eng_rp_over(const struct eng_rp *p, rwy_time now); /* the host takes all again */
void eng_rp_end(struct eng *e, struct eng_rp **at);

#endif
