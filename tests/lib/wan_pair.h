/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two tunnels over two virtual links, with a small engine at each end that sends numbered buffers
 * on flows and checks what arrives: right bytes, in order, once. Either end can restart, with the
 * engine's rules of custody: what the far host has stays; what only a dead gateway had is sent
 * again by the hosts.
 */
#ifndef TESTS_LIB_WAN_PAIR_H
#define TESTS_LIB_WAN_PAIR_H

#include "tests/lib/wan_link.h"
#include "tests/lib/wan_pipe.h"
#include "wan/wan.h"

/* Counts buffers, so that a leak is found. */
struct wan_pool {
	int64_t live, peak;
	uint32_t fail_ppm; /* allocations that fail */
	uint64_t rng;
	struct rwy_bufs bufs;
};
void wan_pool_init(struct wan_pool *p);
/* A buffer in any case, whatever fail_ppm says. */
struct rwy_buf *wan_pool_get(struct wan_pool *p, uint32_t len);

struct wan_end;

/* One direction of a conversation. `sent` and `got` belong to the hosts and survive gateways. */
struct wan_stream {
	struct wan_end *from, *to;
	uint32_t id;
	uint64_t total; /* buffers to carry */
	uint64_t sent;  /* number of the next buffer for the present tunnel */
	uint64_t got;   /* buffers that the far host has, in order */
	uint64_t bytes;
	uint32_t len_min, len_max;
	uint32_t queue_max; /* most buffers in custody */
	struct wan_txflow *tx;
	struct wan_rxflow *rx;
	uint64_t tx_first; /* number of the flow's sequence 0 in this incarnation */
	/* number of the flow's sequence 0 in the receiver's present incarnation */
	uint64_t rx_first;
	uint64_t delivered; /* sender: buffers reported as delivered */
	uint64_t acked;
	unsigned life; /* how often its end opened it */
	bool close_after, tx_closed, rx_closed;
	rwy_time done_at;
};

struct wan_due {
	rwy_time at;
	struct wan_stream *s;
	unsigned life; /* of the stream's receiving flow; a later one may have the same address */
	uint64_t seq;
};

struct wan_end {
	struct wan_pair *pair;
	struct wan_tunnel *t;
	struct wan_cfg cfg;
	struct wan_link *out;
	struct wan_due *due; /* deliveries to report later; a ring */
	uint32_t due_head, due_n, due_cap;
	uint64_t dgrams_got, resets, restarts_seen, closes;
	struct wan_congest_state congest; /* as last reported */
	uint64_t congest_changes, congested_sent;
	bool refuse;           /* rx_open returns NULL */
	bool stall;            /* reports no delivery */
	rwy_time asleep_until; /* its process does not run before */
	bool up;
};

struct wan_pair {
	struct wan_pool pool;
	struct wan_end end[2];
	struct wan_link link[2]; /* [i]: from end i */
	/* Links of paths 1 to `more`; the other paths share link[]. */
	struct wan_link path_link[2][WAN_PATHS_MAX];
	unsigned more;
	/* the same over a reliable carrier; a test that uses it fills it in */
	struct wan_pipe pipe[2];
	struct wan_stream *stream;
	uint32_t streams;
	rwy_time now;
	uint32_t dead_path;    /* bit mask of paths: what is sent on these is lost */
	rwy_dur deliver_delay; /* from rx_data to wan_rx_delivered */
	rwy_dur wake;          /* a process wakes only at multiples of this */
	uint64_t rng;
	uint64_t errors; /* events that must not happen, counted and printed */
	uint64_t epoch;
	uint64_t steps;
};

void wan_pair_init(struct wan_pair *p, const struct wan_cfg *cfg, const struct wan_link_cfg *ab,
    const struct wan_link_cfg *ba, uint64_t seed);
/* The same with a rate of 100 Mbit/s, for packets of any size; l: both directions. */
void wan_pair_begin(struct wan_pair *p, unsigned paths, const struct wan_link_cfg *l);
/* A link of that rate which loses, reorders and repeats. */
struct wan_link_cfg wan_pair_bad_link(void);
void wan_pair_fini(struct wan_pair *p);
/* Gives the next path, from 1 up, a link of its own. */
void wan_pair_path(struct wan_pair *p, const struct wan_link_cfg *ab, const struct wan_link_cfg *ba);
/* The same at the end of a test; false: an error was seen, a carrier got too much, or a buffer leaked. */
bool wan_pair_finish(struct wan_pair *p);
/* n streams from end `from`; returns the first. Call once, for all streams: two calls would move the array.
 */
void wan_pair_streams(
    struct wan_pair *p, uint32_t n, uint64_t total, uint32_t len_min, uint32_t len_max, uint32_t queue_max);
/* Runs until everything has arrived and custody is empty, or until `until`. True: all is done. */
bool wan_pair_run(struct wan_pair *p, rwy_time until);
/* Does the work of the present time, then advances time. False: nothing is left to happen. */
bool wan_pair_step(struct wan_pair *p, rwy_time until);
bool wan_pair_done(const struct wan_pair *p);
/* Lets everything that is under way arrive. */
void wan_pair_settle(struct wan_pair *p, rwy_dur t);
struct wan_stats wan_pair_stats(const struct wan_pair *p, int end);
void wan_pair_restart(struct wan_pair *p, int end);
/* The secrets of a handshake, one set for each end. */
void wan_pair_secrets(struct wan_pair *p, struct wan_secrets of[2]);
/* The first half of a handshake: both ends are offered the secrets. */
void wan_pair_offer(struct wan_pair *p);
/* A handshake, in no time; nothing without wan_cfg.aead. Also done by init and restart. */
void wan_pair_keys(struct wan_pair *p);
void wan_pair_dgram(struct wan_pair *p, int end, uint32_t len);

#endif
