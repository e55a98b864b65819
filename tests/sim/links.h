/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links in virtual time, and the packets on them. A link keeps packets that stay in order in a
 * queue; only those that are overtaken wait in a heap. So the next arrival is the first of a few
 * queues, however many packets are on the way.
 */
#ifndef TESTS_SIM_LINKS_H
#define TESTS_SIM_LINKS_H

#include <stdbool.h>
#include <stdint.h>

#include "rwy/time.h"
#include "tests/sim/pool.h"

struct sim_rng {
	uint64_t s;
};

#define SIM_STEP 0x9e3779b97f4a7c15u

/* A number that identifies a state (or a vector of states). */
#define SIM_MIX(s)                                                                                           \
	({                                                                                                   \
		__auto_type z_ = (s);                                                                        \
		z_ = (z_ ^ z_ >> 30) * 0xbf58476d1ce4e5b9u;                                                  \
		z_ = (z_ ^ z_ >> 27) * 0x94d049bb133111ebu;                                                  \
		z_ ^ z_ >> 31;                                                                               \
	})

static inline uint64_t sim_next(struct sim_rng *r)
{
	r->s += SIM_STEP;
	return SIM_MIX(r->s);
}

static inline uint32_t sim_below(struct sim_rng *r, uint32_t n)
{
	return n ? (uint32_t)(sim_next(r) % n) : 0;
}

static inline bool sim_chance(struct sim_rng *r, double p)
{
	return p > 0 && (double)(sim_next(r) >> 11) < p * 9007199254740992.0;
}

/* The properties of a link. Probabilities 0..1. */
struct sim_link_cfg {
	rwy_dur delay, jitter;
	uint64_t rate_Bps;  /* 0: unlimited */
	rwy_dur queue;      /* drop packets that would wait longer; 0: never */
	double loss, burst; /* burst: mean length of a loss burst; <= 1: independent losses */
	double reorder, dup, corrupt;
	bool keep_order; /* jitter does not reorder */
};

/* A packet on its way, or (b NULL) something else that is due. */
struct sim_event {
	rwy_time at;
	uint64_t order; /* orders events of equal time as they were scheduled */
	struct sim_buf *b;
	uint32_t where; /* the link, or the argument of sim_links_at() */
};

/* A growing ring, whose size is a power of two. */
struct sim_fifo {
	struct sim_event *v;
	uint32_t head, n, cap;
};

enum { SIM_WAN, SIM_LAN_UP, SIM_LAN_DOWN, SIM_KINDS };
#define SIM_LINKS (2 * SIM_KINDS) /* SIM_LINK(kind, site that sends or receives there) */

static inline uint32_t sim_link_id(uint32_t kind, uint32_t site)
{
	return 2 * kind + site;
}

struct sim_link {
	struct sim_link_cfg cfg;
	rwy_time free_at, last_out, bad_since;
	bool bad; /* in a loss burst */
	bool down;
	uint64_t in, lost, duplicated, reordered, corrupted;
};

struct sim_links {
	struct sim_link link[SIM_LINKS];
	struct sim_rng *rng;
	struct sim_fifo fifo[SIM_LINKS];
	struct sim_event *heap;
	uint32_t n, cap;
	uint64_t order;
	/* When the first of each queue and, last, of the heap is due; RWY_NEVER: it is empty. */
	struct {
		rwy_time at;
		uint64_t order;
	} first[SIM_LINKS + 1];
	uint64_t *hash; /* if not NULL: hash of all packets sent */
};

void sim_links_init(struct sim_links *l, struct sim_rng *rng);
void sim_links_fini(struct sim_links *l);

/* Sends a packet, which then belongs to the link. */
void sim_link_send(struct sim_links *l, uint32_t id, struct sim_buf *b, rwy_time now);
/* Schedules an event that is not sent over a link. */
void sim_links_at(struct sim_links *l, rwy_time at, uint32_t where, struct sim_buf *b);
/* Takes the next event that is due by `now`; false: none. A packet then belongs to the caller. */
bool sim_links_pop(struct sim_links *l, struct sim_event *ev, rwy_time now);

static inline rwy_time sim_links_next(const struct sim_links *l)
{
	rwy_time at = l->first[0].at;

	for (unsigned i = 1; i <= SIM_LINKS; i++)
		at = rwy_time_min(at, l->first[i].at);
	return at;
}

#endif
