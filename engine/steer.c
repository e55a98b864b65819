/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steering: a connection takes the tunnel that is assigned to its QP or its addresses, else one of
 * those with the longest prefix. Decided once, when a side is made. Prefixes are route.c, tunnels
 * tunnel.c.
 */
#include <stdlib.h>

#include "engine/steer.h"
#include "engine/table.h"
#include "engine/pair.h"
#include "engine/tunnel.h"
#include "rwy/spread.h"

/* Open addressing; a slot without a tunnel ends a search. */
struct eng_steering {
	uint32_t mask, n, shares;
	struct eng_share *share;
	struct eng_steer_cfg slot[]; /* its tunnel is one more than that assigned; 0: empty */
};

static uint32_t assignment_hash(
    uint32_t vni, const struct rwy_ip *src, const struct rwy_ip *dst, uint32_t dqpn)
{
	const struct eng_key k = {*src, *dst, dqpn, vni};

	return eng_key_hash(0, &k, false); /* no host chooses these keys */
}

static bool assignment_matches(const struct eng_steer_cfg *w, uint32_t vni, const struct rwy_ip *src,
    const struct rwy_ip *dst, uint32_t dqpn)
{
	return w->vni == vni && w->dqpn == dqpn && rwy_ip_eq(&w->src, src) && rwy_ip_eq(&w->dst, dst);
}

static int by_number(const void *a, const void *b)
{
	const struct eng_share *x = a, *y = b;

	return (x->reservation > y->reservation) - (x->reservation < y->reservation);
}

/* One entry for each reservation. */
static bool shares_put(struct eng_steering *w, const struct eng_steer_cfg *v, unsigned n)
{
	struct eng_share *s = malloc((n + 1) * sizeof(*s));
	uint32_t count = 0, kept = 0;

	if (!s)
		return false;
	for (unsigned i = 0; i < n; i++)
		if (v[i].reservation)
			s[count++] = (struct eng_share){v[i].reservation, v[i].share};
	qsort(s, count, sizeof(*s), by_number);
	for (uint32_t i = 0; i < count; i++)
		if (!kept || s[kept - 1].reservation != s[i].reservation)
			s[kept++] = s[i];
	w->share = s;
	w->shares = kept;
	return true;
}

int eng_steering_new(struct eng_steering **out, const struct eng_steer_cfg *v, unsigned n)
{
	uint32_t size = 16;
	struct eng_steering *w;

	for (unsigned i = 0; i < n; i++)
		if (v[i].reservation && !wan_class_ok(&v[i].share))
			return RWY_EINVAL;
	while (size < 2 * n)
		size *= 2;
	w = calloc(1, sizeof(*w) + size * sizeof(w->slot[0]));
	if (!w || !shares_put(w, v, n)) {
		free(w);
		return RWY_ENOMEM;
	}
	w->mask = size - 1;
	for (unsigned i = 0; i < n; i++) {
		uint32_t at = assignment_hash(v[i].vni, &v[i].src, &v[i].dst, v[i].dqpn) & w->mask;

		while (w->slot[at].tunnel &&
		       !assignment_matches(&w->slot[at], v[i].vni, &v[i].src, &v[i].dst, v[i].dqpn))
			at = (at + 1) & w->mask;
		w->n += !w->slot[at].tunnel;
		if (w->slot[at].tunnel && v[i].tunnel == ENG_STEER_ANY)
			continue;
		w->slot[at] = v[i]; /* the last entry of a flow counts */
		w->slot[at].tunnel = (uint8_t)(v[i].tunnel + 1);
	}
	*out = w;
	return 0;
}

void eng_steering_free(struct eng_steering *w)
{
	if (w)
		free(w->share);
	free(w);
}

const struct eng_share *eng_steering_shares(const struct eng_steering *w, uint32_t *n)
{
	*n = w->shares;
	return w->share;
}

static const struct eng_steer_cfg *slot_find(const struct eng_steering *w, uint32_t vni,
    const struct rwy_ip *src, const struct rwy_ip *dst, uint32_t dqpn)
{
	uint32_t at = assignment_hash(vni, src, dst, dqpn) & w->mask;

	for (; w->slot[at].tunnel; at = (at + 1) & w->mask)
		if (assignment_matches(&w->slot[at], vni, src, dst, dqpn))
			return &w->slot[at];
	return NULL;
}

static int assignment_find(const struct eng_steering *w, uint32_t vni, const struct rwy_ip *src,
    const struct rwy_ip *dst, uint32_t dqpn)
{
	const struct eng_steer_cfg *c = slot_find(w, vni, src, dst, dqpn);

	return c ? c->tunnel - 1 : -1;
}

