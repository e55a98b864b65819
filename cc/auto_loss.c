/* SPDX-License-Identifier: Apache-2.0 */
/* The losses of a round: the path's own, or too many; see auto.h. */
#include <string.h>

#include "cc/auto.h"

#define LOSS_MEMORY  16
#define SHARE_MAX    (SHARE_ONE / 5) /* largest random loss that is made up for: 20 % */
#define SUSPECT_MOST 8
/* a queue may be full although it is shorter by this part: datagrams differ in size */
#define FULL_PART     16
#define CALM          3 /* rounds without a queue after which no loss comes from a queue */
#define SHARE_CONGEST (SHARE_ONE / 50)
#define SHARE_MUCH    (SHARE_ONE / 8)

/*
 * Random loss appears in every round; overload of our own does not appear after a slow phase. So
 * the smallest share of the last rounds is random, and only that is made up for by sending more.
 */
static void makeup_update(struct cc_auto *m, uint32_t share)
{
	uint32_t least = SHARE_MAX;

	m->loss[m->loss_at] = share;
	m->loss_at = m->loss_at + 1 == LOSS_ROUNDS ? 0 : m->loss_at + 1;
	for (int i = 0; i < LOSS_ROUNDS; i++)
		if (m->loss[i] < least)
			least = m->loss[i];
	m->makeup = GAIN_ONE * SHARE_ONE / (SHARE_ONE - least);
}

/* Loss or marks together with a queue: the path has less bandwidth than the model. Forgets the old
 * maxima and keeps what this round delivered. */
static void reduce(struct cc_auto *m)
{
	uint64_t floor = m->bw_max * 7 / 10;
	uint64_t bw = m->round_best > floor ? m->round_best : floor;

	if (bw >= m->bw_max)
		return;
	memset(m->bw, 0, sizeof(m->bw));
	m->bw[m->bw_at] = bw;
	m->bw_max = bw;
}

static uint64_t square_root(uint64_t x)
{
	uint64_t r = 0;

	for (int bit = 31; bit >= 0; bit--) {
		uint64_t t = r | (uint64_t)1 << bit;

		if (t * t <= x)
			r = t;
	}
	return r;
}

/* Losses exceed the path's own share by more than chance: by four standard deviations, and by four
 * times the mean deviation of the share when losses come in bursts. */
static bool too_many(const struct cc_auto *m, uint64_t seen)
{
	/* times SHARE_ONE, so its square root is times 256 */
	uint64_t n = seen / m->cfg.mtu, own = n * m->random;
	uint64_t most = own + 4 * 256 * square_root(own) + 4 * n * m->deviation;

	return m->round_lost / m->cfg.mtu > most / SHARE_ONE;
}

/* Learns the path's own share from rounds without overload of our own. */
static void own_losses(struct cc_auto *m, uint32_t share)
{
	int64_t d = (int64_t)share - (int64_t)m->random;

	if (m->learned < LOSS_MEMORY)
		m->learned++;
	m->random = (uint32_t)((int64_t)m->random + d / m->learned);
	m->deviation =
	    (uint32_t)((int64_t)m->deviation + ((d < 0 ? -d : d) - (int64_t)m->deviation) / LOSS_MEMORY);
}

/* A full queue drops at its full length, each time. A shorter queue without drops proves
 * nothing. */
static void suspect(struct cc_auto *m)
{
	if (m->overfull) {
		m->full_rtt = m->suspect ? rwy_time_min(m->full_rtt, m->round_most) : m->round_most;
		m->suspect = m->suspect < SUSPECT_MOST ? m->suspect + 2 : SUSPECT_MOST;
		return;
	}
	if (!m->suspect)
		return;
	rwy_dur nearly = m->full_rtt - rwy_since(model_rtt(m), m->full_rtt) / FULL_PART;

	if (m->round_most > rwy_time_max(nearly, model_empty_rtt(m)))
		m->suspect--;
}

void cc_auto_round_losses(struct cc_auto *m)
{
	uint64_t seen = m->round_acked + m->round_lost;

	m->overfull = false;
	if (seen < 32 * (uint64_t)m->cfg.mtu)
		return; /* too few to judge */
	uint32_t share = (uint32_t)(m->round_lost * SHARE_ONE / seen);
	uint32_t marked = (uint32_t)(m->round_marked * m->cfg.mtu * SHARE_ONE / seen);
	uint32_t random = SHARE_ONE - SHARE_ONE * GAIN_ONE / m->makeup;

	if (m->recovering)
		return;
	m->overfull = (too_many(m, seen) && round_mean(m) > model_empty_mean(m)) || marked;
	suspect(m);
	/* A sender with little to send did not fill the queue that dropped these, unless the path
	 * has even less bandwidth. */
	uint32_t most = random + (m->round_useful ? SHARE_CONGEST : SHARE_MUCH);

	if (m->round_rtt != RWY_NEVER && model_is_late(m, m->round_rtt) && share > most)
		reduce(m);
	else if (marked > SHARE_ONE / 20)
		reduce(m);
	/* After a round with a standing queue the losses may be that round's. */
	rwy_dur rtt = m->phase == STARTUP || m->phase == DRAIN ? m->round_most : m->round_rtt;

	m->calm = round_mean(m) <= model_empty_mean(m) ? m->calm + (m->calm < CALM) : 0;
	if (m->phase == COMPETE ? share < m->random / 4 || m->calm == CALM
	                        : rtt <= model_empty_rtt(m) && m->rounds > m->probed && !m->stand_rounds)
		own_losses(m, share);
	makeup_update(m, share);
}
