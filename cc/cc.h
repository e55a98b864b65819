/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pluggable congestion control: a const table of callbacks, one an event, over private state of fixed size.
 * An algorithm is one file. It never sees packets, sockets or clocks; it answers two numbers: a pacing rate
 * and a bound on bytes in flight. The caller (wan/) takes them through guard.h, which bounds nonsense.
 * docs/congestion-control.md: which algorithms there are, how to write one.
 */
#ifndef CC_CC_H
#define CC_CC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rwy/time.h"

#define CC_STATE_SIZE 1024

struct cc_cfg {
	uint64_t
	    rate_Bps; /* fixed: the rate; others: an upper bound, 0 = none. Bytes per second on the wire */
	uint64_t min_rate_Bps; /* never slower than this */
	uint32_t mtu;          /* datagram size, bytes */
	rwy_dur initial_rtt;   /* before the first sample */
};

/* An acknowledgement. */
struct cc_ack {
	uint64_t acked_bytes; /* newly acknowledged by this ACK */
	uint64_t lost_bytes;  /* newly declared lost together with it */
	rwy_time lost_sent;   /* when the newest of these was sent, 0 if none */
	uint64_t delivered;   /* total bytes delivered so far, after this ACK */
	uint64_t inflight;    /* bytes in flight after it */
	uint64_t rate_Bps; /* delivery-rate sample (draft-cheng-iccrg-delivery-rate-estimation), 0 if none */
	rwy_dur rtt;       /* RTT sample, 0 if none */
	rwy_dur reverse; /* of rtt: how much the reverse one-way delay is above that at the smallest RTT. What
	                 we send makes no queue there. rtt - reverse >= min_rtt; 0: no longer, or not known */
	rwy_dur spread;  /* by so much an RTT may differ without any queue: of a path that reorders; else 0 */
	rwy_dur min_rtt; /* the connection's minimum */
	uint64_t prior_delivered; /* `delivered` when the newest acked datagram was sent: a round has passed
	                             when it reaches the mark */
	bool app_limited;         /* the rate sample was taken while the sender had nothing to send */
	uint32_t ce_count;        /* newly reported ECN-CE marks */
};

/* Callbacks marked "may be NULL" are left out by an algorithm that has no use for the event. */
struct cc_ops {
	const char *name;
	void (*init)(void *state, const struct cc_cfg *cfg, rwy_time now);
	void (*on_sent)(void *state, uint32_t bytes, uint64_t inflight, rwy_time now); /* every datagram */
	void (*on_ack)(void *state, const struct cc_ack *ack, rwy_time now);
	/* Declared lost without an ACK. sent: when the newest of them was sent. */
	void (*on_lost)(void *state, uint64_t bytes, rwy_time sent, uint64_t inflight, rwy_time now);
	/* A whole PTO back-off without any ACK (outage). */
	void (*on_persistent)(void *state, rwy_time now);
	/* A congestion notification packet (RoCEv2 CNP) came for what this state paces. May be NULL. */
	void (*on_cnp)(void *state, rwy_time now);
	/* The configured rate is another from now on (the rest of cfg is as it was). May be NULL:
	 * then its answers are only bounded by it. */
	void (*on_limits)(void *state, const struct cc_cfg *cfg);
	/* Called at or after next(); may be NULL, then next() is too. next(): RWY_NEVER when nothing waits.
	 */
	void (*on_tick)(void *state, rwy_time now);
	rwy_time (*next)(const void *state);
	uint64_t (*rate)(const void *state);   /* pacing rate, bytes per second, min_rate .. configured */
	uint64_t (*window)(const void *state); /* bytes in flight allowed, >= 2 mtu */
	/* One line for people, at most 95 characters: what it knows, what phase it is in. */
	int (*print)(const void *state, char *out, size_t size);
};

extern const struct cc_ops cc_fixed; /* paces at cfg.rate_Bps; window = several BDP */
extern const struct cc_ops cc_auto;  /* finds the rate by itself, indifferent to random loss */
extern const struct cc_ops cc_bbr;   /* BBR version 3 after its draft */
extern const struct cc_ops cc_swift; /* holds a queueing delay */
extern const struct cc_ops cc_dcqcn; /* DCQCN's reaction point: CNPs and ECN marks */
extern const struct cc_ops cc_cubic; /* RFC 9438, as a reference */

/* NULL when there is no such algorithm. Names: "auto", "fixed", "bbr", "swift", "dcqcn", "cubic". */
const struct cc_ops *cc_find(const char *name);

#endif
