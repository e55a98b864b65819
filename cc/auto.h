/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State of "auto" and its small helpers, private to its files. auto.c has the phases and the
 * answers, auto_probe.c the cycle that probes for more, auto_queue.c decides who causes the queue,
 * auto_loss.c what a round's losses mean, auto_path.c whether the path has changed. Rates are bytes
 * per second, times ns.
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
#define SHARED_ROUNDS 64 /* rounds after a sign of other senders in which they probably remain */
/* ACKs in a row with a queue's delay that end startup, before the queue overflows */
#define LATE_ACKS 8
#define SLACK     (5 * RWY_MS) /* how late a sleeping or descheduled process may acknowledge */

enum phase { STARTUP, DRAIN, PROBE, PROBE_RTT, COMPETE };

struct cc_auto {
	struct cc_cfg cfg;
	enum phase phase;
	uint8_t cycle, full_count, bw_at, loss_at, skip_rounds, late_acks;
	bool growing; /* the last fast phase found more bandwidth */
	/* at least one rate sample of this round was not application-limited */
	bool round_useful;
	bool recovering;     /* an outage ended the last round: the next rounds prove nothing */
	uint64_t next_round; /* `delivered` that ends the present round */
	uint64_t rounds;
	uint64_t bw[BW_ROUNDS];             /* best sample of each of the last useful rounds */
	uint64_t bw_max, full_bw, cycle_bw; /* cycle_bw: bw_max when the fast phase began */
	uint32_t loss[LOSS_ROUNDS];         /* share lost in each of the last rounds */
	uint64_t round_acked, round_lost, round_marked;
	uint64_t round_best; /* best sample of this round, bytes per second */
	rwy_dur round_rtt;   /* smallest RTT of this round; RWY_NEVER: none */
	rwy_dur min_rtt, probe_min;
	/* Increase of the reverse delay (cc_ack.reverse): when min_rtt and probe_min were seen; and
	 * the smallest of this round and of the last one. */
	rwy_dur reverse_at_min, reverse_at_probe, round_reverse, reverse;
	rwy_dur far_rtt;     /* smallest RTT of the last rounds that were far above min_rtt */
	uint32_t far_rounds; /* number of these rounds */
	rwy_time min_rtt_at, phase_at, probe_rtt_until;
	uint32_t idle_rounds; /* rounds in a row with little to send and a delay above min_rtt */
	rwy_dur idle_rtt;     /* smallest RTT of these rounds */
	rwy_time idle_at;     /* end of the first of these rounds */
	uint32_t makeup;      /* 1 / (1 - random loss), in 1/256: sent more to make up for it */
	uint32_t deviation;   /* mean deviation of `random` */
	rwy_time round_at;    /* beginning of this round */
	rwy_dur round_most;   /* largest RTT of this round */
	rwy_dur round_sum;    /* sum of the RTT samples of this round */
	uint32_t round_samples;
	rwy_dur spread;          /* cc_ack.spread of the last ACK */
	rwy_dur last_rtt, noise; /* noise: smoothed difference of consecutive RTT samples */
	uint32_t random;         /* smoothed share lost in rounds without a queue */
	uint32_t stand_rounds;   /* rounds in a row with a standing queue */
	uint8_t blocked;         /* drains in a row that the queue survived */
	uint8_t learned;         /* number of rounds in `random`, up to LOSS_MEMORY */
	uint8_t calm;            /* rounds in a row without any queue, up to CALM */
	uint8_t vain;            /* fast phases in a row that found nothing, while sharing */
	uint64_t probe_round;    /* round of the next fast phase, while sharing */
	uint64_t shared;         /* round until which other senders are probably here */
	uint64_t probed;         /* our own probing may cause a queue until this round */
	bool overfull;           /* the last round lost more than the path's own share */
	/* suspicion: two more for an overfull round, one less for another with as long a queue */
	uint8_t suspect;
	rwy_dur full_rtt; /* shortest queue of overfull rounds, as the largest RTT of its round */
	/* the round whose end shows whether the drain emptied the queue; 0: no drain is checked */
	uint64_t check_round;
	rwy_dur drain_min; /* smallest RTT since the last drain began */
	rwy_dur drain_top; /* largest of the rounds' smallest RTTs since the drain ended */
	/* smallest RTT of the round before the drain; 0: the drain that ends startup */
	rwy_dur drain_rtt;
	uint64_t drain_rate; /* rate delivered in the round before the drain, bytes per second */
	/* bytes in flight when the drain began and when it ended */
	uint64_t drain_from, drain_left;
	bool deep_drain;   /* the drain removes half of drain_from from the path */
	bool accused;      /* the drain tests whether a queue causes the losses (auto_queue.c) */
	uint64_t tried;    /* round until which a suspicion needs no new drain */
	uint8_t refuted;   /* path changes in a row that were none */
	rwy_time moved_at; /* time of the last assumed path change; 0: never */
	rwy_dur old_rtt;   /* smallest RTT before it; RWY_NEVER: the change is certain */
	uint64_t old_peak;
	/* Before the first of a series of drains: RTT, rate delivered, bytes in flight. */
	rwy_dur rtt_before;
	uint64_t rate_before, window_before;
	uint32_t seed;
	struct cc_tcp tcp;
	uint64_t round_rate; /* rate delivered in the last round, bytes per second */
	/* largest round_rate, decaying over thousands of rounds: about the path's rate */
	uint64_t peak;
	uint64_t rate, window;
};
static_assert(sizeof(struct cc_auto) <= CC_STATE_SIZE, "private state fits");

