/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queue rules: see queues.h. A rule is a local address and UDP port of a tunnel's path, and a
 * worker. The address is part of it because two tunnels may use the same UDP port at two addresses
 * for two workers.
 */
#include "gateway/offload/queues.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/gw.h"
#include "gateway/offload/flow.h"

/* Rules refused for the moment are tried again after so many ticks, then after twice as many, and
 * so on: a driver may log each refusal, and some call a lasting one momentary. */
#define RETRY_FIRST 10
#define RETRY_MOST  640

struct rule {
	struct rwy_ip local;
	uint16_t udp_port, worker;
	struct rte_flow *flow; /* NULL: the device does not have it */
};

struct port {
	const struct gw_port *port; /* NULL: no WAN port */
	struct offload_resets resets;
	struct rule *rule; /* sorted: before() */
	unsigned rules, installed;
	unsigned shared;     /* UDP ports that tunnels of two peers use for two workers */
	bool up, again;      /* link at the last look; some rules were refused for the moment */
	unsigned wait, left; /* ticks between tries, and until the next one */
	char why[OFFLOAD_WHY];
};

struct gw_queue_rules {
	pthread_mutex_t lock;
	struct port port[CONF_PORTS_MAX];
};

/* --- what should be there --------------------------------------------------------------------- */

static int before(const void *a, const void *b)
{
	const struct rule *x = a, *y = b;
	const int ip = memcmp(&x->local, &y->local, sizeof(x->local));

	if (ip)
		return ip;
	return x->udp_port != y->udp_port ? x->udp_port - y->udp_port : x->worker - y->worker;
}

static bool same_match(const struct rule *a, const struct rule *b)
{
	return a->udp_port == b->udp_port && rwy_ip_eq(&a->local, &b->local);
}

/* Drops repeated rules, which tunnels from one address have in common, and those for which two
 * workers wait: only the peer's address tells these apart. */
static unsigned unique(struct rule *r, unsigned n, unsigned *shared)
{
	unsigned kept = 0;

	*shared = 0;
	for (unsigned i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && same_match(&r[i], &r[end]);)
			end++;
		if (r[i].worker == r[end - 1].worker)
			r[kept++] = r[i];
		else
			++*shared;
	}
	return kept;
}

/* The rules of a port, sorted, in *out (malloc). RWY_ENOMEM. */
static int wanted(
    const struct gw_app *app, unsigned port, struct rule **out, unsigned *rules, unsigned *shared)
{
	const struct conf *c = app->conf;
	unsigned n = 0, most = 0;
	struct rule *r;

	for (unsigned i = 0; i < c->tunnels; i++)
		most += (1 + c->tunnel[i].paths) * app->workers;
	r = malloc((most + 1) * sizeof(*r));
	if (!r)
		return RWY_ENOMEM;
	for (unsigned i = 0; i < c->tunnels; i++)
		for (unsigned m = 0; *c->tunnel[i].name && m <= c->tunnel[i].paths; m++) {
			const struct conf_path p = conf_tunnel_path(&c->tunnel[i], m);

			for (unsigned w = 0; p.port_idx == port && w < app->workers; w++)
				r[n++] = (struct rule){.local = p.local,
				    .udp_port = (uint16_t)(p.udp_port + w),
				    .worker = (uint16_t)w};
		}
	qsort(r, n, sizeof(*r), before);
	*rules = unique(r, n, shared);
	*out = r;
	return 0;
}

/* --- the device ------------------------------------------------------------------------------- */

/* Workers drop frames of other VLANs than the port's, so a rule need not tell VLANs apart. */
static int rule_install(const struct port *p, struct rule *r, char why[OFFLOAD_WHY])
{
	const struct rte_flow_action_queue queue = {.index = r->worker};
	const struct offload_ip_match ip = {
	    .is4 = rwy_ip_is4(&r->local), .dst = {r->local, 128}, .udp = true};
	struct offload_pattern m;

	offload_pattern_begin(&m);
	if (p->port->vlan)
		offload_pattern_vlan(&m, 0);
	offload_pattern_ip(&m, 0, &ip);
	offload_pattern_udp(&m, 0, 0, 0, r->udp_port);
	offload_pattern_end(&m);
	return offload_flow_new(&r->flow, p->port->id, 0, &m,
	    (struct rte_flow_action){.type = RTE_FLOW_ACTION_TYPE_QUEUE, .conf = &queue}, NULL, why);
}

