/* SPDX-License-Identifier: Apache-2.0 */
#include "cc/drain.h"

#define PERIOD_MIN (100 * RWY_US)
#define PERIOD_MAX (2 * RWY_MS)
/* measurements far off in a row before they are believed */
#define OFF_MAX  2
#define EARLY    ((uint64_t)256 << 10) /* bytes: a shorter queue is no congestion */
#define LONG     (100 * RWY_MS)        /* hosts pause for some milliseconds */
#define HELD_MIN ((uint64_t)256 << 10)
#define HELD_MAX ((uint64_t)2 << 20)
#define HELD     (50 * RWY_MS)
/* longest wait for the queue of an almost stopped host to shrink */
#define SETTLE_MOST RWY_SEC
#define GENTLE      1                   /* growth steps that may be a reaction to noise */
#define SAMPLE      ((uint64_t)2 << 20) /* bytes that make a measurement, or LONG of time */
#define WINDOW_MIN  ((uint64_t)64 << 10)

static rwy_dur period(rwy_dur rtt)
{
	rwy_dur p = rtt / 128;

	return p < PERIOD_MIN ? PERIOD_MIN : p > PERIOD_MAX ? PERIOD_MAX : p;
}

static uint64_t in_time(uint64_t rate_Bps, rwy_dur t)
{
	return (uint64_t)((unsigned __int128)rate_Bps * t / RWY_SEC);
}

/* Bytes that may wait for a host of this rate: the host continues with them when data in flight is
 * late, and finds them when it runs again after a pause. */
static uint64_t held(uint64_t rate_Bps)
{
	uint64_t h = in_time(rate_Bps, HELD);

	return h < HELD_MIN ? HELD_MIN : h > HELD_MAX ? HELD_MAX : h;
}

/* Returns the same as a time. */
static rwy_dur rest(const struct cc_drain *d, rwy_dur rtt)
{
	rwy_dur p = 2 * period(rtt), t;

	if (!d->rate_Bps)
		return p;
	t = (rwy_dur)((unsigned __int128)held(d->rate_Bps) * RWY_SEC / d->rate_Bps);
	if (t > HELD)
		t = HELD;
	return t < p ? p : t;
}

static void new_epoch(struct cc_drain *d, uint64_t drained, rwy_time now)
{
	d->epoch_at = now;
	d->epoch_drained = drained;
	d->waits_min = UINT64_MAX;
	d->epoch_idle = 0;
}

static uint64_t per_second(uint64_t bytes, rwy_dur t)
{
	return t ? (uint64_t)((unsigned __int128)bytes * RWY_SEC / t) : 0;
}

/* Sets the window. True: it differs by a thirty-second or more and must be told; less is noise. */
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

/* The window for the measured rate. Reports of deliveries clock the sender; slack is their delay
 * and the short queue that keeps the host busy. */
static uint64_t fitting(const struct cc_drain *d, rwy_dur rtt)
{
	return in_time(d->rate_Bps, rtt + d->slack);
}

static void more_slack(struct cc_drain *d, rwy_dur rtt, rwy_dur by)
{
	rwy_dur r = rest(d, rtt);

	if (d->slack < (rtt / 4 > 2 * r ? rtt / 4 : 2 * r))
		d->slack += by;
}

/*
 * The rate has changed. Data in flight arrives within a round trip; then the sender waits until the
 * queue is short. A host that pauses has not stopped: one step is an eighth at most, the next may
 * follow.
 */
static bool jump(
    struct cc_drain *d, uint64_t sample, uint64_t waits, uint64_t drained, rwy_dur rtt, rwy_time now)
{
	d->rate_Bps = sample > d->rate_Bps / 8 ? sample : d->rate_Bps / 8;
	d->off = d->growth = 0;
	d->best = false;
	if (!d->slack || d->slack > 2 * rest(d, rtt))
		d->slack = 2 * rest(d, rtt);
	d->settled_at = now + rtt + rtt / 4;
	if (d->rate_Bps) {
		unsigned __int128 t = (unsigned __int128)waits * RWY_SEC / d->rate_Bps;

		d->settled_at += t < SETTLE_MOST ? (rwy_dur)t : SETTLE_MOST;
	}
	new_epoch(d, drained, now);
	return set_window(d, fitting(d, rtt));
}

static bool begin(
    struct cc_drain *d, uint64_t rate, uint64_t waits, uint64_t drained, rwy_dur rtt, rwy_time now)
{
	bool changed;

	d->on = true;
	d->window = 0;
	changed = jump(d, rate, waits, drained, rtt, now);
	d->best = true;
	return changed;
}

