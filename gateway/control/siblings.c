/* SPDX-License-Identifier: Apache-2.0 */
/* The site's other gateways, and their publication to workers. sibling_rx.c handles packets. */
#include "gateway/control/siblings.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/port/neigh.h"
#include "gateway/port/netlink.h"
#include "gateway/control/change_lock.h"
#include "gateway/control/site_key.h"
#include "gateway/datapath/sibling.h"
#include "rwy/spread.h"

#define LOST_TICKS  3 /* ticks without an answer to ARP after which a sibling of the file is lost */
#define PROBE_TICKS 5 /* ticks between two probes; the kernel asks three times, a second each */

struct gw_siblings {
	/* Written under gw_change_lock and `lock`; the API holds `lock` to read: */
	pthread_mutex_t lock;
	struct gw_sibling sib[CONF_SIBLINGS_MAX];
	unsigned n;
	bool controller; /* the siblings come from the control center */
	struct gw_sibling_pair *pair;
	unsigned pairs;
	/* Read and written under gw_change_lock: */
	uint32_t own, gen;
	unsigned missing[CONF_SIBLINGS_MAX], ticks;
	uint64_t tunnels; /* what the workers' set was made of */
	bool sealed;      /* key has the site's key */
	uint8_t key[BASE_SIPHASH_KEY];
	bool stale; /* there was no memory for the last set */
};

/* --- sets ------------------------------------------------------------------------------------ */

static void set_free(void *set)
{
	struct gw_sib_set *s = set;

	if (!s)
		return;
	free(s->candidate);
	free(s->candidate_of);
	free(s->pair);
	free(s);
}

static void candidate_add(struct gw_sib_set *s, unsigned who, const char *peer, uint64_t weight)
{
	const uint64_t id = rwy_spread_id(peer);

	if (!weight)
		return;
	for (unsigned i = 0; i < s->candidates; i++)
		if (s->candidate_of[i] == who && s->candidate[i].peer == id) {
			s->candidate[i].weight += weight;
			return;
		}
	s->candidate[s->candidates] =
	    (struct eng_candidate){.gateway = s->sib[who].id, .peer = id, .weight = weight};
	s->candidate_of[s->candidates++] = (uint8_t)who;
}

/* The file's siblings have the same tunnels as this gateway, with the weights of both ends. */
static void candidates_fill(const struct gw_app *app, const struct gw_siblings *g, struct gw_sib_set *s)
{
	for (unsigned i = 0; i < g->n; i++) {
		const struct gw_sibling *b = &g->sib[i];

		if (!*b->name || b->lost)
			continue;
		for (unsigned t = 0; t < b->tunnels; t++)
			candidate_add(s, i, b->tunnel[t].peer, b->tunnel[t].weight);
		for (unsigned t = 0; !g->controller && t < app->conf->tunnels; t++)
			if (*app->conf->tunnel[t].name && *app->conf->tunnel[t].peer)
				candidate_add(s, i, app->conf->tunnel[t].peer,
				    (uint64_t)b->weight * app->conf->tunnel[t].weight);
	}
}

static int pairs_fill(const struct gw_siblings *g, struct gw_sib_set *s)
{
	uint32_t size = 16;

	if (!g->pairs)
		return 0;
	while (size < 2 * g->pairs)
		size *= 2;
	s->pair = calloc(size, sizeof(*s->pair));
	if (!s->pair)
		return RWY_ENOMEM;
	s->mask = size - 1;
	for (unsigned i = 0; i < g->pairs; i++) {
		const struct gw_sibling_pair *p = &g->pair[i];
		uint32_t at = gw_sib_hash(&p->local, &p->remote, p->dqpn) & s->mask;

		while (s->pair[at].used && !gw_sib_is(&s->pair[at], &p->local, &p->remote, p->dqpn))
			at = (at + 1) & s->mask;
		s->pair[at] = (struct gw_sib_pair){p->local, p->remote, p->dqpn, (int8_t)p->who, true};
	}
	return 0;
}

