/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forward error correction: repair datagrams for data sent near the end of a message, where a
 * retransmission would come a round trip late. fec.c encodes; plan.c decides when and choose.c how
 * much; rx.c collects, blocks.c remembers, solve.c rebuilds. It knows datagrams of a path, not
 * flows or loss recovery. The transport (wan/) calls it and reads its counters. Private to wan/.
 *
 * Words: a *symbol* is a datagram without the parts that its REPAIR frame repeats: length,
 * checksum, frames. A *block* is up to WAN_FEC_K_MAX symbols and their repairs. A *group* is
 * `depth` blocks filled in turn, so that a burst of losses hits each block once. A path has one
 * open group at a time. A *shared* repair is the sum of one repair of each block of the group: it
 * helps any block that lost more than its own repairs can rebuild.
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
/* repairs of an open group: buffers taken from the pool */
#define WAN_FEC_PARITY_MAX 400
/* groups whose outcome loss detection can still ask for */
#define WAN_FEC_GROUPS 256
#define WAN_FEC_WINDOW ((uint32_t)24 << 20) /* most bytes of a group; a receiver keeps more */
#define WAN_FEC_KEEP   8192                 /* datagrams of a path that a receiver remembers */
#define WAN_FEC_BLOCKS 96                   /* blocks that a receiver remembers: three groups */
#define WAN_FEC_SHARES 4                    /* groups whose shared repairs wait */
/* most REPAIR datagrams that the waiting blocks and groups hold together */
#define WAN_FEC_HELD_MAX 512
#define WAN_FEC_REBUILT  128 /* ranges waiting to be reported to the peer */
#define WAN_FEC_TOLD     8   /* ranges of the latest report that the next one says again */

struct wan_fec_code;
struct wan_fec_rx;
struct wan_fec_path;

#define WAN_FEC_PATHS 8

/* Calls to the transport. */
struct wan_fec_ops {
	/* A lost datagram was rebuilt: its checksum is right, its packet number is new. Takes
	 * ownership of b. */
	void (*rebuilt)(void *ctx, uint8_t path, uint64_t pn, struct rwy_buf *b, rwy_time now);
};

/* FEC of one tunnel, inside struct wan_tunnel. Thread: the tunnel's. */
struct wan_fec {
	const struct wan_fec_ops *ops;
	void *ctx;
	const struct rwy_bufs *bufs;
	bool on;                    /* as configured */
	bool peer;                  /* the peer takes REPAIR */
	uint32_t mtu;               /* smallest of both sides' paths */
	uint32_t index;             /* what the peer writes into its datagrams */
	double extra_max;           /* share of the data that repairs may cost */
	double credit;              /* bytes left to spend on repairs, by all paths */
	double most[2];             /* largest credit: the largest `most` of a path */
	uint64_t rx_bytes;          /* of copies, each path */
	uint32_t parity;            /* buffers of repairs to be sent */
	struct wan_fec_code **code; /* where the tables are kept: for several tunnels, or own */
	struct wan_fec_code *own;
	struct wan_fec_rx *rx; /* NULL until first used */
	struct wan_fec_path *path[WAN_FEC_PATHS];
	unsigned paths;
	struct wan_fec_counters {
		uint64_t sent, sent_bytes, received, unused, rebuilt, bad, no_buffer;
	} c;
};
/* Frees its own tables, the receiver's state and all copies. */
void wan_fec_fini(struct wan_fec *x);

/* Coefficients and their multiplication tables: row r is repair r, column j is symbol j. The tables
 * take a quarter of a megabyte of cache, so the tunnels of one thread share them. */
struct wan_fec_code {
	uint8_t coef[WAN_FEC_M_MAX][WAN_FEC_K_MAX];
	uint8_t tbl[WAN_FEC_M_MAX * WAN_FEC_K_MAX * 32];
};
/* Returns the tables, made at the first use. NULL: memory is short. */
const struct wan_fec_code *wan_fec_code(struct wan_fec *x);

/* Loss statistics of a path. They remember longer than the tunnel's other averages: a loss of 1e-5
 * must be measurable. */