/* Runs once a round trip while the window binds. */
static bool adjust(struct cc_drain *d, uint64_t drained, rwy_dur rtt, rwy_time now)
{
	rwy_dur spent = now - d->epoch_at, idle = d->epoch_idle;
	uint64_t got = per_second(drained - d->epoch_drained, spent);
	uint64_t waits = d->waits_min;

	new_epoch(d, drained, now);
	if (idle >= spent / 8 * 7) {
		/* Less came than the window allows: the window does not bind. */
		if (in_time(got, rtt) < d->window / 2) {
			*d = (struct cc_drain){
			    .idle_since = d->idle_since, .period_at = now, .period_drained = drained};
			new_epoch(d, drained, now);
			return true;
		}
		/* A host that takes a little more looks like one that takes four times as much:
		 * grow a little first, then much. */
		d->growth += d->growth < 8;
		if (d->growth <= GENTLE && d->rate_Bps) {
			more_slack(d, rtt, 2 * period(rtt));
			return set_window(d, fitting(d, rtt));
		}
		d->rate_Bps = 0;
		return set_window(d, d->growth == GENTLE + 1 ? d->window + d->window / 4 : d->window * 2);
	}
	d->growth = 0;
	if (idle > spent / 256) {
		more_slack(d, rtt, rest(d, rtt) / 4);
	} else if (d->rate_Bps && waits > in_time(d->rate_Bps, rest(d, rtt))) {
		rwy_dur over = (rwy_dur)((unsigned __int128)waits * RWY_SEC / d->rate_Bps) - rest(d, rtt) / 2;

		d->slack -= over / 2 < d->slack / 2 ? over / 2 : d->slack / 2;
	}
	return d->rate_Bps ? set_window(d, fitting(d, rtt)) : false;
}

static void learn(struct cc_drain *d, uint64_t sample)
{
	/* The best rate of before is not the present rate: the first measurements count at once. */
	uint64_t least = d->best ? d->rate_Bps - d->rate_Bps / 8 : d->rate_Bps / 2;
	bool far_off = sample > d->rate_Bps + d->rate_Bps / 2 || sample < least;

	d->off = far_off ? d->off + (d->off < UINT8_MAX) : 0;
	if (!d->rate_Bps)
		d->rate_Bps = sample;
	else if (!far_off)
		d->rate_Bps = d->rate_Bps - d->rate_Bps / 16 + sample / 16;
}

/*
 * Tracks the best rate while the window does not bind. Bytes that came while nothing waited tell
 * how much was sent, not how much the host takes; only a queue, or much data in a short time, tells
 * that.
 */
static void best(struct cc_drain *d, uint64_t sample, uint64_t bytes, bool busy)
{
	d->known = d->known || busy || bytes >= SAMPLE;
	if (sample > d->rate_Bps)
		d->rate_Bps = sample;
	else if (busy || bytes >= SAMPLE)
		d->rate_Bps -= d->rate_Bps / 16;
}

static bool end_period(struct cc_drain *d, uint64_t waits, uint64_t drained, rwy_dur rtt, rwy_time now)
{
	rwy_dur t = now - d->period_at, busy = t - d->period_idle;
	uint64_t bytes = drained - d->period_drained, sample = per_second(bytes, t);

	d->period_at = now;
	d->period_drained = drained;
	d->period_idle = 0;
	if (!d->on) {
		best(d, sample, bytes, busy >= t / 2);
		return false;
	}
	/* When nothing waits at times, the host takes at least this rate; how much more is
	 * unknown. */
	if (busy >= t - t / 8)
		learn(d, sample);
	else if (d->rate_Bps && sample > d->rate_Bps)
		d->rate_Bps = sample;
	if (d->off >= OFF_MAX)
		return jump(d, sample, waits, drained, rtt, now);
	if (now < d->settled_at) {
		if (now - d->epoch_at > rtt)
			new_epoch(d, drained, now);
		/* The old queue still shrinks; a host that takes more meanwhile must not run dry
		 * after it. */
		return busy == t && fitting(d, rtt) > d->window + d->window / 16 &&
		       set_window(d, fitting(d, rtt));
	}
	return now - d->epoch_at > rtt + rtt / 8 ? adjust(d, drained, rtt, now) : false;
}

/* Whether there is enough for a measurement: few packets do not tell a slow host's rate, unless
 * more were expected. */
static bool enough(const struct cc_drain *d, uint64_t drained, rwy_time now)
{
	rwy_dur t = now - d->period_at;

	/* Called often, so it has no division. */
	return drained - d->period_drained >= SAMPLE || t >= LONG ||
	       (unsigned __int128)d->rate_Bps * t >= (unsigned __int128)2 * SAMPLE * RWY_SEC;
}

/*
 * The window is off, and something waits. Whether the host pauses or has become slower is unknown
 * and need not be known: a window of its best rate costs the first host nothing, and stops the
 * second one's queue from growing after a round trip. The real rate is measured while this window
 * holds.
 */
static bool early(struct cc_drain *d, uint64_t waits, uint64_t drained, rwy_dur rtt, rwy_time now)
{
	return d->known && waits > EARLY && waits > in_time(d->rate_Bps, period(rtt)) &&
	       begin(d, d->rate_Bps, waits, drained, rtt, now);
}

bool cc_drain_update(struct cc_drain *d, uint64_t waits, uint64_t drained, rwy_dur rtt, rwy_time now)
{
	if (!d->period_at) {
		d->period_at = now;
		d->period_drained = drained;
		new_epoch(d, drained, now);
	}
	if (d->idle_since) {
		d->period_idle += now - d->idle_since;
		d->epoch_idle += now - d->idle_since;
	}
	d->idle_since = waits ? 0 : now;
	if (waits < d->waits_min)
		d->waits_min = waits;
	if (now - d->period_at < period(rtt))
		return false;
	if (!d->on && early(d, waits, drained, rtt, now))
		return true;
	return enough(d, drained, now) && end_period(d, waits, drained, rtt, now);
}