/* *out is NULL if there are no siblings. */
static int set_new(const struct gw_app *app, const struct gw_siblings *g, struct gw_sib_set **out)
{
	struct gw_sib_set *s;

	*out = NULL;
	if (!g || !g->n)
		return 0;
	s = calloc(1, sizeof(*s));
	if (!s)
		return RWY_ENOMEM;
	s->gen = g->gen;
	s->n = g->n;
	s->own = g->own;
	s->sealed = g->sealed;
	memcpy(s->key, g->key, sizeof(s->key));
	for (unsigned i = 0; i < g->n; i++) {
		s->sib[i].id = *g->sib[i].name ? rwy_spread_id(g->sib[i].name) : 0;
		s->sib[i].addr = g->sib[i].addr;
		s->sib[i].lost = g->sib[i].lost;
	}
	s->candidate = calloc((size_t)g->n * CONF_TUNNELS_MAX, sizeof(*s->candidate));
	s->candidate_of = calloc((size_t)g->n, CONF_TUNNELS_MAX);
	if (!s->candidate || !s->candidate_of || pairs_fill(g, s) != 0) {
		set_free(s);
		return RWY_ENOMEM;
	}
	candidates_fill(app, g, s);
	*out = s;
	return 0;
}

/*
 * --- publication ---------------------------------------------------------------------------------
 */

static uint64_t tunnels_hash(const struct gw_app *app)
{
	uint64_t h = 0;

	for (unsigned i = 0; i < app->conf->tunnels; i++) {
		const struct conf_tunnel *t = &app->conf->tunnel[i];

		if (*t->name && *t->peer)
			h = rwy_spread_add(rwy_spread_add(h, rwy_spread_id(t->peer)), t->weight);
	}
	return h;
}

/* Another set. Without memory for it workers have the one before; the tick comes back to it. */
static void set_publish(struct gw_app *app)
{
	struct gw_siblings *g = app->siblings;
	struct gw_sib_set *s;
	uint64_t token;

	g->gen++;
	g->tunnels = tunnels_hash(app);
	g->stale = true;
	if (set_new(app, g, &s) != 0)
		return;
	token = gw_publish(app->publisher, GW_SIBLINGS, s, set_free);
	if (!token) {
		set_free(s);
		return;
	}
	g->stale = false;
	/* A worker that is late takes it up with its next turn. */
	(void)gw_publish_wait(app->publisher, token, GW_TAKE_UP_WAIT);
}

/* --- configured siblings ---------------------------------------------------------------------- */

static bool named(const struct gw_siblings_say *s, const char *name)
{
	for (unsigned i = 0; i < s->n; i++)
		if (!strcmp(s->sib[i].name, name))
			return true;
	return false;
}

/* Returns the index of a name, or a free one; g->n counts up to the last used one. */
static unsigned place_of(struct gw_siblings *g, const char *name)
{
	unsigned i = 0;

	while (i < g->n && strcmp(g->sib[i].name, name) != 0)
		i++;
	if (i == g->n)
		for (i = 0; i < g->n && *g->sib[i].name;)
			i++;
	g->n += i == g->n;
	return i;
}

/* A sibling keeps its index as long as it exists: packets in flight refer to it. at[]: the
 * indices. */
static void siblings_merge(
    struct gw_siblings *g, const struct gw_siblings_say *s, unsigned at[CONF_SIBLINGS_MAX])
{
	for (unsigned i = 0; i < g->n; i++)
		if (!named(s, g->sib[i].name))
			g->sib[i] = (struct gw_sibling){0};
	for (unsigned k = 0; k < s->n; k++) {
		struct gw_sibling *b = &g->sib[at[k] = place_of(g, s->sib[k].name)];
		const bool lost = *b->name && b->lost && !g->controller;

		g->missing[at[k]] = *b->name ? g->missing[at[k]] : 0;
		*b = s->sib[k];
		b->lost |= lost;
	}
	while (g->n && !*g->sib[g->n - 1].name)
		g->n--;
}

static bool same_sibling(const struct gw_sibling *a, const struct gw_sibling *b, bool lost)
{
	if (strcmp(a->name, b->name) != 0 || !rwy_ip_eq(&a->addr, &b->addr) || a->weight != b->weight ||
	    (lost && a->lost != b->lost) || a->tunnels != b->tunnels)
		return false;
	for (unsigned i = 0; i < a->tunnels; i++)
		if (strcmp(a->tunnel[i].peer, b->tunnel[i].peer) != 0 ||
		    a->tunnel[i].weight != b->tunnel[i].weight)
			return false;
	return true;
}

