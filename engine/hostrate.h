/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reaction point of a local host (DCQCN), shared by hostrate.c and turns.c. It lives from the
 * host's first CNP until the host takes its full rate again.
 */
#ifndef ENGINE_HOSTRATE_H
#define ENGINE_HOSTRATE_H

#include "cc/cc.h"
#include "engine/requester.h"
#include "rwy/pace.h"

struct eng_rp {
	struct rwy_ip host;
	uint32_t tenant;
	struct eng_rp *chain, *next;       /* in its bucket; in the list of all */
	struct eng_requester *head, *tail; /* queue of flows with requests for the host */
	struct cc_cfg cfg;
	const struct cc_ops *ops;
	rwy_time ticked, last_cnp;
	struct rwy_pace pace; /* when the next packet may go */
	rwy_dur late;         /* a late turn makes up for this time at most */
	uint64_t rate_Bps;    /* bytes a second */
	uint64_t taken;       /* bytes that the host acknowledged since taken_at, all flows */
	rwy_time taken_at;
	_Alignas(64) uint8_t state[CC_STATE_SIZE];
};

/* NULL: the host has none. */
struct eng_rp *eng_rp_find(struct eng *e, uint32_t tenant, const struct rwy_ip *host);
/* Puts a flow at the end of the queue; it must not be in one. */
void eng_rp_push(struct eng_rp *p, struct eng_requester *rq);
/* Takes the first flow; the queue must not be empty. */
struct eng_requester *eng_rp_pop(struct eng_rp *p);
/* Takes over the algorithm's rate. Call after each of its callbacks. */
void eng_rp_apply(struct eng_rp *p);
/* The host is at its full rate again, and its last CNP is long ago. */
bool eng_rp_over(const struct eng_rp *p, rwy_time now);
/* Frees the reaction point at *at, a link of the list of all; its flows go on unpaced. */
void eng_rp_end(struct eng *e, struct eng_rp **at);

#endif