struct wan_fec_est {
	double n, lost, runs;
	double late_n, late_lost, late_runs; /* the same of the last few thousand datagrams */
	uint64_t last_lost;                  /* packet number + 1 */
	uint32_t run;
	bool off; /* losses are too rare to protect anything */
	rwy_time ce_until;
};

struct wan_fec_block {
	unsigned k;
	uint8_t map[WAN_FEC_MAP_MAX];
	struct rwy_buf *par[WAN_FEC_M_MAX];
};

/* The outcome of a group, for loss detection. */
struct wan_fec_outcome {
	uint32_t group;
	bool done; /* its last repair was sent */
	uint64_t last_pn;
	rwy_time sent;
};

struct wan_fec_tx {
	bool open;
	uint32_t group; /* number of the open or last group, from 1 */
	uint64_t first; /* packet number of the group's first datagram */
	unsigned depth, m, n, n_max;
	/* g: shared repairs; turns: number of different rows at which blocks' coefficients begin */
	unsigned g, turns;
	double eps;
	/* packet numbers from its first to its last datagram, foreign ones included */
	unsigned span;
	bool ended;        /* the last buffer ended a message */
	unsigned n_before; /* datagrams of the group before */
	rwy_time opened, close_at;
	/* State of a closed group: repairs per block, shared repairs, the next repair, repairs
	 * left, the length of each. */
	unsigned send_m, send_g, at, pending;
	uint32_t len;
	struct wan_fec_block b[WAN_FEC_DEPTH_MAX];
	struct rwy_buf *shared[WAN_FEC_SHARED_MAX];
	struct wan_fec_outcome outcome[WAN_FEC_GROUPS];
};

struct wan_fec_rebuilt { /* a range for a REBUILT frame */
	uint64_t pn;
	uint8_t more;
};

/* A group that was not opened since the last ACK, because it would have closed without repairs. */
struct wan_fec_vain {
	uint64_t total;   /* bytes that must all arrive in time; 0: there was none */
	uint64_t waiting; /* buffers never sent */
	uint32_t bytes;   /* size of a datagram */
};

/* FEC of one path, inside struct wan_path. */
struct wan_fec_path {
	struct wan_fec *fec;
	uint8_t id;
	/* values of the path, only read here */
	const uint64_t *next_pn, *inflight;
	const rwy_dur *srtt, *min_rtt;
	const uint64_t *ns_fp; /* pacing rate: ns per byte, RWY_PACE_BITS fraction bits */
	const struct wan_ranges *seen;
	uint32_t mtu;

	struct wan_fec_est est;
	struct wan_fec_tx *tx; /* NULL until first used */
	struct wan_fec_keep *keep;
	/* Ranges to be reported; ranges of the latest report, which may be lost. */
	struct wan_fec_rebuilt report[WAN_FEC_REBUILT], told[WAN_FEC_TOLD];
	unsigned reports, told_n;
	/* Computed from rate, RTT and loss after each ACK, so that a datagram only reads them. [1]:
	 * small messages. */
	double share[2]; /* credit earned per byte */
	double most[2];  /* credit that it lets the paths save */
	uint64_t flight; /* bytes sent in somewhat more than a round trip */
	/* Messages up to so many datagrams need no repairs. [1]: longer ones (LARGE_FAIL). */
	double safe[2];
	bool cheap; /* losses are so rare that protecting everything costs next to nothing */
	struct wan_fec_vain vain;
	struct wan_fec_stats stats;
};

/* State of a flow whose next datagram is about to be built. */
struct wan_fec_flow {
	uint64_t waiting; /* buffers never sent */
	uint32_t size;    /* bytes of such a buffer; a datagram may have several */
	uint64_t sent;    /* bytes sent since the flow became busy */
	uint32_t peak;    /* most buffers waiting since then */
	bool ends;        /* the newest buffer ends a message */
	uint32_t part;    /* of what waits goes by this path, WAN_FEC_ALL: all */
};
#define WAN_FEC_ALL 65536u

/* True when b is a message's last packet by its BTH opcode (RC SEND, WRITE and READ response; other
 * messages have one packet), or not a RoCE packet. */
static inline bool wan_fec_message_ends(const struct rwy_buf *b)
{
	uint8_t op = b->opcode & 0x1f;

	return b->kind != RWY_BUF_PACKET || !(op <= 1 || op == 6 || op == 7 || op == 0xd || op == 0xe);
}