/* A rule that the device keeps names a worker that hands its datagrams over. */
static void rule_remove(struct port *p, struct rule *r)
{
	if (r->flow && offload_flow_del(p->port->id, r->flow) != 0)
		gw_log(GW_LOG_WARNING, "offload", "port=%s keeps a queue rule: udp_port=%u queue=%u",
		    p->port->conf->name, r->udp_port, r->worker);
	r->flow = NULL;
}

/* Rules of one family differ in nothing but numbers: when one is refused for good, so are the
 * others; when one finds no room, so do all. */
static void install(struct port *p)
{
	bool never[2] = {false, false}, full = false;

	p->installed = 0;
	p->again = false;
	snprintf(p->why, sizeof(p->why), "%s",
	    p->shared ? "tunnels to several peers use one UDP port for two workers" : "");
	for (unsigned i = 0; i < p->rules; i++) {
		struct rule *r = &p->rule[i];
		const bool is4 = rwy_ip_is4(&r->local);
		int rc;

		if (!r->flow && !full && !never[is4]) {
			rc = rule_install(p, r, p->why);
			never[is4] = rc == RWY_EINVAL;
			full = rc == RWY_ENOMEM;
			p->again |= full || rc == RWY_EAGAIN;
		}
		p->installed += r->flow != NULL;
	}
}

static void say(const struct port *p)
{
	const unsigned rules = p->rules + p->shared;

	if (p->installed == rules)
		gw_log(GW_LOG_INFO, "offload", "port=%s each worker gets its own datagrams: queue rules=%u",
		    p->port->conf->name, rules);
	else
		gw_log(GW_LOG_INFO, "offload",
		    "port=%s driver=%s has %u of %u queue rules: %s; workers hand datagrams to their owners",
		    p->port->conf->name, p->port->driver, p->installed, rules, p->why);
}

/* Logs when the numbers have changed. wait: ticks until the next try, if one is needed. */
static void install_and_say(struct port *p, unsigned rules, unsigned installed, unsigned wait)
{
	install(p);
	p->wait = p->left = RTE_MIN(wait, (unsigned)RETRY_MOST);
	if (p->rules + p->shared != rules || p->installed != installed)
		say(p);
}

/* Rules that are wanted and were there before keep their flows. */
static void follow(const struct gw_app *app, struct port *p)
{
	const unsigned were = p->rules + p->shared, installed = p->installed;
	unsigned n, at = 0, shared;
	struct rule *next;

	if (wanted(app, p->port->idx, &next, &n, &shared) != 0) {
		gw_log(GW_LOG_WARNING, "offload", "port=%s out of memory: its queue rules stay as they are",
		    p->port->conf->name);
		return;
	}
	for (unsigned i = 0; i < p->rules; i++) {
		while (at < n && before(&next[at], &p->rule[i]) < 0)
			at++;
		if (at < n && before(&next[at], &p->rule[i]) == 0)
			next[at].flow = p->rule[i].flow;
		else
			rule_remove(p, &p->rule[i]);
	}
	free(p->rule);
	p->rule = next;
	p->rules = n;
	p->shared = shared;
	install_and_say(p, were, installed, RETRY_FIRST);
}

/* --- follow the gateway ---------------------------------------------------------------------- */

/* Why a port of role wan gets no rules; NULL: it gets them. */
static const char *none(const struct gw_app *app, const struct gw_port *p)
{
	if (!p->conf->queue_rules)
		return "`queue_rules` is off";
	return p->rxqs < app->workers ? "the device has fewer receive queues than there are workers" : NULL;
}

