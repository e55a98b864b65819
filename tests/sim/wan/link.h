/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One direction of the path in virtual time: a line with its queue, delay, jitter, loss, reordering,
 * duplication, corruption, outage. What keeps its order waits in a ring; only what is overtaken or doubled
 * goes through a heap. A datagram's payload is kept short when the run is thin; its length on the wire never
 * is.
 */
#ifndef SIM_WAN_LINK_H
#define SIM_WAN_LINK_H

#include "tests/sim/wan/jitter.h"
#include "tests/sim/wan/line.h"
#include "tests/sim/wan/loss.h"
#include "tests/sim/wan/scen.h"

#define PKT_KEEP 238

struct pkt {
	rwy_time at;
	uint16_t len;    /* UDP payload */
	uint16_t stored; /* bytes of it in data, or in full */
	uint16_t hdr_len;
	uint8_t path;
	bool bad;  /* a bit was flipped */
	bool real; /* parity: the receiver may write all of it, so it gets real memory */
	bool ce;   /* marked on the way */
	uint8_t data[PKT_KEEP];
};
_Static_assert(sizeof(struct pkt) == 256, "four cache lines a datagram under way");

struct heap_item {
	rwy_time at;
	uint64_t order;
	struct pkt *p;
	uint8_t *full;
};

struct link_stats {
	uint64_t sent, bytes, lost, dropped, corrupted, duplicated, reordered, delivered;
	uint64_t passed; /* bytes that are not lost */
};

struct link {
	struct line *line; /* its own one, or one that others use too */
	struct line own;
	rwy_dur delay, reorder_delay;
	struct jitter jitter;
	bool free_order;
	double reorder, dup, corrupt, overhead, packet; /* packet: a full one on the wire, bytes */
	rwy_time outage_from, outage_to;
	bool full;
	uint64_t rng;
	struct loss loss;
	rwy_time last_at;
	struct pkt *ring;
	uint8_t **full_ring; /* the bytes of each place, when the run is full */
	uint64_t head, tail, mask;
	struct heap_item *heap;
	uint32_t heap_n, heap_cap;
	uint64_t order;
	struct link_stats st;
};

struct link_dgram {
	const uint8_t *hdr, *payload;
	uint16_t hdr_len;
	uint32_t len; /* of the payload */
	uint8_t path;
	bool real;
};

bool link_init(struct link *l, const struct scen *s, bool back, uint64_t seed);
void link_fini(struct link *l);
/* The path is another one from now on: rate, delay, loss, jitter of s. What is under way keeps its time. */
void link_change(struct link *l, const struct scen *s, bool back);
/* False: it will not arrive. */
bool link_send(struct link *l, const struct link_dgram *d, rwy_time now);
/* The next arrival not later than now, with its bytes at *bytes; valid until the next call. */
const struct pkt *link_recv(struct link *l, const uint8_t **bytes, rwy_time now);
static inline rwy_time link_next(const struct link *l)
{
	rwy_time at = l->head != l->tail ? l->ring[l->head & l->mask].at : RWY_NEVER;

	return l->heap_n ? rwy_time_min(at, l->heap[0].at) : at;
}

#endif
