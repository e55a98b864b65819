/* SPDX-License-Identifier: Apache-2.0 */
/* The reliable carrier between the sites: world.h says how it behaves. */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/world_int.h"

#define RUN   8    /* consecutive datagrams on one connection */
#define PAUSE .002 /* probability that a connection stalls for two round trips */

void sim_carrier_send(struct site *s, struct sim_buf *m)
{
	struct world *w = s->w;
	const struct link_cfg *l = &w->links.link[sim_link_id(SIM_WAN, s->idx)].cfg;
	rwy_time *at = &s->stream_free[s->stream_at];

	if (s->stream_n >= SIM_CARRIER_ROOM)
		abort(); /* more than there was room for */
	*at =
	    rwy_time_max(*at, w->now) + (uint64_t)(m->b.len + 46) * SIM_CARRIER_CONNS * RWY_SEC / l->rate_Bps;
	if (sim_chance(&w->rng, PAUSE))
		*at += 4 * l->delay;
	m->b.w1 = w->set;
	s->stream_n++;
	sim_links_at(&w->links, *at + l->delay, SIM_STREAM + s->idx, m);
	if (s->stream_run-- > 1)
		return;
	s->stream_run = RUN;
	s->stream_at = sim_below(&w->rng, SIM_CARRIER_CONNS);
}

/* A worker of the gateway that has the carrier's end at this site. */
static struct site *end_of(struct world *w, unsigned site, unsigned worker)
{
	return sim_at(w, w->carrier[site]->gateway, worker);
}

/* A datagram with another number of the carrier was lost when that one broke. */
void sim_carrier_deliver(struct world *w, unsigned from, const struct due *d)
{
	struct sim_buf *m = d->what;
	struct site *s = end_of(w, from, m->b.w2), *to = end_of(w, !from, m->b.w2);

	if (m->b.w1 != w->set) {
		sim_buf_free(m);
		return;
	}
	if (w->now < to->paused_until) {
		sim_to_gateway(w, to, d);
		return;
	}
	s->stream_n--;
	w->streamed++;
	s->next = rwy_time_min(s->next, w->now); /* there is room */
	s->turns = 0;
	sim_to_gateway(w, to, d);
}

void sim_carrier_served(struct site *s)
{
	struct world *w = s->w;

	if (s->worker || w->carrier[s->idx] == s)
		return;
	sim_stream_break(w);
	w->carrier[s->idx] = s;
}

void sim_carrier_stopped(struct world *w, unsigned gateway)
{
	if (w->carrier[gateway % 2]->gateway == gateway)
		sim_stream_break(w);
}

static void broken(struct site *s)
{
	s->stream = false;
	s->detour = 0;
	if (!s->e)
		return;
	eng_stream_lost(s->e, 0, s->w->now);
	s->next = s->w->now;
}

void sim_carrier_broken(struct world *w, unsigned gateway)
{
	for (unsigned k = 0; k < sim_workers(w); k++)
		broken(sim_at(w, gateway, k));
}

static void move(struct site *s, bool on)
{
	if (!s->e || s->stream == on)
		return;
	if (eng_stream_use(s->e, 0, on, s->w->now) != 0)
		abort();
	s->w->set += !s->w->set;
	s->stream = on;
	s->stream_run = RUN;
	s->next = s->w->now;
}

void sim_stream(struct world *w, unsigned site, bool on)
{
	for (unsigned k = 0; k < sim_workers(w) && sim_serves(w->carrier[0]) && sim_serves(w->carrier[1]);
	     k++)
		move(end_of(w, site, k), on);
}

static void take_detour(struct site *s, unsigned after)
{
	if (!s->e)
		return;
	if (eng_stream_detour(s->e, 0, after, s->w->now) != 0)
		abort();
	s->w->set += !s->w->set;
	s->detour = after;
	s->stream_run += !s->stream_run;
	s->next = s->w->now;
}

void sim_stream_detour(struct world *w, unsigned site, unsigned after)
{
	for (unsigned k = 0; k < sim_workers(w); k++)
		take_detour(end_of(w, site, k), after);
}

void sim_stream_stall(struct world *w, rwy_dur d)
{
	for (unsigned i = 0; i < 2 * sim_workers(w); i++) {
		struct site *s = end_of(w, i % 2, i / 2);

		for (unsigned k = 0; k < SIM_CARRIER_CONNS; k++)
			s->stream_free[k] = rwy_time_max(s->stream_free[k], w->now + d);
	}
}

bool sim_stream_on(const struct world *w, unsigned site)
{
	return w->carrier[site]->stream;
}

/* The packets on the way are lost; `late`: the gateway does not know yet. */
static void reset(struct site *s, bool late)
{
	s->stream = false;
	s->detour = 0;
	s->stream_n = 0;
	memset(s->stream_free, 0, sizeof(s->stream_free));
	if (s->e && late) /* it finds no room */
		eng_stream_room(s->e, 0, 0, 0);
}

void sim_stream_break(struct world *w)
{
	if (!w->set)
		return;
	w->set++;
	for (unsigned i = 0; i < 2; i++) {
		const unsigned gateway = w->carrier[i]->gateway;
		const bool late = sim_chance(&w->rng, .5) && w->carrier[i]->e;

		for (unsigned k = 0; k < sim_workers(w); k++)
			reset(end_of(w, i, k), late);
		if (late)
			sim_links_at(&w->links, w->now + RWY_MS * (1 + sim_below(&w->rng, 500)),
			    SIM_BROKEN + gateway, NULL);
		else
			sim_carrier_broken(w, gateway);
	}
}

uint64_t sim_streamed(const struct world *w)
{
	return w->streamed;
}
