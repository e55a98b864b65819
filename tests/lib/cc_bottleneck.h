/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One bottleneck in virtual time, to test congestion control alone. Flows always have data (or a
 * demand), are paced and limited as their algorithm says, and share one FIFO queue with tail drop,
 * RED-like marking and random loss. Acknowledgements come in batches, a round trip later, in the
 * form of wan/. The seed decides all random values. It has no loss detection and retransmission;
 * tests with wan_pair have them.
 */
#ifndef TESTS_LIB_CC_BOTTLENECK_H
#define TESTS_LIB_CC_BOTTLENECK_H

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>

#include "cc/guard.h"

#define CC_BN_FLOWS 8

struct cc_bn_cfg {
	uint64_t rate_Bps;
	rwy_dur rtt;      /* without the queue */
	rwy_dur way_back; /* queueing delay on the reverse path, as cc_ack.reverse reports it */
	uint64_t queue_bytes;
	/* RED: no marks below min, all marked above max; 0: no marking */
	uint64_t mark_min, mark_max;
	uint32_t mark_ppm; /* at mark_max */
	uint32_t loss_ppm;
	bool cnp;        /* marks come back as CNPs, at most one in 50 us */
	rwy_dur step;    /* of virtual time */
	rwy_dur ack_gap; /* while data comes there is an ACK at least this often */
	uint32_t ack_pkts;
	uint32_t stalls; /* times per second that a sender's process is stopped; 0: never */
	rwy_dur stall_most;
	uint64_t seed;
};

struct cc_bn_pkt {
	rwy_time sent, first_sent, delivered_at, back; /* back: arrival of the ACK */
	rwy_dur way_back;
	uint64_t delivered;
	bool lost, marked, app;
};

struct cc_bn_flow {
	const struct cc_ops *ops;
	struct cc_cfg cfg;
	alignas(16) uint8_t state[CC_STATE_SIZE];
	struct cc_answer answer;
	rwy_time start, pace_at, ticked, next, last_ack, last_cnp;
	uint64_t demand_Bps;  /* 0: unlimited */
	uint64_t burst_bytes; /* the demand comes in bursts of so many bytes; 0: evenly */
	uint64_t backlog;     /* bytes of those bursts that are not sent yet */
	rwy_time burst_at;    /* time of the next burst */
	rwy_time stalled;     /* the process is stopped until then */
	struct cc_bn_pkt *ring;
	uint32_t cap, head, n;
	uint64_t inflight, delivered, lost, marked;
	rwy_time delivered_at, first_sent, min_rtt_at;
	rwy_dur min_rtt, rtt;
	uint64_t app_limited; /* as in wan_path */
	uint64_t nonsense;
	uint64_t from; /* delivered bytes when the present measurement began */
};

struct cc_bn {
	struct cc_bn_cfg cfg;
	struct cc_bn_flow flow[CC_BN_FLOWS];
	unsigned flows;
	rwy_time now, busy_until;
	uint64_t rng;
	/* Since cc_bn_measure(): */
	rwy_time from;
	uint64_t queue_max, drops;
	double queue_sum; /* bytes * steps */
	uint64_t steps;
};

/* 1 Gb/s, 20 ms, a queue of one BDP. */
void cc_bn_default(struct cc_bn_cfg *cfg);
void cc_bn_init(struct cc_bn *b, const struct cc_bn_cfg *cfg);
void cc_bn_fini(struct cc_bn *b);
/* Adds a flow that starts now. max_Bps: its configured maximum. Returns its number. */
unsigned cc_bn_add(struct cc_bn *b, const struct cc_ops *ops, uint64_t max_Bps);
void cc_bn_run(struct cc_bn *b, rwy_dur t);
/* Begins a measurement; the functions below report the time since then. */
void cc_bn_measure(struct cc_bn *b);
double cc_bn_share(const struct cc_bn *b, unsigned flow); /* of the bottleneck's rate */
double cc_bn_total(const struct cc_bn *b);
double cc_bn_jain(const struct cc_bn *b);
rwy_dur cc_bn_queue_mean(const struct cc_bn *b);
rwy_dur cc_bn_queue_most(const struct cc_bn *b);

#endif
