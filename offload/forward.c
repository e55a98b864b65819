/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forwarding without software: RoCE between a host behind a VTEP and a host on the tenant's VLAN,
 * both with configured places, where the ACL allows all of it. The match has everything that
 * admission would check: VTEP, VNI or VLAN, both MAC addresses, both IP addresses. The TTL is
 * reduced by 1, so packets with an ending TTL go to software first.
 */
#include <string.h>

#include "offload/internal.h"

static const struct rwy_ip none;

/* Whether every RoCE packet between the two is allowed; also false when rule-by-rule checks cannot
 * tell. */
static bool all_allowed(const struct tenant_cfg *c, const struct rwy_ip *src, const struct rwy_ip *dst)
{
	for (unsigned i = 0; i < c->rules; i++) {
		const struct acl_rule *r = &c->rule[i];

		if (!prefix_has(&r->src, src) || !prefix_has(&r->dst, dst))
			continue;
		if (!r->allow)
			return false;
		if (!r->sport_lo && r->sport_hi == UINT16_MAX && (r->classes & ACL_ALL) == ACL_ALL)
			return true;
	}
	return c->allow_default;
}

static bool keeps_dscp(const struct tenant_cfg *c)
{
	for (unsigned i = 0; i < 64; i++)
		if (c->dscp.map[i] != i)
			return false;
	return true;
}

/* Returns our address of the VTEP's family; NULL: none. */
static const struct rwy_ip *self_for(const struct offload_cfg *cfg, const struct rwy_ip *vtep)
{
	for (unsigned i = 0; i < cfg->selfs; i++)
		if (rwy_ip_is4(&cfg->self[i]) == rwy_ip_is4(vtep))
			return &cfg->self[i];
	return NULL;
}

/* `in`, `out`: the gateway's MAC addresses on the two sides. */
static void addresses(struct offload_rule *r, const struct tenant_host *from, const uint8_t in[6],
    const struct tenant_host *to, const uint8_t out[6])
{
	r->match.src = (struct prefix){from->addr, 128};
	r->match.dst = (struct prefix){to->addr, 128};
	r->match.family = rwy_ip_is4(&from->addr) ? 4 : 6;
	r->match.roce = r->match.whole = r->match.by_mac = true;
	memcpy(r->match.src_mac, from->mac, 6);
	memcpy(r->match.dst_mac, in, 6);
	memcpy(r->to.src_mac, out, 6);
	memcpy(r->to.dst_mac, to->mac, 6);
}

/* v is behind a VTEP, w is on the VLAN. */
static int off_vxlan(struct offload_list *l, const struct offload_cfg *cfg, const struct tenant *t,
    const struct tenant_host *v, const struct tenant_host *w)
{
	struct offload_rule r;
	int rc = 0;

	offload_rule_init(&r, OFFLOAD_FORWARD, OFFLOAD_TO_VLAN, OFFLOAD_PRIO_FORWARD);
	r.tenant = t->index;
	r.match.place = OFFLOAD_IN_VXLAN;
	r.match.vni = t->cfg.vni;
	r.match.vtep = v->vtep;
	addresses(&r, v, t->cfg.gw_mac, w, cfg->mac);
	r.to.vlan = t->cfg.vlan;
	for (unsigned i = 0; i < cfg->selfs && !rc; i++) {
		r.match.self = cfg->self[i];
		if (rwy_ip_is4(&cfg->self[i]) == rwy_ip_is4(&v->vtep))
			rc = offload_list_add(l, &r);
	}
	return rc;
}

static int into_vxlan(struct offload_list *l, const struct offload_cfg *cfg, const struct rwy_ip *self,
    const struct tenant *t, const struct tenant_host *v, const struct tenant_host *w)
{
	struct offload_rule r;

	offload_rule_init(&r, OFFLOAD_FORWARD, OFFLOAD_TO_VXLAN, OFFLOAD_PRIO_FORWARD);
	r.tenant = t->index;
	r.match.place = OFFLOAD_IN_VLAN;
	r.match.vlan = t->cfg.vlan;
	addresses(&r, w, cfg->mac, v, t->cfg.gw_mac);
	r.to.vni = t->cfg.vni;
	r.to.self = *self;
	r.to.vtep = v->vtep;
	return offload_list_add(l, &r);
}

