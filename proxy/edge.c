/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/edge.h"

#include "proxy/cm.h"
#include "proxy/edge_int.h"
#include "proxy/fast.h"
#include "proxy/rewrite.h"
#include "roce/cm.h"

#define EXPIRE_BUDGET 256 /* links a tick */

int proxy_edge_init(struct proxy_edge *e, const struct proxy_policy *policy, const struct proxy_map_cfg *cfg)
{
	int rc;

	*e = (struct proxy_edge){.policy = policy};
	rc = proxy_map_new(&e->map, cfg);
	if (!rc)
		e->view = proxy_map_view(e->map);
	return rc;
}

void proxy_edge_fini(struct proxy_edge *e)
{
	proxy_map_free(e->map);
	e->map = NULL;
}

/* The entry that named its target, if the listen map still has it. */
static uint32_t entry_of(const struct proxy_policy *p, const struct proxy_link *l)
{
	const int i = l->local_active && !l->pair ? proxy_entry_find(p, &l->relay, l->asked_port) : -1;

	if (i < 0 || !rwy_ip_eq(&p->entry[i].target, &l->remote) || p->entry[i].target_port != l->port)
		return PROXY_NIL;
	return (uint32_t)i;
}

bool proxy_edge_fits(const struct proxy_edge *e, struct proxy_link *l)
{
	const struct proxy_policy *p = e->policy;
	const struct rwy_ip *active = l->local_active ? &l->local : &l->remote,
	                    *passive = l->local_active ? &l->remote : &l->local;

	l->entry = entry_of(p, l);
	return proxy_is_relay(p, &l->relay) && !proxy_is_relay(p, &l->remote) &&
	       (l->pair ? proxy_allows_pair(p, active, passive) : proxy_allows(p, active, passive, l->port));
}

static bool fits(void *ctx, struct proxy_link *l)
{
	return proxy_edge_fits(ctx, l);
}

int proxy_edge_restore(struct proxy_edge *e, rwy_time now)
{
	const struct proxy_link *l;
	struct proxy_restored n;
	uint32_t cursor = 0;
	int rc = proxy_map_restore(e->map, fits, e, &n, now);

	e->c.links_restored = n.links;
	e->c.links_unfit = n.refused;
	e->c.links_broken = n.broken;
	/* A REQ that comes back goes in a circle, as before. */
	while (!rc && (l = proxy_map_next(e->map, &cursor)))
		if (l->local_active && l->state == PROXY_REQ_SEEN)
			proxy_hops_pass(&e->hops, l->id, PROXY_HOPS_OWN, now);
	return rc;
}

static void drop(struct proxy_act *act, uint64_t *counter)
{
	(*counter)++;
	act->verdict = PROXY_DROP;
}

/* Operations that are not carried pass as well: the engine answers them. */
static bool parses(uint8_t *ip, uint32_t len, struct roce_pkt *pkt)
{
	enum roce_parse_reason r = roce_parse(ip, len, pkt);

	return r == ROCE_PARSE_OK || r == ROCE_PARSE_UNKNOWN_OPCODE;
}

/* UD names its sender's QPN inside; the splice has no links for it (docs/proxy.md). */
static bool is_datagram(const struct roce_pkt *pkt)
{
	return pkt->info->transport == ROCE_UD;
}

void proxy_edge_in(struct proxy_edge *e, uint8_t *ip, uint32_t len, struct proxy_act *act, rwy_time now)
{
	struct proxy_link *l;
	struct roce_pkt pkt;

	act->reply_len = 0;
	act->link = NULL;
	act->verdict = PROXY_PASS;
	if (proxy_fast_in(e, ip, len, now))
		return;
	if (!parses(ip, len, &pkt)) {
		drop(act, &e->c.drop_relay_malformed);
		return;
	}
	if (roce_is_gsi(&pkt)) {
		proxy_cm_in(e, &pkt, act, now);
		return;
	}
	if (is_datagram(&pkt)) {
		drop(act, &e->c.drop_relay_not_cm);
		return;
	}
	l = proxy_map_in(e->map, &pkt.dst, pkt.dqpn);
	if (!l) {
		drop(act, &e->c.drop_relay_unknown_qpn);
		return;
	}
	if (!rwy_ip_eq(&l->local, &pkt.src)) {
		drop(act, &e->c.drop_relay_foreign);
		return;
	}
	if (!proxy_is_open(l)) {
		drop(act, &e->c.drop_relay_not_open);
		return;
	}
	proxy_rewrite_dst(&pkt, &l->remote);
	proxy_rewrite_dqpn(&pkt, l->rqpn);
	proxy_count_in(e, l, pkt.len, now);
	act->verdict = PROXY_PASS;
}

void proxy_edge_out(
    struct proxy_edge *e, uint8_t *ip, uint32_t len, uint64_t *hint, struct proxy_act *act, rwy_time now)
{
	struct proxy_link *l;
	struct roce_pkt pkt;

	act->reply_len = 0;
	act->link = NULL;
	act->verdict = PROXY_PASS;
	if (proxy_fast_out(e, ip, len, hint, now))
		return;
	if (!parses(ip, len, &pkt)) {
		drop(act, &e->c.drop_relay_no_link);
		return;
	}
	if (proxy_is_relay(e->policy, &pkt.src)) { /* sent again, or a copy of one that was sent */
		act->verdict = PROXY_PASS;
		return;
	}
	if (roce_is_gsi(&pkt)) {
		proxy_cm_out(e, &pkt, act, now);
		return;
	}
	l = is_datagram(&pkt) ? NULL : proxy_map_out(e->map, &pkt.src, &pkt.dst, pkt.dqpn);
	if (!l) {
		drop(act, &e->c.drop_relay_no_link);
		return;
	}
	if (!proxy_is_open(l)) {
		drop(act, &e->c.drop_relay_not_open);
		return;
	}
	proxy_rewrite_src(&pkt, &l->relay);
	proxy_count_out(e, l, pkt.len, now);
	act->verdict = PROXY_PASS;
}

static void gone(void *ctx, const struct proxy_link *l)
{
	struct proxy_edge *e = ctx;

	if (l->state == PROXY_CLOSED)
		return;
	e->c.links_expired++;
	if (e->news)
		e->news(e->ctx, PROXY_NEWS_GONE, l, 0);
}

void proxy_edge_tick(struct proxy_edge *e, rwy_time now)
{
	proxy_map_expire(e->map, EXPIRE_BUDGET, gone, e, now);
}
