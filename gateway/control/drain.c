/* SPDX-License-Identifier: Apache-2.0 */
/* Draining: see drain.h. The control thread asks the workers, again and again until all settled. */
#include "gateway/control/drain.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/notify.h"
#include "gateway/control/status.h"
#include "gateway/port/kernel.h"

#define LOOKS      (20 * RWY_MS)
#define LOOKS_PAIR (2 * RWY_MS)   /* hosts of a pair's gateway wait for the standby */
#define TOLD_WAIT  (500 * RWY_MS) /* an operator's command asks more often */
#define SAYS       RWY_SEC        /* between two lines for systemd */
#define STOP_EXTRA (5 * RWY_SEC)  /* systemd: the stop itself takes less */

struct gw_drain {
	pthread_mutex_t lock; /* all below */
	enum gw_drain_state state;
	enum gw_drain_end end;
	struct gw_drain_order order;
	rwy_time since, deadline, done_at, look_at, say_at;
	bool told;
	bool serve_again;     /* a worker may still settle after the cancel */
	uint32_t flows, kept; /* kept: owed something that the standby of the pair has */
	uint64_t bytes;
	unsigned settled;
	bool taken;
};

/* --- workers ---------------------------------------------------------------------------------- */

static void worker_settles(struct eng *e, void *arg)
{
	eng_settle_begin(e, gw_now());
	eng_settle_get(e, arg);
}

static void worker_hands_over(struct eng *e, void *arg)
{
	*(bool *)arg = eng_standby_hand_over(e, gw_now());
}

static void worker_paired(struct eng *e, void *arg)
{
	struct eng_standby_info i;

	*(bool *)arg = eng_standby_info(e, &i) && i.site;
}

static void worker_serves(struct eng *e, void *arg)
{
	eng_settle_cancel(e, gw_now());
}

/* A worker that does not answer has not settled. */
static void workers_ask(struct gw_app *app, struct gw_drain *d)
{
	const int pair = atomic_load(&app->pair);

	d->flows = d->kept = 0;
	d->bytes = 0;
	d->settled = 0;
	if (gw_pair_hides(pair) || pair == GW_PAIR_ASKS) { /* no host has a promise of it */
		d->settled = app->workers;
		return;
	}
	for (unsigned i = 0; i < app->workers; i++) {
		struct eng_settle_info s;

		if (gw_call(app, i, worker_settles, &s) != 0)
			continue;
		d->flows += s.flows;
		d->bytes += s.bytes;
		d->kept += s.kept;
		d->settled += s.state == ENG_SETTLED;
	}
}

static void workers_serve(struct gw_app *app, struct gw_drain *d)
{
	d->serve_again = false;
	for (unsigned i = 0; i < app->workers; i++)
		if (gw_call(app, i, worker_serves, NULL) != 0)
			d->serve_again = true;
}

/* --- what systemd and the log hear ------------------------------------------------------------ */

static void say_progress(struct gw_drain *d, rwy_time now)
{
	char text[160];
	int n;

	if (now < d->say_at)
		return;
	d->say_at = now + SAYS;
	n = snprintf(text, sizeof(text), "STATUS=draining: %" PRIu32 " flows, %" PRIu64 " bytes left",
	    d->flows, d->bytes);
	if (d->order.signal) /* systemd's own bound must not end a drain that ours allows */
		snprintf(text + n, sizeof(text) - (size_t)n, "\nSTOPPING=1\nEXTEND_TIMEOUT_USEC=%" PRIu64,
		    (uint64_t)(SAYS + STOP_EXTRA) / RWY_US);
	gw_notify(text);
}

static void say_end(const struct gw_drain *d, const char *what, rwy_time now)
{
	gw_log(d->flows ? GW_LOG_WARNING : GW_LOG_NOTICE, "drain",
	    "%s after %" PRIu64 " ms flows_left=%" PRIu32 " bytes_left=%" PRIu64, what,
	    rwy_since(d->since, now) / RWY_MS, d->flows, d->bytes);
}

/* --- orders ----------------------------------------------------------------------------------- */

/* Worker 0 leads. */
static bool has_standby(struct gw_app *app)
{
	bool paired = false;

	return conf_standby(app->conf) >= 0 && gw_call(app, 0, worker_paired, &paired) == 0 && paired;
}

