/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/world_int.h"

#include "tests/sim/states.h"

#include <stdlib.h>
#include <string.h>

struct rwy_ip sim_host_ip(unsigned site, unsigned host)
{
	uint8_t v4[4] = {10, (uint8_t)(site + 1), 0, (uint8_t)(host + 2)};

	return rwy_ip_from4(v4);
}

void sim_cfg_default(struct sim_cfg *c)
{
	memset(c, 0, sizeof(*c));
	c->wan[0] = c->wan[1] = (struct link_cfg){
	    .delay = 10 * RWY_MS, .rate_Bps = 125000000, .queue = 50 * RWY_MS, .keep_order = true};
	c->lan = (struct link_cfg){
	    .delay = 20 * RWY_US, .jitter = 10 * RWY_US, .keep_order = true, .rate_Bps = 1250000000};
	c->wan_mtu = 1472;
	c->custody_conn = 32u << 20;
	c->custody_total = 256u << 20;
	c->memory_conn = 40u << 20;
	c->memory_total = 320u << 20;
	c->read_cache_conn = 4u << 20;
	c->read_cache_total = 64u << 20;
	c->cc = "auto";
	c->rate_Bps = 1250000000;
}

struct world *sim_new(const struct sim_cfg *cfg, const struct sim_ops *ops, void *ctx)
{
	struct world *w = calloc(1, sizeof(*w));

	if (!w)
		abort();
	w->cfg = *cfg;
	w->ops = ops;
	w->ctx = ctx;
	w->rng.s = cfg->seed;
	w->turn_rng.s = cfg->seed ^ 0x7475726e;
	w->now = RWY_SEC; /* not 0, which means "not set" in places */
	sim_links_init(&w->links, &w->rng);
	if (cfg->hash)
		w->links.hash = &w->hash;
	w->gateways = cfg->pairs ? SIM_GATEWAYS : 2;
	w->engines = w->gateways * (cfg->workers > 1 ? cfg->workers : 1);
	for (unsigned i = 0; i < w->engines; i++) {
		struct site *s = &w->site[i];

		s->w = w;
		s->idx = i % 2;
		s->gateway = i % w->gateways;
		s->second = s->gateway > 1;
		s->worker = i / w->gateways;
	}
	sim_workers_init(w);
	for (unsigned i = 0; i < 2; i++) {
		w->carrier[i] = &w->site[i];
		sim_link_set(&w->links, sim_link_id(SIM_WAN, i), &cfg->wan[i]);
		for (unsigned k = 1; k < cfg->paths; k++)
			sim_link_set(&w->links, sim_path_link(k, i), &cfg->path[k][i]);
		sim_link_set(&w->links, sim_link_id(SIM_LAN_UP, i), &cfg->lan);
		sim_link_set(&w->links, sim_link_id(SIM_LAN_DOWN, i), &cfg->lan);
		sim_link_set(&w->links, sim_link_id(SIM_CABLE, i), &cfg->lan);
		sim_link_set(&w->links, sim_link_id(SIM_CABLE_BACK, i), &cfg->lan);
	}
	for (unsigned i = 0; i < w->engines; i++) {
		sim_tenants_init(&w->site[i]);
		sim_gateway_start(&w->site[i]);
	}
	sim_keys_start(w);
	return w;
}

uint64_t sim_end(struct world *w)
{
	uint64_t left = 0;

	for (unsigned i = 0; i < w->engines; i++) {
		if (w->site[i].e)
			sim_states_add(eng_states_seen(w->site[i].e));
		eng_free(w->site[i].e);
		left += w->site[i].bufs;
		w->site[i].e = NULL;
		sim_burst_drop(&w->site[i]);
	}
	sim_workers_fini(w);
	for (unsigned i = 0; i < 2; i++)
		eng_steering_free(w->steering[i]);
	sim_links_fini(&w->links);
	free(w);
	return left;
}

void sim_host_tx(struct world *w, unsigned site, unsigned tenant, const uint8_t *ip, uint32_t len)
{
	struct sim_buf *m = sim_buf_new(SIM_ROOM, len);

	memcpy(m->b.data, ip, len);
	m->b.w0 = tenant;
	sim_link_send(&w->links, sim_link_id(SIM_LAN_UP, site), m, w->now);
}

/* --- running -------------------------------------------------------------------------------------- */

const char *sim_accounts(const struct world *w)
{
	return w->accounts;
}

