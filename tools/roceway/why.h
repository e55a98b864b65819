/* SPDX-License-Identifier: Apache-2.0 */
/* Inside `roceway why` only: what is known of one connection, and the sentences made of it. */
#ifndef TOOLS_ROCEWAY_WHY_H
#define TOOLS_ROCEWAY_WHY_H

#include "tools/roceway/roceway.h"

/* X(enumerator, name): the limits of /v1/flows. */
#define WHY_LIMITS(X)                                                                                        \
	X(WHY_IDLE, "")                                                                                      \
	X(WHY_WINDOW, "window")                                                                              \
	X(WHY_SHARE, "share")                                                                                \
	X(WHY_PATH, "path")                                                                                  \
	X(WHY_HOST, "host")                                                                                  \
	X(WHY_FAR, "far")                                                                                    \
	X(WHY_MEMORY, "memory")                                                                              \
	X(WHY_READ, "read")                                                                                  \
	X(WHY_NEAR_SOURCE, "near-source")                                                                    \
	X(WHY_DRAIN, "drain")
enum why_limit {
#define X(e, n) e,
	WHY_LIMITS(X)
#undef X
	    WHY_LIMIT_COUNT
};

struct why {
	const char *local, *remote;
	/* Of /v1/flows, at the first look and at the last; NULL: it is not there. */
	json_t *first, *flow;
	double seconds;                         /* between the two */
	unsigned looks, limit[WHY_LIMIT_COUNT]; /* looks in all, and with each limit */
	json_t *entries;                        /* of the flight recorder about it, oldest first */
	json_t *tunnels;                        /* the same of kind `tunnel` and `congested` */
	json_t *tunnel;                         /* /v1/tunnels; NULL: none */
	json_t *reservation;                    /* /v1/reservations; NULL: none */
	json_t *other;                          /* the other gateway's answer; NULL: none */
};

/* why_other.c: what the other gateway is asked. where: a path of its API's socket, or a host for
 * ssh. local and remote are those of this gateway. */
struct why_ask {
	const char *where, *local, *remote;
	const char *tenant;  /* NULL: any */
	const char *entries; /* a number: how many of its recorder */
	long long qpn;       /* of either end; 0: any */
};
/* Its answer to `why --json`, the caller's; NULL, after cli_error(). */
json_t *why_ask_other(const struct why_ask *q);

/* why_text.c: array of sentences, the caller's. */
json_t *why_say(const struct why *w);
/* why_failed.c: appends why it failed, or earlier connections of its queue pairs did, or are
 * refused. */
void why_say_failed(const struct why *w, json_t *list);
/* Appends a sentence. */
void why_add(json_t *list, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