static bool same_pair(const struct gw_siblings *g, const struct gw_sibling_pair *is,
    const struct gw_siblings_say *s, const struct gw_sibling_pair *said)
{
	if (!rwy_ip_eq(&is->local, &said->local) || !rwy_ip_eq(&is->remote, &said->remote) ||
	    is->dqpn != said->dqpn)
		return false;
	return is->who < 0 || said->who < 0 ? is->who == said->who
	                                    : !strcmp(g->sib[is->who].name, s->sib[said->who].name);
}

/* Nothing changed: documents also come for other reasons. */
static bool is_current(
    const struct gw_siblings *g, const struct gw_siblings_say *s, bool controller, uint32_t own)
{
	unsigned n = 0, found = 0;

	if (g->controller != controller || g->own != own || g->pairs != s->pairs)
		return false;
	for (unsigned i = 0; i < g->n; i++) {
		n += *g->sib[i].name != 0;
		for (unsigned k = 0; *g->sib[i].name && k < s->n; k++)
			found += same_sibling(&g->sib[i], &s->sib[k], controller);
	}
	for (unsigned i = 0; i < s->pairs; i++)
		if (!same_pair(g, &g->pair[i], s, &s->pair[i]))
			return false;
	return n == s->n && found == n;
}

static int siblings_apply(struct gw_app *app, const struct gw_siblings_say *s, bool controller, uint32_t own)
{
	struct gw_siblings *g = app->siblings;
	struct gw_sibling_pair *pair = malloc((s->pairs ? s->pairs : 1) * sizeof(*pair));
	unsigned at[CONF_SIBLINGS_MAX];

	if (!pair || is_current(g, s, controller, own)) {
		free(pair);
		return pair ? 0 : RWY_ENOMEM;
	}
	pthread_mutex_lock(&g->lock);
	g->controller = controller;
	siblings_merge(g, s, at);
	for (unsigned i = 0; i < s->pairs; i++) {
		pair[i] = s->pair[i];
		pair[i].who = pair[i].who < 0 ? -1 : (int)at[pair[i].who];
	}
	free(g->pair);
	g->pair = pair;
	g->pairs = s->pairs;
	pthread_mutex_unlock(&g->lock);
	g->own = own;
	set_publish(app);
	return 0;
}

int gw_siblings_set(struct gw_app *app, const struct gw_siblings_say *s)
{
	return app->siblings ? siblings_apply(app, s, true, 1) : 0;
}

int gw_siblings_own(struct gw_app *app, const struct conf *c)
{
	struct gw_siblings_say s = {.n = c->siblings};
	struct gw_sibling *v;
	int rc;

	if (!app->siblings || (app->siblings->controller && !c->siblings))
		return 0;
	v = calloc(c->siblings + 1u, sizeof(*v));
	if (!v)
		return RWY_ENOMEM;
	for (unsigned i = 0; i < c->siblings; i++) {
		memcpy(v[i].name, c->sibling[i].name, CONF_NAME);
		v[i].addr = c->sibling[i].address;
		v[i].weight = c->sibling[i].weight;
	}
	s.sib = v;
	rc = siblings_apply(app, &s, false, c->weight);
	free(v);
	return rc;
}

/* --- once a second --------------------------------------------------------------------------- */

/* Asks for a MAC address when it is unknown, or with `probe` whether the sibling still answers. */
static bool mac_known(struct gw_app *app, struct gw_netlink *nl, const struct rwy_ip *a, bool probe)
{
	const struct gw_nh *nh;
	enum gw_nh_miss miss;
	struct rwy_ip addr;
	uint16_t port;

	nh = gw_nt_find(gw_nt_of(app), app, a, -1, &miss, &addr, &port);
	if (nh && nl && probe && rwy_ip_eq(&addr, a))
		gw_netlink_probe(nl, nh->port, a);
	if (nh)
		return rwy_ip_eq(&addr, a);
	if (nl && miss == GW_NH_UNRESOLVED && rwy_ip_eq(&addr, a))
		gw_netlink_resolve(nl, port, &addr);
	return false;
}