const struct eng_steer_cfg *eng_steer_find(
    const struct eng *e, uint32_t vni, const struct rwy_ip *src, const struct rwy_ip *dst, uint32_t dqpn)
{
	const struct eng_steer_cfg *c;

	if (!e->steering || !e->steering->n)
		return NULL;
	c = dqpn ? slot_find(e->steering, vni, src, dst, dqpn) : NULL;
	return c ? c : slot_find(e->steering, vni, src, dst, 0);
}

/*
 * One tunnel of the set, by weighted rendezvous hashing: each has as many draws as weight, scaled
 * to at most DRAWS, and the highest of all draws wins. Both directions of an address pair choose
 * the same tunnel; a changed weight moves only the pairs that it must. -1: the set is empty.
 */
#define DRAWS 32

static int choose_by_weight(
    const struct eng *e, uint64_t set, const struct rwy_ip *local, const struct rwy_ip *remote)
{
	const uint32_t pair = eng_owner_hash(local, remote);
	uint32_t heaviest = 1;
	uint64_t most = 0;
	int best = -1;

	if (!(set & (set - 1))) /* one, or none */
		return set ? __builtin_ctzll(set) : -1;
	for (uint64_t left = set; left; left &= left - 1) {
		const uint16_t w = e->cfg.tunnel[__builtin_ctzll(left)].weight;

		heaviest = w > heaviest ? w : heaviest;
	}
	for (uint64_t left = set; left; left &= left - 1) {
		const int i = __builtin_ctzll(left);
		const uint32_t w = e->cfg.tunnel[i].weight;
		const uint32_t draws = heaviest <= DRAWS ? w : (w * DRAWS + heaviest - 1) / heaviest;

		for (uint32_t d = 0; d < draws; d++) {
			uint64_t h = e->cfg.tunnel[i].wan.tunnel_id * 0x9fb21c651e98df25u;

			h ^= (d + 1) * 0xd6e8feb86659fd93u + pair;

			h *= 0x9e3779b97f4a7c15u;
			h ^= h >> 32;
			h *= 0xc2b2ae3d27d4eb4fu;
			h ^= h >> 29;
			if (best < 0 || h > most) {
				most = h;
				best = i;
			}
		}
	}
	return best >= 0 ? best : set ? __builtin_ctzll(set) : -1; /* best < 0: all weights are 0 */
}

/* The best pair of gateways so far in rendezvous hashing for a key. */
struct winner {
	uint64_t draw, cost, weight;
	int who; /* a number of the caller's; -1: no pair yet */
};

/* Considers the pair of gateways a and b. Ordered ids give both sites the same draw. */
static void consider_pair(struct winner *best, uint64_t key, uint64_t a, uint64_t b, uint64_t weight, int who)
{
	struct winner r = {
	    .draw = rwy_spread_draw(key, a < b ? a : b, a < b ? b : a), .weight = weight, .who = who};

	/* A pair with less weight and a lower draw loses; that needs no logarithm. */
	if (!weight || (best->who >= 0 && weight <= best->weight && r.draw < best->draw))
		return;
	r.cost = rwy_spread_cost(r.draw);
	if (best->who < 0 ||
	    (unsigned __int128)r.cost * best->weight < (unsigned __int128)best->cost * weight)
		*best = r;
}

static bool peers_known(const struct eng *e, uint64_t set)
{
	for (; set && e->cfg.gateway; set &= set - 1)
		if (!e->cfg.tunnel[__builtin_ctzll(set)].peer)
			return false;
	return e->cfg.gateway;
}

/* The tunnels of the set to this peer; *weight is the sum of their weights. */
static uint64_t tunnels_to_peer(const struct eng *e, uint64_t set, uint64_t peer, uint64_t *weight)
{
	uint64_t out = 0;

	*weight = 0;
	for (; set; set &= set - 1) {
		const struct eng_tunnel_cfg *t = &e->cfg.tunnel[__builtin_ctzll(set)];

		if (t->peer != peer)
			continue;
		out |= set & -set;
		*weight += t->weight;
	}
	return out;
}

/* The best pair of this gateway and a peer; winner.who is a tunnel to that peer. */
static struct winner own_winner(const struct eng *e, uint64_t set, uint64_t key, uint32_t times)
{
	struct winner best = {.who = -1};

	for (uint64_t left = set; left;) {
		const int i = __builtin_ctzll(left);
		const uint64_t peer = e->cfg.tunnel[i].peer;
		uint64_t weight;

		left &= ~tunnels_to_peer(e, set, peer, &weight);
		consider_pair(&best, key, e->cfg.gateway, peer, weight * times, i);
	}
	return best;
}

