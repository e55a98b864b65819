/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of the libraries on hosts (shim/) to a relay, and its answers: one UDP datagram each, to
 * `relay.ask_port`. A request is sent again until its answer comes; the same request gives the same
 * result. docs/wire-format.md has the bytes. Pure functions: any thread.
 */
#ifndef PROXY_ASK_H
#define PROXY_ASK_H

#include <stddef.h>
#include <stdint.h>

#include "proxy/trailer.h"
#include "rwy/err.h"

#define PROXY_ASK_LEN     64 /* requests and answers: no answer is longer than what asked */
#define PROXY_ASK_PORT    4795
#define PROXY_ASK_VERSION 1

/* X(enumerator, name, sentence). Numbers are on the wire: new ones come last. */
#define PROXY_ASKS(X)                                                                                        \
	X(PROXY_ASK_MAY, "may", "may I connect to the target? Nothing is kept")                              \
	X(PROXY_ASK_ONCE, "once", "my next REQ from this source port means the target")                      \
	X(PROXY_ASK_PAIR, "pair", "my queue pair and the target's belong together")                          \
	X(PROXY_ASK_UNPAIR, "unpair", "they do no longer")                                                   \
	X(PROXY_ASK_ALIVE, "alive", "are you there? Nothing is kept")

#define PROXY_ANSWERS(X)                                                                                     \
	X(PROXY_ANSWER_OK, "ok", "done")                                                                     \
	X(PROXY_ANSWER_COOKIE, "cookie", "ask again with this cookie")                                       \
	X(PROXY_ANSWER_REFUSED, "refused", "the relay's access list does not allow it")                      \
	X(PROXY_ANSWER_NO_REDIRECT, "no-redirect", "the relay has no redirect_port")                         \
	X(PROXY_ANSWER_LOOP, "loop", "the target is the relay, or the host itself, or of another family")    \
	X(PROXY_ANSWER_FULL, "full", "the relay has no room for more links, or this host has too many")      \
	X(PROXY_ANSWER_NO_QPN, "no-qpn", "the relay has no QPN left")                                        \
	X(PROXY_ANSWER_VERSION, "version", "the relay speaks another version of this protocol")              \
	X(PROXY_ANSWER_UNKNOWN, "unknown", "the relay does not know this request")

enum proxy_ask_kind {
	PROXY_ASK_NONE,
#define X(e, n, s) e,
	PROXY_ASKS(X)
#undef X
	    PROXY_ASK_COUNT
};

enum proxy_answer {
#define X(e, n, s) e,
	PROXY_ANSWERS(X)
#undef X
	    PROXY_ANSWER_COUNT
};

struct proxy_ask {
	uint8_t version;
	uint8_t kind;   /* enum proxy_ask_kind; from a relay or host of later days: any */
	uint8_t answer; /* enum proxy_answer; 0 in requests; from a relay of later days: any */
	bool is_answer;
	uint64_t id;     /* of the request, which the answer repeats */
	uint64_t cookie; /* of the relay for this host; 0: the host has none yet */
	struct proxy_target target;
	uint16_t source_port;   /* ONCE: in the IP-CM header of the REQ */
	uint16_t redirect_port; /* answers */
	uint32_t lqpn, rqpn;    /* PAIR, UNPAIR: of the host that asks, of the target; 24 bits */
	uint32_t alias;         /* answer to PAIR: stands for the target's */
};

/* Writes a request or an answer. */
void proxy_ask_write(uint8_t out[PROXY_ASK_LEN], const struct proxy_ask *a);
/*
 * Reads len bytes. RWY_EMALFORMED: these are none. Of another version only version, is_answer,
 * kind, answer and id are set, which have their places in all versions.
 */
RWY_MUST_CHECK int proxy_ask_read(const uint8_t *p, size_t len, struct proxy_ask *a);

/* Static texts. */
const char *proxy_answer_name(unsigned answer);
const char *proxy_answer_text(unsigned answer);

#endif
