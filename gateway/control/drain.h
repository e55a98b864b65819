/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draining: before the gateway stops, its workers' engines settle (engine/settle.h), so that the
 * stop loses nothing that a host was acknowledged. `roceway drain` and SIGTERM ask for it.
 *
 * SIGTERM has a bound, gateway.drain_timeout. What is owed then is left to the journal: the next
 * process finds out what is lost, and the hosts are told. A drain that an operator asked for and
 * that takes longer than its own bound is cancelled instead: the gateway serves on.
 *
 * A drained active gateway of a pair hands over to its standby; then it stops, or starts again as
 * the standby (hand_over). What its standby has need not be drained.
 *
 * Functions may be called from any thread except a worker's, unless they say otherwise.
 */
#ifndef GATEWAY_CONTROL_DRAIN_H
#define GATEWAY_CONTROL_DRAIN_H

#include "gateway/app.h"

enum gw_drain_state {
	GW_DRAIN_OFF,    /* serves */
	GW_DRAIN_ON,     /* the workers settle */
	GW_DRAIN_YIELDS, /* all have settled; the standby of the pair is to take over */
	GW_DRAIN_DONE,   /* all have settled; the standby has taken over if there is one */
};
/* How the last drain ended without a stop. */
enum gw_drain_end { GW_DRAIN_NO_END, GW_DRAIN_CANCELLED, GW_DRAIN_TIMED_OUT, GW_DRAIN_NOT_TAKEN };

struct gw_drain_order {
	bool keep;       /* stay drained, instead of a stop */
	bool hand_over;  /* one of a pair: start again as the standby, instead of a stop */
	bool signal;     /* SIGTERM: nobody cancels it; after the timeout the gateway stops */
	rwy_dur timeout; /* 0: none */
};

struct gw_drain_info {
	enum gw_drain_state state;
	struct gw_drain_order order; /* OFF: zero */
	enum gw_drain_end end;
	uint32_t flows;   /* that owe something */
	uint64_t bytes;   /* that they owe, an estimate */
	unsigned settled; /* workers */
	rwy_dur elapsed;  /* since the begin; 0: OFF */
	bool taken;       /* DONE: the standby of the pair serves */
};

struct gw_drain;
RWY_MUST_CHECK int gw_drain_new(struct gw_app *app);
void gw_drain_free(struct gw_app *app); /* after the workers have ended */
/*
 * Begins, or changes the order of the present drain. RWY_EAGAIN: the gateway stops already, or
 * hands over; RWY_ENOENT: hand_over, and no standby has everything.
 */
RWY_MUST_CHECK int gw_drain_begin(struct gw_app *app, const struct gw_drain_order *order);
/* Serves again. RWY_ENOENT: no drain; RWY_EAGAIN: SIGTERM asked for it, or the standby serves. */
RWY_MUST_CHECK int gw_drain_cancel(struct gw_app *app);
void gw_drain_get(struct gw_app *app, struct gw_drain_info *out);
/* An operator has heard that it is done. A gateway that is to stop waits some time for that. */
void gw_drain_told(struct gw_app *app);

/* Control thread: at gw_drain_next() or earlier. True: the gateway is to stop now. */
bool gw_drain_tick(struct gw_app *app, rwy_time now);
/* Any thread: the process is to end because of a drain that leads to a stop. */
bool gw_drain_stops(struct gw_app *app);
/* The drain sees to the end of a process whose standby took over. */
bool gw_drain_yields(struct gw_app *app);
/* RWY_NEVER: no drain. */
rwy_time gw_drain_next(struct gw_app *app);

#endif