/* First a peer, so that both sites choose the same pair of gateways; then a tunnel to it. */
static int choose_tunnel(
    const struct eng *e, uint64_t set, const struct rwy_ip *local, const struct rwy_ip *remote)
{
	uint64_t weight;
	int i;

	if (!(set & (set - 1)) || !peers_known(e, set))
		return choose_by_weight(e, set, local, remote);
	i = own_winner(e, set, rwy_spread_key(0, local, remote), 1).who;
	return choose_by_weight(
	    e, i < 0 ? set : tunnels_to_peer(e, set, e->cfg.tunnel[i].peer, &weight), local, remote);
}

bool eng_tunnel_there(const struct eng *e, unsigned tunnel)
{
	return tunnel < e->cfg.tunnels && e->tunnel[tunnel].wan && !e->tunnel[tunnel].removing;
}

static uint64_t tunnels_there(const struct eng *e, uint64_t set)
{
	for (uint64_t left = set; left; left &= left - 1)
		if (!eng_tunnel_there(e, (unsigned)__builtin_ctzll(left)))
			set &= ~(left & -left);
	return set;
}

int eng_steer(const struct eng *e, uint32_t tenant, const struct rwy_ip *local, const struct rwy_ip *remote,
    uint32_t dqpn)
{
	const struct eng_tenant *t = eng_tenant(e, tenant);
	int to = -1;

	if (e->steering && e->steering->n && t) {
		to = dqpn ? assignment_find(e->steering, t->cfg.vni, local, remote, dqpn) : -1;
		if (to < 0 || to == ENG_STEER_ANY)
			to = assignment_find(e->steering, t->cfg.vni, local, remote, 0);
	}
	/* An assignment to a tunnel that is being removed does not count. */
	if (to >= 0 && eng_tunnel_there(e, (unsigned)to))
		return to;
	return t ? choose_tunnel(e, tunnels_there(e, eng_route_set(t->cfg.prefix, t->cfg.prefixes, remote)),
	               local, remote)
	         : -1;
}

bool eng_steer_names(
    const struct eng *e, uint32_t vni, const struct rwy_ip *src, const struct rwy_ip *dst, uint32_t dqpn)
{
	return eng_steer_find(e, vni, src, dst, dqpn);
}

int eng_candidate_find(const struct eng *e, const struct rwy_ip *local, const struct rwy_ip *remote,
    uint32_t own, const struct eng_candidate *cand, unsigned n)
{
	const struct eng_tenant *t = e->tenant[0];
	const uint64_t set = tunnels_there(e, eng_route_set(t->cfg.prefix, t->cfg.prefixes, remote));
	const uint64_t key = rwy_spread_key(0, local, remote);
	struct winner best;
	uint64_t weight;

	if (!set || !peers_known(e, set))
		return -1;
	best = own_winner(e, set, key, own);
	for (unsigned i = 0; i < n; i++)
		if (tunnels_to_peer(e, set, cand[i].peer, &weight))
			consider_pair(&best, key, cand[i].gateway, cand[i].peer, cand[i].weight,
			    (int)i + ENG_TUNNELS_MAX);
	return best.who >= ENG_TUNNELS_MAX ? best.who - ENG_TUNNELS_MAX : -1;
}

bool eng_has(const struct eng *e, const struct rwy_ip *local, const struct rwy_ip *remote, uint32_t dqpn)
{
	const struct eng_key k = {*local, *remote, dqpn, 0};

	return eng_find(e, &k, false);
}

bool eng_holds(const struct eng *e, const struct rwy_ip *local, const struct rwy_ip *remote, uint32_t dqpn)
{
	const struct eng_key k = {*local, *remote, dqpn, 0};

	return eng_find(e, &k, false) || eng_pair_is_waiting(e, 0, remote, local);
}

bool eng_steer_allows(const struct eng *e, uint32_t tenant, const struct rwy_ip *local,
    const struct rwy_ip *remote, unsigned tunnel)
{
	const struct eng_tenant *t = eng_tenant(e, tenant);

	return t && ((eng_route_set(t->cfg.prefix, t->cfg.prefixes, remote) >> tunnel & 1) ||
	                eng_steer(e, tenant, local, remote, 0) == (int)tunnel);
}

void eng_side_move(struct eng_side *side, unsigned tunnel)
{
	side->e->tunnel[side->tunnel].sides--;
	side->e->tunnel[tunnel].sides++;
	side->tunnel = (uint8_t)tunnel;
}
