/* SPDX-License-Identifier: Apache-2.0 */
#include "cc/cc_drain.h"

#define PERIOD_MIN  (100 * RWY_US)
#define PERIOD_MAX  (2 * RWY_MS)
#define HIGH_MAX    2 /* periods that a host may pause */
#define WAITS_FLOOR ((uint64_t)256 << 10)
#define GENTLE      1                    /* steps of growth that may only answer noise */
#define SAMPLE      ((uint64_t)64 << 10) /* bytes that make a measurement */
#define PERIODS_MAX 32                   /* or so much time */
#define WINDOW_MIN  ((uint64_t)64 << 10)

static rwy_dur period(rwy_dur rtt)
{
	rwy_dur p = rtt / 128;

	return p < PERIOD_MIN ? PERIOD_MIN : p > PERIOD_MAX ? PERIOD_MAX : p;
}

/* What waits for a host that takes less than comes: so much time's worth, so that it is never idle. */
static rwy_dur rest(rwy_dur rtt)
{
	return 2 * period(rtt);
}

static uint64_t in_time(uint64_t rate_Bps, rwy_dur t)
{
	return (uint64_t)((unsigned __int128)rate_Bps * t / RWY_SEC);
}

static void new_epoch(struct cc_drain *d, uint64_t drained, rwy_time now)
{
	d->epoch_at = now;
	d->epoch_drained = drained;
	d->waits_min = UINT64_MAX;
	d->empty = d->periods = 0;
}

/* Told when it differs by a thirty-second: below that it is noise. */
static bool set_window(struct cc_drain *d, uint64_t w)
{
	uint64_t old = d->window, diff = w > old ? w - old : old - w;

	if (w < WINDOW_MIN)
		w = WINDOW_MIN;
	if (diff <= old / 32)
		return false;
	d->window = w;
	return true;
}

/* What fits the measured rate; the sender's clock is the reports of what is delivered, slack is their delay
 * and the little queue that keeps the host busy. */
static uint64_t fitting(const struct cc_drain *d, rwy_dur rtt)
{
	return in_time(d->rate_Bps, rtt + d->slack);
}

/*
 * The rate is not what it was. What is under way arrives in a round trip; then the sender waits until the
 * queue is down. A host that stands still for a moment is not one that has stopped: one step is an eighth at
 * most, the next may follow.
 */
static bool jump(
    struct cc_drain *d, uint64_t sample, uint64_t waits, uint64_t drained, rwy_dur rtt, rwy_time now)
{
	d->rate_Bps = sample > d->rate_Bps / 8 ? sample : d->rate_Bps / 8;
	d->high = d->off = d->growth = 0;
	d->settled_at = now + rtt + rtt / 4;
	if (d->rate_Bps)
		d->settled_at += (rwy_dur)((unsigned __int128)waits * RWY_SEC / d->rate_Bps);
	new_epoch(d, drained, now);
	return set_window(d, fitting(d, rtt));
}

/* Once a round trip while the window binds. */
static bool adjust(struct cc_drain *d, uint64_t drained, rwy_dur rtt, rwy_time now)
{
	uint64_t got = drained - d->epoch_drained;
	bool starved = 8u * d->empty >= 7u * d->periods;
	uint64_t waits = d->waits_min;
	rwy_dur spent = now - d->epoch_at;
	bool some_empty = d->empty;

	new_epoch(d, drained, now);
	if (starved) {
		/* Less came than the window lets through: it is not what binds. */
		if (in_time(got * (RWY_SEC / RWY_US) / (spent / RWY_US + 1), rtt) < d->window / 2) {
			*d =
			    (struct cc_drain){.slack = d->slack, .period_at = now, .period_drained = drained};
			return true;
		}
		/* A host that takes a little more than this looks as one that takes four times as much: first
		 * a little more, then much. */
		d->growth += d->growth < 8;
		if (d->growth <= GENTLE && d->rate_Bps) {
			if (d->slack < rtt / 4)
				d->slack += rest(rtt);
			return set_window(d, fitting(d, rtt));
		}
		d->rate_Bps = 0;
		return set_window(d, d->growth == GENTLE + 1 ? d->window + d->window / 4 : d->window * 2);
	}
	d->growth = 0;
	if (some_empty) {
		if (d->slack < rtt / 4)
			d->slack += rest(rtt) / 4;
	} else if (d->rate_Bps && waits > in_time(d->rate_Bps, rest(rtt))) {
		rwy_dur over = (rwy_dur)((unsigned __int128)waits * RWY_SEC / d->rate_Bps) - rest(rtt) / 2;

		d->slack -= over / 2 < d->slack / 2 ? over / 2 : d->slack / 2;
	}
	return d->rate_Bps ? set_window(d, fitting(d, rtt)) : false;
}

