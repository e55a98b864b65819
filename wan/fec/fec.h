/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forward error correction: repair datagrams for what is sent near the end of a message, where a lost
 * datagram would otherwise come a round trip late. fec.c encodes; plan.c decides when, choose.c how much;
 * rx.c collects, blocks.c remembers, solve.c rebuilds. It knows datagrams of a path, not flows or loss
 * recovery: the transport (wan/) is above, calls it, and reads what it counted. Only files of wan/ include
 * this.
 *
 * Words: a *symbol* is a datagram without what its REPAIR frame tells anyway: length, checksum, frames. A
 * *block* is up to WAN_FEC_K_MAX symbols and their repairs. A *group* is `depth` blocks filled in turn, so
 * that a burst of losses hits each of them once. A path has one group open at a time. A *shared* repair is
 * the sum of one repair of each block of the group: it helps whichever of them lost more than its own repairs
 * make good.
 */
#ifndef WAN_FEC_FEC_H
#define WAN_FEC_FEC_H

#include <stdbool.h>
#include <stdint.h>

#include "rwy/buf.h"
#include "rwy/pace.h"
#include "rwy/time.h"
#include "wan/fec/stats.h"
#include "wan/wire/pkt.h"
#include "wan/wire/ranges.h"

#define WAN_FEC_DEPTH_MAX  32
#define WAN_FEC_SHARED_MAX 8
#define WAN_FEC_PARITY_MAX 400 /* repairs of a group: buffers taken from the pool while it is open */
#define WAN_FEC_GROUPS     256 /* groups whose outcome loss detection still asks for */
#define WAN_FEC_WINDOW     ((uint32_t)24 << 20) /* bytes of a group at most; a receiver keeps more than that */
#define WAN_FEC_KEEP       8192                 /* datagrams that a receiver remembers of a path */
#define WAN_FEC_BLOCKS     96                   /* blocks that a receiver knows of: three groups */
#define WAN_FEC_SHARES     4                    /* groups whose shared repairs wait */
#define WAN_FEC_HELD_MAX   512                  /* REPAIR datagrams they hold, all together */
#define WAN_FEC_REBUILT    128                  /* ranges waiting to be reported to the peer */

struct wan_fec_code;
struct wan_fec_rx;
struct wan_fec_path;

#define WAN_FEC_PATHS 8

/* Calls to the transport. */
struct wan_fec_ops {
	/* A datagram that was lost is here: its checksum is right, its number was not seen. Takes b. */
	void (*rebuilt)(void *ctx, uint8_t path, uint64_t pn, struct rwy_buf *b, rwy_time now);
};

/* One tunnel's, in struct wan_tunnel. Thread: the tunnel's. */
struct wan_fec {
	const struct wan_fec_ops *ops;
	void *ctx;
	const struct rwy_bufs *bufs;
	bool on;                    /* as configured */
	bool peer;                  /* the peer takes REPAIR */
	uint32_t mtu;               /* smallest of both sides' paths */
	uint32_t index;             /* what the peer writes into its datagrams */
	double extra_max;           /* share of the data that repairs may cost */
	uint64_t rx_bytes;          /* of copies, each path */
	struct wan_fec_code **code; /* where the tables are kept: for several tunnels, or own */
	struct wan_fec_code *own;
	struct wan_fec_rx *rx; /* NULL until first used */
	struct wan_fec_path *path[WAN_FEC_PATHS];
	unsigned paths;
	struct wan_fec_counters {
		uint64_t sent, sent_bytes, received, unused, rebuilt, bad, no_buffer;
	} c;
};
void wan_fec_fini(struct wan_fec *x); /* its own tables, the receiving half and all copies */

/* Coefficients and their multiplication tables: row r is repair r, column j symbol j. A quarter of a megabyte
 * that shall stay in the cache, so tunnels of one thread share it. */
struct wan_fec_code {
	uint8_t coef[WAN_FEC_M_MAX][WAN_FEC_K_MAX];
	uint8_t tbl[WAN_FEC_M_MAX * WAN_FEC_K_MAX * 32];
};
/* Made at the first use. NULL: no memory. */
const struct wan_fec_code *wan_fec_code(struct wan_fec *x);

/* Loss statistics of a path. Kept longer than the tunnel's other averages: 1e-5 must still be seen. */
struct wan_fec_est {
	double n, lost, runs;
	uint64_t last_lost; /* packet number + 1 */
	uint32_t run;
	bool off; /* so little is lost that nothing is protected */
	rwy_time ce_until;
};

