/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bounded set of packet numbers, stored as ranges in ascending order. The newest range is at the
 * end of the array: an arrival in order touches one word, a late arrival moves only newer ranges.
 * When the set is full, the oldest range is dropped and `floor` rises: everything below the floor
 * counts as seen.
 */
#ifndef WAN_RANGES_H
#define WAN_RANGES_H

#include <stdbool.h>
#include <stdint.h>

#include "wan/wire/pkt.h"

#define WAN_RANGES_KEEP  2048
#define WAN_RANGES_SLOTS 4096

struct wan_ranges {
	uint32_t first, end; /* live ranges: r[first .. end) */
	uint64_t floor;
	struct wan_range r[WAN_RANGES_SLOTS];
};

void wan_ranges_reset(struct wan_ranges *s);
/* Returns the index of the first range that ends at or above pn; s->end: none. */
uint32_t wan_ranges_find(const struct wan_ranges *s, uint64_t pn);
bool wan_ranges_has(const struct wan_ranges *s, uint64_t pn);
/* Adds one number. Returns false when it was present or is below the floor. */
bool wan_ranges_add(struct wan_ranges *s, uint64_t pn);
/* Adds [lo, hi] and calls fresh for each part that was not present, in ascending order. */
void wan_ranges_add_range(struct wan_ranges *s, uint64_t lo, uint64_t hi,
    void (*fresh)(void *ctx, uint64_t lo, uint64_t hi), void *ctx);

static inline uint32_t wan_ranges_count(const struct wan_ranges *s)
{
	return s->end - s->first;
}

#endif
