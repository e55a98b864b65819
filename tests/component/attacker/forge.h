/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames that somebody in the WAN makes out of those that it saw pass between two gateways. It knows
 * everything but the keys: addresses, ports, tunnel indexes, packet numbers, the format. Bytes only:
 * no socket, no clock.
 */
#ifndef TESTS_COMPONENT_ATTACKER_FORGE_H
#define TESTS_COMPONENT_ATTACKER_FORGE_H

#include <stddef.h>
#include <stdint.h>

#define FORGE_FRAME 2048 /* longest frame that is learned or made */

/* X(enumerator, name, sentence) */
#define FORGE_KINDS(X)                                                                                       \
	X(FORGE_REPLAY, "replayed", "seen lately, sent again")                                               \
	X(FORGE_OLD, "old", "one of the first that passed: of keys and phases of before")                    \
	X(FORGE_FLIP, "flipped", "one bit changed, anywhere in the datagram")                                \
	X(FORGE_HEADER, "header", "a byte of its header changed: type, phase, path, key set, index, number") \
	X(FORGE_CUT, "truncated", "cut off anywhere")                                                        \
	X(FORGE_LONG, "extended", "with bytes behind it")                                                    \
	X(FORGE_NOISE, "noise", "its header, and random bytes behind it")                                    \
	X(FORGE_CROSS, "crossed", "a datagram of another tunnel between the same gateways")                  \
	X(FORGE_MIRROR, "reflected", "sent back to the gateway that it came from")                           \
	X(FORGE_HELLO, "hello", "a HELLO made up in the clear")                                              \
	X(FORGE_CLEAR, "clear", "DELIVERED, ABORT and other frames in the clear, with a right checksum")     \
	X(FORGE_SEALED, "sealed", "such frames that look sealed: key set, next packet number, random tag")

enum forge_kind {
#define X(e, n, s) e,
	FORGE_KINDS(X)
#undef X
	    FORGE_KIND_COUNT
};
extern const char *const forge_names[FORGE_KIND_COUNT];

struct forge_seen {
	uint16_t len;      /* of the frame */
	uint16_t datagram; /* where the UDP payload begins */
	uint8_t b[FORGE_FRAME];
};

#define FORGE_FIRST  512
#define FORGE_RECENT 1024

/* What passed towards one gateway. */
struct forge_book {
	uint64_t n; /* learned so far */
	struct forge_seen first[FORGE_FIRST];
	struct forge_seen recent[FORGE_RECENT]; /* ring */
	struct forge_seen last[2];              /* to `port`, and to the port after it: two tunnels */
};

/* Learns a frame if it is a datagram of a tunnel: UDP over IPv4 to `port` or the port after it. */
void forge_learn(struct forge_book *book, const uint8_t *frame, size_t len, uint16_t port);

/*
 * Makes a frame towards the gateway of `to`. `from`: what passed the other way. Returns its length;
 * 0: nothing was learned yet that this kind needs. out has FORGE_FRAME bytes.
 */
size_t forge_make(const struct forge_book *to, const struct forge_book *from, enum forge_kind kind,
    uint64_t *rng, uint8_t *out);

#endif