struct wan_fec_block {
	unsigned k;
	uint8_t map[WAN_FEC_MAP_MAX];
	struct rwy_buf *par[WAN_FEC_M_MAX];
};

/* How a group ended, for loss detection. */
struct wan_fec_outcome {
	uint32_t group;
	bool done; /* its last repair is sent */
	uint64_t last_pn;
	rwy_time sent;
};

struct wan_fec_tx {
	bool open;
	uint32_t group; /* number of the open or last one, from 1 */
	uint64_t first; /* packet number of its first datagram */
	unsigned depth, m, n, n_max;
	unsigned g, turns; /* shared repairs; the blocks' coefficients begin at so many different rows */
	double eps;
	unsigned span; /* from its first to its last datagram, others between them included */
	bool ended;    /* the last buffer ended a message */
	rwy_time opened, close_at;
	/* closed: repairs a block, shared ones, the next one, how many are left, the length of each */
	unsigned send_m, send_g, at, pending;
	uint32_t len;
	struct wan_fec_block b[WAN_FEC_DEPTH_MAX];
	struct rwy_buf *shared[WAN_FEC_SHARED_MAX];
	struct wan_fec_outcome outcome[WAN_FEC_GROUPS];
};

struct wan_fec_rebuilt { /* a range for REBUILT */
	uint64_t pn;
	uint8_t more;
};

/* One path's, in struct wan_path. */
struct wan_fec_path {
	struct wan_fec *fec;
	uint8_t id;
	/* the path's own numbers, read here */
	const uint64_t *next_pn;
	const rwy_dur *srtt, *min_rtt;
	const uint64_t *ns_fp; /* pacing: ns a byte, RWY_PACE_BITS fraction bits */
	const struct wan_ranges *seen;
	uint32_t mtu;

	struct wan_fec_est est;
	struct wan_fec_tx *tx; /* NULL until first used */
	struct wan_fec_keep *keep;
	struct wan_fec_rebuilt report[WAN_FEC_REBUILT];
	unsigned reports;
	double credit; /* bytes that repairs may still cost */
	/* Computed from rate, RTT and loss at the last ACK: a datagram only reads it. [1]: small messages */
	double share[2], most[2]; /* credit earned a byte; at most */
	uint64_t flight;          /* bytes sent in a round trip and a little */
	struct wan_fec_stats stats;
};

/* A flow, when a datagram of it is about to be built. */
struct wan_fec_flow {
	uint64_t waiting;            /* buffers never sent */
	uint64_t sent;               /* bytes since it began to have something to send */
	uint32_t peak;               /* most buffers waiting meanwhile */
	struct rwy_buf *const *last; /* place of the newest buffer */
};

/* A message's last packet, by its BTH opcode (RC: SEND, WRITE, READ response; the rest are of one packet), or
 * not a RoCE packet. */
static inline bool wan_fec_message_ends(const struct rwy_buf *b)
{
	uint8_t op = b->opcode & 0x1f;

	return b->kind != RWY_BUF_PACKET || !(op <= 1 || op == 6 || op == 7 || op == 0xd || op == 0xe);
}

/* plan.c: a few numbers in, a few numbers out */
void wan_fec_note_acked(struct wan_fec_path *p, uint32_t n);
/* `beside`: how many of its two neighbours were lost, too. */
void wan_fec_note_lost(struct wan_fec_path *p, uint64_t pn, unsigned beside, rwy_time now);
void wan_fec_note_spurious(struct wan_fec_path *p);
bool wan_fec_congested(const struct wan_fec_path *p, rwy_time now);
/* Share of datagrams lost, 0 .. 1; datagrams in one burst, >= 1. */
double wan_fec_loss(const struct wan_fec_path *p);
double wan_fec_burst(const struct wan_fec_path *p);
/* The loss to plan for. */
double wan_fec_expect(const struct wan_fec_path *p);
/* Share of extra bytes allowed at a loss; more for small messages. */
double wan_fec_share(const struct wan_fec *x, double loss, bool small);
struct wan_fec_plan {
	unsigned depth, m, g, n; /* repairs of each block; shared ones; datagrams of the group at most */
	double eps, fail;        /* how often the group may fail, and does */
};
/* False: nothing to gain or nothing to spend. `total`: datagrams that must all come in time, of which this
 * group has its part; `left`: of them still to be sent; `bytes`: of one. */
bool wan_fec_plan(const struct wan_fec_path *p, uint64_t total, uint64_t left, uint32_t bytes, bool small,
    struct wan_fec_plan *plan);
