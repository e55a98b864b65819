/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One TCP connection that always has data, as a queue sees it. It has a congestion control of cc/
 * with pacing and window, segments in bursts as segmentation offload makes them, and
 * acknowledgements in batches. Every loss is known and repeated a round trip later (SACK without
 * its corner cases). cubic begins with ten segments and leaves slow start when the round trip grows
 * (HyStart, RFC 9406 section 4.2, without CSS). Every segment that arrives is new data, so
 * throughput is goodput. It has no handshake, retransmission timeout, receive window or congested
 * reverse path.
 */
#ifndef SIM_WAN_TCP_H
#define SIM_WAN_TCP_H

#include <stdalign.h>

#include "cc/guard.h"
#include "tests/sim/wan/line.h"
#include "tests/sim/wan/loss.h"

struct tcp_seg {
	rwy_time sent, first_sent, delivered_at, back; /* back: when the sender learns of it */
	uint64_t delivered;
	bool lost, ce;
};

struct tcp_cfg {
	const struct cc_ops *ops;
	struct line *line;
	rwy_dur rtt;
	double loss, burst;
	uint32_t mtu, overhead; /* of an IP packet; added by the wire */
	rwy_time start, stop;
	uint64_t seed;
};

struct tcp {
	struct tcp_cfg cfg;
	struct cc_cfg cc_cfg;
	alignas(16) uint8_t state[CC_STATE_SIZE];
	struct cc_answer answer;
	struct loss loss;
	rwy_time now, pace_at, ticked, tick_at, min_rtt_at;
	rwy_time next; /* when tcp_run() is due */
	struct tcp_seg *ring;
	uint32_t cap, head, n;
	uint32_t burst; /* segments */
	uint64_t inflight, delivered;
	rwy_time delivered_at, first_sent;
	rwy_dur min_rtt;
	/* HyStart. */
	bool start;
	uint64_t round_ends;
	rwy_dur round_min, last_min;
	/* Counts. */
	uint64_t passed, sent, lost; /* wire bytes that reach the other end; segments */
};

bool tcp_init(struct tcp *f, const struct tcp_cfg *cfg);
void tcp_fini(struct tcp *f);
/* Executes all that is due at f->next; then f->next is later, or RWY_NEVER. */
void tcp_run(struct tcp *f);

#endif
