/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two tunnels, two links and the hosts' messages in virtual time. A worker at each end takes a turn at most
 * every `wake` ns: what arrived (each datagram at its own time), timers, new packets from the hosts, what may
 * go out. There is no general event queue, because there are only few things that can be next. On a shared
 * link there are several such worlds, and flows of cross traffic, with one line in front of all of them.
 */
#ifndef SIM_WAN_RUN_H
#define SIM_WAN_RUN_H

#include "tests/sim/wan/bufs.h"
#include "tests/sim/wan/change.h"
#include "tests/sim/wan/cross.h"
#include "tests/sim/wan/link.h"
#include "tests/sim/wan/seal.h"
#include "tests/sim/wan/stat.h"
#include "wan/wan.h"

struct world;

struct mark {         /* the end of a message that is on its way */
	uint64_t end; /* packets of the stream up to it */
	rwy_time given;
	bool counted;
};

struct copies { /* of a packet, a bit for each fragment */
	uint32_t sent;
	uint32_t arrives; /* some copy did not get lost */
};

/* One queue pair's messages from end 0 to end 1. */
struct stream {
	uint32_t id;
	struct wan_txflow *tx;
	struct wan_rxflow *rx;
	uint64_t fed, hi, got; /* packets given to the sender, sent at least once, handed to the far host */
	uint64_t at;           /* packets of the present message already given */
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
	struct link *out, *in;
	rwy_time last, next;            /* the last turn; what wan_next said */
	rwy_time stall_at, stall_until; /* the process does not run from one to the other */
};

struct world {
	struct scen s;
	struct bufs bufs;
	struct end end[2];
	struct link link[2]; /* [i]: from end i */
	struct stream *stream;
	uint32_t streams, turn;
	uint64_t per_message; /* packets */
	uint64_t begun, done; /* messages */
	uint64_t ahead;       /* packets */
	uint64_t fed, gave;   /* packets given to the tunnel; that the hosts have had, with a demand */
	rwy_time gave_at;     /* when they have the next chunk; RWY_NEVER: no demand */
	rwy_time began;
	struct changes changes;
	uint64_t rng; /* of stalls */
	bool feeding, measuring;
	rwy_time now, measure_at, stop_at;
	uint64_t bad_left; /* corrupted datagrams not told apart yet */
	uint64_t rx_bytes;
	FILE *trace;
	rwy_time trace_at, trace_last_at, watched_at;
	rwy_dur trace_every;
	uint64_t trace_payload, trace_arrived, payload_all;
	struct result *r;
};

/* Everybody on the link there. */
struct run {
	struct world *world;
	struct result *others; /* of the tunnels after the first */
	struct cross cross;
	unsigned tunnels;
	struct line *line;
	bool shared;
	rwy_time began, count_at; /* count_at: when run_count has something to do */
	unsigned snaps;
	FILE *rates;
	rwy_dur rates_every;
	rwy_time rates_last_at;
	uint64_t rates_passed[SHARE_FLOWS];
};

/* 0, or a negative RWY_E* when there is no memory. Both files may be NULL. */
int run_roceway(const struct scen *s, struct result *r, FILE *trace, FILE *rates);

/* run_share.c: who has got how much by now */
void run_count(struct run *u, rwy_time now);

/* work.c: the hosts */
int work_init(struct world *w);
void work_fini(struct world *w);
void work_feed(struct world *w, rwy_time now);
bool work_over(const struct world *w);
void work_close(struct world *w);
void work_sent(struct world *w, const struct wan_tx *x, bool arrives); /* end 0 put a datagram on the wire */
void violation(struct world *w, const char *what, uint64_t a, uint64_t b);
extern const struct wan_ops work_ops;

static inline void hash_add(struct result *r, uint64_t x, uint64_t y)
{
	r->hash = (r->hash ^ x) * 0x9e3779b97f4a7c15u;
	r->hash = (r->hash ^ r->hash >> 29 ^ y) * 0xbf58476d1ce4e5b9u;
}

#endif
