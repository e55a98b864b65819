/* SPDX-License-Identifier: Apache-2.0 */
/* The record of a host: bytes owed, and pace, which is a time per unit of bytes (no division). */
#include "roce/reqr_host.h"

#define UNIT_BITS 16
#define UNIT      (1u << UNIT_BITS)
#define RISE_BITS 2 /* a slower pace counts soon, a faster one late: an early timer costs a copy */
#define FALL_BITS 4
#define JUMP      4  /* most paces that a unit counts: one pause is not the pace */
#define LATE_BITS 33 /* of 2^33 ns, 8.6 s: after so long half of it counts */
#define LATE_MAX  (2 * RWY_SEC)
#define ENOUGH    ((uint64_t)1 << 20)
#define ENOUGH_T  (50 * RWY_MS)
#define PACE_MAX  (4 * RWY_SEC) /* with BYTES_MAX it bounds a product to 64 bits */
#define BYTES_MAX ((uint64_t)1 << 31)

void roce_reqr_host_heard(struct roce_reqr_host *h, rwy_time now)
{
	if (h)
		h->heard = now;
}

void roce_reqr_host_asked(struct roce_reqr_host *h, uint32_t bytes, rwy_time now)
{
	if (!h)
		return;
	if (!h->owed) /* it was idle, and idle time does not count for the unit */
		h->since = h->read_at > h->since ? h->since + (now - h->read_at) : now;
	h->owed += bytes;
}

/*
 * Returns the time of the present unit up to the latest response: shows a slow host before the unit
 * ends.
 */
static rwy_dur unit_time(const struct roce_reqr_host *h)
{
	rwy_dur t = h->read_at > h->since ? h->read_at - h->since : 0;

	return h->pace && t > JUMP * h->pace ? JUMP * h->pace : t;
}

void roce_reqr_host_read(struct roce_reqr_host *h, uint32_t bytes, rwy_time now)
{
	rwy_dur t;

	if (!h || !h->owed)
		return;
	h->read_at = now;
	h->got += bytes;
	if (h->got < UNIT)
		return;
	h->got -= UNIT;
	t = unit_time(h);
	h->since = now;
	if (!h->pace)
		h->pace = t ? t : 1;
	else if (t > h->pace)
		h->pace += (t - h->pace) >> RISE_BITS;
	else
		h->pace -= (h->pace - t) >> FALL_BITS;
	if (h->pace > PACE_MAX)
		h->pace = PACE_MAX;
}

void roce_reqr_host_settled(struct roce_reqr_host *h, uint64_t bytes)
{
	if (h)
		h->owed -= bytes;
}

static rwy_dur fallen(rwy_dur late, rwy_time at, rwy_time now)
{
	rwy_dur t = rwy_since(at, now);

	return t >> LATE_BITS < 64 ? late >> (t >> LATE_BITS) : 0;
}

static rwy_dur lateness(const struct roce_reqr_host *h, rwy_time now)
{
	return fallen(h->late, h->late_at, now);
}

rwy_dur roce_reqr_host_wait(const struct roce_reqr_host *h, rwy_time now)
{
	rwy_dur t = h ? lateness(h, now) : 0;

	return t + t / 4;
}

void roce_reqr_host_late(struct roce_reqr_host *h, rwy_time sent, rwy_time now)
{
	rwy_dur t = rwy_since(sent, now);

	if (!h || t < lateness(h, now))
		return;
	h->late = t < LATE_MAX ? t : LATE_MAX;
	h->late_at = now;
}

void roce_reqr_host_late_elsewhere(struct roce_reqr_host *h, rwy_dur late, rwy_time at, rwy_time now)
{
	if (fallen(late, at, now) <= lateness(h, now))
		return;
	h->late = late;
	h->late_at = at;
}

rwy_dur roce_reqr_host_busy(const struct roce_reqr_host *h, uint64_t bytes)
{
	rwy_dur pace;

	if (!h)
		return 0;
	pace = unit_time(h) > h->pace ? unit_time(h) : h->pace;
	if (pace > PACE_MAX)
		pace = PACE_MAX;
	if (bytes < h->owed)
		bytes = h->owed;
	return (bytes < BYTES_MAX ? bytes : BYTES_MAX) * pace >> UNIT_BITS;
}

bool roce_reqr_host_has_enough(const struct roce_reqr_host *h)
{
	return h && h->owed > ENOUGH && (!h->pace || roce_reqr_host_busy(h, 0) > ENOUGH_T);
}