static void learn(struct cc_drain *d, uint64_t sample)
{
	bool far_off = sample > d->rate_Bps + d->rate_Bps / 2 || sample < d->rate_Bps / 2;

	d->off = far_off ? d->off + (d->off < UINT8_MAX) : 0;
	if (!d->rate_Bps)
		d->rate_Bps = sample;
	else if (!far_off)
		d->rate_Bps = d->rate_Bps - d->rate_Bps / 16 + sample / 16;
}

static bool end_period(struct cc_drain *d, uint64_t waits, uint64_t drained, rwy_dur rtt, rwy_time now)
{
	rwy_dur t = now - d->period_at;
	uint64_t sample = (uint64_t)((unsigned __int128)(drained - d->period_drained) * RWY_SEC / t);
	bool empty = d->ran_empty;
	uint64_t limit = in_time(sample, 2 * period(rtt));

	d->period_at = now;
	d->period_drained = drained;
	d->ran_empty = false;
	if (limit < WAITS_FLOOR)
		limit = WAITS_FLOOR;
	/* Twice as much as a pause explains needs no second look. */
	d->high = empty || waits <= limit ? 0 : waits > 2 * limit ? HIGH_MAX : (uint8_t)(d->high + 1);
	if (!d->on) {
		if (d->high < HIGH_MAX) {
			d->rate_Bps = d->rate_Bps - d->rate_Bps / 16 + sample / 16;
			return false;
		}
		d->on = true;
		if (!d->slack)
			d->slack = 2 * rest(rtt);
		d->window = 0;
		return jump(d, sample, waits, drained, rtt, now);
	}
	d->periods++;
	d->empty += empty;
	if (waits < d->waits_min)
		d->waits_min = waits;
	if (!empty)
		learn(d, sample);
	if (d->off >= HIGH_MAX)
		return jump(d, sample, waits, drained, rtt, now);
	if (now < d->settled_at) {
		if (now - d->epoch_at > rtt)
			new_epoch(d, drained, now);
		/* The queue of before still goes down; a host that takes more meanwhile shall not run dry
		 * after it. */
		return !empty && fitting(d, rtt) > d->window + d->window / 16 &&
		       set_window(d, fitting(d, rtt));
	}
	return now - d->epoch_at > rtt + rtt / 8 ? adjust(d, drained, rtt, now) : false;
}

/* A slow host's rate cannot be told from a few packets, unless more were to be expected. */
static bool enough(const struct cc_drain *d, uint64_t drained, rwy_dur rtt, rwy_time now)
{
	rwy_dur t = now - d->period_at;

	return drained - d->period_drained >= SAMPLE || t >= PERIODS_MAX * period(rtt) ||
	       in_time(d->rate_Bps, t) >= 2 * SAMPLE;
}

bool cc_drain_update(struct cc_drain *d, uint64_t waits, uint64_t drained, rwy_dur rtt, rwy_time now)
{
	d->ran_empty |= !waits;
	if (now - d->period_at < period(rtt))
		return false;
	if (d->period_at && !enough(d, drained, rtt, now))
		return false;
	if (!d->period_at) {
		d->period_at = now;
		d->period_drained = drained;
		return false;
	}
	return end_period(d, waits, drained, rtt, now);
}
