/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/pair.h"

#include <string.h>

/* The same at both relays, whichever host is the local one: the lower address comes first. */
static uint64_t id_of(const struct rwy_ip *host, const struct proxy_ask *ask)
{
	const struct rwy_ip *far = &ask->target.addr;

	return memcmp(host->b, far->b, 16) < 0 ? proxy_link_id(host, far, ask->lqpn, ask->rqpn, 0)
	                                       : proxy_link_id(far, host, ask->rqpn, ask->lqpn, 0);
}

static void tell(struct proxy_edge *e, enum proxy_news n, const struct proxy_link *l)
{
	if (e->news)
		e->news(e->ctx, n, l, 0);
}

static void close_link(struct proxy_edge *e, struct proxy_link *l, rwy_time now)
{
	proxy_map_state(e->map, l, PROXY_CLOSED, now);
	proxy_map_note(e->map, l);
	e->c.links_closed++;
	tell(e, PROXY_NEWS_CLOSED, l);
}

/* The newest link of the host's queue pair with the far host; NULL: none that is open. */
static struct proxy_link *link_find(
    const struct proxy_edge *e, const struct rwy_ip *host, const struct proxy_ask *ask)
{
	struct proxy_link *l = proxy_map_out(e->map, &ask->target.addr, host, ask->lqpn);

	return l && l->state != PROXY_CLOSED ? l : NULL;
}

static bool is_same(const struct proxy_link *l, const struct rwy_ip *relay, const struct proxy_ask *ask)
{
	return l->pair && l->rqpn == ask->rqpn && rwy_ip_eq(&l->relay, relay);
}

static enum proxy_answer link_add(
    struct proxy_edge *e, const struct proxy_link *tmpl, struct proxy_link **out, rwy_time now)
{
	switch (proxy_map_add(e->map, tmpl, out, now)) {
	case PROXY_LINK_OK:
		return PROXY_ANSWER_OK;
	case PROXY_LINKS_FULL:
		e->c.refused_links_full++;
		return PROXY_ANSWER_FULL;
	case PROXY_HALF_OPEN_FULL:
		e->c.refused_half_open++;
		return PROXY_ANSWER_FULL;
	case PROXY_SOURCE_FULL:
		e->c.refused_source++;
		return PROXY_ANSWER_FULL;
	}
	rwy_unreachable();
}

enum proxy_answer proxy_pair_begin(struct proxy_edge *e, const struct rwy_ip *host,
    const struct rwy_ip *relay, const struct proxy_ask *ask, uint32_t *alias, rwy_time now)
{
	struct proxy_link *l = link_find(e, host, ask);
	const struct proxy_link tmpl = {.id = id_of(host, ask),
	    .local = *host,
	    .remote = ask->target.addr,
	    .relay = *relay,
	    .entry = PROXY_NIL,
	    .local_active = true,
	    .pair = true,
	    .rqpn = ask->rqpn};
	enum proxy_answer a;

	if (l && is_same(l, relay, ask)) {
		*alias = l->alias;
		return PROXY_ANSWER_OK;
	}
	if (l) {
		e->c.links_superseded++;
		close_link(e, l, now);
	}
	a = link_add(e, &tmpl, &l, now);
	if (a != PROXY_ANSWER_OK)
		return a;
	if (proxy_map_alias(e->map, l) != 0) {
		proxy_map_remove(e->map, l);
		e->c.refused_qpn++;
		return PROXY_ANSWER_NO_QPN;
	}
	proxy_map_local_qpn(e->map, l, ask->lqpn);
	proxy_map_state(e->map, l, PROXY_ESTABLISHED, now);
	proxy_map_note(e->map, l);
	*alias = l->alias;
	e->c.pairs_made++;
	tell(e, PROXY_NEWS_OPEN, l);
	return PROXY_ANSWER_OK;
}

void proxy_pair_end(struct proxy_edge *e, const struct rwy_ip *host, const struct rwy_ip *relay,
    const struct proxy_ask *ask, rwy_time now)
{
	struct proxy_link *l = link_find(e, host, ask);

	if (l && is_same(l, relay, ask))
		close_link(e, l, now);
}
