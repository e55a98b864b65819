/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys of the tunnel (F_KEYS). The handshake of the control threads is not played, only what it
 * gives: secrets at both ends, a round trip and a half after both gateways run and the WAN carries,
 * and later the word that the other end has them, which one end may never get. With pairs each
 * gateway that speaks on the WAN has keys of its own, and standbys may get theirs beforehand.
 */
#include "engine/tunnel.h"
#include "tests/lib/aead_test.h"
#include "tests/sim/world_int.h"

#define RETRY (20 * RWY_MS)
#define LOOK  RWY_MS

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

/* Each worker has secrets of its own (gateway/keys/workers.c). */
static struct wan_secrets of_worker(struct wan_secrets s, unsigned worker)
{
	s.tx.b[0] ^= (uint8_t)worker;
	s.rx.b[0] ^= (uint8_t)worker;
	return s;
}

/* Of a pair only the gateway that serves, or asks the witness, speaks on the WAN. */
static bool speaks(const struct site *s)
{
	struct eng_standby_info i;

	return sim_runs(s) && eng_standby_info(s->e, &i) && (i.serves || i.asks);
}

static bool wan_down(const struct world *w)
{
	return w->links.link[sim_link_id(SIM_WAN, 0)].down;
}

/* False: not now. */
static bool handshake(struct world *w, struct sim_exchange *x)
{
	struct aead_secret way[2];

	if (!sim_runs(&w->site[x->of[0]]) || !sim_runs(&w->site[x->of[1]]) || wan_down(w))
		return false;
	secret(w, &way[0]);
	secret(w, &way[1]);
	for (unsigned i = 0; i < 2; i++) {
		const struct wan_secrets all = {.tx = way[i], .rx = way[!i]};

		for (unsigned k = 0; k < sim_workers(w); k++) {
			const struct wan_secrets s = of_worker(all, k);

			if (eng_tunnel_keys_offer(sim_at(w, x->of[i], k)->e, 0, &s, w->now) != 0)
				return false; /* the id is taken: another handshake */
		}
	}
	x->sets++;
	return true;
}

/* --- keys for standbys ------------------------------------------------------------------------ */
static const struct site *standby_of(const struct world *w, const struct sim_exchange *x, unsigned end)
{
	return &w->site[x->of[end] ^ 2];
}

/* What the keys of this end's standby are for: the processes, and the exchange before. */
static uint64_t needs(const struct world *w, const struct sim_exchange *x, unsigned end)
{
	return ((uint64_t)standby_of(w, x, end)->starts << 20 | w->site[x->of[!end]].starts) << 20 | x->sets;
}

static bool can_reserve(struct world *w, const struct sim_exchange *x, unsigned end)
{
	const struct site *s = standby_of(w, x, end);

	return x->there && x->sets && sim_runs(s) && !speaks(s) && !wan_down(w) &&
	       !w->links.link[sim_link_id(SIM_CABLE, s->idx)].down;
}

/* All workers of the peer, and of the standby. False: one of them cannot. */
static bool reserve_of(struct world *w, unsigned gateway, const struct wan_secrets *s)
{
	for (unsigned k = 0; k < sim_workers(w); k++) {
		const struct wan_secrets own = of_worker(*s, k);

		if (eng_tunnel_keys_reserve(sim_at(w, gateway, k)->e, 0, &own, w->now) != 0)
			return false;
	}
	return true;
}

static bool keep_at(struct world *w, unsigned gateway, const struct wan_secrets *s)
{
	for (unsigned k = 0; k < sim_workers(w); k++) {
		const struct wan_secrets own = of_worker(*s, k);

		if (eng_tunnel_keys_keep(sim_at(w, gateway, k)->e, 0, &own, w->now) != 0)
			return false;
	}
	return true;
}

/* The standby may not get what was exchanged for it; then there is another exchange. */
static void reserve(struct world *w, struct sim_exchange *x, unsigned end)
{
	struct site *s = &w->site[x->of[end] ^ 2], *other = &w->site[x->of[!end]];
	struct wan_secrets k, of_other;

	x->reserve_at[end] = RWY_NEVER;
	if (!can_reserve(w, x, end))
		return;
	secret(w, &k.tx);
	secret(w, &k.rx);
	of_other = (struct wan_secrets){.tx = k.rx, .rx = k.tx};
	if (!reserve_of(w, other->gateway, &of_other) || sim_chance(&w->key_rng, .1) ||
	    !keep_at(w, s->gateway, &k))
		return;
	if (sim_chance(&w->key_rng, .9)) /* its READY arrives */
		for (unsigned i = 0; i < sim_workers(w); i++)
			eng_tunnel_keys_kept(sim_at(w, other->gateway, i)->e, 0);
	x->reserved[end] = needs(w, x, end);
}

