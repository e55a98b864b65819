/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of links of one relay. A link is a connection of a local host with a remote one through
 * this relay: towards the local host the relay's address stands for the remote host, and an alias
 * QPN for the remote host's QPN.
 *
 *    on the local segment                 in the engine and at the other relay
 *    local -> relay, alias          <->   local -> remote, remote's QPN
 *    relay -> local, local's QPN    <->   remote -> local, local's QPN
 *
 * All memory is allocated at the beginning. Thread: the one that owns the table.
 */
#ifndef PROXY_MAP_H
#define PROXY_MAP_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proxy/states.h"
#include "rwy/err.h"
#include "rwy/ip.h"
#include "rwy/time.h"

#define PROXY_NIL     UINT32_MAX
#define PROXY_QPN_MAX 0xfffffeu /* the last one is special (IBA 3.5.6) */

/* Names a CM exchange: the communication ID of the active host, which sent the REQ. */
struct proxy_cm_key {
	struct rwy_ip from, to; /* of the messages on one segment */
	uint32_t comm_a;
	bool local_active; /* the local host sent the REQ */
};

/* The change of its checksums when a packet of this length is rewritten (proxy/fast.h). */
struct proxy_patch {
	uint16_t len;  /* of the IP packet; 0: none yet */
	uint16_t sum;  /* is added to the complement of the IPv4 header checksum; as in memory */
	uint32_t icrc; /* is added to the ICRC, modulo 2 */
};

#define PROXY_PATCHES 4 /* a power of two */

#define PROXY_LINE 64 /* bytes of a cache line */

/*
 * A packet to the local host reads the first PROXY_OUT_LINES cache lines; a packet from the local
 * host reads the first PROXY_IN_LINES. The table is aligned to them.
 */
#define PROXY_OUT_LINES 2
#define PROXY_IN_LINES  3
struct proxy_link {
	_Alignas(PROXY_LINE) struct rwy_ip local;
	struct rwy_ip remote, relay;
	uint32_t lqpn, rqpn; /* 0: not known yet */
	uint32_t alias;      /* remote host's QPN as the local host knows it; 0: none yet */
	uint8_t state;       /* enum proxy_state */
	bool in_hashed, out_hashed;
	bool local_active;

	/* to the local host; the patches while the link is open */
	uint64_t out_packets, out_bytes;
	struct proxy_patch patch_out[PROXY_PATCHES];
	rwy_time touched;           /* last message or packet; closed: message */
	uint32_t next_in, next_out; /* the table's own, as those below */

	/* the same of the local host */
	uint64_t in_packets, in_bytes;
	struct proxy_patch patch_in[PROXY_PATCHES];
	rwy_time since; /* begin */
	uint64_t id;    /* the same at both relays */

	/* of the active and the passive host; comm_b 0: not known. Pairs have none. */
	uint32_t comm_a, comm_b;
	uint64_t tid;        /* of the REQ */
	uint64_t ca_guid;    /* of the active host */
	uint16_t asked_port; /* that the active host named here; 0: at the other relay */
	uint16_t port;       /* of the passive host */
	uint32_t entry;      /* of the listen map; PROXY_NIL: none */
	uint64_t said;       /* number of the latest message about it (proxy/mirror.h); 0: none */
	bool pair;           /* of queue pairs without CM (proxy/pair.h) */
	bool once;           /* a one-time port named the target */
	uint8_t noted;       /* which of its two records in the journal counts, 1 or 2; 0: none */
	uint32_t prev, next, next_cm_in, next_cm_out, source;
};
static_assert(offsetof(struct proxy_link, out_packets) == PROXY_LINE &&
                  offsetof(struct proxy_link, in_packets) == 2 * PROXY_LINE &&
                  sizeof(struct proxy_link) % PROXY_LINE == 0,
    "cache lines");

struct proxy_map_cfg {
	uint32_t links_max;           /* 1..2^20, closed ones included */
	uint32_t half_open_max;       /* of them without a REP; 3/4 of it for one active host */
	uint32_t source_max;          /* open links of one active host */
	uint32_t qpn_first, qpn_last; /* aliases, 2..0xfffffe */
	rwy_dur half_open_ttl;        /* since the last message */
	rwy_dur idle_ttl;             /* of open links, since the last packet; RWY_NEVER: none */
	rwy_dur ending_ttl;           /* after a DREQ, since the last message or packet */
	rwy_dur closed_ttl;
	uint64_t seed; /* of the hash; a number that hosts cannot guess */
	/*
	 * Memory that outlives the process, 2 * links_max records (proxy/journal.h); NULL: none.
	 * It is the caller's, and outlives the table. All zero, or as an earlier table left it.
	 */
	struct proxy_record *journal;
	/* Called when a link was noted, and before one is removed. May be NULL. */
	void (*changed)(void *ctx, struct proxy_link *l, bool gone);
	void *ctx;
};

struct proxy_map_now {
	uint32_t half_open, open, closed; /* open: REP seen to disconnecting */
};

struct proxy_map;
struct proxy_record;

/* The defaults: 16384 links, 1024 half-open for 70 s, 4096 a source, 24 h idle, 35 s after the
 * last DREQ that nobody answers, 65 s closed. */
void proxy_map_cfg_default(struct proxy_map_cfg *cfg);
/* RWY_EINVAL: a value out of its range; RWY_ENOMEM. *out is then not set. */
RWY_MUST_CHECK int proxy_map_new(struct proxy_map **out, const struct proxy_map_cfg *cfg);
void proxy_map_free(struct proxy_map *m); /* NULL is allowed */