static void to_host(struct world *w, unsigned site, const struct due *d)
{
	struct sim_buf *m = d->what;
	rwy_time at = w->ops->host_ready(w->ctx, site, m->b.data, m->b.len);

	if (at > w->now) {
		sim_links_at(&w->links, at, d->where, m);
		return;
	}
	w->ops->host_rx(w->ctx, site, m->b.w0, m->b.data, m->b.len, w->now);
	sim_buf_free(m);
}

/* A packet for the worker of a gateway to which its NIC gives it. */
static void to_worker(struct world *w, unsigned gateway, const struct due *d)
{
	const struct sim_buf *m = d->what;

	if (d->where / 2 == SIM_LAN_UP)
		sim_to_gateway(w, sim_worker_of(w, gateway, m), d);
	else
		sim_to_gateway(w, sim_at(w, gateway, m->b.w2), d);
}

/* A packet for the site: of a pair both have it, for they have one address. */
static void to_site(struct world *w, unsigned site, const struct due *d)
{
	struct sim_buf *m = d->what;
	struct due twin = *d;
	uint32_t only = m->b.w1; /* it waited in the ring of this one */

	if (only) {
		m->b.w1 = 0;
		sim_to_gateway(w, &w->site[only - 1], d);
		return;
	}
	if (w->gateways > 2 && sim_at(w, site + 2, 0)->e) {
		struct sim_buf *c = sim_buf_new(SIM_ROOM, m->b.len);

		memcpy(c->b.data, m->b.data, m->b.len);
		c->b.w0 = m->b.w0;
		c->b.w2 = m->b.w2;
		twin.what = c;
		to_worker(w, site + 2, &twin);
	}
	to_worker(w, site, d);
}

static void deliver(struct world *w, const struct due *d)
{
	unsigned site = d->where % 2;

	if (sim_kind_is_wan(d->where / 2)) {
		to_site(w, !site, d);
		return;
	}
	if (d->where >= SIM_START && d->where < SIM_START + SIM_ENGINES) {
		sim_gateway_start(&w->site[d->where - SIM_START]);
		sim_keys_restarted(w);
		return;
	}
	switch (d->where / 2) {
	case SIM_LAN_DOWN:
		to_host(w, site, d);
		return;
	case SIM_LAN_UP:
		to_site(w, site, d);
		return;
	case SIM_CABLE:
		to_worker(w, site + 2, d);
		return;
	case SIM_CABLE_BACK:
		to_worker(w, site, d);
		return;
	case SIM_STREAM / 2:
		sim_carrier_deliver(w, site, d);
		return;
	case SIM_BROKEN / 2:
	case SIM_BROKEN / 2 + 1:
		sim_carrier_broken(w, d->where - SIM_BROKEN);
		return;
	}
}

void sim_run(struct world *w, rwy_time until, bool (*stop)(void *ctx), void *ctx)
{
	while (w->now < until) {
		rwy_time at = sim_links_next(&w->links), t;
		struct due d;

		for (unsigned i = 0; i < w->engines; i++)
			if (w->site[i].e) {
				t = rwy_time_max(w->site[i].next, sim_free_at(&w->site[i]));
				/* A gateway looks at its clock every few us at best. */
				at = rwy_time_min(at, rwy_time_max(t, w->now + RWY_US));
			}
		at = rwy_time_min(at, rwy_time_max(sim_keys_next(w), w->now));
		t = w->ops->next(w->ctx);
		at = rwy_time_min(at, rwy_time_max(t, w->now));
		if (at >= until) {
			w->now = until;
			return;
		}
		w->now = rwy_time_max(w->now, at);
		while (sim_links_pop(&w->links, &d, w->now))
			deliver(w, &d);
		if (sim_keys_next(w) <= w->now)
			sim_keys_tick(w);
		for (unsigned i = 0; i < w->engines; i++)
			if (w->site[i].e && sim_free_at(&w->site[i]) <= w->now && w->site[i].next <= w->now)
				sim_gateway_turn(&w->site[i], w->now);
		if (w->ops->next(w->ctx) <= w->now)
			w->ops->tick(w->ctx, w->now);
		if (stop && stop(ctx))
			return;
	}
}

rwy_time sim_now(const struct world *w)
{
	return w->now;
}

bool sim_two_served(const struct world *w)
{
	return w->two_served;
}

uint64_t sim_no_buffer(const struct world *w)
{
	return w->no_buffer;
}

uint64_t sim_hash(const struct world *w)
{
	return w->hash;
}
