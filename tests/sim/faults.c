/* SPDX-License-Identifier: Apache-2.0 */
/* What is done to the world while it runs: gateways die, stand still and come back, links fail. */
#include "tests/sim/world_int.h"

#include <string.h>

/* --- who serves ------------------------------------------------------------------------------- */

/* Of two that say that they serve, one stands still, or did so and does not know yet. */
static unsigned worth(const struct site *s)
{
	struct eng_standby_info i;

	if (!s->e || !eng_standby_info(s->e, &i) || !i.serves)
		return 0;
	return 1 + (s->w->now >= s->paused_until) + (strcmp(i.state, "losing") != 0);
}

bool sim_serves(const struct site *s)
{
	return s->w->gateways == 2 || worth(s);
}

/* The gateway that serves, or the one that is there. */
unsigned sim_serving(const struct world *w, unsigned site)
{
	unsigned first, second;

	if (w->gateways == 2)
		return site;
	first = worth(&w->site[site]);
	second = worth(&w->site[site + 2]);
	if (!first && !second)
		return w->site[site].e ? site : site + 2;
	return first >= second ? site : site + 2;
}

struct eng *sim_engine(struct world *w, unsigned site)
{
	return w->site[sim_serving(w, site)].e;
}

bool sim_served(const struct world *w, unsigned site)
{
	return w->gateways == 2 || worth(&w->site[site]) || worth(&w->site[site + 2]);
}

bool sim_paired(const struct world *w, unsigned site)
{
	struct eng_standby_info i, k;
	const struct site *s = &w->site[sim_serving(w, site)], *m = &w->site[site + (s->second ? 0 : 2)];

	return sim_runs(s) && sim_runs(m) && eng_standby_info(s->e, &i) && eng_standby_info(m->e, &k) &&
	       i.site && !strcmp(k.state, "ready");
}

bool sim_stale_twin(const struct world *w, unsigned site)
{
	return w->gateways > 2 && worth(&w->site[site]) && worth(&w->site[site + 2]);
}

uint64_t sim_buffers(const struct world *w, unsigned site)
{
	uint64_t n = 0;

	for (unsigned i = sim_serving(w, site); i < w->engines; i += w->gateways)
		n += w->site[i].bufs;
	return n;
}

uint64_t sim_worker_buffers(const struct world *w, unsigned site, unsigned worker)
{
	return w->site[sim_serving(w, site) + w->gateways * worker].bufs;
}

/* --- links ------------------------------------------------------------------------------------ */

void sim_cable_down(struct world *w, unsigned site, bool down)
{
	w->links.link[sim_link_id(SIM_CABLE, site)].down = down;
	w->links.link[sim_link_id(SIM_CABLE_BACK, site)].down = down;
}

void sim_wan_down(struct world *w, bool down)
{
	for (unsigned k = 0; k < SIM_PATHS; k++)
		sim_path_down(w, k, down);
}

void sim_path_down(struct world *w, unsigned path, bool down)
{
	for (unsigned i = 0; i < 2; i++)
		w->links.link[sim_path_link(path, i)].down = down;
}

void sim_path_set(struct world *w, unsigned path, const struct link_cfg cfg[2])
{
	for (unsigned i = 0; i < 2; i++)
		sim_link_set(&w->links, sim_path_link(path, i), &cfg[i]);
}

/* --- gateways --------------------------------------------------------------------------------- */

void sim_crash(struct world *w, unsigned site, rwy_dur after)
{
	const unsigned gateway = sim_serving(w, site);

	if (!w->site[gateway].e) /* both of a pair are away */
		return;
	sim_gateway_stop(w, gateway, after);
}

void sim_process_dies(struct world *w, unsigned site, rwy_dur after)
{
	sim_process_stop(w, sim_serving(w, site), after);
}

void sim_crash_standby(struct world *w, unsigned site, rwy_dur after)
{
	sim_gateway_stop(w, sim_serving(w, site) ^ 2, after);
}

int sim_hand_over(struct world *w, unsigned site)
{
	const unsigned from = sim_serving(w, site);
	struct site *s = &w->site[from];

	if (!s->e || w->now < s->paused_until || !eng_standby_hand_over(s->e, w->now))
		return -1;
	s->next = w->now;
	return (int)(from ^ 2);
}

void sim_crash_gateway(struct world *w, unsigned gateway, rwy_dur after)
{
	sim_gateway_stop(w, gateway, after);
}

void sim_settle(struct world *w, unsigned site, bool on)
{
	for (unsigned k = 0; k < sim_workers(w); k++) {
		struct site *s = sim_at(w, site, k);

		if (on)
			eng_settle_begin(s->e, w->now);
		else
			eng_settle_cancel(s->e, w->now);
		s->next = w->now;
	}
}

bool sim_settled(struct world *w, unsigned site)
{
	struct eng_settle_info i;
	bool all = true;

	for (unsigned k = 0; k < sim_workers(w); k++) {
		eng_settle_get(sim_at(w, site, k)->e, &i);
		all &= i.state == ENG_SETTLED;
	}
	return all;
}

void sim_pause(struct world *w, unsigned site, rwy_dur d)
{
	/* all workers of a process that was stopped, or one that was not scheduled */
	const unsigned workers = sim_workers(w), g = sim_serving(w, site);
	const unsigned one = workers > 1 ? sim_below(&w->rng, 2 * workers) : workers;

	for (unsigned k = 0; k < workers; k++)
		if (one >= workers || one == k)
			sim_at(w, g, k)->paused_until = w->now + d;
		else if (w->gateways == 2)
			sim_at(w, g, k)->paused_until = 0;
}
