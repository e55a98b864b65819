/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of "auto": its state, and what follows from it at once. auto.c has the phases and
 * answers, auto_probe.c the cycle that looks for more, auto_queue.c whose the queue is, auto_loss.c
 * what a round's losses mean, auto_path.c whether the path is another one. Rates are bytes per second,
 * times ns.
 */
#ifndef CC_AUTO_H
#define CC_AUTO_H

#include <assert.h>

#include "cc/auto_tcp.h"
#include "cc/limits.h"

#define GAIN_ONE      256u
#define SHARE_ONE     65536u
#define LOSS_ROUNDS   10
#define BW_ROUNDS     10
#define SHARED_ROUNDS 64 /* after a sign of others: they are likely to be here so long */
#define LATE_ACKS     8 /* so many ACKs in a row with a queue's delay end startup before the queue overflows */
#define SLACK         (5 * RWY_MS) /* how late a sleeping or descheduled process may acknowledge */

enum phase { STARTUP, DRAIN, PROBE, PROBE_RTT, COMPETE };

struct cc_auto {
	struct cc_cfg cfg;
	enum phase phase;
	uint8_t cycle, full_count, bw_at, loss_at, skip_rounds, late_acks;
	bool growing;        /* the last fast phase found more */
	bool round_useful;   /* a sample of this round was not application-limited */
	bool recovering;     /* an outage ended the last round: its rounds tell nothing */
	uint64_t next_round; /* `delivered` that ends the present round */
	uint64_t rounds;
	uint64_t bw[BW_ROUNDS];             /* the best sample of each of the last useful rounds */
	uint64_t bw_max, full_bw, cycle_bw; /* cycle_bw: bw_max when the fast phase began */
	uint32_t loss[LOSS_ROUNDS];         /* share lost in each of the last rounds */
	uint64_t round_acked, round_lost, round_marked;
	uint64_t round_best; /* best sample of this round, bytes per second */
	rwy_dur round_rtt;   /* smallest RTT of this round, RWY_NEVER: none */
	rwy_dur min_rtt, probe_min;
	/* How much longer the reverse delay is (cc_ack.reverse): when min_rtt and probe_min were seen; at
	 * least, in this round and in the last one */
	rwy_dur reverse_at_min, reverse_at_probe, round_reverse, reverse;
	rwy_dur far_rtt;     /* smallest RTT of the last rounds that were far beyond min_rtt */
	uint32_t far_rounds; /* how many these are */
	rwy_time min_rtt_at, phase_at, probe_rtt_until;
	uint32_t idle_rounds; /* in a row with little to send and a delay beyond min_rtt */
	rwy_dur idle_rtt;     /* the smallest of these */
	rwy_time idle_at;     /* when the first ended */
	uint32_t makeup;      /* 1 / (1 - random loss), in 1/256 */
	uint32_t deviation;   /* of that share */
	rwy_time round_at;    /* when this round began */
	rwy_dur round_most;   /* largest RTT of this round */
	rwy_dur round_sum;    /* of its RTT samples, and how many they are */
	uint32_t round_samples;
	rwy_dur spread;          /* as the last ACK told it */
	rwy_dur last_rtt, noise; /* by how much one RTT sample differs from the one before it, smoothed */
	uint32_t random;         /* share lost in rounds without a queue, smoothed */
	uint32_t stand_rounds;   /* so many in a row found a queue all the time */
	uint8_t blocked;         /* drains in a row that the queue survived */
	uint8_t learned;         /* rounds that `random` is of, up to LOSS_MEMORY */
	uint8_t calm;            /* rounds in a row that never saw a queue, up to CALM */
	uint8_t vain;            /* fast phases in a row that brought nothing, beside others */
	uint64_t probe_round;    /* beside others: the next fast phase */
	uint64_t shared;         /* until this round others are likely to be here */
	uint64_t probed;         /* until this round our own probing may show */
	bool overfull;           /* the last round lost more than the path's own */
	uint8_t suspect;         /* two more for such a round, one less for another with as long a queue */
	rwy_dur full_rtt;        /* the shortest of those queues, as the largest RTT of its round */
	uint64_t
	    check_round;     /* when this one ends we know whether a drain emptied the queue, 0: none waits */
	rwy_dur drain_min;   /* smallest RTT since the last drain began */
	rwy_dur drain_top;   /* the largest of the rounds' smallest since it ended */
	rwy_dur drain_rtt;   /* and of the round before it; 0: the drain that ends startup */
	uint64_t drain_rate; /* delivered in the round before it, bytes per second */
	uint64_t drain_from, drain_left; /* in flight when it began and when it ended */
	bool deep_drain;                 /* it takes half of that off the path */
	bool accused;      /* the drain is to tell whether losses come from a queue: see accuse() */
	uint64_t tried;    /* until this round another accusation needs no drain */
	uint8_t refuted;   /* new paths in a row that were none */
	rwy_time moved_at; /* when the path was last taken for another one, 0: never */
	rwy_dur old_rtt;   /* its smallest RTT before, RWY_NEVER: that is not in doubt any more */
	uint64_t old_peak;
	/* before the first of those drains: */
	rwy_dur rtt_before;
	uint64_t rate_before, window_before; /* delivered; in flight */
	uint32_t seed;
	struct cc_tcp tcp;
	uint64_t round_rate; /* what the last round delivered, bytes per second */
	uint64_t peak; /* the most that one did, forgotten in thousands of rounds: about the path's rate */
	uint64_t rate, window;
};
static_assert(sizeof(struct cc_auto) <= CC_STATE_SIZE, "private state fits");

