/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The receiver's side of end-to-end control: how many bytes of one flow the sender may have in
 * flight, so that about half a millisecond of data waits here and not a WAN bandwidth-delay
 * product.
 *
 * While the host keeps up there is no bound. When more waits than a short pause of a host explains,
 * the bound becomes what the host takes in a round trip plus a little: a window and not a rate, so
 * that an error of measurement is a short queue and not a growing one, and deliveries clock the
 * sender (a credit: Kung, Blackwell and Chapman 1994; Bifrost and MatchRDMA bound the far buffer
 * the same way). When nothing waits, the host can take more than the window allows: the window
 * doubles until something waits or it no longer binds.
 *
 * Sans-I/O, one thread per object; the caller reports changes.
 */
#ifndef CC_DRAIN_H
#define CC_DRAIN_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rwy/time.h"

struct cc_drain {
	/* --- what each update touches: a cache line --- */
	bool on; /* the window binds */
	/* rate_Bps is the best rate before the window */
	bool best;
	/* rate_Bps was limited by the host, not only by the sender */
	bool known;
	uint8_t off;                     /* periods in a row with a rate far from rate_Bps */
	uint8_t growth;                  /* epochs in a row in which the window grew */
	rwy_time period_at;              /* its beginning */
	rwy_time idle_since;             /* nothing waits since then; 0: something does */
	rwy_dur period_idle, epoch_idle; /* parts of them with nothing waiting */
	uint64_t period_drained;         /* `drained` at the period's beginning */
	uint64_t waits_min;              /* least bytes waiting in this epoch */
	/* smoothed rate of a host for which something waits; 0: unknown */
	uint64_t rate_Bps;
	/* --- the rest --- */
	rwy_time epoch_at, settled_at; /* its beginning; when the last cut has taken effect */
	uint64_t epoch_drained;        /* `drained` at the epoch's beginning */
	rwy_dur slack;                 /* part of the window beyond a round trip */
	uint64_t window;               /* bytes; valid when on */
};

#define CC_DRAIN_HOT 64 /* bytes: an update mostly touches the first ones only */
static_assert(offsetof(struct cc_drain, epoch_at) == CC_DRAIN_HOT, "the rest is behind them");

/* Updates the window. Zeroed memory is a new object. waits: bytes that wait for the host now.
 * drained: total bytes that the host has taken. rtt: of the WAN, > 0. Returns whether the window
 * changed enough that the sender must be told. Cheap between the ends of periods (rtt/128, 100 us
 * .. 2 ms). */
bool cc_drain_update(struct cc_drain *d, uint64_t waits, uint64_t drained, rwy_dur rtt, rwy_time now);

/* Bytes of the flow that may be in flight; 0: there is no bound. */
static inline uint64_t cc_drain_window(const struct cc_drain *d)
{
	return d->on ? d->window : 0;
}

#endif
