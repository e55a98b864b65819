/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two replays of one capture agree over TCP: addresses, queue pair numbers, first PSNs; then when
 * to begin, and that both are done. One JSON object a message. One thread.
 */
#ifndef TOOLS_REPLAY_LIVE_PAIR_H
#define TOOLS_REPLAY_LIVE_PAIR_H

#include "tools/replay/live/raw.h"
#include "tools/replay/schedule.h"

/* A queue pair of a connection of the schedule, at one end. */
struct rp_end {
	uint32_t conn; /* index in the schedule */
	uint32_t qpn;
	roce_psn psn; /* first one that it sends */
};

struct rp_pair {
	int fd;
	uint32_t ends;
	struct rp_end *mine, *theirs; /* in the same order */
};

/* True for "HOST:PORT" and ":PORT", with the number of a port. */
bool rp_pair_is(const char *where);
/*
 * Connects to "HOST:PORT", or waits for the other one at ":PORT", up to `wait`. 0, or -1 and *err.
 */
int rp_pair_open(struct rp_pair *p, const char *where, rwy_dur wait, struct rp_error *err);
/*
 * Tells p->mine (`ends` of them), the address `ip` and the host that is played, and hears the
 * other's: p->theirs. peer: the address that the other one must have. 0, or -1 and *err: it plays
 * another capture, or the same host.
 */
int rp_pair_agree(struct rp_pair *p, const struct rp_schedule *s, const struct rwy_ip *as,
    const struct rwy_ip *ip, const struct rwy_ip *peer, struct rp_error *err);
/* Both are ready: returns about when the other one does. */
int rp_pair_begin(struct rp_pair *p, struct rp_error *err);
/* This side has all; the other one may go. */
void rp_pair_done(struct rp_pair *p);
/* The other one has all, or is gone (*gone). Does not wait. */
bool rp_pair_is_done(struct rp_pair *p, bool *gone);
void rp_pair_close(struct rp_pair *p);

#endif
