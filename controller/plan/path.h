/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The knowledge about the path between two sites: values from several sources, each with its age, brought
 * together into one view per carrier. Pure: no I/O, no clock (`now` is an argument), no allocation.
 *
 * Units: rates bit/s, times microseconds, loss parts per million of packets, burst packets lost in a row
 * (mean; 1: independent). Thread: none of its own; any thread, one at a time per object.
 */
#ifndef PLAN_PATH_H
#define PLAN_PATH_H

#include <stdbool.h>
#include <stdint.h>

#include "rwy/err.h"
#include "rwy/time.h"

#define PLAN_PPM      1000000u
#define PLAN_RATE_MAX UINT64_C(1000000000000000) /* 1 Pbit/s: what lies above is a mistake and cut here */
#define PLAN_US_MAX   60000000u                  /* a minute: the same for times */

/* X(enumerator, word, sentence): in the order of preference between equals. */
#define PLAN_CARRIERS(X)                                                                                     \
	X(PLAN_NATIVE, "native", "UDP datagrams of the tunnel itself")                                       \
	X(PLAN_TCP, "tcp", "the same datagrams over kernel TCP connections")                                 \
	X(PLAN_QUIC, "quic", "the same datagrams over QUIC")

enum plan_carrier {
#define X(e, w, s) e,
	PLAN_CARRIERS(X)
#undef X
	    PLAN_CARRIER_COUNT
};
#define PLAN_ANY PLAN_CARRIER_COUNT /* "not said which", "no carrier" */

#define PLAN_CLASSES(X)                                                                                      \
	X(PLAN_INTERNET, "internet", "nothing is promised: what is measured counts")                         \
	X(PLAN_DETERMINISTIC, "deterministic", "bandwidth, delay, jitter and loss are promised")             \
	X(PLAN_RESERVED, "reserved", "bandwidth is promised")

enum plan_class {
#define X(e, w, s) e,
	PLAN_CLASSES(X)
#undef X
	    PLAN_CLASS_COUNT
};

/* "?" for what is none (PLAN_ANY too). */
const char *plan_carrier_name(enum plan_carrier c);
const char *plan_class_name(enum plan_class c);
/* By its word; PLAN_ANY / PLAN_CLASS_COUNT: no such. */
enum plan_carrier plan_carrier_find(const char *word);

/* Which fields of an observation are filled. */
#define PLAN_HAS_BANDWIDTH 1u
#define PLAN_HAS_RTT       2u
#define PLAN_HAS_JITTER    4u
#define PLAN_HAS_LOSS      8u
#define PLAN_HAS_BURST     16u

/* One report: of a gateway (a link probe) or of a network's controller. */
struct plan_obs {
	uint32_t source;           /* the caller's number for who said it; not 0 */
	bool pushed;               /* said by the network's controller; else measured by a gateway */
	enum plan_carrier carrier; /* measured in this carrier; PLAN_ANY: of the path itself */
	enum plan_class cls;       /* if pushed */
	uint8_t has;               /* set of PLAN_HAS_ */
	rwy_time at;               /* when it was true */
	rwy_dur ttl;               /* how long it counts; 0: PLAN_TTL */
	uint64_t bandwidth_bps;    /* available to us (measured), or promised */
	uint32_t rtt_us;           /* a pushed one-way delay counts twice: set rtt_us = 2 * delay_us */
	uint32_t jitter_us, loss_ppm, burst;
};
#define PLAN_TTL (60 * RWY_SEC)

/* One value of the view, who said it and when. source 0: nobody, it is assumed. */
struct plan_value {
	uint64_t v;
	rwy_time at;
	uint32_t source;
};

/* The path as one carrier meets it. bandwidth 0: nobody knows (no bound by the path). */
struct plan_leg {
	struct plan_value bandwidth_bps, rtt_us, jitter_us, loss_ppm, burst;
};

struct plan_path {
	enum plan_class cls;
	struct plan_leg by[PLAN_CARRIER_COUNT];
};

/* Nothing known: class internet, 50 ms, 100 ppm, everything assumed. */
void plan_path_default(struct plan_path *p);
/*
 * Brings n observations together. What is older than its ttl does not count. Of several measurements of the
 * same thing the youngest counts; one made in a carrier counts for that carrier before one of the path.
 * A promise (deterministic: all values; reserved: bandwidth) counts before a measurement, except where the
 * measurement is worse than the promise. A promise of loss or delay on another class counts only where
 * nothing was measured. Nonsense (no source, a class or carrier that is none, from the future) is left out.
 * Returns how many observations counted.
 */
unsigned plan_path_merge(struct plan_path *out, const struct plan_obs *obs, unsigned n, rwy_time now);

#endif