/* plan.c: statistics and decisions */
/* Forgets the path's losses and what it may save: it leads elsewhere, or is used for nothing. */
void wan_fec_forget(struct wan_fec_path *p);
void wan_fec_note_acked(struct wan_fec_path *p, uint32_t n);
/* `beside`: how many of its two neighbours were lost as well. */
void wan_fec_note_lost(struct wan_fec_path *p, uint64_t pn, unsigned beside, rwy_time now);
/* A datagram counted as lost has arrived. */
void wan_fec_note_spurious(struct wan_fec_path *p);
/* True while marks or a queue show congestion: losses may come from it. */
bool wan_fec_congested(const struct wan_fec_path *p, rwy_time now);
/* Datagrams in one burst, >= 1. */
double wan_fec_burst(const struct wan_fec_path *p);
/* The loss to plan for. */
double wan_fec_expect(const struct wan_fec_path *p);
struct wan_fec_plan {
	/* repairs per block; shared repairs; most datagrams of the group */
	unsigned depth, m, g, n;
	double eps, fail; /* accepted and expected probability that the group fails */
};
/* The message that must arrive in time. */
struct wan_fec_message {
	uint64_t total, own; /* datagrams in all, and by this path: the group's own included */
	uint64_t left;       /* those by this path that are still to be sent */
	uint32_t bytes;      /* size of one */
	bool small;
};
/* Plans a group. Returns false when repairs gain nothing or credit is short. */
bool wan_fec_plan(const struct wan_fec_path *p, const struct wan_fec_message *y, struct wan_fec_plan *plan);
/* Whether all that must arrive in time, `total` bytes, is so little that no repairs are needed. */
bool wan_fec_needless(const struct wan_fec_path *p, uint64_t total, uint32_t bytes);
/* Whether the group would close before it has so many datagrams that repairs are sent. */
bool wan_fec_in_vain(
    const struct wan_fec_path *p, uint64_t waiting, uint32_t bytes, const struct wan_fec_plan *plan);
/* Whether a datagram of f sent now would be too late when retransmitted. */
bool wan_fec_near_end(const struct wan_fec_path *p, const struct wan_fec_flow *f);
/* Called after an ACK, when rate, RTT or loss may have changed. */
void wan_fec_refresh(struct wan_fec_path *p);
/* Earns credit for `len` new bytes of a flow that sends `total` bytes in a row. */
void wan_fec_earn(struct wan_fec_path *p, uint64_t total, uint32_t len);
/* p sends `len` bytes again. */
void wan_fec_spend(struct wan_fec_path *p, uint32_t len);
/* The path ends or stands still: the credit is bounded by what the other paths may save. */
void wan_fec_lose_credit(struct wan_fec_path *p);

/* choose.c */
struct wan_fec_law {
	/* share of datagrams lost; datagrams per burst, 1: independent losses */
	double loss, burst;
};
/* Chooses the fewest repairs m, g for plan->depth blocks of k symbols that keep the probability of
 * failure below plan->eps, or the best use of `most` repairs. m == 0: no repairs are needed, or
 * none can be afforded. Sets plan->fail. */
void wan_fec_choose(unsigned k, const struct wan_fec_law *law, unsigned most, struct wan_fec_plan *plan);

/* fec.c: sending */
/* Nothing is protected, whatever is sent. */
static inline bool wan_fec_idle(const struct wan_fec_path *p)
{
	return p->est.off || !p->fec->on || !p->fec->peer;
}
/* Whether the next DATA datagram of f, with `len` bytes of buffers, shall be protected. */
bool wan_fec_wants(struct wan_fec_path *p, const struct wan_fec_flow *f, uint32_t len, rwy_time now);
/* The datagram is built except for flags and checksum and has this many bytes. True: it belongs to
 * the open group, and wan_fec_add must follow. */
bool wan_fec_takes(struct wan_fec_path *p, uint32_t bytes, rwy_time now);
struct wan_fec_symbol {
	const uint8_t *hdr, *payload; /* payload may be NULL */
	uint32_t hdr_len, len;
	bool ends; /* ends a message */
};
/* Adds the sealed datagram to its group. Returns the group's number. */
uint32_t wan_fec_add(struct wan_fec_path *p, const struct wan_fec_symbol *s, rwy_time now);
/* Returns the next repair, which the caller then owns, and its frame. wan_fec_repair_sent follows
 * when the datagram is built. */
