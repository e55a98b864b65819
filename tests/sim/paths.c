/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tunnel of one to four unlike paths (F_PATHS). One path at a time is dead, loses much, or is
 * longer; then it is well again and another one is not. One path is always well, so no host may
 * notice. A tunnel of one path stays well. NICs wait for less than 100 ms, and hosts of F_SQUEEZE for
 * half a second: for them paths are not much longer. Where a READ that is lost once more costs a
 * connection, none is lossy.
 *
 * At some changes a path rests for another one, as if both shared a bottleneck: it must carry at once
 * when that one falls silent. Never do all that answer rest.
 *
 * At others one site uses a path for something else, or for nothing, or it leads elsewhere, while the
 * other site does not know. Path 0 is well until all paths are used at both again, and a bad path is a
 * dead one until all are used alike.
 */
#include "engine/eng.h"
#include "tests/sim/explore.h"
#include "wan/tunnel.h"

#define EACH_MAX   600 /* ms between changes */
#define LOSSY      .3
#define LONGER_MAX 50                  /* ms, each way */
#define OTHER_MAX  40                  /* the same, of one path than of another */
#define HASTY      (F_NIC | F_SQUEEZE) /* hosts that give up soon */
#define HASTY_MAX  4                   /* ms: both, with them */
#define REST_MAX   2000                /* ms */
#define UNTIL      (20 * RWY_SEC)      /* from then on all are well */

static uint32_t below(struct run *r, uint32_t n)
{
	return sim_below(&r->path_rng, n);
}

/* Path 0 as it was drawn. */
static const struct link_cfg *cfg_of(const struct run *r, unsigned path)
{
	return path ? r->cfg.path[path] : r->cfg.wan;
}

/* What only paths' use is drawn from: the rest of a run stays the same without it. */
static uint32_t use_below(struct run *r, uint32_t n)
{
	return sim_below(&r->use_rng, n);
}

void sim_paths_draw(struct run *r)
{
	r->use_rng.s = r->cfg.seed ^ 0x757365;
	r->path_rng.s = r->cfg.seed ^ 0x7061746873;
	r->cfg.paths = 1 + below(r, SIM_PATHS);
	for (unsigned k = 1; k < r->cfg.paths; k++)
		for (unsigned i = 0; i < 2; i++) {
			struct link_cfg *l = &r->cfg.path[k][i];

			*l = r->cfg.wan[i];
			l->delay += RWY_MS * below(r, r->faults & HASTY ? HASTY_MAX : OTHER_MAX);
			if (l->rate_Bps)
				l->rate_Bps =
				    (l->rate_Bps >> below(r, 2)) + RWY_SEC / RWY_MS * below(r, 10000);
		}
	r->path_bad = r->cfg.paths;
	if (r->cfg.paths > 1)
		r->path_at = RWY_SEC + RWY_MS * below(r, EACH_MAX);
}

static void make_well(struct run *r)
{
	sim_path_set(r->w, r->path_bad, cfg_of(r, r->path_bad));
	sim_path_down(r->w, r->path_bad, r->outage);
	r->path_bad = r->cfg.paths;
}

void sim_paths_heal(struct run *r)
{
	if (r->path_bad < r->cfg.paths)
		make_well(r);
}

/* A site's tunnel; NULL: its gateway is down. */
static struct wan_tunnel *tunnel_of(const struct run *r, unsigned site)
{
	struct eng *e = sim_engine(r->w, site);

	return e ? e->tunnel[0].wan : NULL;
}

/* At both sites all paths answer, and none is spare or granted. */
static bool all_alike(const struct run *r)
{
	bool alike = true;

	for (unsigned site = 0; site < 2; site++) {
		const struct wan_tunnel *t = tunnel_of(r, site);

		for (unsigned i = 0; t && i < t->paths; i++)
			alike = alike && t->path[i].use == WAN_USE_ALWAYS;
	}
	return alike;
}

/* At both sites all paths are used, and answer. */
static bool all_used(const struct run *r)
{
	bool used = true;

	for (unsigned site = 0; site < 2; site++) {
		const struct wan_tunnel *t = tunnel_of(r, site);

		for (unsigned i = 0; t && i < t->paths; i++)
			used = used && wan_path_usable(&t->path[i]);
	}
	return used;
}

