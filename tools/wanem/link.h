/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One direction of an emulated WAN link: decides what becomes of each packet. Not here: sockets,
 * clocks, packet bytes (wanem keeps those in line.c), text. Time comes in as an argument.
 *
 * Model: outage -> bottleneck (queue, rate) -> line (loss, delay, jitter, reordering, duplication,
 * corruption). Random decisions about the n-th packet depend on the seed, the configuration and n
 * only, never on time. The state of bursty loss depends on the packets before it.
 */
#ifndef WANEM_LINK_H
#define WANEM_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WANEM_ETH_HLEN    14
#define WANEM_FOREVER     UINT64_MAX
#define WANEM_MAX_CORRUPT 64 /* bits flipped in one packet */

enum wanem_ctr {
#define X(name, text) WANEM_CTR_##name,
#include "tools/wanem/counters.def"
#undef X
	WANEM_CTR_COUNT
};

enum wanem_jitter {
	WANEM_JITTER_UNIFORM, /* delay +- jitter */
	WANEM_JITTER_NORMAL,  /* standard deviation = jitter */
};

/* Times in ns, probabilities 0..1. */
struct wanem_cfg {
	uint64_t delay;
	uint64_t jitter;
	enum wanem_jitter jitter_dist;
	bool keep_order;        /* jitter and changes of delay do not reorder */
	uint64_t rate;          /* bit/s of Ethernet frames; 0: unlimited */
	uint64_t queue;         /* limit of what waits for the rate and is in service */
	bool queue_in_bytes;    /* unit of `queue`: bytes; false: packets */
	double loss;            /* mean loss; independent if burst is <= 1 */
	double burst;           /* mean length of a loss burst, packets */
	double ge_p;            /* raw Gilbert-Elliott: good -> bad; 0: not used */
	double ge_r;            /* bad -> good */
	double ge_bad;          /* loss in the bad state */
	double ge_good;         /* loss in the good state */
	double reorder;         /* share of packets held back ... */
	uint64_t reorder_delay; /* ... for this much longer */
	double dup;
	double corrupt;
	unsigned corrupt_bits; /* 1..corrupt_bits bits are flipped */
};

enum wanem_stream {
	WANEM_RND_LOSS,
	WANEM_RND_GE_STATE,
	WANEM_RND_GE_LOSS,
	WANEM_RND_JITTER,
	WANEM_RND_REORDER,
	WANEM_RND_DUP,
	WANEM_RND_CORRUPT,
	WANEM_RND_CORRUPT_DUP,
	WANEM_RND_COUNT
};

struct wanem_service { /* a packet not yet serialised */
	uint64_t finish;
	uint32_t len;
};

struct wanem_link {
	struct wanem_cfg cfg;
	uint64_t key[WANEM_RND_COUNT];
	uint64_t n; /* packets so far: index of the random draws */
	bool ge_on, ge_is_bad;
	double ge_p, ge_r, ge_bad, ge_good; /* in effect, from loss and burst or given directly */
	uint64_t down_until;                /* 0: up */
	uint64_t busy_until;                /* when the bottleneck has sent all of its queue */
	uint64_t rate_rem;                  /* remainder of the serialisation division */
	uint64_t last_at;                   /* latest delivery of a packet not reordered */
	struct wanem_service *svc;          /* ring; svc_cap is a power of two */
	uint32_t svc_cap, svc_head, svc_count;
	uint64_t svc_bytes;
	uint32_t queue_max;
	uint64_t queue_max_bytes;
	uint64_t ctr[WANEM_CTR_COUNT];
};

struct wanem_copy {
	uint64_t at;           /* time of delivery */
	uint64_t corrupt_key;  /* for wanem_copy_corrupt() */
	unsigned corrupt_bits; /* 0: unchanged */
};

struct wanem_outcome {
	unsigned count; /* copies to deliver: 0 (dropped), 1, or 2 (duplicated) */
	struct wanem_copy copy[2];
	enum wanem_ctr drop; /* the reason, if count is 0 */
};

/* The neutral link: no delay, no loss, no rate, a queue of 1000 packets, order kept. */
void wanem_cfg_default(struct wanem_cfg *cfg);

/* NULL if cfg is usable; else a sentence (static) that says what is wrong. */
const char *wanem_cfg_check(const struct wanem_cfg *cfg);

/* Starts a link. cfg must have passed wanem_cfg_check(). The two directions should get different
 * seeds. */
void wanem_link_init(struct wanem_link *link, uint64_t seed, const struct wanem_cfg *cfg);
void wanem_link_free(struct wanem_link *link);

/* Applies new settings to packets from now on. Accepted packets keep their delivery time and
 * order. */
void wanem_link_set(struct wanem_link *link, const struct wanem_cfg *cfg);

/* Drops packets that arrive before `until`; 0: the link is up; WANEM_FOREVER: it is down until the
 * next call. Packets in flight continue. */
void wanem_link_outage(struct wanem_link *link, uint64_t until);
bool wanem_link_is_down(const struct wanem_link *link, uint64_t now);

/* A packet of len bytes arrived (from the Ethernet header on, no FCS; at most 65535). `now` must
 * not go back. Fills *out and counts all that is decided here; the caller counts delivered,
 * drop_held, drop_offload, drop_tx and drop_rx_ring. */
void wanem_link_in(struct wanem_link *link, uint32_t len, struct wanem_outcome *out, uint64_t now);

/* Packets that wait for the rate, including the one in service. bytes may be NULL. */
uint32_t wanem_link_queue(struct wanem_link *link, uint64_t *bytes, uint64_t now);

/* Flips copy->corrupt_bits different bits after the Ethernet header, fewer if the frame is
 * shorter. */
void wanem_copy_corrupt(const struct wanem_copy *copy, uint8_t *frame, uint32_t len);

#endif