static bool under_way(const struct gw_drain *d)
{
	return d->state == GW_DRAIN_YIELDS || d->taken || (d->state != GW_DRAIN_OFF && d->order.signal);
}

/* SIGTERM takes over what an operator began, also when the standby is about to serve. */
static bool is_refused(const struct gw_drain *d, const struct gw_drain_order *order)
{
	return order->signal ? d->state != GW_DRAIN_OFF && d->order.signal : under_way(d);
}

int gw_drain_begin(struct gw_app *app, const struct gw_drain_order *order)
{
	struct gw_drain *d = app->drain;
	rwy_time now = gw_now();
	int rc = 0;

	pthread_mutex_lock(&d->lock);
	if (is_refused(d, order)) {
		rc = RWY_EAGAIN;
	} else if (order->hand_over && !has_standby(app)) {
		rc = RWY_ENOENT;
	} else {
		if (d->state == GW_DRAIN_OFF) {
			d->state = GW_DRAIN_ON;
			d->since = now;
			workers_ask(app, d);
		}
		/* a standby may have to take over */
		if (d->state == GW_DRAIN_DONE && !order->keep && !d->taken)
			d->state = GW_DRAIN_ON;
		d->order = *order;
		d->end = GW_DRAIN_NO_END;
		d->serve_again = d->told = false;
		d->look_at = d->say_at = now;
		d->deadline = order->timeout ? now + order->timeout : RWY_NEVER;
		atomic_store(&app->state, GW_DRAINING);
		gw_log(GW_LOG_NOTICE, "drain", "begins by=%s then=%s timeout_ms=%" PRIu64,
		    order->signal ? "SIGTERM" : "operator",
		    order->keep        ? "keep"
		    : order->hand_over ? "hand-over"
		                       : "stop",
		    order->timeout / RWY_MS);
	}
	pthread_mutex_unlock(&d->lock);
	gw_kernel_wake(app->kernel);
	return rc;
}

static void drain_end(struct gw_app *app, enum gw_drain_end end, const char *what, rwy_time now)
{
	struct gw_drain *d = app->drain;

	say_end(d, what, now);
	d->state = GW_DRAIN_OFF;
	d->end = end;
	d->order = (struct gw_drain_order){0};
	workers_serve(app, d);
	atomic_store(&app->state, GW_RUNNING);
	gw_status_say(app, false, NULL);
}

int gw_drain_cancel(struct gw_app *app)
{
	struct gw_drain *d = app->drain;
	int rc = 0;

	pthread_mutex_lock(&d->lock);
	if (d->state == GW_DRAIN_OFF)
		rc = RWY_ENOENT;
	else if (under_way(d))
		rc = RWY_EAGAIN;
	else
		drain_end(app, GW_DRAIN_CANCELLED, "cancelled", gw_now());
	pthread_mutex_unlock(&d->lock);
	gw_kernel_wake(app->kernel);
	return rc;
}

void gw_drain_get(struct gw_app *app, struct gw_drain_info *out)
{
	struct gw_drain *d = app->drain;

	pthread_mutex_lock(&d->lock);
	*out = (struct gw_drain_info){.state = d->state,
	    .order = d->order,
	    .end = d->end,
	    .flows = d->flows,
	    .bytes = d->bytes,
	    .settled = d->settled,
	    .taken = d->taken,
	    .elapsed = d->state == GW_DRAIN_OFF ? 0 : rwy_since(d->since, gw_now())};
	pthread_mutex_unlock(&d->lock);
}

void gw_drain_told(struct gw_app *app)
{
	struct gw_drain *d = app->drain;

	pthread_mutex_lock(&d->lock);
	d->told |= d->state == GW_DRAIN_DONE;
	pthread_mutex_unlock(&d->lock);
}

/* --- control thread --------------------------------------------------------------------------- */

static void step_done(struct gw_drain *d, rwy_time now)
{
	d->state = GW_DRAIN_DONE;
	d->done_at = now;
	say_end(d, d->taken ? "done: the standby has taken over" : "done", now);
	gw_notify(d->order.keep ? "STATUS=drained" : "STATUS=drained; stopping");
}