/* Why there is no new link. X(enumerator, sentence) */
enum proxy_no_link { PROXY_LINK_OK, PROXY_LINKS_FULL, PROXY_HALF_OPEN_FULL, PROXY_SOURCE_FULL };

/*
 * A new link in state PROXY_REQ_SEEN with these addresses, in *out. l: local, remote, relay,
 * local_active, comm_a, tid, ca_guid, ports, entry and the active host's QPN. When the table is
 * full of closed links, the oldest goes. The link is the table's and lives until
 * proxy_map_remove() or proxy_map_expire().
 */
enum proxy_no_link proxy_map_add(
    struct proxy_map *m, const struct proxy_link *l, struct proxy_link **out, rwy_time now);
/* Takes the link out of the table, the indices and the journal; l is not to be used any more. */
void proxy_map_remove(struct proxy_map *m, struct proxy_link *l);

/* Gives the link an alias that no other link of its relay address has. RWY_ENOMEM: none is left. */
RWY_MUST_CHECK int proxy_map_alias(struct proxy_map *m, struct proxy_link *l);
/* Sets the local host's QPN. */
void proxy_map_local_qpn(struct proxy_map *m, struct proxy_link *l, uint32_t lqpn);
/* Changes its state, and counts the link among the half-open, open or closed ones. Its time there
 * begins now. */
void proxy_map_state(struct proxy_map *m, struct proxy_link *l, enum proxy_state s, rwy_time now);

/*
 * The link has changed: writes it into the journal, if there is one and it is another there. Call
 * it before anything that tells a host of the change leaves.
 */
void proxy_map_note(struct proxy_map *m, struct proxy_link *l);

/* Each place has a link, open or closed. */
bool proxy_map_full(const struct proxy_map *m);
/*
 * Makes a link as it is at another relay, or changes `is`, which is that link in an earlier state,
 * if it is not NULL. Other links that have its alias or its communication ID go: it is newer. NULL:
 * the table is full.
 */
struct proxy_link *proxy_map_take(
    struct proxy_map *m, struct proxy_link *is, const struct proxy_link *l, rwy_time now);

struct proxy_restored {
	uint32_t links;   /* taken over */
	uint32_t refused; /* not fit any more: fits() said so */
	uint32_t broken;  /* records that are torn, make no sense, or contradict another one */
};
/*
 * Makes links of what an earlier table left in the journal, in the states that they had; call it
 * before anything else. fits() is asked about each, and sets its entry. What is not taken over is
 * not in the journal afterwards. Times count from now on. RWY_ENOMEM.
 */
RWY_MUST_CHECK int proxy_map_restore(struct proxy_map *m, bool (*fits)(void *ctx, struct proxy_link *l),
    void *ctx, struct proxy_restored *out, rwy_time now);

/* Finds the link of a packet from the LAN, by relay address and destination QPN; NULL: none. */
struct proxy_link *proxy_map_in(const struct proxy_map *m, const struct rwy_ip *relay, uint32_t alias);
/* Finds the link of a packet to the LAN; NULL: none. */
struct proxy_link *proxy_map_out(
    const struct proxy_map *m, const struct rwy_ip *remote, const struct rwy_ip *local, uint32_t lqpn);
/*
 * The same for many packets of one flow. *hint is 0 before the first, and then what this function
 * left there; whatever it is, the link is the right one.
 */
struct proxy_link *proxy_map_out_hint(const struct proxy_map *m, uint64_t *hint, const struct rwy_ip *remote,
    const struct rwy_ip *local, uint32_t lqpn);
/* For proxy/fast.c; valid as long as the table. */
struct proxy_map_view {
	struct proxy_link *links; /* all, used or not; a hint is an index + 1 */
	const uint32_t *in;       /* [alias & in_mask]: index of its first link, or PROXY_NIL */
	uint32_t links_max, in_mask;
};
struct proxy_map_view proxy_map_view(const struct proxy_map *m);
/* The same for CM messages. key: local -> relay (in), or remote -> local (out). */
struct proxy_link *proxy_map_cm_in(const struct proxy_map *m, const struct proxy_cm_key *k);
struct proxy_link *proxy_map_cm_out(const struct proxy_map *m, const struct proxy_cm_key *k);

/* Open links of an entry of the listen map, of all sources. O(1). */
uint32_t proxy_map_of_entry(const struct proxy_map *m, uint32_t entry);

#define PROXY_ENTRIES_MAX 1024 /* entries of the listen map that are counted */

/*
 * Removes links whose time is over. It looks at no more than `budget` links of each kind:
 * half-open, open, ending, closed. gone, which may be NULL, hears of each before it is removed.
 */
void proxy_map_expire(struct proxy_map *m, unsigned budget,
    void (*gone)(void *ctx, const struct proxy_link *l), void *ctx, rwy_time now);

/*
 * Times of links count from now on at the earliest: nothing was heard of them before, here. For a
 * relay that takes over links which another one served.
 */
void proxy_map_wake(struct proxy_map *m, rwy_time now);

/* Counts the links by what they are at present. */
void proxy_map_count(const struct proxy_map *m, struct proxy_map_now *out);
/* Walks all links: start with *cursor 0; NULL: the end. Links may be removed meanwhile. */
struct proxy_link *proxy_map_next(const struct proxy_map *m, uint32_t *cursor);

/* The identifier that both relays give a link. Active host, passive host, as in the REQ. */
uint64_t proxy_link_id(
    const struct rwy_ip *a, const struct rwy_ip *b, uint32_t comm_a, uint32_t qpn_a, uint64_t tid);

#endif
