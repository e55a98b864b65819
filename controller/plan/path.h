/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Knowledge about the path between two sites: values from several sources, each with its age,
 * merged into one view per carrier. Pure: no I/O, no clock (`now` is an argument), no allocation.
 *
 * Units: rates in bit/s, times in microseconds, loss in packets per million, burst in packets lost
 * in a row (mean; 1: independent losses).
 *
 * Thread: none of its own; one at a time per object.
 */
#ifndef PLAN_PATH_H
#define PLAN_PATH_H

#include <stdbool.h>
#include <stdint.h>

#include "rwy/err.h"
#include "rwy/time.h"

#define PLAN_PPM      1000000u
#define PLAN_RATE_MAX UINT64_C(1000000000000000) /* 1 Pbit/s: larger values are cut to this */
#define PLAN_US_MAX   60000000u                  /* one minute, likewise */

/* X(enumerator, word, sentence), in the order of the API; decide.h has that of preference. */
#define PLAN_CARRIERS(X)                                                                                     \
	X(PLAN_NATIVE, "native", "UDP datagrams of the tunnel itself")                                       \
	X(PLAN_TCP, "tcp", "the same datagrams over kernel TCP connections")                                 \
	X(PLAN_QUIC, "quic", "the same datagrams over QUIC")                                                 \
	X(PLAN_RDMA, "rdma", "the same datagrams over RDMA's queue pairs")

enum plan_carrier {
#define X(e, w, s) e,
	PLAN_CARRIERS(X)
#undef X
	    PLAN_CARRIER_COUNT
};
#define PLAN_ANY PLAN_CARRIER_COUNT /* "not given" or "no carrier" */

#define PLAN_CLASSES(X)                                                                                      \
	X(PLAN_INTERNET, "internet", "without guarantees: measurements count")                               \
	X(PLAN_DETERMINISTIC, "deterministic", "bandwidth, delay, jitter and loss are guaranteed")           \
	X(PLAN_RESERVED, "reserved", "bandwidth is promised")

enum plan_class {
#define X(e, w, s) e,
	PLAN_CLASSES(X)
#undef X
	    PLAN_CLASS_COUNT
};

/* The words; "?" for PLAN_ANY and for values that are out of range. Static text. */
const char *plan_carrier_name(enum plan_carrier c);
const char *plan_class_name(enum plan_class c);
/* The carrier or class with this word; PLAN_ANY or PLAN_CLASS_COUNT: there is none. */
enum plan_carrier plan_carrier_find(const char *word);

/* The fields of an observation that are valid. */
#define PLAN_HAS_BANDWIDTH 1u
#define PLAN_HAS_RTT       2u
#define PLAN_HAS_JITTER    4u
#define PLAN_HAS_LOSS      8u
#define PLAN_HAS_BURST     16u

/* One report, by a gateway (a link probe) or by a network's controller. */
struct plan_obs {
	uint32_t source;           /* the caller's number of the reporter; not 0 */
	bool pushed;               /* promised by a network's controller; else measured */
	enum plan_carrier carrier; /* the carrier it was measured in; PLAN_ANY: the path itself */
	enum plan_class cls;       /* valid if pushed */
	uint8_t has;               /* set of PLAN_HAS_ */
	rwy_time at;               /* time of the observation */
	rwy_dur ttl;               /* how long it is valid; 0: PLAN_TTL */
	uint64_t bandwidth_bps;    /* available to us (measured) or promised */
	uint32_t rtt_us;           /* for a pushed one-way delay the caller sets 2 * delay_us */
	uint32_t jitter_us, loss_ppm, burst;
};
#define PLAN_TTL (60 * RWY_SEC)

/* One value of the view, with its source and time. source 0: an assumption. */
struct plan_value {
	uint64_t v;
	rwy_time at;
	uint32_t source;
};

/* The path as one carrier meets it. Bandwidth 0: unknown, and no bound. */
struct plan_leg {
	struct plan_value bandwidth_bps, rtt_us, jitter_us, loss_ppm, burst;
};

struct plan_path {
	enum plan_class cls;
	struct plan_leg by[PLAN_CARRIER_COUNT];
};

/* The view without any observation: class internet, 50 ms, 100 ppm, all of it assumed. */
void plan_path_default(struct plan_path *p);
/*
 * Merges n observations into a view. Returns how many counted.
 *
 * An observation older than its ttl does not count. Of several measurements of the same thing by
 * one source the youngest counts; one made in a carrier precedes, for that carrier, one of the
 * path. A promise (deterministic: all values; reserved: bandwidth) precedes a measurement unless
 * the measurement is worse. On the other classes a promise of loss or delay counts only where
 * nothing is measured. Invalid observations (no source, unknown class or carrier, from the future)
 * do not count.
 */
unsigned plan_path_merge(struct plan_path *out, const struct plan_obs *obs, unsigned n, rwy_time now);

#endif