/* Would a datagram of f that goes now come too late if it were sent again? */
bool wan_fec_near_end(const struct wan_fec_path *p, const struct wan_fec_flow *f, uint32_t len);
/* After an ACK, when rate, RTT or loss may have changed. */
void wan_fec_refresh(struct wan_fec_path *p);
/* `len` bytes of data went for the first time, of a flow that sends `total` in a row. */
void wan_fec_earn(struct wan_fec_path *p, uint64_t total, uint32_t len);

/* choose.c */
struct wan_fec_law {
	double loss, burst; /* share of datagrams lost; datagrams in one burst, 1: independent */
};
/* Fewest repairs m, g for plan->depth blocks of k symbols so that the group fails with a probability below
 * plan->eps; or the best of `most` repairs. m == 0: none are needed, or none can be had. Sets plan->fail. */
void wan_fec_choose(unsigned k, const struct wan_fec_law *law, unsigned most, struct wan_fec_plan *plan);

/* fec.c: sending */
/* A DATA datagram of f with a buffer of `len` bytes is about to be built: shall it be protected? */
bool wan_fec_wants(struct wan_fec_path *p, const struct wan_fec_flow *f, uint32_t len, rwy_time now);
/* It is built, except for flags and checksum, of so many bytes. True: it belongs to the open group; then
 * wan_fec_add. */
bool wan_fec_takes(struct wan_fec_path *p, uint32_t bytes, rwy_time now);
struct wan_fec_symbol {
	const uint8_t *hdr, *payload; /* payload may be NULL */
	uint32_t hdr_len, len;
	bool ends; /* it ends a message */
};
/* The sealed datagram becomes part of its group, whose number is returned. */
uint32_t wan_fec_add(struct wan_fec_path *p, const struct wan_fec_symbol *s, rwy_time now);
/* The next repair and its frame; the buffer is the caller's. When it is built, of so many bytes: repair_sent.
 */
struct rwy_buf *wan_fec_next_repair(struct wan_fec_path *p, struct wan_f_repair *r);
void wan_fec_repair_sent(struct wan_fec_path *p, uint32_t bytes, rwy_time now);
static inline bool wan_fec_pending(const struct wan_fec_path *p)
{
	return p->tx && p->tx->pending;
}
/* Nothing is left to send. True: a group closed, and repairs wait now. */
bool wan_fec_dry(struct wan_fec_path *p, rwy_time now);
void wan_fec_age(struct wan_fec_path *p, rwy_time now);
rwy_time wan_fec_next(const struct wan_fec_path *p);
/* For loss detection: a datagram of a group counts as sent with the group's last repair. *pn, *sent: its own,
 * and then those. */
void wan_fec_outcome(const struct wan_fec_path *p, uint32_t group, uint64_t *pn, rwy_time *sent);
void wan_fec_tx_reset(struct wan_fec_path *p, rwy_time now); /* a new session, or the path's end */
void wan_fec_tx_free(struct wan_fec_path *p);

/* --- receiving --------------------------------------------------------------------------------- */
/* Copies of protected datagrams, the newest cfg.fec_rx_bytes of a path: the flows' buffers have moved on to
 * the engine, which changes them, by the time a repair comes. */
struct wan_fec_kept {
	uint64_t pn1; /* packet number + 1, 0: none */
	uint64_t at;
	uint32_t len;
};
struct wan_fec_keep {
	uint64_t head, cap;
	uint8_t *bytes;
	struct wan_fec_kept slot[WAN_FEC_KEEP];
};