static inline rwy_dur model_rtt(const struct cc_auto *m)
{
	return m->min_rtt != RWY_NEVER ? m->min_rtt : m->cfg.initial_rtt;
}

/* Bytes in flight without a queue of ours: the forward direction without any queue, the reverse
 * direction with the queue of others. */
static inline uint64_t model_bdp(const struct cc_auto *m, unsigned gain)
{
	return cc_bytes_in(m->bw_max, model_rtt(m) * gain / GAIN_ONE + m->reverse);
}

/* The same plus the bytes in flight that will be lost. */
static inline uint64_t model_bdp_sent(const struct cc_auto *m, unsigned gain)
{
	return model_bdp(m, gain) * m->makeup / GAIN_ONE;
}

/* An RTT above this through a whole round means a standing queue. */
static inline rwy_dur model_empty_rtt(const struct cc_auto *m)
{
	return model_rtt(m) + model_rtt(m) / 16 + RWY_MS / 2 + m->spread;
}

/* The same for a mean of RTTs: processes that sleep raise it without any queue. */
static inline rwy_dur model_empty_mean(const struct cc_auto *m)
{
	return model_empty_rtt(m) + 2 * m->noise;
}

static inline rwy_dur round_mean(const struct cc_auto *m)
{
	return m->round_samples ? m->round_sum / m->round_samples : 0;
}

/* Whether an RTT means a queue and not only a process that slept. */
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

/* Called at the end of a round: detects that the smallest RTTs of several rounds exceed what our
 * own window can queue. */
void cc_auto_round_path(struct cc_auto *m, rwy_time now);

/* Called some rounds after a drain, with `blocked` counted. Returns true when they show that the
 * delay is the path's; then probing continues with the new smallest RTT. */
bool cc_auto_drained(struct cc_auto *m, rwy_time now);

/* Competition begins (shared), or an RTT below min_rtt came (lower). Both may refute an assumed
 * path change. */
void cc_auto_path_shared(struct cc_auto *m, rwy_time now);
void cc_auto_path_lower(struct cc_auto *m, rwy_dur rtt, rwy_time now);

/* Called after a test while competing: our packets had left the path and the RTT stayed at `rtt`.
 * Returns true when startup has begun with that as the smallest RTT. */
bool cc_auto_unmoved(struct cc_auto *m, rwy_dur rtt, rwy_time now);

/* Returns the longest duration of a drain: four model RTTs, and for the first drains at least a
 * real round trip. */
rwy_dur cc_auto_drain_most(const struct cc_auto *m);

/* Pacing gain of the cycle's present phase, in 1/256. */
unsigned cc_auto_cycle_gain(const struct cc_auto *m);

/* Called for each ACK while probing: goes to the next phase when this one is over. */
void cc_auto_cycle_step(struct cc_auto *m, const struct cc_ack *ack, rwy_time now);

/* Processes an RTT sample. more: increase of the reverse delay in it. */
void cc_auto_queue_sample(struct cc_auto *m, rwy_dur rtt, rwy_dur more);

/* Called at the end of a round, after its losses and its path: starts a drain or competition. */
void cc_auto_round_queue(struct cc_auto *m, const struct cc_ack *ack, rwy_time now);

/* Bytes in flight at which a drain ends. */
uint64_t cc_auto_drain_target(const struct cc_auto *m);

/* Called at the end of a round: learns the path's own losses and how much to send more for them,
 * and whether this round lost more than that (overfull). Shrinks the model when loss or marks came
 * with a clearly higher delay. */
void cc_auto_round_losses(struct cc_auto *m);

#endif
