/* SPDX-License-Identifier: Apache-2.0 */
/* Counts during a run on a shared link: snapshots for the shares, and a table of rates over
 * time. */
#include <string.h>

#include "tests/sim/wan/run.h"

static uint64_t passed_of(const struct run *u, unsigned i)
{
	uint64_t sum = 0;

	if (i >= u->tunnels)
		return u->cross.flow[i - u->tunnels].passed;
	for (unsigned k = 0; k < (unsigned)u->world[i].s.paths; k++)
		sum += u->world[i].link[k][0].st.passed;
	return sum;
}

static const char *class_of(const struct run *u, unsigned i)
{
	return i < u->tunnels ? "tunnel" : u->cross.flow[i - u->tunnels].cfg.ops->name;
}

static unsigned everybody(const struct run *u)
{
	return u->tunnels + u->cross.n;
}

/* Called three times: at the begin, middle and end of the measured window. */
static void snapshot(struct run *u, rwy_time now)
{
	struct share *h = &u->world[0].r->share;
	const struct world *w = &u->world[0];
	double span = (double)(w->stop_at - w->measure_at) / 1e9;

	h->n = everybody(u);
	h->ours = u->tunnels;
	for (unsigned i = 0; i < h->n; i++) {
		struct share_flow *f = &h->flow[i];
		double bits = 8. * (double)passed_of(u, i);

		snprintf(f->class, sizeof(f->class), "%s", class_of(u, i));
		if (u->snaps == 0)
			f->bps = bits;
		else if (u->snaps == 1)
			f->half_bps = bits;
		else {
			f->bps = (bits - f->bps) / span;
			f->half_bps = (bits - f->half_bps) / (span / 2);
		}
	}
	if (u->snaps == 0)
		line_measure(u->line, now);
	if (u->snaps == 2) {
		h->queue_mean = line_queue_mean(u->line, now);
		h->queue_max = u->line->most * u->line->ns_byte;
		h->drops = (double)u->line->drops;
		h->marks = (double)u->line->marks;
	}
	u->snaps++;
}

static void rates_head(struct run *u)
{
	fprintf(u->rates, "ms,queue_ms");
	for (unsigned i = 0; i < everybody(u); i++)
		fprintf(u->rates, ",%s%u", class_of(u, i), i);
	fprintf(u->rates, "\n");
}

static void rates_line(struct run *u, rwy_time now)
{
	double span = (double)(now - u->rates_last_at);

	fprintf(u->rates, "%.3f,%.4f", (double)(now - u->began) / 1e6,
	    line_queue(u->line, now) * u->line->ns_byte / 1e6);
	for (unsigned i = 0; i < everybody(u); i++) {
		fprintf(u->rates, ",%.5f", 8 * (double)(passed_of(u, i) - u->rates_passed[i]) / span);
		u->rates_passed[i] = passed_of(u, i);
	}
	fprintf(u->rates, "\n");
}

void run_count(struct run *u, rwy_time now)
{
	const struct world *w = &u->world[0];
	rwy_time at[3] = {w->measure_at, w->measure_at + (w->stop_at - w->measure_at) / 2, w->stop_at};

	while (u->shared && u->snaps < 3 && now >= at[u->snaps])
		snapshot(u, now);
	u->count_at = u->shared && u->snaps < 3 ? at[u->snaps] : RWY_NEVER;
	if (!u->rates)
		return;
	if (!u->rates_last_at) {
		rates_head(u);
		u->rates_last_at = now;
	} else if (now >= u->rates_last_at + u->rates_every) {
		rates_line(u, now);
		u->rates_last_at = now;
	}
	u->count_at = rwy_time_min(u->count_at, u->rates_last_at + u->rates_every);
}
