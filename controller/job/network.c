/* SPDX-License-Identifier: Apache-2.0 */
/* Threads and queues for networks' controllers; see network.h. */
#include "controller/job/network.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "controller/state/event.h"

#define QUEUE_MAX    256            /* calls that requests wait for */
#define QUEUE_FOR    (10 * RWY_SEC) /* a request's longest wait for its turn */
#define CALLS_BEFORE 8              /* after so many of them a NETWORK_ASK has its turn */

struct queue {
	struct ctlr_network_call *first, *last;
	unsigned n;
};

struct ctlr_network {
	struct ctlr *c;
	unsigned at;
	struct provider *p;
	pthread_t thread;
	bool started;
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct queue calls, asks; /* asks: each NETWORK_ASK, which nobody waits for */
	unsigned before;          /* calls since the last NETWORK_ASK */
	bool stop;
	bool failing; /* under the state's lock */
};

/* --- calls ------------------------------------------------------------------------------------ */

struct ctlr_network_call *ctlr_network_call_new(
    enum ctlr_network_what what, unsigned net, const char *name, const char *first, const char *second)
{
	struct ctlr_network_call *call = calloc(1, sizeof(*call));

	if (!call)
		return NULL;
	if (what != NETWORK_DROP)
		call->route = calloc(PLAN_ROUTES_MAX, sizeof(*call->route));
	if (what != NETWORK_DROP && !call->route) {
		free(call);
		return NULL;
	}
	call->what = what;
	call->net = net;
	snprintf(call->name, sizeof(call->name), "%s", name);
	snprintf(call->first, sizeof(call->first), "%s", first);
	snprintf(call->second, sizeof(call->second), "%s", second);
	return call;
}

static void queue_add(struct queue *q, struct ctlr_network_call *call)
{
	call->next = NULL;
	if (q->last)
		q->last->next = call;
	else
		q->first = call;
	q->last = call;
	q->n++;
}

static struct ctlr_network_call *queue_take(struct queue *q)
{
	struct ctlr_network_call *call = q->first;

	if (!call)
		return NULL;
	q->first = call->next;
	if (!q->first)
		q->last = NULL;
	q->n--;
	return call;
}

void ctlr_network_call_free(struct ctlr_network_call *call)
{
	if (call)
		free(call->route);
	free(call);
}

bool ctlr_network_submit(struct ctlr *c, struct ctlr_network_call *call)
{
	struct ctlr_network *n = &c->networks[call->net];
	struct queue *q = call->what == NETWORK_ASK ? &n->asks : &n->calls;
	bool ok;

	call->since = ctlr_now();
	pthread_mutex_lock(&n->lock);
	ok = !n->stop;
	if (!call->patient && q->n >= QUEUE_MAX)
		call->rc = NETWORK_BUSY; /* reported by its thread, as any outcome */
	if (ok) {
		queue_add(q, call);
		pthread_cond_signal(&n->more);
	}
	pthread_mutex_unlock(&n->lock);
	if (!ok)
		call->rc = NETWORK_STOPS;
	return ok;
}

void ctlr_network_text(const struct ctlr *c, const struct ctlr_network_call *call, char *out, size_t len)
{
	const char *text = call->err.text;

	if (call->rc == NETWORK_STOPS)
		text = "the controller stops";
	else if (call->rc == NETWORK_BUSY)
		text = "it has too many requests: try later";
	snprintf(out, len, "network %s: %s", c->conf->provider[call->net].name, *text ? text : "it failed");
}

/* --- the thread ------------------------------------------------------------------------------- */

static void call_provider(struct ctlr_network *n, struct ctlr_network_call *call)
{
	const struct provider_ops *ops = n->p->ops;

	switch (call->what) {
	case NETWORK_QUERY:
		call->n =
		    ops->routes(n->p, call->first, call->second, call->route, PLAN_ROUTES_MAX, &call->err);
		call->rc = call->n < 0 ? call->n : 0;
		return;
	case NETWORK_MAKE:
		call->rc = ops->make(
		    n->p, call->name, call->first, call->second, call->route, &call->placement, &call->err);
		return;
	case NETWORK_DROP:
		call->rc = ops->drop(n->p, call->name, &call->err);
		return;
	case NETWORK_ASK:
		call->n = ops->has(n->p, call->name, call->route, PLAN_ROUTES_MAX, &call->err);
		call->rc = call->n < 0 ? call->n : 0;
		return;
	}
	rwy_unreachable();
}

/* Logs the first failure, and the first success after one; counters have the numbers. */
static void note_health(struct ctlr_network *n, const struct ctlr_network_call *call)
{
	const char *name = n->c->conf->provider[n->at].name;
	const bool fails = call->rc && call->rc != PROVIDER_EREFUSED;

	COUNT(n->c, network_calls);
	if (call->rc == PROVIDER_EREFUSED)
		COUNT(n->c, network_refusals);
	if (fails)
		COUNT(n->c, network_errors);
	if (!call->rc && call->what == NETWORK_MAKE)
		COUNT(n->c, network_made);
	if (!call->rc && call->what == NETWORK_DROP)
		COUNT(n->c, network_dropped);
	if (fails && !n->failing)
		ctlr_event(n->c, EVENT_ERROR, "network", name, "%s", call->err.text);
	if (!fails && n->failing)
		ctlr_event(n->c, EVENT_INFO, "network", name, "it answers again");
	n->failing = fails;
}

