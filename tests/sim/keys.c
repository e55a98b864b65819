/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys of the tunnel (F_KEYS). The handshake of the control threads is not played, only what it
 * gives: secrets at both ends, a round trip and a half after both gateways run and the WAN carries,
 * and later the word that the other end has them, which one end may never get.
 */
#include "tests/lib/aead_test.h"
#include "tests/sim/world_int.h"

#define RETRY (20 * RWY_MS)

static rwy_dur rtt(const struct world *w)
{
	return w->cfg.wan[0].delay + w->cfg.wan[1].delay;
}

void sim_keys_cfg(const struct world *w, struct wan_cfg *c)
{
	if (!w->cfg.keys)
		return;
	c->aead = w->cfg.aead ? w->cfg.aead : &aead_test;
	c->rekey = w->cfg.rekey;
}

static void secret(struct world *w, struct aead_secret *s)
{
	for (unsigned i = 0; i < AEAD_SECRET; i += 8) {
		uint64_t v = sim_next(&w->key_rng);

		memcpy(s->b + i, &v, 8);
	}
}

static bool runs(const struct world *w, unsigned site)
{
	return w->site[site].e && w->now >= w->site[site].paused_until;
}

/* False: not now. */
static bool handshake(struct world *w)
{
	struct aead_secret way[2];

	if (!runs(w, 0) || !runs(w, 1) || w->links.link[sim_link_id(SIM_WAN, 0)].down)
		return false;
	secret(w, &way[0]);
	secret(w, &way[1]);
	for (unsigned i = 0; i < 2; i++) {
		struct wan_secrets s = {.tx = way[i], .rx = way[!i]};

		if (eng_tunnel_keys_offer(w->site[i].e, 0, &s, w->now) != 0)
			return false; /* the id is taken: another handshake */
	}
	return true;
}

static void use(struct world *w, unsigned site)
{
	w->use_at[site] = RWY_NEVER;
	if (!w->site[site].e)
		return;
	eng_tunnel_keys_use(w->site[site].e, 0, w->now);
	w->site[site].next = w->now;
}

void sim_keys_start(struct world *w)
{
	w->keys_at = w->use_at[0] = w->use_at[1] = RWY_NEVER;
	if (!w->cfg.keys)
		return;
	w->key_rng.s = w->cfg.seed ^ 0x6b657973;
	while (!handshake(w))
		;
	for (unsigned i = 0; i < 2; i++)
		use(w, i);
	w->keys_at = w->now + w->cfg.renew;
}

void sim_keys_restarted(struct world *w)
{
	if (w->cfg.keys)
		w->keys_at = w->now + rtt(w) * 3 / 2;
}

rwy_time sim_keys_next(const struct world *w)
{
	return rwy_time_min(w->keys_at, rwy_time_min(w->use_at[0], w->use_at[1]));
}

void sim_keys_tick(struct world *w)
{
	for (unsigned i = 0; i < 2; i++)
		if (w->use_at[i] <= w->now)
			use(w, i);
	if (w->keys_at > w->now)
		return;
	if (!handshake(w)) {
		w->keys_at = w->now + RETRY;
		return;
	}
	for (unsigned i = 0; i < 2; i++)
		w->use_at[i] = w->now + w->cfg.wan[!i].delay + RWY_US * sim_below(&w->key_rng, 20000);
	if (sim_chance(&w->key_rng, .3)) /* the other end's datagrams say it */
		w->use_at[sim_below(&w->key_rng, 2)] = RWY_NEVER;
	w->keys_at = w->now + w->cfg.renew;
}
