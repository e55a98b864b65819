/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One direction of a WAN for the unit tests: a link (tests/lib/link.h) with the datagrams that are
 * on it, its configuration in parts per million. Everything random comes from the seed. It carries
 * bytes and knows nothing of what they mean.
 */
#ifndef TESTS_LIB_WAN_LINK_H
#define TESTS_LIB_WAN_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rwy/due.h"
#include "tests/lib/link.h"

struct wan_link_cfg {
	rwy_dur delay;
	rwy_dur jitter;       /* uniform 0 .. jitter in addition; order is kept */
	uint64_t rate_Bps;    /* 0: unlimited */
	uint32_t overhead;    /* bytes on the wire besides the datagram's own */
	uint64_t queue_bytes; /* 0: unlimited */
	uint64_t ecn_bytes;   /* mark CE if the queue is longer; 0: never */
	bool ecn_clear;       /* a middlebox clears ECN */
	bool ecn_drop;        /* a middlebox drops ECN-capable packets */
	uint32_t loss_ppm;
	uint32_t burst_ppm;   /* a loss burst begins with this probability; replaces loss_ppm */
	uint32_t burst_len;   /* its mean length, datagrams */
	uint32_t reorder_ppm; /* delayed by reorder_extra more, so that others overtake */
	rwy_dur reorder_extra;
	uint32_t dup_ppm;
	uint32_t corrupt_ppm;
	rwy_time outage_from, outage_to; /* all that is sent in between is lost */
};

struct wan_link_pkt {
	rwy_time at; /* arrival */
	uint64_t order;
	uint32_t len;
	uint8_t path, ecn;
	uint8_t data[];
};

struct wan_link {
	struct wan_link_cfg cfg;
	struct link link;
	bool ect; /* what is sent next is ECN-capable */
	uint64_t rng;
	uint64_t order;
	struct due_heap due; /* `what` is a struct wan_link_pkt */
};

void wan_link_init(struct wan_link *l, const struct wan_link_cfg *cfg, uint64_t seed);
void wan_link_fini(struct wan_link *l);
/* Sends a datagram that consists of hdr and payload. */
void wan_link_send(struct wan_link *l, uint8_t path, const void *hdr, size_t hdr_len, const void *payload,
    size_t len, rwy_time now);
/* The next datagram that has arrived, or NULL. The caller frees it with free(). */
struct wan_link_pkt *wan_link_recv(struct wan_link *l, rwy_time now);
rwy_time wan_link_next(const struct wan_link *l);

static inline uint64_t wan_rng_next(uint64_t *state)
{
	return rng_next(state);
}
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
