/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The goodput that a carrier will have over a path: a model per carrier over RTT, loss and how it clusters, held to
 * measurements (docs/controller-planning.md says to which). Pure; only IEEE basic operations and square
 * roots, so two replicas come to the same bit.
 */
#ifndef PLAN_GOODPUT_H
#define PLAN_GOODPUT_H

#include "controller/plan/path.h"

#define PLAN_TCP_RENO  1u /* not answered to by the model: counted as cubic */
#define PLAN_TCP_CUBIC 2u
#define PLAN_TCP_BBR   4u

/* Capabilities of one gateway. Bandwidth 0: it has not that carrier. */
struct plan_caps {
	uint64_t bandwidth_bps[PLAN_CARRIER_COUNT]; /* of payload */
	uint8_t tcp_algorithms;                     /* set of PLAN_TCP_; 0 counts as cubic */
	uint8_t tcp_streams;                        /* connections a tunnel; 0: PLAN_TCP_STREAMS */
	uint32_t tcp_window; /* bytes a connection can have in flight; 0: PLAN_TCP_WINDOW */
	bool cnp;            /* tells its hosts of congestion */
};
#define PLAN_TCP_STREAMS 4u
#define PLAN_TCP_WINDOW  (4u << 20) /* Linux lets a connection grow to this, if nobody says otherwise */

/* The bound of a prediction. */
#define PLAN_LIMITS(X)                                                                                       \
	X(PLAN_BY_NOTHING, "nothing", "nothing known bounds it")                                             \
	X(PLAN_BY_SOURCE, "source", "what the source's gateway can do in this carrier")                      \
	X(PLAN_BY_DESTINATION, "destination", "what the destination's gateway can do in this carrier")       \
	X(PLAN_BY_PATH, "path", "the bandwidth of the path")                                                 \
	X(PLAN_BY_LOSS, "loss", "loss over this round trip, as this carrier answers to it")                  \
	X(PLAN_BY_WINDOW, "window", "the window of the carrier's connections over this round trip")          \
	X(PLAN_NOT_SOURCE, "no-source", "the source's gateway has not this carrier")                         \
	X(PLAN_NOT_DESTINATION, "no-destination", "the destination's gateway has not this carrier")

enum plan_limit {
#define X(e, w, s) e,
	PLAN_LIMITS(X)
#undef X
	    PLAN_LIMIT_COUNT
};
const char *plan_limit_name(enum plan_limit l);
const char *plan_limit_text(enum plan_limit l);

struct plan_goodput {
	uint64_t bps;          /* 0: not possible, see limit */
	enum plan_limit limit; /* the one that holds */
};

/* bps <= PLAN_RATE_MAX whatever the arguments. c < PLAN_CARRIER_COUNT. */
struct plan_goodput plan_goodput(enum plan_carrier c, const struct plan_caps *src,
    const struct plan_caps *dst, const struct plan_leg *leg);

#endif
