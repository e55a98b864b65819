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
	uint64_t other;  /* rp_raw.seq where CM set up another connection; 0: none */
	uint64_t reused; /* requests from there on, which are not kept */
	bool made;       /* it is part of a rp_conn, or was */
};

/*
 * Where the requests are of another connection, by their PSNs: they go back farther than to what is
 * outstanding, of which READs have `reads` times the PSNs of the longest. rp_raw.seq of the first
 * of these requests, UINT64_MAX if there is none. The tape is not sorted.
 */
uint64_t rp_tape_other(const struct rp_schedule *s, const struct rp_tape *t, uint32_t pmtu, uint32_t reads);
/* Forgets packets from place `seq` of the capture on. How many. The tape is not sorted. */
uint32_t rp_tape_end(struct rp_tape *t, uint64_t seq);

/*
 * In the order of PSNs, each once: the earliest one. answers: to these requests, or NULL; those
 * before the first request are forgotten. A request is less than 2^23 PSNs from the one captured
 * before it, an answer from the newest request. There is a request.
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
