/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring of records between one worker and the thread of the capture. Neither waits: a full ring
 * refuses. A record is in one piece; size is a multiple of GW_CAP_ALIGN. The producer sees its own
 * records until it publishes them.
 */
#ifndef GATEWAY_CAPTURE_RING_H
#define GATEWAY_CAPTURE_RING_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gateway/capture/facts.h"
#include "rwy/time.h"

#define GW_CAP_ALIGN 16u

/* The bytes of the packet follow. */
struct gw_cap_rec {
	uint32_t size; /* of the record, with this header */
	bool skip;     /* there is no packet in it */
	uint8_t port;
	uint16_t len;      /* bytes of the packet in the record */
	uint32_t wire_len; /* and on the wire */
	rwy_time time;
	struct gw_cap_facts facts;
};
#define GW_CAP_REC ((sizeof(struct gw_cap_rec) + GW_CAP_ALIGN - 1) & ~(size_t)(GW_CAP_ALIGN - 1))

struct gw_cap_ring {
	uint8_t *mem;
	uint32_t size;                     /* a power of two */
	uint32_t next;                     /* the producer's: behind its last record */
	alignas(64) _Atomic uint32_t head; /* published up to here */
	alignas(64) _Atomic uint32_t tail; /* read up to here */
};

static inline uint8_t *gw_cap_rec_bytes(const struct gw_cap_rec *r)
{
	return (uint8_t *)(uintptr_t)r + GW_CAP_REC;
}

/* The producer: a record with room for len bytes, which are within 64 KiB; NULL: the ring is
 * full. */
static inline struct gw_cap_rec *gw_cap_ring_room(struct gw_cap_ring *r, uint32_t len)
{
	const uint32_t size = ((uint32_t)GW_CAP_REC + len + GW_CAP_ALIGN - 1) & ~(GW_CAP_ALIGN - 1);
	uint32_t at = r->next & (r->size - 1), left = r->size - at;
	const uint32_t used = r->next - atomic_load_explicit(&r->tail, memory_order_acquire);
	struct gw_cap_rec *rec = (struct gw_cap_rec *)(void *)(r->mem + at);

	if (size + (size > left ? left : 0) > r->size - used)
		return NULL;
	if (size > left) { /* an empty record, of which only size and skip exist */
		rec->size = left;
		rec->skip = true;
		r->next += left;
		rec = (struct gw_cap_rec *)(void *)r->mem;
	}
	r->next += size;
	rec->size = size;
	rec->skip = false;
	rec->len = (uint16_t)len;
	return rec;
}

/* The producer: bytes that the consumer has not given back. */
static inline uint32_t gw_cap_ring_used(const struct gw_cap_ring *r)
{
	return r->next - atomic_load_explicit(&r->tail, memory_order_relaxed);
}

static inline void gw_cap_ring_publish(struct gw_cap_ring *r)
{
	atomic_store_explicit(&r->head, r->next, memory_order_release);
}

/* The consumer: its oldest record; NULL: there is none. */
static inline const struct gw_cap_rec *gw_cap_ring_first(struct gw_cap_ring *r)
{
	uint32_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
	const uint32_t head = atomic_load_explicit(&r->head, memory_order_acquire);

	while (tail != head) {
		const struct gw_cap_rec *rec =
		    (const struct gw_cap_rec *)(const void *)(r->mem + (tail & (r->size - 1)));

		if (!rec->skip)
			return rec;
		tail += rec->size;
		atomic_store_explicit(&r->tail, tail, memory_order_release);
	}
	return NULL;
}

/* The consumer: gives the place of that record back. */
static inline void gw_cap_ring_pop(struct gw_cap_ring *r, const struct gw_cap_rec *rec)
{
	atomic_store_explicit(
	    &r->tail, atomic_load_explicit(&r->tail, memory_order_relaxed) + rec->size, memory_order_release);
}

#endif
