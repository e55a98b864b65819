/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One direction of a WAN link in virtual time: delay, jitter, rate with a tail-drop queue, independent and
 * bursty loss, reordering, duplication, corruption, outages. Everything random comes from the seed. It
 * carries bytes and knows nothing of what they mean.
 */
#ifndef TESTS_LIB_WAN_LINK_H
#define TESTS_LIB_WAN_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rwy/time.h"

struct wan_link_cfg {
	rwy_dur delay;
	rwy_dur jitter;       /* uniform 0 .. jitter on top, order kept */
	uint64_t rate_Bps;    /* 0: no bound */
	uint32_t overhead;    /* bytes a datagram costs on the wire besides its own */
	uint64_t queue_bytes; /* 0: no bound */
	uint64_t ecn_bytes;   /* mark CE when the queue is longer; 0: never */
	bool ecn_clear;       /* a middlebox clears ECN */
	bool ecn_drop;        /* one drops what is ECN-capable */
	uint32_t loss_ppm;
	uint32_t burst_ppm;   /* a loss burst begins with this probability */
	uint32_t burst_len;   /* its mean length, datagrams */
	uint32_t reorder_ppm; /* delayed by reorder_extra more, others overtake */
	rwy_dur reorder_extra;
	uint32_t dup_ppm;
	uint32_t corrupt_ppm;
	rwy_time outage_from, outage_to; /* everything sent in between is lost */
};

struct wan_link_pkt {
	rwy_time at; /* arrival */
	uint64_t order;
	uint32_t len;
	uint8_t path, ecn;
	uint8_t data[];
};

struct wan_link_stats {
	uint64_t sent, bytes, lost, dropped, corrupted, duplicated, delivered;
};

/* Under way. The keys are beside the pointer: sorting does not fetch datagrams. */
struct wan_link_due {
	rwy_time at;
	uint64_t order;
	struct wan_link_pkt *p;
};

struct wan_link {
	struct wan_link_cfg cfg;
	struct wan_link_stats stats;
	bool ect; /* what is sent next is ECN-capable */
	uint64_t rng;
	uint64_t order;
	rwy_time busy_until; /* the queue is empty then */
	rwy_time last_at;    /* jitter keeps the order */
	uint32_t burst_left;
	struct wan_link_due *heap; /* by arrival */
	uint32_t n, cap;
};

void wan_link_init(struct wan_link *l, const struct wan_link_cfg *cfg, uint64_t seed);
void wan_link_fini(struct wan_link *l);
/* The datagram is hdr and payload one after the other. */
void wan_link_send(struct wan_link *l, uint8_t path, const void *hdr, size_t hdr_len, const void *payload,
    size_t len, rwy_time now);
/* The next datagram that arrived, or NULL. The caller frees it with free(). */
struct wan_link_pkt *wan_link_recv(struct wan_link *l, rwy_time now);
rwy_time wan_link_next(const struct wan_link *l);

uint64_t wan_rng_next(uint64_t *state);
/* 0 .. n-1 */
static inline uint32_t wan_rng_below(uint64_t *state, uint32_t n)
{
	return (uint32_t)((wan_rng_next(state) >> 32) * n >> 32);
}
static inline bool wan_rng_ppm(uint64_t *state, uint32_t ppm)
{
	return ppm && wan_rng_below(state, 1000000) < ppm;
}

#endif
