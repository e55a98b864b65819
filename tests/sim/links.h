/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The links of the explorer (tests/lib/link.h) and what is on them. A link keeps what leaves it in
 * order as a queue; only what is overtaken waits in a heap. So the next arrival is the first of a
 * few queues, however much is on the way.
 *
 * What is due is a struct due: `what` is a packet, or NULL for something else, and `where` is its
 * link, or whatever sim_links_at() was given.
 */
#ifndef TESTS_SIM_LINKS_H
#define TESTS_SIM_LINKS_H

#include <stdbool.h>
#include <stdint.h>

#include "rwy/due.h"
#include "tests/lib/link.h"
#include "tests/sim/pool.h"

struct sim_rng {
	uint64_t s;
};

static inline uint64_t sim_next(struct sim_rng *r)
{
	return rng_next(&r->s);
}

static inline uint32_t sim_below(struct sim_rng *r, uint32_t n)
{
	return rng_below(&r->s, n);
}

static inline bool sim_chance(struct sim_rng *r, double p)
{
	return rng_chance(&r->s, p);
}

/* A growing ring, power of two. */
struct sim_fifo {
	struct due *v;
	uint32_t head, n, cap;
};

#define SIM_PATHS 4 /* paths of the WAN */
/*
 * SIM_WAN is its path 0, SIM_WAN_MORE path 1, and so on. SIM_CABLE leads from the first to the second
 * gateway of a site's pair, SIM_CABLE_BACK from the second to the first.
 */
enum {
	SIM_WAN,
	SIM_LAN_UP,
	SIM_LAN_DOWN,
	SIM_WAN_MORE,
	SIM_CABLE = SIM_WAN_MORE + SIM_PATHS - 1,
	SIM_CABLE_BACK,
	SIM_KINDS
};
#define SIM_LINKS (2 * SIM_KINDS) /* SIM_LINK(kind, site that sends or receives there) */

static inline uint32_t sim_link_id(uint32_t kind, uint32_t site)
{
	return 2 * kind + site;
}

/* The link of a path, away from the site; and the path of a link's kind. */
static inline uint32_t sim_path_link(uint32_t path, uint32_t site)
{
	return sim_link_id(path ? SIM_WAN_MORE + path - 1 : SIM_WAN, site);
}
static inline bool sim_kind_is_wan(uint32_t kind)
{
	return kind == SIM_WAN || (kind >= SIM_WAN_MORE && kind < SIM_CABLE);
}
static inline uint8_t sim_path_of(uint32_t kind)
{
	return kind == SIM_WAN ? 0 : (uint8_t)(kind - SIM_WAN_MORE + 1);
}

struct sim_links {
	struct link link[SIM_LINKS];
	struct sim_rng *rng;
	struct sim_fifo fifo[SIM_LINKS];
	struct due_heap heap;
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
/*
 * What a link does to packets; what they cost on the line, and which of them are corrupted, is the
 * same for all.
 */
void sim_link_set(struct sim_links *l, uint32_t id, const struct link_cfg *cfg);

/* Sends a packet, which then belongs to the link. */
void sim_link_send(struct sim_links *l, uint32_t id, struct sim_buf *b, rwy_time now);
/* Schedules an event that is not sent over a link. */
void sim_links_at(struct sim_links *l, rwy_time at, uint32_t where, struct sim_buf *b);
/* Takes the next that is due by `now`; false: none. Packets are the caller's then. */
bool sim_links_pop(struct sim_links *l, struct due *d, rwy_time now);

static inline rwy_time sim_links_next(const struct sim_links *l)
{
	rwy_time at = l->first[0].at;

	for (unsigned i = 1; i <= SIM_LINKS; i++)
		at = rwy_time_min(at, l->first[i].at);
	return at;
}

#endif