struct wan_fec_wait { /* a block: waiting for enough repairs, or done and remembered for its group */
	bool used, done;
	bool whole; /* copies of all its symbols are kept */
	uint8_t flags, rows[WAN_FEC_M_MAX];
	struct wan_f_repair r; /* of its first repair: map and numbers */
	uint64_t first;
	uint32_t len;
	unsigned n, missing;
	struct rwy_buf *rep[WAN_FEC_M_MAX]; /* by arrival; data and len are the symbol's */
	uint64_t age;
};
struct wan_fec_share { /* shared repairs of a group */
	bool used;
	uint8_t flags;
	struct wan_f_repair r; /* of the first: `k` blocks, those in the map */
	uint64_t first;
	uint32_t len;
	unsigned n;
	uint8_t rows[WAN_FEC_SHARED_MAX]; /* of block 0 */
	struct rwy_buf *rep[WAN_FEC_SHARED_MAX];
	uint64_t age;
};
struct wan_fec_rx {
	struct wan_fec_wait w[WAN_FEC_BLOCKS];
	struct wan_fec_share s[WAN_FEC_SHARES];
	uint64_t age, last; /* last: the highest packet number of any block that waited */
	unsigned held, live;
	bool busy; /* frames of a rebuilt datagram are being read */
	uint8_t mat[2][WAN_FEC_M_MAX * WAN_FEC_M_MAX];
	uint8_t tbl[WAN_FEC_M_MAX * WAN_FEC_M_MAX * 32];
};
/* A datagram with the FEC flag came, before its frames are read. */
void wan_fec_keep(struct wan_fec_path *p, uint64_t pn, uint32_t crc, const uint8_t *frames, uint32_t len);
/* The copy, with its length; NULL: none. */
const uint8_t *wan_fec_kept(const struct wan_fec_path *p, uint64_t pn, uint32_t *len);
void wan_fec_keep_forget(struct wan_fec_path *p);
void wan_fec_keep_free(struct wan_fec_path *p);
/* After its frames: some block may be complete with it. */
void wan_fec_on_data(struct wan_fec_path *p, uint64_t pn, rwy_time now);
/* A REPAIR frame; b->data .. is its symbol. Takes b. What cannot be is counted and dropped. */
void wan_fec_on_repair(
    struct wan_fec *t, const struct wan_f_repair *r, uint8_t flags, struct rwy_buf *b, rwy_time now);
/* A block waits for repairs: those of a datagram that came may be complete. */
static inline bool wan_fec_waiting(const struct wan_fec *x)
{
	return x->rx && x->rx->live;
}
/* A new session: nothing that was kept is of use. */
void wan_fec_rx_reset(struct wan_fec *x);
/* REBUILT, as much as fits: tells the peer which of the acknowledged datagrams never arrived. Returns the
 * byte after. */
uint8_t *wan_fec_put_rebuilt(struct wan_fec_path *p, uint8_t *at, const uint8_t *end);

/* The last place of a map that has a symbol. */
static inline unsigned wan_fec_last_place(const struct wan_f_repair *r)
{
	unsigned last = 8 * WAN_FEC_MAP_MAX - 1;

	while (!(r->map[last / 8] >> last % 8 & 1))
		last--;
	return last;
}

/* --- inside ------------------------------------------------------------------------------------ */
/* blocks.c: repairs that wait, by block and by group */
struct wan_fec_wait *wan_fec_block_find(struct wan_fec_rx *x, const struct wan_f_repair *r, uint64_t first);
/* In a place never used or that of the oldest. */
struct wan_fec_wait *wan_fec_block_new(
    struct wan_fec *t, const struct wan_f_repair *r, uint64_t first, uint8_t flags, uint32_t len);
/* The block has its end: rebuilt, nothing missing, or given up. Its numbers stay for the repairs that follow,
 * and for its group. */
void wan_fec_block_end(struct wan_fec *t, struct wan_fec_wait *w);
/* The same, and its repairs count as unused. */
void wan_fec_block_give_up(struct wan_fec *t, struct wan_fec_wait *w);
void wan_fec_share_end(struct wan_fec *t, struct wan_fec_share *s);
void wan_fec_share_give_up(struct wan_fec *t, struct wan_fec_share *s);
/* Gives the oldest up. */
void wan_fec_make_room(struct wan_fec *t);
void wan_fec_unused(struct wan_fec *t, uint8_t path, unsigned n);

/* solve.c: some blocks of one path whose missing symbols are rebuilt together, from their own repairs and
 * from some shared ones of their group */
struct wan_fec_job {
	struct wan_fec_path *p;
	unsigned blocks, shared;
	struct wan_fec_wait *w[WAN_FEC_DEPTH_MAX];
	struct wan_fec_share *s; /* NULL: none */
	unsigned all;            /* blocks of the group, when there are shared repairs */
	struct wan_fec_wait *of[WAN_FEC_DEPTH_MAX];
};
/* Counts w->missing. False: every one of them was received in some way, the block is of no use. */
bool wan_fec_look(const struct wan_fec_path *p, struct wan_fec_wait *w);
/* As many repairs as missing symbols, WAN_FEC_M_MAX at most. Frees the repairs; hands on what was rebuilt.
 * False: the repairs contradict what came. */
bool wan_fec_rebuild(struct wan_fec *t, struct wan_fec_job *j, rwy_time now);
/* The block of the group that fills place i of its turns. */
unsigned wan_fec_turn(const struct wan_fec_share *s, const struct wan_fec_wait *w);

#endif
