/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bounded set of packet numbers as ranges, oldest first, with the newest at the end of the array: arrival
 * in order touches one word, a late arrival moves only what is newer. When it is full the oldest range goes
 * and `floor` rises: everything below the floor counts as seen.
 */
#ifndef WAN_RANGES_H
#define WAN_RANGES_H

#include <stdbool.h>
#include <stdint.h>

#include "wan/wire/pkt.h"

#define WAN_RANGES_KEEP  2048
#define WAN_RANGES_SLOTS 4096

struct wan_ranges {
	uint32_t first, end; /* live: r[first .. end) */
	uint64_t floor;
	struct wan_range r[WAN_RANGES_SLOTS];
};

void wan_ranges_reset(struct wan_ranges *s);
/* Index of the first range that ends at pn or above; s->end: none. */
uint32_t wan_ranges_find(const struct wan_ranges *s, uint64_t pn);
bool wan_ranges_has(const struct wan_ranges *s, uint64_t pn);
/* Adds one; false when it was there (or is below the floor). */
bool wan_ranges_add(struct wan_ranges *s, uint64_t pn);
/* Adds [lo, hi] and tells each part that was not there yet, oldest first. */
void wan_ranges_add_range(struct wan_ranges *s, uint64_t lo, uint64_t hi,
    void (*fresh)(void *ctx, uint64_t lo, uint64_t hi), void *ctx);

static inline uint32_t wan_ranges_count(const struct wan_ranges *s)
{
	return s->end - s->first;
}

#endif