static void make_bad(struct run *r)
{
	unsigned k = below(r, r->cfg.paths);
	struct link_cfg c[2] = {cfg_of(r, k)[0], cfg_of(r, k)[1]};
	uint32_t how = below(r, 3), longer = below(r, r->faults & HASTY ? HASTY_MAX : LONGER_MAX);

	if (how == 1 && r->nic_reads)
		how = 0;
	if (!all_alike(r))
		how = 0; /* data goes where it is told to, also when another path is better */
	if (!k && !all_used(r))
		return;
	r->path_bad = k;
	if (how == 0) {
		sim_path_down(r->w, k, true);
		return;
	}
	for (unsigned i = 0; i < 2; i++)
		if (how == 1)
			c[i].loss = LOSSY;
		else
			c[i].delay += RWY_MS * longer;
	sim_path_set(r->w, k, c);
}

/* At one site a path rests, if it and another one carry. */
static void make_rest(struct run *r, rwy_time now)
{
	unsigned site = below(r, 2), k = below(r, r->cfg.paths), carrier = below(r, r->cfg.paths);
	rwy_dur span = RWY_MS * below(r, REST_MAX);
	struct wan_tunnel *t = tunnel_of(r, site);

	if (!t || t->cfg.cc == &cc_fixed || k == carrier || wan_couple_rests(&t->couple, k) ||
	    wan_couple_rests(&t->couple, carrier) || !wan_path_usable(&t->path[carrier]))
		return;
	t->couple.path[k].state = WAN_COUPLE_RESTS;
	t->couple.path[k].carrier = (uint8_t)carrier;
	t->couple.path[k].until = now + span;
	t->path[k].rests = WAN_COUPLE_RESTS;
	wan_rest_spare(t, now);
	wan_stir(t);
}

/* One site uses a path in another way. */
static void make_use(struct run *r, rwy_time now)
{
	static const enum wan_path_use use[] = {
	    WAN_USE_ALWAYS, WAN_USE_ALWAYS, WAN_USE_GRANTED, WAN_USE_SPARE, WAN_USE_NEVER};
	unsigned site = use_below(r, 2), k = use_below(r, r->cfg.paths);
	enum wan_path_use u = use[use_below(r, k ? 5 : 4)];
	bool anew = k && !use_below(r, 4);
	struct wan_tunnel *t = tunnel_of(r, site);

	if (r->faults & F_NIC && u != WAN_USE_NEVER) /* a longer path costs them their retries */
		u = WAN_USE_ALWAYS;
	if (t && wan_retune_use(t, k, u, t->cfg.mtu[k], anew, now) == RWY_EINVAL)
		sim_fail(r, "another use of a path was refused", NULL, site);
}

/* From now on data goes where it arrives first. */
static void use_all(struct run *r, rwy_time now)
{
	for (unsigned site = 0; site < 2; site++) {
		struct wan_tunnel *t = tunnel_of(r, site);

		for (unsigned k = 0; t && k < t->paths; k++)
			if (wan_retune_use(t, k, WAN_USE_ALWAYS, t->cfg.mtu[k], false, now))
				sim_fail(r, "use of a path was refused", NULL, site);
	}
}

static void check_rests(struct run *r)
{
	for (unsigned site = 0; site < 2; site++) {
		struct wan_tunnel *t = tunnel_of(r, site);
		unsigned answer = 0, carry = 0;

		for (unsigned i = 0; t && i < t->paths; i++) {
			answer += wan_path_usable(&t->path[i]);
			carry += wan_path_usable(&t->path[i]) && !t->path[i].rests && !t->path[i].spared;
		}
		if (answer && !carry)
			sim_fail(r, "every path that answers rests, or is spared", NULL, site);
	}
}

void sim_paths_tick(struct run *r, rwy_time now)
{
	if (now < r->path_at)
		return;
	check_rests(r);
	r->path_at = now + RWY_MS * (1 + below(r, EACH_MAX));
	if (r->greeting) /* NICs wait for the WAN */
		return;
	if (r->cfg.paths > 1 && below(r, 2))
		make_rest(r, now);
	sim_paths_heal(r);
	/* Of READs and ATOMICs in masses one finds the retries that a repeat costs too few. */
	if (r->cfg.paths > 1 && !(r->faults & F_MASS) && !use_below(r, 3))
		make_use(r, now);
	if (now > r->round_at + UNTIL) {
		r->path_at = RWY_NEVER;
		use_all(r, now);
	} else if (below(r, 4))
		make_bad(r);
}