static void port_begin(const struct gw_app *app, struct port *p, const struct gw_port *port)
{
	const char *why = none(app, port);

	p->port = port;
	p->up = atomic_load(&port->up);
	offload_resets_begin(&p->resets, port->id);
	if (!why) {
		follow(app, p);
		return;
	}
	snprintf(p->why, sizeof(p->why), "%s", why);
	gw_log(GW_LOG_INFO, "offload", "port=%s driver=%s has no queue rules: %s", port->conf->name,
	    port->driver, why);
}

int gw_queue_rules_new(struct gw_app *app)
{
	struct gw_queue_rules *q;

	if (app->workers <= 1)
		return 0;
	q = calloc(1, sizeof(*q));
	if (!q)
		return RWY_ENOMEM;
	pthread_mutex_init(&q->lock, NULL);
	app->queue_rules = q;
	for (unsigned i = 0; i < app->ports; i++)
		if (app->port[i]->conf->role == CONF_ROLE_WAN)
			port_begin(app, &q->port[i], app->port[i]);
	return 0;
}

void gw_queue_rules_free(struct gw_app *app)
{
	struct gw_queue_rules *q = app->queue_rules;

	for (unsigned i = 0; q && i < CONF_PORTS_MAX; i++) {
		struct port *p = &q->port[i];

		if (!p->port)
			continue;
		offload_resets_end(&p->resets);
		for (unsigned k = 0; k < p->rules; k++)
			rule_remove(p, &p->rule[k]);
		free(p->rule);
	}
	if (q)
		pthread_mutex_destroy(&q->lock);
	free(q);
	app->queue_rules = NULL;
}

void gw_queue_rules_follow(struct gw_app *app)
{
	struct gw_queue_rules *q = app->queue_rules;

	if (!q)
		return;
	pthread_mutex_lock(&q->lock);
	for (unsigned i = 0; i < app->ports; i++)
		if (q->port[i].port && !none(app, q->port[i].port))
			follow(app, &q->port[i]);
	pthread_mutex_unlock(&q->lock);
}

/* A device whose link was down may have begun anew without a word: what it has is made again. */
static void port_tick(const struct gw_app *app, struct port *p)
{
	const unsigned installed = p->installed;
	const bool retry = p->again && !--p->left;
	const bool up = atomic_load(&p->port->up), came = up && !p->up;
	const bool lost = offload_resets_seen(&p->resets);

	p->up = up;
	if (none(app, p->port) || (!lost && !came && !retry))
		return;
	for (unsigned i = 0; i < p->rules; i++)
		if (lost)
			p->rule[i].flow = NULL;
		else if (came)
			rule_remove(p, &p->rule[i]);
	if (lost)
		gw_log(GW_LOG_WARNING, "offload", "port=%s was reset: its queue rules are installed again",
		    p->port->conf->name);
	install_and_say(p, p->rules + p->shared, installed, retry ? 2 * p->wait : RETRY_FIRST);
}

void gw_queue_rules_tick(struct gw_app *app)
{
	struct gw_queue_rules *q = app->queue_rules;

	if (!q)
		return;
	pthread_mutex_lock(&q->lock);
	for (unsigned i = 0; i < app->ports; i++)
		if (q->port[i].port)
			port_tick(app, &q->port[i]);
	pthread_mutex_unlock(&q->lock);
}

bool gw_queue_rules_get(const struct gw_app *app, unsigned port, struct gw_queue_rules_info *out)
{
	struct gw_queue_rules *q = app->queue_rules;

	if (!q || port >= app->ports || !q->port[port].port)
		return false;
	pthread_mutex_lock(&q->lock);
	*out = (struct gw_queue_rules_info){
	    .rules = q->port[port].rules + q->port[port].shared, .installed = q->port[port].installed};
	snprintf(out->why, sizeof(out->why), "%s", q->port[port].why);
	pthread_mutex_unlock(&q->lock);
	return true;
}