static struct ctlr_network_call *next_call(struct ctlr_network *n, bool *stop)
{
	struct ctlr_network_call *call = NULL;

	pthread_mutex_lock(&n->lock);
	while (!n->calls.n && !n->asks.n && !n->stop)
		pthread_cond_wait(&n->more, &n->lock);
	if (n->before < CALLS_BEFORE || !n->asks.n)
		call = queue_take(&n->calls);
	n->before = call ? n->before + 1 : 0;
	if (!call)
		call = queue_take(&n->asks);
	*stop = n->stop;
	pthread_mutex_unlock(&n->lock);
	return call;
}

static void *thread_main(void *arg)
{
	struct ctlr_network *n = arg;
	struct ctlr_network_call *call;
	bool stop;

	while ((call = next_call(n, &stop))) {
		bool asked = false;

		if (stop)
			call->rc = NETWORK_STOPS;
		else if (!call->patient && rwy_since(call->since, ctlr_now()) > QUEUE_FOR)
			call->rc = NETWORK_BUSY;
		if (!call->rc) {
			call_provider(n, call);
			asked = true;
		}
		ctlr_lock(n->c);
		if (asked)
			note_health(n, call);
		call->done(n->c, call);
		ctlr_unlock(n->c);
		ctlr_network_call_free(call);
	}
	return NULL;
}

/* --- properties ------------------------------------------------------------------------------- */

static bool in_list(char (*names)[CONF_NAME], unsigned n, const char *name)
{
	for (unsigned i = 0; i < n; i++)
		if (!strcmp(names[i], name))
			return true;
	return !n;
}

bool ctlr_network_serves(const struct ctlr *c, unsigned net, const char *first, const char *second)
{
	struct ctlr_provider *p = (struct ctlr_provider *)(uintptr_t)&c->conf->provider[net];

	return in_list(p->site, p->sites, first) && in_list(p->site, p->sites, second);
}

bool ctlr_network_edge(const struct ctlr *c, unsigned net, const char *edge)
{
	struct ctlr_provider *p = (struct ctlr_provider *)(uintptr_t)&c->conf->provider[net];

	return in_list(p->edge, p->edges, edge);
}

bool ctlr_network_sure(const struct ctlr *c, unsigned net)
{
	return c->conf->provider[net].sites;
}

int ctlr_network_find(const struct ctlr *c, const char *name)
{
	for (unsigned i = 0; i < c->conf->providers; i++)
		if (!strcmp(c->conf->provider[i].name, name))
			return (int)i;
	return -1;
}

bool ctlr_network_tells(const struct ctlr *c, unsigned net)
{
	return c->networks[net].p->ops->has;
}

bool ctlr_network_asks(const struct ctlr *c, unsigned net)
{
	struct ctlr_network *n = &c->networks[net];
	bool any;

	pthread_mutex_lock(&n->lock);
	any = n->asks.n;
	pthread_mutex_unlock(&n->lock);
	return any;
}

bool ctlr_network_forgets(const struct ctlr *c, unsigned net)
{
	return c->networks[net].p->ops->forgets;
}

/* --- start, stop ------------------------------------------------------------------------------ */

int ctlr_networks_open(struct ctlr *c)
{
	c->networks = calloc(CTLR_PROVIDERS_MAX, sizeof(*c->networks));
	if (!c->networks)
		return RWY_ENOMEM;
	for (unsigned i = 0; i < c->conf->providers; i++) {
		const struct ctlr_provider *p = &c->conf->provider[i];
		struct provider_option o[CTLR_OPTIONS_MAX];
		struct provider_err err = {""};
		struct ctlr_network *n = &c->networks[i];
		int rc;

		*n = (struct ctlr_network){.c = c, .at = i};
		pthread_mutex_init(&n->lock, NULL);
		pthread_cond_init(&n->more, NULL);
		rc = provider_find(p->kind)->open(&n->p, o, ctlr_provider_options(p, o), &err);
		if (rc) {
			gw_log(GW_LOG_ERROR, "network", "%s: %s", p->name, err.text);
			return RWY_EINVAL;
		}
		if (pthread_create(&n->thread, NULL, thread_main, n))
			return RWY_ENOMEM;
		n->started = true;
		gw_log(GW_LOG_NOTICE, "network", "%s: %s", p->name, p->kind);
	}
	return 0;
}

void ctlr_networks_stop(struct ctlr *c)
{
	for (unsigned i = 0; c->networks && i < c->conf->providers; i++) {
		if (!c->networks[i].started)
			continue;
		pthread_mutex_lock(&c->networks[i].lock);
		c->networks[i].stop = true;
		pthread_cond_signal(&c->networks[i].more);
		pthread_mutex_unlock(&c->networks[i].lock);
	}
	for (unsigned i = 0; c->networks && i < c->conf->providers; i++)
		if (c->networks[i].started) {
			pthread_join(c->networks[i].thread, NULL);
			c->networks[i].started = false;
		}
}

void ctlr_networks_close(struct ctlr *c)
{
	for (unsigned i = 0; c->networks && i < c->conf->providers; i++) {
		if (c->networks[i].p)
			c->networks[i].p->ops->close(c->networks[i].p);
		c->networks[i].p = NULL;
	}
	free(c->networks);
	c->networks = NULL;
}