/* Lists, for the operator, a pair that software forwards, and why. */
static int forward_left(struct offload_list *l, const struct tenant *t, const struct tenant_host *from,
    const struct tenant_host *to, enum offload_left why)
{
	struct offload_rule r;

	offload_rule_init(&r, OFFLOAD_FORWARD, OFFLOAD_NOTHING, 0);
	addresses(&r, from, t->cfg.gw_mac, to, t->cfg.gw_mac);
	r.tenant = t->index;
	r.left = (uint8_t)why;
	return offload_list_add(l, &r);
}

static int pair(struct offload_list *l, const struct offload_cfg *cfg, const struct tenant *t,
    const struct tenant_host *v, const struct tenant_host *w)
{
	const struct rwy_ip *self = self_for(cfg, &v->vtep);
	int rc = 0;

	if (!self)
		return forward_left(l, t, v, w, OFFLOAD_LEFT_SELF);
	if (all_allowed(&t->cfg, &v->addr, &w->addr))
		rc = off_vxlan(l, cfg, t, v, w);
	else
		rc = forward_left(l, t, v, w, OFFLOAD_LEFT_DENIED);
	if (rc)
		return rc;
	if (all_allowed(&t->cfg, &w->addr, &v->addr))
		return into_vxlan(l, cfg, self, t, v, w);
	return forward_left(l, t, w, v, OFFLOAD_LEFT_DENIED);
}

int offload_forward(struct offload_list *l, const struct offload_cfg *cfg, const struct tenant *t)
{
	const struct tenant_cfg *c = &t->cfg;
	const unsigned at = l->n;

	if (!c->vni || !c->vlan || !c->hosts)
		return 0;
	if (!keeps_dscp(c) || c->pcp)
		return offload_list_left(l, t, OFFLOAD_FORWARD, -1, OFFLOAD_LEFT_DSCP);
	for (unsigned i = 0; i < c->hosts; i++)
		for (unsigned j = 0; j < c->hosts; j++) {
			const struct tenant_host *v = &c->host[i], *w = &c->host[j];
			int rc;

			if (rwy_ip_eq(&v->vtep, &none) || !rwy_ip_eq(&w->vtep, &none) ||
			    rwy_ip_is4(&v->addr) != rwy_ip_is4(&w->addr))
				continue;
			rc = pair(l, cfg, t, v, w);
			if (rc)
				return rc;
			if (l->n - at > cfg->tenant_max) {
				l->n = at;
				return offload_list_left(l, t, OFFLOAD_FORWARD, -1, OFFLOAD_LEFT_MANY);
			}
		}
	return 0;
}

/* One rule for all tenants that forward: their packets with an ending TTL go to software. */
int offload_forward_common(struct offload_list *l, const struct offload_cfg *cfg, const struct tenant_set *s)
{
	bool any = false;
	struct offload_rule r;
	int rc = 0;

	for (uint32_t i = 0; i < s->top && !any; i++)
		any = s->by_index[i] && s->by_index[i]->cfg.vni && s->by_index[i]->cfg.vlan &&
		      s->by_index[i]->cfg.hosts;
	for (unsigned family = 4; family <= 6 && any && !rc; family += 2) {
		offload_rule_init(&r, OFFLOAD_TTL, OFFLOAD_PASS, OFFLOAD_PRIO_TTL);
		r.match.family = (uint8_t)family;
		r.match.ttl_ends = true;
		r.match.place = OFFLOAD_IN_VXLAN;
		for (unsigned i = 0; i < cfg->selfs && !rc; i++) {
			r.match.self = cfg->self[i];
			rc = offload_list_add(l, &r);
		}
		memset(&r.match.self, 0, sizeof(r.match.self));
		r.match.place = OFFLOAD_IN_VLAN; /* any VLAN */
		if (!rc)
			rc = offload_list_add(l, &r);
	}
	return rc;
}
