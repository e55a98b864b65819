/* SPDX-License-Identifier: Apache-2.0
 * Frames waiting for their delivery time; see line.h.
 */
#include "tools/wanem/line.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int wanem_line_init(struct wanem_line *line, uint32_t cap)
{
	uint32_t ring = 1;

	memset(line, 0, sizeof(*line));
	while (ring < cap)
		ring *= 2;
	line->cap = line->free_count = cap;
	line->mask = ring - 1;
	line->slots = mmap(NULL, (size_t)cap * WANEM_SLOT_SIZE, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (line->slots == MAP_FAILED)
		line->slots = NULL;
	line->free_slot = malloc(cap * sizeof(*line->free_slot));
	line->fifo = malloc(ring * sizeof(*line->fifo));
	line->heap = malloc(cap * sizeof(*line->heap));
	if (!line->slots || !line->free_slot || !line->fifo || !line->heap) {
		wanem_line_free(line);
		return -1;
	}
	for (uint32_t i = 0; i < cap; i++)
		line->free_slot[i] = cap - 1 - i;
	return 0;
}

void wanem_line_free(struct wanem_line *line)
{
	if (line->slots)
		munmap(line->slots, (size_t)line->cap * WANEM_SLOT_SIZE);
	free(line->free_slot);
	free(line->fifo);
	free(line->heap);
	memset(line, 0, sizeof(*line));
}

bool wanem_line_get(struct wanem_line *line, uint32_t *slot)
{
	if (!line->free_count)
		return false;
	*slot = line->free_slot[--line->free_count];
	if (wanem_line_held(line) > line->held_max)
		line->held_max = wanem_line_held(line);
	return true;
}

void wanem_line_put(struct wanem_line *line, uint32_t slot)
{
	line->free_slot[line->free_count++] = slot;
}

static bool is_before(const struct wanem_pkt *a, const struct wanem_pkt *b)
{
	return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

static void heap_push(struct wanem_line *line, struct wanem_pkt pkt)
{
	uint32_t i = line->heap_count++;

	while (i && is_before(&pkt, &line->heap[(i - 1) / 2])) {
		line->heap[i] = line->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	line->heap[i] = pkt;
}

static void heap_pop(struct wanem_line *line)
{
	struct wanem_pkt last = line->heap[--line->heap_count];
	uint32_t i = 0, n = line->heap_count;

	for (;;) {
		uint32_t kid = 2 * i + 1;

		if (kid >= n)
			break;
		if (kid + 1 < n && is_before(&line->heap[kid + 1], &line->heap[kid]))
			kid++;
		if (!is_before(&line->heap[kid], &last))
			break;
		line->heap[i] = line->heap[kid];
		i = kid;
	}
	line->heap[i] = last;
}

/* A packet that is held back at the tail sends its followers to the heap until it has left. That is
 * slower, but right. */
static bool fits_fifo(const struct wanem_line *line, uint64_t at)
{
	return !line->fifo_count ||
	       at >= line->fifo[(line->fifo_head + line->fifo_count - 1) & line->mask].at;
}

void wanem_line_push(struct wanem_line *line, uint32_t slot, uint32_t len, uint64_t at)
{
	struct wanem_pkt pkt = {.at = at, .seq = line->seq++, .slot = slot, .len = len};

	if (fits_fifo(line, at))
		line->fifo[(line->fifo_head + line->fifo_count++) & line->mask] = pkt;
	else
		heap_push(line, pkt);
}

bool wanem_line_pop(struct wanem_line *line, struct wanem_pkt *out, uint64_t now)
{
	const struct wanem_pkt *fifo = line->fifo_count ? &line->fifo[line->fifo_head] : NULL;
	const struct wanem_pkt *heap = line->heap_count ? &line->heap[0] : NULL;

	if (fifo && (!heap || is_before(fifo, heap))) {
		if (fifo->at > now)
			return false;
		*out = *fifo;
		line->fifo_head = (line->fifo_head + 1) & line->mask;
		line->fifo_count--;
		return true;
	}
	if (!heap || heap->at > now)
		return false;
	*out = *heap;
	heap_pop(line);
	return true;
}

uint64_t wanem_line_next(const struct wanem_line *line)
{
	uint64_t next = line->fifo_count ? line->fifo[line->fifo_head].at : UINT64_MAX;

	if (line->heap_count && line->heap[0].at < next)
		next = line->heap[0].at;
	return next;
}
