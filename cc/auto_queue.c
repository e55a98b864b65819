/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue that "auto" sees: its own, that of others, or none. When a queue stands although we do
 * not probe, a drain takes our packets out of it, and the reaction of the delay tells who causes
 * it; auto.c has the phases.
 */
#include <string.h>

#include "cc/auto.h"

#define SUSPECTED    4
#define LOSS_LEARNED 4
#define STAND_ROUNDS 3 /* after two rounds our own probing has left the queue */
#define BLOCKED_MAX  6 /* drains in a row after which the queue is not ours */
/* 0.9: a drain ends with fewer bytes in flight than the path holds, so that the queue empties. */
#define GAIN_EMPTY 230u

/* Begins to share the queue as TCP does, with what we had in it before the drains. */
static void compete(struct cc_auto *m, rwy_time now)
{
	rwy_dur rtt = rwy_time_max(m->rtt_before, model_rtt(m));
	uint64_t carried = cc_bytes_in(m->rate_before, rtt), window = model_bdp(m, GAIN_ONE);

	if (carried > m->window_before)
		carried = m->window_before;
	if (carried > window)
		window = carried;
	if (m->overfull) /* RFC 9438 section 4.6 */
		window = window / 10 * 7;

	m->blocked = 0;
	m->check_round = 0;
	m->accused = false;
	cc_auto_path_shared(m, now);
	cc_tcp_begin(&m->tcp, &m->cfg, window * GAIN_ONE / m->makeup, rtt, now);
	cc_auto_enter(m, COMPETE, now);
}

/* Takes the increase of the reverse delay out of an RTT: our packets make a queue in the forward
 * direction only. */
void cc_auto_queue_sample(struct cc_auto *m, rwy_dur rtt, rwy_dur more)
{
	m->round_reverse = rwy_time_min(m->round_reverse, more);
	rtt -= more;
	m->round_rtt = rwy_time_min(m->round_rtt, rtt);
	m->round_most = rwy_time_max(m->round_most, rtt);
	m->round_sum += rtt;
	m->round_samples++;
	if (m->last_rtt) {
		rwy_dur d = rtt > m->last_rtt ? rtt - m->last_rtt : m->last_rtt - rtt;

		m->noise += d / 16;
		m->noise -= m->noise / 16;
	}
	m->last_rtt = rtt;
	m->drain_min = rwy_time_min(m->drain_min, rtt);
	if (!model_is_late(m, rtt))
		m->late_acks = 0;
	else if (m->late_acks < LATE_ACKS)
		m->late_acks++;
}

/* Remembers rate and window in case a competition follows. */
static void remember(struct cc_auto *m, const struct cc_ack *ack)
{
	m->window_before = ack->inflight;
	m->rtt_before = ack->rtt;
	m->rate_before = m->round_rate;
}

static void drain(struct cc_auto *m, const struct cc_ack *ack, bool accused, rwy_time now)
{
	m->accused = accused;
	m->deep_drain = accused || m->blocked == 1;
	if (!m->blocked)
		remember(m, ack);
	if (m->rounds > m->shared)
		m->growing = false;
	m->shared = m->rounds + SHARED_ROUNDS;
	memset(m->bw, 0, sizeof(m->bw));
	m->bw[m->bw_at] = m->bw_max = m->round_rate;
	m->drain_min = RWY_NEVER;
	m->drain_rtt = m->round_rtt;
	m->drain_rate = m->round_rate;
	m->drain_from = m->drain_left = ack->inflight;
	cc_auto_enter(m, DRAIN, now);
}

/* Evaluates a drain in the rounds after it. Returns true when it decided what comes next. */
static bool drain_showed(struct cc_auto *m, rwy_time now)
{
	m->check_round = 0;
	m->blocked = m->drain_min > model_empty_rtt(m) ? m->blocked + 1 : 0;
	if (cc_auto_drained(m, now))
		return true;
	if (m->blocked >= BLOCKED_MAX || (m->accused && m->blocked)) {
		compete(m, now);
		return true;
	}
	if (m->accused) { /* the queue drained: it may have been ours */
		m->tried = m->rounds + SHARED_ROUNDS;
		m->suspect = SUSPECTED - 2;
	}
	return false;
}

/*
 * Handles a queue that stands although we do not probe: others are here, or the model is too large.
 * The rate delivered in the last round becomes the model, and a drain takes our packets out of the
 * queue. A queue that remains is not ours.
 */
void cc_auto_round_queue(struct cc_auto *m, const struct cc_ack *ack, rwy_time now)
{
	bool stands = m->round_rtt != RWY_NEVER && m->round_rtt > model_empty_rtt(m);
	/* no other sender causes that: the path has less bandwidth */
	bool much = m->round_lost > m->round_acked / 4;

	m->stand_rounds = stands ? m->stand_rounds + 1 : 0;
	if (m->recovering || m->phase != PROBE)
		return;
	if (m->check_round && m->rounds >= m->check_round && drain_showed(m, now))
		return;
	/* Bursts of losses make an overfull round at times; other senders make one after the other.
	 * A delay that does not react to a drain is not a queue that others fill. */
	bool accused = m->overfull && m->suspect >= SUSPECTED && !much && m->learned >= LOSS_LEARNED;

	if (accused && m->rounds < m->tried) {
		remember(m, ack);
		compete(m, now);
		return;
	}
	if ((m->stand_rounds < STAND_ROUNDS && !(much && m->overfull) && !accused) || m->check_round ||
	    !m->round_useful || now == m->round_at)
		return;
	drain(m, ack, accused, now);
}

/* Bytes in flight at which a drain ends: what the path holds without a queue, and less when the
 * delay has to show who causes the queue. */
uint64_t cc_auto_drain_target(const struct cc_auto *m)
{
	uint64_t empty = model_bdp_sent(m, GAIN_EMPTY);

	return m->deep_drain && m->drain_from / 2 < empty ? m->drain_from / 2 : empty;
}