struct rwy_buf *wan_fec_next_repair(struct wan_fec_path *p, struct wan_f_repair *r);
void wan_fec_repair_sent(struct wan_fec_path *p, uint32_t bytes, rwy_time now);
static inline bool wan_fec_pending(const struct wan_fec_path *p)
{
	return p->tx && p->tx->pending;
}
/* A message ended on another path: the open group has had its last datagram, unless another
 * comes. */
void wan_fec_ended(struct wan_fec_path *p);
/* Called when nothing is left to send. True: a group was closed and repairs wait. */
bool wan_fec_dry(struct wan_fec_path *p, rwy_time now);
/* When wan_fec_dry() closes the open group; RWY_NEVER: none is open, or it was not called yet. */
rwy_time wan_fec_dry_next(const struct wan_fec_path *p);
/* Closes the open group when it is old enough, and frees repairs that the path has no room for so
 * long that they are of no use; the time of that, or RWY_NEVER. */
void wan_fec_age(struct wan_fec_path *p, rwy_time now);
rwy_time wan_fec_next(const struct wan_fec_path *p);
/* For loss detection: a datagram of a group counts as sent with the group's last repair. *pn,
 * *sent: the datagram's own values; replaced by those of the last repair. */
void wan_fec_outcome(const struct wan_fec_path *p, uint32_t group, uint64_t *pn, rwy_time *sent);
/* A new session begins, or the path ends. */
void wan_fec_tx_reset(struct wan_fec_path *p, rwy_time now);
void wan_fec_tx_free(struct wan_fec_path *p);

/* --- receiving -------------------------------------------------------------------------------- */
/* Copies of protected datagrams, the newest cfg.fec_rx_bytes of a path. Copies are needed because,
 * when a repair comes, the engine already has the flows' buffers and changes them. */
struct wan_fec_kept {
	uint64_t pn1; /* packet number + 1; 0: none */
	uint64_t at;
	uint32_t len;
};
struct wan_fec_keep {
	uint64_t head, cap;
	uint8_t *bytes;
	struct wan_fec_kept slot[WAN_FEC_KEEP];
};

/* a block that waits for repairs, or a finished one remembered for its group */
struct wan_fec_wait {
	bool used, done;
	bool whole; /* copies of all its symbols exist */
	uint8_t flags, rows[WAN_FEC_M_MAX];
	struct wan_f_repair r; /* first repair's frame: map and numbers */
	uint64_t first;
	uint32_t len;
	unsigned n, missing;
	/* repairs in order of arrival; data and len are the symbol's */
	struct rwy_buf *rep[WAN_FEC_M_MAX];
	uint64_t age;
};
struct wan_fec_share { /* shared repairs of a group */
	bool used;
	uint8_t flags;
	struct wan_f_repair r; /* first repair's frame: `k` blocks, those in the map */
	uint64_t first;
	uint32_t len;
	unsigned n;
	uint8_t rows[WAN_FEC_SHARED_MAX]; /* rows for block 0 */
	struct rwy_buf *rep[WAN_FEC_SHARED_MAX];
	uint64_t age;
};
struct wan_fec_rx {
	struct wan_fec_wait w[WAN_FEC_BLOCKS];
	struct wan_fec_share s[WAN_FEC_SHARES];
	uint64_t age, last; /* last: highest packet number of any block that waited */
	unsigned held, live;
	bool busy; /* the frames of a rebuilt datagram are being read */
	uint8_t mat[2][WAN_FEC_M_MAX * WAN_FEC_M_MAX];
	uint8_t tbl[WAN_FEC_M_MAX * WAN_FEC_M_MAX * 32];
};
/* Buffers that it holds, both ways. */
static inline uint32_t wan_fec_bufs(const struct wan_fec *x)
{
	return x->parity + (x->rx ? x->rx->held : 0);
}
/* Called for a datagram with the FEC flag, before its frames are read. */
void wan_fec_keep(struct wan_fec_path *p, uint64_t pn, uint32_t crc, const uint8_t *frames, uint32_t len);
/* Returns the copy and its length; NULL: none. */
const uint8_t *wan_fec_kept(const struct wan_fec_path *p, uint64_t pn, uint32_t *len);
/* Forgets the copies; frees their memory. */
void wan_fec_keep_forget(struct wan_fec_path *p);
void wan_fec_keep_free(struct wan_fec_path *p);
/* Called after a datagram's frames were read: a block may now be complete. */
void wan_fec_on_data(struct wan_fec_path *p, uint64_t pn, rwy_time now);
/* Processes a REPAIR frame; b->data holds its symbol. Takes ownership of b. Impossible values are
 * counted and dropped. */
