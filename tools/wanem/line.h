/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The delay line of one direction: holds frames until their delivery time. Knows times and bytes,
 * decides nothing.
 */
#ifndef WANEM_LINE_H
#define WANEM_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WANEM_FRAME_MAX 9022 /* 9018 and a VLAN tag */
/* Not a multiple of 4096, so that the beginnings of frames do not share cache sets. */
#define WANEM_SLOT_SIZE 9280

struct wanem_pkt {
	uint64_t at;
	uint64_t seq; /* orders packets of equal time: first in, first out */
	uint32_t slot;
	uint32_t len;
};

/* A packet whose time is not before the last one's goes through a ring, any other through a
 * heap. */
struct wanem_line {
	uint8_t *slots;
	uint32_t *free_slot; /* stack */
	uint32_t free_count;
	uint32_t cap, mask; /* most frames held; size of the ring - 1 */
	struct wanem_pkt *fifo, *heap;
	uint32_t fifo_head, fifo_count, heap_count;
	uint64_t seq;
	uint32_t held_max;
};

/* Makes room for cap frames (1..1<<24). It reserves address space; memory is used as frames come.
 * 0, or -1 with errno. */
int wanem_line_init(struct wanem_line *line, uint32_t cap);
void wanem_line_free(struct wanem_line *line);

/* Gets a slot of WANEM_SLOT_SIZE bytes; false: all are in use. wanem_line_push() or
 * wanem_line_put() returns it. */
bool wanem_line_get(struct wanem_line *line, uint32_t *slot);
void wanem_line_put(struct wanem_line *line, uint32_t slot);
/* Queues the frame in the slot for time `at`, ns. The slot belongs to the line until it is
 * popped. */
void wanem_line_push(struct wanem_line *line, uint32_t slot, uint32_t len, uint64_t at);

/* Takes the next frame that is due; the caller owns its slot until wanem_line_put(). */
bool wanem_line_pop(struct wanem_line *line, struct wanem_pkt *out, uint64_t now);

/* The time when the next frame is due; UINT64_MAX: there is none. */
uint64_t wanem_line_next(const struct wanem_line *line);

static inline uint8_t *wanem_line_data(const struct wanem_line *line, uint32_t slot)
{
	return line->slots + (size_t)slot * WANEM_SLOT_SIZE;
}

static inline uint32_t wanem_line_held(const struct wanem_line *line)
{
	return line->cap - line->free_count;
}

#endif