static inline rwy_dur model_rtt(const struct cc_auto *m)
{
	return m->min_rtt != RWY_NEVER ? m->min_rtt : m->cfg.initial_rtt;
}

/* Bytes in flight without a queue of ours: in the forward direction without any queue, in the reverse
 * direction with the queue of others. */
static inline uint64_t model_bdp(const struct cc_auto *m, unsigned gain)
{
	return cc_bytes_in(m->bw_max, model_rtt(m) * gain / GAIN_ONE + m->reverse);
}

/* The same with what is under way and will not arrive. */
static inline uint64_t model_bdp_sent(const struct cc_auto *m, unsigned gain)
{
	return model_bdp(m, gain) * m->makeup / GAIN_ONE;
}

/* An RTT beyond this, all through a round: a queue stands. */
static inline rwy_dur model_empty_rtt(const struct cc_auto *m)
{
	return model_rtt(m) + model_rtt(m) / 16 + RWY_MS / 2 + m->spread;
}

/* The same for a mean of RTTs: processes that sleep make it longer without any queue. */
static inline rwy_dur model_empty_mean(const struct cc_auto *m)
{
	return model_empty_rtt(m) + 2 * m->noise;
}

static inline rwy_dur round_mean(const struct cc_auto *m)
{
	return m->round_samples ? m->round_sum / m->round_samples : 0;
}

/* An RTT that says "there is a queue", and not only "a process slept". */
static inline bool model_is_late(const struct cc_auto *m, rwy_dur rtt)
{
	return m->min_rtt != RWY_NEVER &&
	       rtt > m->min_rtt + rwy_time_min(m->min_rtt / 4, 8 * RWY_MS) + 2 * RWY_MS + m->spread;
}

static inline void cc_auto_enter(struct cc_auto *m, enum phase p, rwy_time now)
{
	m->phase = p;
	m->phase_at = now;
}

/* At the end of a round: the smallest RTTs of several lie beyond what our own window can queue. */
void cc_auto_round_path(struct cc_auto *m, rwy_time now);

/* Some rounds after a drain, `blocked` counted: true when they show that the delay is the path's. Then
 * it probes, with the new smallest RTT. */
bool cc_auto_drained(struct cc_auto *m, rwy_time now);

/* It begins to compete; there is an RTT smaller than min_rtt. Both may show that the path was not another
 * one. */
void cc_auto_path_shared(struct cc_auto *m, rwy_time now);
void cc_auto_path_lower(struct cc_auto *m, rwy_dur rtt, rwy_time now);

/* While it competes, after a test: our packets were out of the path and the RTT stayed at `rtt`. True when
 * startup has begun with that as the smallest RTT. */
bool cc_auto_unmoved(struct cc_auto *m, rwy_dur rtt, rwy_time now);

/* The longest that a drain may last: until the first ones have shown what they do to the delay, a true round
 * trip. */
rwy_dur cc_auto_drain_most(const struct cc_auto *m);

/* Pacing gain of the present phase of the cycle, in 1/256. */
unsigned cc_auto_cycle_gain(const struct cc_auto *m);

/* Each ACK while it probes: goes on to the next phase of the cycle when this one is over. */
void cc_auto_cycle_step(struct cc_auto *m, const struct cc_ack *ack, rwy_time now);

/* Each RTT sample; more: of it, what the reverse delay is above its usual. */
void cc_auto_queue_sample(struct cc_auto *m, rwy_dur rtt, rwy_dur more);

/* At the end of a round, after its losses and its path: drains, or competes. */
void cc_auto_round_queue(struct cc_auto *m, const struct cc_ack *ack, rwy_time now);

/* In flight when a drain ends: bytes. */
uint64_t cc_auto_drain_target(const struct cc_auto *m);

/* At the end of a round: learns the path's own losses, what is sent more for them, and whether this round
 * lost more than that (overfull). Shrinks the model when loss or marks came with a clearly risen delay. */
void cc_auto_round_losses(struct cc_auto *m);

#endif
