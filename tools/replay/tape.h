/* SPDX-License-Identifier: Apache-2.0 */
/* Packets of one flow in the order of the capture, before messages are made of them. Private to
 * the schedule. */
#ifndef TOOLS_REPLAY_TAPE_H
#define TOOLS_REPLAY_TAPE_H

#include <stdlib.h>

#include "tools/replay/schedule.h"

struct rp_raw {
	rwy_time at;
	struct rp_pkt pkt;
	uint64_t seq; /* RC packets of the capture before it */
	int64_t psn;  /* unwrapped, once the tape is sorted: modulo 2^24 it is the packet's */
};

struct rp_tape {
	struct rp_raw *v;
	uint32_t n, room;
};

/* In an_flow.user. */
struct rp_tapes {
	struct rp_tape requests, responses;
};

/*
 * In the order of PSNs, each once: the earliest one. answers: to these requests, or NULL. A request
 * is less than 2^23 PSNs from the one captured before it, an answer from the newest request.
 */
void rp_tapes_sort(struct rp_tape *requests, struct rp_tape *answers);
/* NULL: not captured. psn: as in rp_raw. The tape is sorted. */
const struct rp_raw *rp_tape_find(const struct rp_tape *t, int64_t psn);
/* The first packet with this PSN or a higher one; NULL: there is none. */
const struct rp_raw *rp_tape_from(const struct rp_tape *t, int64_t psn);

/* Makes side `i` of c; `answers` are the other flow's responses, or NULL. RWY_ENOMEM. */
RWY_MUST_CHECK int rp_side_make(
    struct rp_schedule *s, struct rp_conn *c, unsigned i, struct rp_tape *requests, struct rp_tape *answers);
/* Both sides are made: fills rp_msg.peers and .answers, by rp_side.away. */
void rp_conn_order(struct rp_conn *c);

#endif
