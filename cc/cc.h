/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pluggable congestion control: a const table of callbacks, one per event, over private state of
 * fixed size. Each algorithm is one file. It sees no packets, sockets or clocks, and returns two
 * numbers: a pacing rate and a bound on bytes in flight. The caller (wan/) reads them through
 * guard.h, which clamps them. docs/congestion-control.md lists the algorithms and tells how to
 * write one.
 */
#ifndef CC_CC_H
#define CC_CC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rwy/time.h"

#define CC_STATE_SIZE 1024

struct cc_cfg {
	/* bytes per second on the wire; fixed: the rate; others: an upper bound, 0: none */
	uint64_t rate_Bps;
	uint64_t min_rate_Bps; /* lower bound of the rate */
	uint32_t mtu;          /* datagram size, bytes */
	rwy_dur initial_rtt;   /* RTT assumed before the first sample */
};

/* An acknowledgement. */
struct cc_ack {
	uint64_t acked_bytes; /* newly acknowledged by this ACK */
	uint64_t lost_bytes;  /* newly declared lost together with it */
	rwy_time lost_sent;   /* sending time of the newest lost datagram; 0: none */
	uint64_t delivered;   /* total bytes delivered, this ACK included */
	uint64_t inflight;    /* bytes in flight after this ACK */
	/* delivery-rate sample (draft-cheng-iccrg-delivery-rate-estimation); 0: none */
	uint64_t rate_Bps;
	rwy_dur rtt; /* RTT sample; 0: none */
	/* The part of rtt by which the reverse one-way delay exceeds its value at the smallest RTT.
	 * Our data causes no queue there. rtt - reverse >= min_rtt; 0: no increase, or unknown. */
	rwy_dur reverse;
	rwy_dur spread;  /* variation of RTTs without a queue, on a path that reorders; else 0 */
	rwy_dur min_rtt; /* the connection's minimum */
	/* `delivered` when the newest acknowledged datagram was sent; a round ends when this
	 * reaches the value of `delivered` at the round's beginning */
	uint64_t prior_delivered;
	bool app_limited;  /* the rate sample was taken while the sender had nothing to send */
	uint32_t ce_count; /* newly reported ECN-CE marks */
};

/* An algorithm leaves callbacks marked "may be NULL" out when it does not need the event. */
struct cc_ops {
	const char *name;
	void (*init)(void *state, const struct cc_cfg *cfg, rwy_time now);
	/* Called for every datagram. */
	void (*on_sent)(void *state, uint32_t bytes, uint64_t inflight, rwy_time now);
	void (*on_ack)(void *state, const struct cc_ack *ack, rwy_time now);
	/* Datagrams were declared lost without an ACK. sent: sending time of the newest. */
	void (*on_lost)(void *state, uint64_t bytes, rwy_time sent, uint64_t inflight, rwy_time now);
	/* A whole PTO back-off passed without any ACK (outage). */
	void (*on_persistent)(void *state, rwy_time now);
	/* A congestion notification packet (RoCEv2 CNP) arrived for the flow that this state paces.
	 * May be NULL. */
	void (*on_cnp)(void *state, rwy_time now);
	/* The limit of the rate changed, by configuration or with this half's lease
	 * (wan/lease.h), which changes up to every 5 ms. The rest of cfg did not. May be NULL:
	 * then answers are only clamped to it. */
	void (*on_limits)(void *state, const struct cc_cfg *cfg);
	/* on_tick is called at or after next(). next() returns RWY_NEVER when no timer runs. Both
	 * may be NULL together. */
	void (*on_tick)(void *state, rwy_time now);
	rwy_time (*next)(const void *state);
	/* Pacing rate in bytes per second, min_rate .. configured rate. */
	uint64_t (*rate)(const void *state);
	/* Bytes allowed in flight, >= 2 mtu. */
	uint64_t (*window)(const void *state);
	/* Prints one line for operators, at most 95 characters: what it knows and its phase. */
	int (*print)(const void *state, char *out, size_t size);
};

extern const struct cc_ops cc_fixed; /* paces at cfg.rate_Bps; window = several BDP */
extern const struct cc_ops cc_auto;  /* finds the rate itself; insensitive to random loss */
extern const struct cc_ops cc_bbr;   /* BBR version 3 after its draft */
extern const struct cc_ops cc_swift; /* holds a target queueing delay */
extern const struct cc_ops cc_dcqcn; /* DCQCN's reaction point: CNPs and ECN marks */
extern const struct cc_ops cc_cubic; /* RFC 9438, as a reference */

/* Returns NULL when there is no such algorithm. Names: "auto", "fixed", "bbr", "swift", "dcqcn",
 * "cubic". */
const struct cc_ops *cc_find(const char *name);

#endif
