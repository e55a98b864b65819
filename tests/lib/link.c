/* SPDX-License-Identifier: Apache-2.0 */
/* The virtual link; see link.h. The order of the draws decides what a seed means. */
#include "tests/lib/link.h"

#define ECN_CE 3

/* Bursts begin so often that the share lost is `loss`. */
static bool burst_begins(const struct link *l, uint64_t *rng)
{
	return rng_chance(rng, l->cfg.loss / (l->cfg.burst * (1 - l->cfg.loss)));
}

static bool lost_evenly(struct link *l, uint64_t *rng)
{
	if (l->burst_left) {
		l->burst_left--;
		return true;
	}
	if (!burst_begins(l, rng))
		return false;
	l->burst_left = rng_below(rng, (uint32_t)(2 * l->cfg.burst));
	return true;
}

/*
 * Gilbert's two states. A burst is also over in time: else a silent link would stay bad for many
 * keep-alives.
 */
static bool lost_gilbert(struct link *l, uint64_t *rng, rwy_time now)
{
	double b = l->cfg.burst;

	if (l->bad) {
		l->bad = !rng_chance(rng, 1 / b) && now - l->bad_since < (rwy_dur)b * RWY_MS;
	} else {
		l->bad = burst_begins(l, rng);
		l->bad_since = now;
	}
	return l->bad;
}

static bool is_lost(struct link *l, uint64_t *rng, rwy_time now)
{
	const struct link_cfg *c = &l->cfg;

	if (l->down || (now >= c->outage_from && now < c->outage_to))
		return true;
	if (c->burst <= 1)
		return rng_chance(rng, c->loss);
	return c->burst_even ? lost_evenly(l, rng) : lost_gilbert(l, rng, now);
}

/* When the last byte leaves the line; RWY_NEVER: the queue is full. */
static rwy_time departs(struct link *l, uint32_t bytes, uint8_t *ecn, rwy_time now)
{
	const struct link_cfg *c = &l->cfg;
	rwy_time start = rwy_time_max(l->busy_until, now);

	if (!c->rate_Bps)
		return now;
	if (c->queue && start > now + c->queue)
		return RWY_NEVER;
	if (c->queue_bytes || c->ecn_bytes) {
		uint64_t queued = (start - now) * c->rate_Bps / RWY_SEC;

		if (c->queue_bytes && queued + bytes > c->queue_bytes)
			return RWY_NEVER;
		if (*ecn && c->ecn_bytes && queued > c->ecn_bytes)
			*ecn = ECN_CE;
	}
	l->busy_until = start + (uint64_t)bytes * RWY_SEC / c->rate_Bps;
	return l->busy_until;
}

/* Delay, jitter and what is overtaken, of a packet that left at `at`. */
static rwy_time arrives(struct link *l, uint64_t *rng, bool *late, rwy_time at)
{
	const struct link_cfg *c = &l->cfg;

	at += c->delay;
	if (c->jitter)
		at += rng_next(rng) % c->jitter;
	*late = rng_chance(rng, c->reorder);
	if (*late) {
		l->stats.reordered++;
		return at + (c->reorder_extra ? c->reorder_extra
		                              : c->delay / 10 + rng_next(rng) % (c->delay / 5 + 1));
	}
	if (c->keep_order)
		l->last_at = at = rwy_time_max(at, l->last_at);
	return at;
}

static void corrupt(struct link *l, uint32_t len, uint64_t *rng, struct link_flip *f)
{
	const struct link_cfg *c = &l->cfg;

	*f = (struct link_flip){0};
	if (len > c->corrupt_min && len > c->corrupt_from && rng_chance(rng, c->corrupt)) {
		f->bit = (uint8_t)(1u << rng_below(rng, 8));
		f->at = c->corrupt_from + rng_below(rng, len - c->corrupt_from);
		l->stats.corrupted++;
	}
}

static bool loses(struct link *l, uint64_t *rng, rwy_time now)
{
	bool lost = is_lost(l, rng, now);

	l->stats.lost += lost;
	return lost;
}

void link_send(struct link *l, uint32_t len, uint64_t *rng, struct link_fate *f, rwy_time now)
{
	const struct link_cfg *c = &l->cfg;
	rwy_time at;

	f->copies = 0;
	l->stats.sent++;
	l->stats.bytes += len;
	if (!c->loss_behind && loses(l, rng, now))
		return;
	at = departs(l, len + c->overhead, &f->ecn, now);
	if (at == RWY_NEVER) {
		l->stats.dropped++;
		return;
	}
	if (c->loss_behind && loses(l, rng, now))
		return;
	if (f->ecn && c->ecn_drop) {
		l->stats.lost++;
		return;
	}
	if (c->ecn_clear)
		f->ecn = 0;
	f->copies = 1;
	f->at[0] = arrives(l, rng, &f->late[0], at);
	corrupt(l, len, rng, &f->flip[0]);
	if (!rng_chance(rng, c->dup))
		return;
	l->stats.duplicated++;
	f->copies = 2;
	f->at[1] = f->at[0] + rng_next(rng) % (c->dup_extra ? c->dup_extra : c->delay + 1);
	f->late[1] = true;
	corrupt(l, len, rng, &f->flip[1]);
}
