/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end-to-end loop's receiving side: how much of one flow the sender may have under way so that what waits
 * here is about half a millisecond's worth and not a WAN bandwidth-delay product.
 *
 * While the host takes what comes there is no bound. When more waits than a host pauses for, the bound
 * becomes what the host takes in a round trip and a little: a window, not a rate, so that the error of a
 * measurement is a short queue and never a growing one, and the sender clocks itself by what is delivered
 * (the idea of a credit: Kung, Blackwell and Chapman 1994; Bifrost and MatchRDMA hold the far buffer so).
 * When nothing waits any more the host takes more than the bound lets through: it grows, by doubling, until
 * something waits or it does not bind.
 *
 * Sans-I/O, one thread an object; the caller says when something changed.
 */
#ifndef CC_DRAIN_H
#define CC_DRAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "rwy/time.h"

struct cc_drain {
	bool on;                                  /* the window binds */
	bool best;                                /* by what it took at its best: not measured yet */
	bool known;                               /* rate_Bps is what it took, not only what came */
	uint8_t off;                              /* periods in a row whose rate is not what we hold for it */
	uint8_t growth;                           /* epochs in a row that the window grew */
	rwy_time period_at, epoch_at, settled_at; /* when they began; when the last cut has taken effect */
	rwy_time idle_since;                      /* nothing waits since then; 0: something does */
	rwy_dur period_idle, epoch_idle;          /* of them with nothing waiting */
	uint64_t period_drained, epoch_drained;   /* the total then */
	uint64_t waits_min;                       /* of this epoch */
	uint64_t rate_Bps; /* what the host takes while something waits, smoothed; 0: not known */
	rwy_dur slack;     /* of the window: what it is more than a round trip */
	uint64_t window;   /* bytes, when on */
};

/* Zeroed memory is a new one.
 * waits: bytes that wait for the host now. drained: bytes the host has taken, total. rtt: of the WAN, > 0.
 * Returns whether the window changed so much that the sender must hear of it: 0 when it does not bind, else
 * bytes. Cheap between the ends of periods (rtt/128, 100 us .. 2 ms). */
bool cc_drain_update(struct cc_drain *d, uint64_t waits, uint64_t drained, rwy_dur rtt, rwy_time now);

static inline uint64_t cc_drain_window(const struct cc_drain *d)
{
	return d->on ? d->window : 0;
}

#endif
