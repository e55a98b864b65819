/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bottleneck: a serial line behind one queue that drops at its tail and, if asked to, marks ECN like RED.
 * Everybody who sends over the path in one direction shares one. Bytes are those on the wire.
 * Not here: delay, random loss and packets (link.h), who sends (run.h, cross.h).
 */
#ifndef SIM_WAN_LINE_H
#define SIM_WAN_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include "rwy/time.h"

struct line {
	double ns_byte;
	double queue; /* bytes before it drops, 0: no bound */
	double mark;  /* bytes: no mark below, all marked from twice that; 0: no marking */
	double busy;  /* the queue is empty then, ns */
	uint64_t rng; /* of the marks */
	/* since line_measure: */
	rwy_time from;
	double at, area, most; /* most: bytes. area: ns of waiting, over ns */
	uint64_t drops, marks;
};

/* Sends so many bytes. Returns when the last bit has left; RWY_NEVER: dropped. *ce: marked; may be NULL when
 * the line does not mark. */
rwy_time line_send(struct line *l, uint32_t bytes, bool *ce, rwy_time now);
double line_queue(const struct line *l, rwy_time now); /* bytes that wait */
void line_measure(struct line *l, rwy_time now);
double line_queue_mean(struct line *l, rwy_time now); /* ns, since line_measure */

#endif
