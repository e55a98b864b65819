/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One direction of a path in virtual time: what becomes of a packet. A serial line with a queue
 * that drops at its tail and marks ECN; loss, one by one or in bursts; outages; delay and jitter;
 * reordering, duplication, corruption. The same seed gives the same fates.
 *
 * Packets are the caller's: wan_link.h keeps datagrams for the unit tests, tests/sim/links.h
 * packets of the explorer, rc_world.h those of a LAN. Not here: the line of rwywan
 * (tests/sim/wan/link.h), which many tunnels share and which counts fractions of a nanosecond.
 */
#ifndef TESTS_LIB_LINK_H
#define TESTS_LIB_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "rwy/time.h"
#include "tests/lib/rng.h"

/* Probabilities 0..1. All zero: nothing happens to a packet. */
struct link_cfg {
	rwy_dur delay, jitter; /* jitter: uniform 0 .. jitter on top */
	uint64_t rate_Bps;     /* 0: no bound */
	uint32_t overhead;     /* bytes that a packet costs on the line besides its own */
	uint64_t queue_bytes;  /* drop what does not fit; 0: no bound */
	rwy_dur queue;         /* drop what would wait longer; 0: never */
	uint64_t ecn_bytes;    /* mark CE when the queue is longer; 0: never */
	bool ecn_clear;        /* a middlebox clears ECN */
	bool ecn_drop;         /* one drops what is ECN-capable */
	double loss, burst;    /* burst: mean length of a loss burst, <= 1: independent */
	bool burst_even;       /* bursts of 1 to 2 * burst, each as likely; else geometric */
	bool loss_behind;      /* what is lost has taken its time on the line */
	double reorder, dup, corrupt;
	rwy_dur reorder_extra;           /* later by so much; 0: by a tenth to three tenths of the delay */
	rwy_dur dup_extra;               /* a copy comes at most so much later; 0: the delay */
	uint32_t corrupt_from;           /* bytes before it stay as they are */
	uint32_t corrupt_min;            /* so do packets that are not longer */
	bool keep_order;                 /* jitter does not reorder */
	rwy_time outage_from, outage_to; /* everything sent in between is lost */
};

struct link_stats {
	uint64_t sent, bytes, lost, dropped, corrupted, duplicated, reordered;
};

struct link {
	struct link_cfg cfg;
	struct link_stats stats;
	bool down;
	rwy_time busy_until; /* the line's queue is empty then */
	rwy_time last_at;    /* of those that keep their order */
	rwy_time bad_since;
	uint32_t burst_left;
	bool bad; /* in a loss burst */
};

/* One bit of a packet. */
struct link_flip {
	uint32_t at;
	uint8_t bit; /* 0: none */
};

struct link_fate {
	unsigned copies; /* that arrive: 0, 1 or 2 */
	rwy_time at[2];
	bool late[2]; /* others overtake it */
	struct link_flip flip[2];
	uint8_t ecn; /* of the IP header: in as it was sent, out as it arrives */
};

/* Decides the fate of a packet of `len` bytes that is sent now; f->ecn is set before. */
void link_send(struct link *l, uint32_t len, uint64_t *rng, struct link_fate *f, rwy_time now);

static inline void link_flip(const struct link_flip *f, uint8_t *packet)
{
	if (f->bit)
		packet[f->at] ^= f->bit;
}

#endif
