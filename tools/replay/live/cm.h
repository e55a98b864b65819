/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CM of a replay on a LAN: the hosts set up and end their connections with the messages of the
 * capture, with the new queue pair numbers, PSNs and addresses, and communication IDs of this run.
 * A step follows the one before it; one that gets no answer is sent again.
 */
#ifndef TOOLS_REPLAY_LIVE_CM_H
#define TOOLS_REPLAY_LIVE_CM_H

#include "tools/replay/cm.h"

struct rp_live;

/* The set-up of a connection, and how far it is. */
struct rp_live_cm {
	struct rp_setup setup;
	uint32_t next;  /* step that is sent, or comes, next */
	rwy_time moved; /* when the one before it was sent, or came */
	rwy_time ask;   /* when an unanswered one is sent again; RWY_NEVER: all are answered */
};

/* After the connections were chosen. RWY_ENOMEM. */
RWY_MUST_CHECK int rp_live_cm_new(struct rp_live *l);
void rp_live_cm_free(struct rp_live *l);
/* Time of the capture at which the run begins: of the first message, CM or other. */
rwy_time rp_live_base(const struct rp_live *l);
/* Sends what is due; returns when to call again. closing: both have all, connections end. */
rwy_time rp_live_cm_poll(struct rp_live *l, bool closing, rwy_time now);
/* A packet of the peer to queue pair 1. */
void rp_live_cm_recv(struct rp_live *l, const struct roce_pkt *pkt, rwy_time now);
/* Every step was sent, or came. */
bool rp_live_cm_over(const struct rp_live *l);

#endif
