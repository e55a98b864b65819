/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of the fuzzer of the whole engine (fuzz_engine.c): two sites with an engine
 * each, a WAN in memory between them, and the bytes of the script. One input at a time.
 *
 *   fuzz_engine.c    the script, time, forged WAN frames
 *   engine_site.c    buffers with exactly the room they claim, the engine's output, start and stop
 *   engine_hosts.c   packets from hosts, valid or not
 *   engine_check.c   invariants after each step
 */
#ifndef TESTS_FUZZ_ENGINE_WORLD_H
#define TESTS_FUZZ_ENGINE_WORLD_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/eng.h"
#include "roce/icrc.h"
#include "rwy/endian.h"
#include "tests/lib/rc_pkt.h"
#include "wan/wire/pkt.h"

#define VNI 100
#define CHECK(x)                                                                                             \
	do {                                                                                                 \
		if (!(x)) {                                                                                  \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x);                              \
			abort();                                                                             \
		}                                                                                            \
	} while (0)

#define CONNS_MAX 12
#define HALF_MAX  4
#define CUSTODY   8192
#define RX_ROOM   176
#define QUEUE_MAX 512
#define KEEP      8

struct dgram {
	uint32_t len;
	uint8_t *bytes;
};

/* A request that a host received. */
struct got {
	struct rwy_ip src, dst;
	uint32_t qpn, psn, len;
	uint8_t opcode;
};

struct world;

struct site {
	struct world *w;
	unsigned idx;
	struct eng *e;
	uint64_t bufs;
	struct got got[KEEP];
	uint32_t got_n;
	struct dgram in[QUEUE_MAX]; /* on the way to this site */
	uint32_t in_n;
	struct dgram old[KEEP]; /* for replays */
	uint32_t old_n;
	uint8_t outcome; /* what happens to this site's output; see deliver() */
	uint32_t psn[4];
	uint8_t last[RC_PKT_MAX]; /* last packet of a host of this site */
	uint32_t last_len;
};

struct world {
	const uint8_t *p;
	size_t n;
	rwy_time now;
	uint64_t seed;
	struct site site[2];
	uint8_t mode;
	bool evil;           /* the peer gateway has lied itself: what it carries may be anything */
	uint32_t alloc_fail; /* every n-th allocation fails; 0: none */
	uint32_t allocs;
};

static inline uint8_t fz_u8(struct world *w)
{
	if (!w->n)
		return 0;
	w->n--;
	return *w->p++;
}

static inline uint32_t fz_u16(struct world *w)
{
	uint32_t hi = fz_u8(w);

	return hi << 8 | fz_u8(w);
}

static inline uint32_t fz_u24(struct world *w)
{
	uint32_t hi = fz_u8(w);

	return hi << 16 | fz_u16(w);
}

/* --- engine_site.c ---------------------------------------------------------------------------- */

/* A buffer of `len` bytes after `room` bytes of headroom; never fails. The engine's own may:
 * alloc_fail. */
struct rwy_buf *fz_buf_new(struct site *s, uint32_t room, uint32_t len);
/* Sends a datagram to a site; it is lost if the site's queue is full. */
void fz_put(struct site *to, const uint8_t *bytes, uint32_t len);
/* The address of host 0 or 1 of site 0 or 1. */
struct rwy_ip fz_host_ip(unsigned site, unsigned host, bool is6);
void fz_site_start(struct site *s);
void fz_site_stop(struct site *s); /* checks that none of its buffers is left */

/* --- engine_check.c --------------------------------------------------------------------------- */

/* Checks counts and links of the flow table, limits and custody, after each step. */
void fz_check(struct site *s);
/* Makes the calls of the API. */
void fz_look(struct site *s);

/* --- engine_hosts.c --------------------------------------------------------------------------- */

/* A request of one of four queue pairs of the site. Bits of `how`: pair 0..1, IPv6 2, AckReq 3, odd
 * PSN 4, length 5..7. */
void fz_request(struct site *s, uint8_t opcode, uint8_t how);
/* The response of a host to a request that it received. */
void fz_answer(struct site *s, uint8_t which, uint8_t how);
void fz_any_response(struct site *s, uint8_t op);
/* A CM message with one of a few names. */
void fz_cm(struct site *s, uint8_t what);
/* Repeats the last packet with changed bytes and another length. */
void fz_mutate(struct site *s, uint8_t how);
void fz_garbage(struct site *s, uint8_t n);

#endif