void wan_fec_on_repair(
    struct wan_fec *t, const struct wan_f_repair *r, uint8_t flags, struct rwy_buf *b, rwy_time now);
/* A block waits for repairs, so a datagram that comes may complete it. */
static inline bool wan_fec_waiting(const struct wan_fec *x)
{
	return x->rx && x->rx->live;
}
/* A new session begins: everything kept is useless. */
void wan_fec_rx_reset(struct wan_fec *x);
/* Writes REBUILT, as much as fits: it tells the peer which acknowledged datagrams never arrived.
 * `again`: also up to WAN_FEC_TOLD ranges of the report before, if an ACK still fits behind them.
 * Returns the byte after. */
uint8_t *wan_fec_put_rebuilt(struct wan_fec_path *p, uint8_t *at, const uint8_t *end, bool again);

/* Returns the last place of a map that has a symbol. */
static inline unsigned wan_fec_last_place(const struct wan_f_repair *r)
{
	unsigned last = 8 * WAN_FEC_MAP_MAX - 1;

	while (!(r->map[last / 8] >> last % 8 & 1))
		last--;
	return last;
}

/* --- private ---------------------------------------------------------------------------------- */
/* blocks.c: waiting repairs, by block and by group */
struct wan_fec_wait *wan_fec_block_find(struct wan_fec_rx *x, const struct wan_f_repair *r, uint64_t first);
/* Uses a free entry, or the oldest one. */
struct wan_fec_wait *wan_fec_block_new(
    struct wan_fec *t, const struct wan_f_repair *r, uint64_t first, uint8_t flags, uint32_t len);
/* Ends a block: rebuilt, nothing missing, or given up. Its numbers are kept for repairs that follow
 * and for its group. */
void wan_fec_block_end(struct wan_fec *t, struct wan_fec_wait *w);
/* Ends a block and counts its repairs as unused. */
void wan_fec_block_give_up(struct wan_fec *t, struct wan_fec_wait *w);
/* The same two for repairs of a group. */
void wan_fec_share_end(struct wan_fec *t, struct wan_fec_share *s);
void wan_fec_share_give_up(struct wan_fec *t, struct wan_fec_share *s);
/* Gives up the oldest block or group. */
void wan_fec_make_room(struct wan_fec *t);
/* Counts n repairs of a path as unused. */
void wan_fec_unused(struct wan_fec *t, uint8_t path, unsigned n);

/* solve.c: rebuilds the missing symbols of several blocks of one path together, from the blocks'
 * own repairs and the group's shared ones */
struct wan_fec_job {
	struct wan_fec_path *p;
	unsigned blocks, shared;
	struct wan_fec_wait *w[WAN_FEC_DEPTH_MAX];
	struct wan_fec_share *s; /* NULL: none */
	unsigned all;            /* number of blocks in the group; only with shared repairs */
	struct wan_fec_wait *of[WAN_FEC_DEPTH_MAX];
};
/* Counts w->missing. False: every datagram was received in some way, so the block is useless. */
bool wan_fec_look(const struct wan_fec_path *p, struct wan_fec_wait *w);
/* Rebuilds from as many repairs as missing symbols, at most WAN_FEC_M_MAX. Frees the repairs and
 * hands over the rebuilt datagrams. False: the repairs contradict the received datagrams. */
bool wan_fec_rebuild(struct wan_fec *t, struct wan_fec_job *j, rwy_time now);
/* Returns the block that fills place i of the group's turns. */
unsigned wan_fec_turn(const struct wan_fec_share *s, const struct wan_fec_wait *w);

#endif
