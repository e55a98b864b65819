/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Predicts the goodput of a carrier over a path, from RTT, loss and how losses cluster.
 * Measurements hold the models; docs/controller-planning.md names them. Pure functions, and only
 * IEEE basic operations and square roots: two replicas get the same bits.
 */
#ifndef PLAN_GOODPUT_H
#define PLAN_GOODPUT_H

#include "controller/plan/path.h"

#define PLAN_TCP_RENO  1u /* the model has no Reno and counts it as CUBIC */
#define PLAN_TCP_CUBIC 2u
#define PLAN_TCP_BBR   4u

/* Capabilities of one gateway. A bandwidth of 0: it does not have that carrier. */
struct plan_caps {
	uint64_t bandwidth_bps[PLAN_CARRIER_COUNT]; /* payload */
	uint8_t tcp_algorithms;                     /* set of PLAN_TCP_; 0 counts as CUBIC */
	uint8_t tcp_streams;                        /* per tunnel; 0: PLAN_TCP_STREAMS */
	uint32_t tcp_window;  /* bytes in flight that a connection can have; 0: PLAN_TCP_WINDOW */
	bool quic_cubic;      /* QUIC's congestion control is CUBIC; else BBR */
	uint8_t rdma_qps;     /* queue pairs per tunnel; 0: PLAN_RDMA_QPS */
	uint64_t rdma_window; /* bytes in flight that all of them can have; 0: PLAN_RDMA_WINDOW */
	bool cnp;             /* it sends CNPs to its hosts */
};
#define PLAN_TCP_STREAMS 4u
#define PLAN_TCP_WINDOW  (4u << 20) /* the largest window of Linux by default */
#define PLAN_RDMA_QPS    4u
#define PLAN_QUIC_WINDOW (32u << 20) /* default of quic.window */
#define PLAN_RDMA_WINDOW (8u << 20)  /* 512 datagrams of 4 KiB in each queue pair */
/* RDMA bears this share of its time for repeating what was under way when something was lost. */
#define PLAN_RDMA_WASTE_PPM 20000u

/* The bound that limits a prediction. X(enumerator, word, sentence) */
#define PLAN_LIMITS(X)                                                                                       \
	X(PLAN_BY_NOTHING, "nothing", "nothing known bounds it")                                             \
	X(PLAN_BY_SOURCE, "source", "capacity of the source's gateway in this carrier")                      \
	X(PLAN_BY_DESTINATION, "destination", "capacity of the destination's gateway in this carrier")       \
	X(PLAN_BY_PATH, "path", "the bandwidth of the path")                                                 \
	X(PLAN_BY_LOSS, "loss", "loss over this round trip, as this carrier answers to it")                  \
	X(PLAN_BY_WINDOW, "window", "the window of the carrier's connections over this round trip")          \
	X(PLAN_NOT_SOURCE, "no-source", "the source's gateway does not have this carrier")                   \
	X(PLAN_NOT_DESTINATION, "no-destination", "the destination's gateway does not have this carrier")    \
	X(PLAN_NOT_RESERVED, "not-reserved", "no network has reserved this path, and RDMA yields to nobody") \
	X(PLAN_NOT_WIDE, "narrow",                                                                           \
	    "the path has less than the source's RDMA device sends, which nothing paces")                    \
	X(PLAN_NOT_CLEAN, "go-back-n",                                                                       \
	    "too much loss for RDMA, which repeats all that is under way after each loss")

enum plan_limit {
#define X(e, w, s) e,
	PLAN_LIMITS(X)
#undef X
	    PLAN_LIMIT_COUNT
};
/* The limit's word and its sentence; static text. */
const char *plan_limit_name(enum plan_limit l);
const char *plan_limit_text(enum plan_limit l);

struct plan_goodput {
	uint64_t bps;          /* 0: not possible; `limit` says why */
	enum plan_limit limit; /* the bound that is reached */
};

/* Predicts the payload rate from src to dst over the path. bps <= PLAN_RATE_MAX whatever the
 * arguments. c < PLAN_CARRIER_COUNT. */
struct plan_goodput plan_goodput(enum plan_carrier c, const struct plan_caps *src,
    const struct plan_caps *dst, const struct plan_path *path);
/*
 * The share of its rate that RDMA gets over a path that loses the share p of all packets, with a
 * round trip of s seconds: each of `qps` queue pairs sends bps / qps.
 */
double plan_go_back_n(double bps, double p, double s, double qps);

#endif