bool sim_standby_keyed(const struct world *w, unsigned site)
{
	for (unsigned k = 0; k < SIM_GATEWAYS; k++) {
		const struct sim_exchange *x = &w->keys[k];

		if (x->there && x->sets)
			return x->reserved[site] && x->reserved[site] == needs(w, x, site);
	}
	return false;
}

static void look_reserve(struct world *w, struct sim_exchange *x)
{
	for (unsigned i = 0; i < 2; i++)
		if (w->cfg.standby_keys && x->reserve_at[i] == RWY_NEVER && can_reserve(w, x, i) &&
		    x->reserved[i] != needs(w, x, i))
			x->reserve_at[i] = w->now + 4 * rtt(w);
}

/* --- time ------------------------------------------------------------------------------------- */

static void use(struct world *w, struct sim_exchange *x, unsigned end)
{
	x->use_at[end] = RWY_NEVER;
	for (unsigned k = 0; k < sim_workers(w); k++) {
		struct site *s = sim_at(w, x->of[end], k);

		if (!s->e)
			return;
		eng_tunnel_keys_use(s->e, 0, w->now);
		s->next = w->now;
	}
}

static unsigned exchanges(const struct world *w)
{
	return w->gateways > 2 ? SIM_GATEWAYS : 1;
}

void sim_keys_start(struct world *w)
{
	w->keys_look_at = RWY_NEVER;
	for (unsigned k = 0; k < SIM_GATEWAYS; k++) /* gateways 0 and 2 are site 0's */
		w->keys[k] = (struct sim_exchange){.of = {k & 2, 1 + 2 * (k & 1)},
		    .at = RWY_NEVER,
		    .use_at = {RWY_NEVER, RWY_NEVER},
		    .reserve_at = {RWY_NEVER, RWY_NEVER}};
	if (!w->cfg.keys)
		return;
	w->key_rng.s = w->cfg.seed ^ 0x6b657973;
	if (w->gateways > 2) {
		w->keys_look_at = w->now;
		return;
	}
	while (!handshake(w, &w->keys[0]))
		;
	for (unsigned i = 0; i < 2; i++)
		use(w, &w->keys[0], i);
	w->keys[0].at = w->now + w->cfg.renew;
}

void sim_keys_restarted(struct world *w)
{
	if (w->cfg.keys && w->gateways == 2)
		w->keys[0].at = w->now + rtt(w) * 3 / 2;
}

rwy_time sim_keys_next(const struct world *w)
{
	rwy_time at = w->keys_look_at;

	for (unsigned k = 0; k < exchanges(w); k++) {
		const struct sim_exchange *x = &w->keys[k];

		at = rwy_time_min(at, x->at);
		for (unsigned i = 0; i < 2; i++)
			at = rwy_time_min(at, rwy_time_min(x->use_at[i], x->reserve_at[i]));
	}
	return at;
}

/* Pairs: two gateways exchange keys as soon as both speak. A TLS handshake is four round trips. */
static void look(struct world *w)
{
	for (unsigned k = 0; k < SIM_GATEWAYS; k++) {
		struct sim_exchange *x = &w->keys[k];
		bool there = speaks(&w->site[x->of[0]]) && speaks(&w->site[x->of[1]]);

		if (there != x->there)
			x->at = there ? w->now + 4 * rtt(w) : RWY_NEVER;
		x->there = there;
		look_reserve(w, x);
	}
	w->keys_look_at = w->now + LOOK;
}

static void exchange_tick(struct world *w, struct sim_exchange *x)
{
	for (unsigned i = 0; i < 2; i++) {
		if (x->use_at[i] <= w->now)
			use(w, x, i);
		if (x->reserve_at[i] <= w->now)
			reserve(w, x, i);
	}
	if (x->at > w->now)
		return;
	if (!handshake(w, x)) {
		x->at = w->now + RETRY;
		return;
	}
	for (unsigned i = 0; i < 2; i++)
		x->use_at[i] = w->now + w->cfg.wan[!i].delay + RWY_US * sim_below(&w->key_rng, 20000);
	if (sim_chance(&w->key_rng, .3)) /* the other end's datagrams say it */
		x->use_at[sim_below(&w->key_rng, 2)] = RWY_NEVER;
	x->at = w->now + w->cfg.renew;
}

void sim_keys_tick(struct world *w)
{
	if (w->keys_look_at <= w->now)
		look(w);
	for (unsigned k = 0; k < exchanges(w); k++)
		exchange_tick(w, &w->keys[k]);
}
