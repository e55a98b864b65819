/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bottleneck: a serial line behind one queue that drops at its tail and, if configured, marks
 * ECN like RED. All senders of one direction share it. Bytes are those on the wire. Delay, random
 * loss and packets are in link.h, senders in run.h and cross.h.
 */
#ifndef SIM_WAN_LINE_H
#define SIM_WAN_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include "rwy/time.h"

struct line {
	double ns_byte;
	double queue; /* bytes at which it drops; 0: no limit */
	double mark;  /* bytes: no mark below, all marked from twice that on; 0: no marking */
	double busy;  /* ns: the queue is empty then */
	uint64_t rng; /* for the marks */
	/* Since line_measure(): */
	rwy_time from;
	double at, area, most; /* most: bytes; area: ns of waiting, integrated over ns */
	uint64_t drops, marks;
};

/* Sends the bytes. Returns when the last bit has left; RWY_NEVER: dropped. *ce: marked; ce may be
 * NULL if the line does not mark. */
rwy_time line_send(struct line *l, uint32_t bytes, bool *ce, rwy_time now);
double line_queue(const struct line *l, rwy_time now); /* bytes that wait */
void line_measure(struct line *l, rwy_time now);
double line_queue_mean(struct line *l, rwy_time now); /* ns, since line_measure() */

#endif
