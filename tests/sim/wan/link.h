/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One direction of the path in virtual time: a line with its queue, delay, jitter, loss,
 * reordering, duplication, corruption, outage. What keeps its order waits in a ring; only what is
 * overtaken or doubled goes through a heap. A datagram's payload is kept short when the run is
 * thin; its length on the wire never is. Tests and the explorer have a plainer one
 * (tests/lib/link.h), without what a figure of throughput needs: a line that tunnels share,
 * fractions of a nanosecond, RED, jitter as it was measured, 10^8 packets.
 */
#ifndef SIM_WAN_LINK_H
#define SIM_WAN_LINK_H

#include "rwy/due.h"
#include "tests/sim/wan/jitter.h"
#include "tests/sim/wan/line.h"
#include "tests/sim/wan/loss.h"
#include "tests/sim/wan/scen.h"

#define PKT_KEEP 238

struct pkt {
	rwy_time at;
	uint16_t len;    /* UDP payload */
	uint16_t stored; /* bytes of it in data or in full */
	uint16_t hdr_len;
	uint8_t path;
	bool bad;  /* a bit was flipped */
	bool real; /* parity: the receiver may write all of it, so it gets real memory */
	bool ce;   /* ECN-marked on the way */
	uint8_t data[PKT_KEEP];
};
_Static_assert(sizeof(struct pkt) == 256, "four cache lines a datagram under way");

/* In the heap. */
struct overtaken {
	struct pkt p;
	uint8_t *full; /* its bytes, when the run is full */
};

struct link_stats {
	uint64_t sent, bytes, lost, dropped, corrupted, duplicated, reordered, delivered;
	uint64_t passed; /* bytes that are not lost */
};

struct link {
	struct line *line; /* its own, or one that it shares */
	struct line own;
	rwy_dur delay, reorder_delay;
	struct jitter jitter;
	bool free_order;
	/* packet: bytes on the wire of a full one */
	double reorder, dup, corrupt, overhead, packet;
	rwy_time outage_from, outage_to;
	bool full;
	uint64_t rng;
	struct loss loss;
	rwy_time last_at;
	struct pkt *ring;
	uint8_t **full_ring; /* in a full run: the bytes of each place */
	uint64_t head, tail, mask;
	struct due_heap heap; /* `what` is a struct overtaken */
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
/* Changes the path to rate, delay, loss and jitter of s. Packets in flight keep their arrival. */
void link_change(struct link *l, const struct scen *s, bool back);
/* False: it will not arrive. */
bool link_send(struct link *l, const struct link_dgram *d, rwy_time now);
/* The next arrival not later than now, its bytes at *bytes; valid until the next call. NULL:
 * none. */
const struct pkt *link_recv(struct link *l, const uint8_t **bytes, rwy_time now);
static inline rwy_time link_next(const struct link *l)
{
	rwy_time at = l->head != l->tail ? l->ring[l->head & l->mask].at : RWY_NEVER;

	return rwy_time_min(at, due_next(&l->heap));
}

#endif
