/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two tunnels, two links and the hosts' messages in virtual time. The worker at each end takes a
 * turn at most every `wake` ns: arrivals (each datagram at its own time), timers, new packets from
 * the hosts, output. There is no general event queue, since only a few things can be next. On a
 * shared link several such worlds, and flows of cross traffic, send through one line.
 */
#ifndef SIM_WAN_RUN_H
#define SIM_WAN_RUN_H

#include "tests/sim/wan/bufs.h"
#include "tests/sim/wan/change.h"
#include "tests/sim/wan/cross.h"
#include "tests/sim/wan/link.h"
#include "tests/sim/wan/paths.h"
#include "tests/sim/wan/seal.h"
#include "tests/sim/wan/stat.h"
#include "wan/wan.h"

#define SIM_START RWY_SEC /* not 0, since nothing may depend on it */

struct world;

struct mark {         /* the end of a message on its way */
	uint64_t end; /* packets of the stream up to it */
	rwy_time given;
	bool counted;
};

struct copies { /* copies of a packet, one bit for each fragment */
	uint32_t sent;
	uint32_t arrives; /* a copy of it is not lost */
};

/* The messages of one queue pair from end 0 to end 1. */
struct stream {
	uint32_t id;
	struct wan_txflow *tx;
	struct wan_rxflow *rx;
	/* packets passed to the sender, sent at least once, delivered to the far host */
	uint64_t fed, hi, got;
	uint64_t at;           /* packets of the present message already passed */
	uint64_t messages;     /* begun */
	struct copies *copies; /* by packet, from `got` on */
	uint64_t mask;
	struct mark *mark;
	uint64_t mark_head, mark_tail, mark_mask;
	bool closed;
};

struct end {
	struct world *w;
	struct wan_tunnel *t;
	struct link *detour, *detour_in; /* the reliable carrier; NULL: there is none */
	rwy_time last, next;             /* the last turn; the result of wan_next() */
	rwy_time stall_at, stall_until;  /* the process is stopped in between */
};

struct world {
	struct scen s;
	struct bufs bufs;
	struct end end[2];
	struct link link[PATHS_MAX][2]; /* of each path; [i]: from end i */
	struct link detour[2];          /* the same, the reliable carrier */
	struct stream *stream;
	uint32_t streams, turn;
	uint64_t per_message; /* packets */
	uint64_t begun, done; /* messages */
	uint64_t ahead;       /* packets */
	/* packets passed to the tunnel; packets that the hosts have had, with a demand */
	uint64_t fed, gave;
	rwy_time gave_at; /* when they get the next chunk; RWY_NEVER: no demand */
	rwy_time began;
	struct changes changes;
	uint64_t rng; /* for stalls */
	bool feeding, measuring;
	rwy_time now, measure_at, stop_at;
	rwy_time got_at;   /* when the far host got something last */
	uint64_t bad_left; /* corrupted datagrams not identified yet */
	uint64_t rx_bytes;
	FILE *trace;
	rwy_time trace_at, trace_last_at, watched_at;
	rwy_dur trace_every;
	uint64_t trace_payload, trace_arrived, payload_all;
	struct result *r;
};

/* All senders on the link. */
struct run {
	struct world *world;
	struct result *others; /* of the tunnels after the first */
	struct cross cross;
	unsigned tunnels;
	struct line *line;
	bool shared;
	rwy_time began, count_at; /* count_at: when run_count() is due */
	unsigned snaps;
	FILE *rates;
	rwy_dur rates_every;
	rwy_time rates_last_at;
	uint64_t rates_passed[SHARE_FLOWS];
};

/* Runs the scenario. 0, or RWY_ENOMEM. Both files may be NULL. */
int run_roceway(const struct scen *s, struct result *r, FILE *trace, FILE *rates);

/* run_share.c: counts what each sender has got so far. */
void run_count(struct run *u, rwy_time now);

/* work.c: the hosts. */
int work_init(struct world *w);
void work_fini(struct world *w);
void work_feed(struct world *w, rwy_time now);
bool work_over(const struct world *w);
void work_close(struct world *w);
void work_sent(struct world *w, const struct wan_tx *x, bool arrives); /* end 0 sent a datagram */
void violation(struct world *w, const char *what, uint64_t a, uint64_t b);
extern const struct wan_ops work_ops;

static inline void hash_add(struct result *r, uint64_t x, uint64_t y)
{
	r->hash = (r->hash ^ x) * 0x9e3779b97f4a7c15u;
	r->hash = (r->hash ^ r->hash >> 29 ^ y) * 0xbf58476d1ce4e5b9u;
}

#endif