static void step_on(struct gw_app *app, struct gw_drain *d, rwy_time now)
{
	bool yields = false;

	workers_ask(app, d);
	if (d->settled < app->workers) {
		say_progress(d, now);
		return;
	}
	if (!d->order.keep && conf_standby(app->conf) >= 0)
		yields = gw_call(app, 0, worker_hands_over, &yields) == 0 && yields;
	if (yields)
		d->state = GW_DRAIN_YIELDS;
	else if (d->order.hand_over)
		drain_end(app, GW_DRAIN_NOT_TAKEN, "cancelled: no standby has everything any more", now);
	else if (d->kept) /* it had when the workers settled; they begin again */
		workers_serve(app, d);
	else
		step_done(d, now);
}

/* The engine decides: the standby serves, or this gateway serves again. */
static void step_yields(struct gw_app *app, struct gw_drain *d, rwy_time now)
{
	const int pair = atomic_load(&app->pair);

	if (pair == GW_PAIR_REPLACED) {
		d->taken = true;
		step_done(d, now);
	} else if (pair == GW_PAIR_SERVES && d->order.hand_over) {
		drain_end(app, GW_DRAIN_NOT_TAKEN, "cancelled: the standby did not take over", now);
	} else if (pair == GW_PAIR_SERVES) {
		gw_log(GW_LOG_WARNING, "drain", "the standby did not take over");
		d->state = GW_DRAIN_ON;
		workers_serve(app, d);
	}
}

/* True: the gateway stops. */
static bool step(struct gw_app *app, struct gw_drain *d, rwy_time now)
{
	if (d->state == GW_DRAIN_OFF) {
		if (d->serve_again)
			workers_serve(app, d);
		return false;
	}
	if (d->state == GW_DRAIN_ON)
		step_on(app, d, now);
	else if (d->state == GW_DRAIN_YIELDS)
		step_yields(app, d, now);
	if (d->state == GW_DRAIN_DONE)
		return !d->order.keep && (d->order.signal || d->told || now >= d->done_at + TOLD_WAIT);
	if (d->state != GW_DRAIN_ON || now < d->deadline)
		return false;
	if (d->order.signal) {
		say_end(d, "ends by its timeout: what is owed is left to the journal", now);
		return true;
	}
	drain_end(app, GW_DRAIN_TIMED_OUT, "cancelled: it took too long", now);
	return false;
}

bool gw_drain_tick(struct gw_app *app, rwy_time now)
{
	struct gw_drain *d = app->drain;
	bool stop = false;

	pthread_mutex_lock(&d->lock);
	if (now >= d->look_at) {
		d->look_at = now + (conf_standby(app->conf) < 0 ? LOOKS : LOOKS_PAIR);
		stop = step(app, d, now);
	}
	pthread_mutex_unlock(&d->lock);
	return stop;
}

bool gw_drain_stops(struct gw_app *app)
{
	struct gw_drain *d = app->drain;
	bool stops;

	pthread_mutex_lock(&d->lock);
	stops = d->state != GW_DRAIN_OFF && !d->order.keep && !d->order.hand_over;
	pthread_mutex_unlock(&d->lock);
	return stops;
}

bool gw_drain_yields(struct gw_app *app)
{
	struct gw_drain *d = app->drain;
	bool yields;

	pthread_mutex_lock(&d->lock);
	yields = d->state == GW_DRAIN_YIELDS || d->taken;
	pthread_mutex_unlock(&d->lock);
	return yields;
}

rwy_time gw_drain_next(struct gw_app *app)
{
	struct gw_drain *d = app->drain;
	rwy_time at = RWY_NEVER;

	pthread_mutex_lock(&d->lock);
	if (d->serve_again || d->state == GW_DRAIN_ON || d->state == GW_DRAIN_YIELDS ||
	    (d->state == GW_DRAIN_DONE && !d->order.keep))
		at = d->look_at;
	pthread_mutex_unlock(&d->lock);
	return at;
}

/* --- creation --------------------------------------------------------------------------------- */

int gw_drain_new(struct gw_app *app)
{
	struct gw_drain *d = calloc(1, sizeof(*d));

	if (!d)
		return RWY_ENOMEM;
	pthread_mutex_init(&d->lock, NULL);
	app->drain = d;
	return 0;
}

void gw_drain_free(struct gw_app *app)
{
	if (!app->drain)
		return;
	pthread_mutex_destroy(&app->drain->lock);
	free(app->drain);
	app->drain = NULL;
}
