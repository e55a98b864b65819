/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of packet numbers: those received (for acknowledgement and detection of duplicates) and
 * those acknowledged by the peer. */
#include <string.h>

#include "wan/wire/ranges.h"

#define NEAR 4

void wan_ranges_reset(struct wan_ranges *s)
{
	s->first = s->end = 0;
	s->floor = 0;
}

/* Searches the newest ranges one by one, then by bisection: a path that reorders much has
 * hundreds. */
uint32_t wan_ranges_find(const struct wan_ranges *s, uint64_t pn)
{
	uint32_t lo = s->first, hi = s->end;

	for (unsigned n = 0; n < NEAR && hi > lo; n++, hi--)
		if (s->r[hi - 1].hi < pn)
			return hi;
	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;

		if (s->r[mid].hi < pn)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Returns the first range that touches or lies above pn - 1: the place of pn. */
static uint32_t place(const struct wan_ranges *s, uint64_t pn)
{
	return wan_ranges_find(s, pn ? pn - 1 : 0);
}

bool wan_ranges_has(const struct wan_ranges *s, uint64_t pn)
{
	if (pn < s->floor)
		return true;
	uint32_t i = wan_ranges_find(s, pn);

	return i < s->end && s->r[i].lo <= pn;
}

/* Makes room for one more range. Returns how many places the live ranges moved down. */
static uint32_t make_room(struct wan_ranges *s)
{
	uint32_t moved = 0;

	if (s->end - s->first == WAN_RANGES_KEEP) {
		s->floor = s->r[s->first].hi + 1;
		s->first++;
	}
	if (s->end == WAN_RANGES_SLOTS) {
		moved = s->first;
		memmove(s->r, s->r + s->first, (s->end - s->first) * sizeof(s->r[0]));
		s->end -= moved;
		s->first = 0;
	}
	return moved;
}

static void insert(struct wan_ranges *s, uint32_t i, uint64_t lo, uint64_t hi)
{
	i -= make_room(s);
	/* it would be the oldest range, which was dropped: it is now below the floor */
	if ((int32_t)(i - s->first) < 0)
		return;
	memmove(s->r + i + 1, s->r + i, (s->end - i) * sizeof(s->r[0]));
	s->r[i] = (struct wan_range){lo, hi};
	s->end++;
}

void wan_ranges_add_range(struct wan_ranges *s, uint64_t lo, uint64_t hi,
    void (*fresh)(void *ctx, uint64_t lo, uint64_t hi), void *ctx)
{
	uint32_t i, j;

	if (lo < s->floor)
		lo = s->floor;
	if (lo > hi)
		return;
	i = place(s, lo);
	if (i < s->end && s->r[i].lo <= lo && s->r[i].hi >= hi)
		return; /* present already: the usual case for all but the newest range */
	uint64_t at = lo;

	for (j = i; j < s->end && s->r[j].lo <= hi + 1; j++) {
		if (at < s->r[j].lo && at <= hi)
			fresh(ctx, at, s->r[j].lo - 1 < hi ? s->r[j].lo - 1 : hi);
		at = s->r[j].hi + 1;
	}
	if (at <= hi)
		fresh(ctx, at, hi);
	if (i == j) {
		insert(s, i, lo, hi);
		return;
	}
	if (s->r[i].lo < lo)
		lo = s->r[i].lo;
	if (s->r[j - 1].hi > hi)
		hi = s->r[j - 1].hi;
	s->r[i] = (struct wan_range){lo, hi};
	memmove(s->r + i + 1, s->r + j, (s->end - j) * sizeof(s->r[0]));
	s->end -= j - i - 1;
}

static void ignore(void *ctx, uint64_t lo, uint64_t hi)
{
}

bool wan_ranges_add(struct wan_ranges *s, uint64_t pn)
{
	if (s->end > s->first && pn == s->r[s->end - 1].hi + 1) {
		s->r[s->end - 1].hi = pn;
		return true;
	}
	if (wan_ranges_has(s, pn))
		return false;
	wan_ranges_add_range(s, pn, pn, ignore, NULL);
	return true;
}