static bool liveness_check(struct gw_app *app, struct gw_netlink *nl)
{
	struct gw_siblings *g = app->siblings;
	/* With a document the control center says who is lost. */
	const bool probe = !g->controller && g->ticks++ % PROBE_TICKS == 0;
	bool changed = false;

	for (unsigned i = 0; i < g->n; i++) {
		struct gw_sibling *b = &g->sib[i];
		bool lost;

		if (!*b->name)
			continue;
		g->missing[i] = mac_known(app, nl, &b->addr, probe) ? 0 : g->missing[i] + 1;
		lost = g->missing[i] >= LOST_TICKS;
		if (g->controller || lost == b->lost)
			continue;
		pthread_mutex_lock(&g->lock);
		b->lost = lost;
		pthread_mutex_unlock(&g->lock);
		changed = true;
		gw_log(lost ? GW_LOG_WARNING : GW_LOG_NOTICE, "sibling", "sibling=%s %s", b->name,
		    lost ? "does not answer: other gateways take its flows" : "is back");
	}
	return changed;
}

void gw_siblings_tick(struct gw_app *app, struct gw_netlink *nl)
{
	struct gw_siblings *g = app->siblings;

	if (!g || !gw_change_trylock())
		return;
	if (liveness_check(app, nl) || g->stale || (g->n && g->tunnels != tunnels_hash(app)))
		set_publish(app);
	gw_change_unlock();
}

/* --- inspection ------------------------------------------------------------------------------- */

struct sent_copy {
	const struct gw_worker *w;
	uint64_t sent[CONF_SIBLINGS_MAX];
};

static void sent_copy(struct eng *e, void *arg)
{
	struct sent_copy *c = arg;

	memcpy(c->sent, c->w->sibw->sent, sizeof(c->sent));
}

static void mac_find(const struct gw_neigh_info *all, size_t n, struct gw_sibling_info *o)
{
	for (size_t i = 0; i < n; i++)
		if (rwy_ip_eq(&all[i].addr, &o->addr) && strcmp(all[i].state, "failed") != 0 &&
		    strcmp(all[i].state, "incomplete") != 0) {
			o->mac_known = true;
			memcpy(o->mac, all[i].mac, 6);
		}
}

unsigned gw_siblings_get(struct gw_app *app, struct gw_sibling_info *out, unsigned max)
{
	struct gw_siblings *g = app->siblings;
	struct gw_neigh_info *all = calloc(GW_NEIGH_MAX, sizeof(*all));
	const size_t known = all ? gw_neighs_get(app, all, GW_NEIGH_MAX) : 0;
	uint64_t sent[CONF_SIBLINGS_MAX] = {0};
	unsigned n = 0;

	for (unsigned w = 0; g && w < app->workers; w++) {
		struct sent_copy c = {.w = app->worker[w]};

		if (c.w && gw_call(app, w, sent_copy, &c) == 0)
			for (unsigned i = 0; i < CONF_SIBLINGS_MAX; i++)
				sent[i] += c.sent[i];
	}
	if (g)
		pthread_mutex_lock(&g->lock);
	for (unsigned i = 0; g && i < g->n; i++) {
		const struct gw_sibling *b = &g->sib[i];
		struct gw_sibling_info *o;

		if (!*b->name || n++ >= max)
			continue;
		o = &out[n - 1];
		*o = (struct gw_sibling_info){.addr = b->addr,
		    .weight = b->weight,
		    .tunnels = b->tunnels,
		    .lost = b->lost,
		    .controller = g->controller,
		    .packets = sent[i]};
		memcpy(o->name, b->name, CONF_NAME);
		mac_find(all, known, o);
		for (unsigned k = 0; k < g->pairs; k++)
			o->pairs += g->pair[k].who == (int)i;
	}
	if (g)
		pthread_mutex_unlock(&g->lock);
	free(all);
	return n;
}

/* --- creation -------------------------------------------------------------------------------- */

int gw_siblings_new(struct gw_app *app)
{
	struct gw_siblings *g = calloc(1, sizeof(*g));

	if (!g)
		return RWY_ENOMEM;
	pthread_mutex_init(&g->lock, NULL);
	g->own = 1;
	app->siblings = g;
	if (*app->conf->site_key) {
		if (gw_site_key_read(g->key, app->conf->site_key) != 0)
			return RWY_EINVAL;
		g->sealed = true;
	} else if (app->conf->siblings) {
		gw_log(GW_LOG_NOTICE, "sibling",
		    "no gateway.site_key: a host that forges a sibling's MAC address can act for it");
	}
	return app->conf->siblings ? gw_siblings_own(app, app->conf) : 0;
}

void gw_siblings_free(struct gw_app *app)
{
	struct gw_siblings *g = app->siblings;

	if (!g)
		return;
	pthread_mutex_destroy(&g->lock);
	free(g->pair);
	free(g);
	app->siblings = NULL;
}
