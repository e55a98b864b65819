/* SPDX-License-Identifier: Apache-2.0 */
/* One tenant: check, copy, compile, compare; admission of its packets. set.c has the set of all. */
#include "tenant/tenant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tenant/internal.h"

static const struct rwy_ip none;

void tenant_cfg_default(struct tenant_cfg *cfg)
{
	memset(cfg, 0, sizeof(*cfg));
	cfg->weight = 1;
	cfg->allow_default = true;
	vxlan_dscp_keep(&cfg->dscp);
	vxlan_dscp_keep(&cfg->dscp_congested);
}

/* --- checks ----------------------------------------------------------------------------------- */

static bool name_ok(const char *name)
{
	unsigned n = 0;

	for (; n < TENANT_NAME_MAX && name[n]; n++) {
		char c = name[n];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		        c == '-' || c == '_' || c == '.'))
			return false;
	}
	return n && n < TENANT_NAME_MAX;
}

static bool host_ok(const struct rwy_ip *a)
{
	if (rwy_ip_is4(a))
		return a->b[12] && a->b[12] != 127 && a->b[12] < 224;
	return a->b[0] != 0xff && !rwy_ip_eq(a, &none);
}

static enum tenant_error scalars_check(const struct tenant_cfg *c)
{
	if (!c->vni && !c->vlan)
		return TENANT_E_NUMBER;
	if (c->vni > TENANT_VNI_MAX)
		return TENANT_E_VNI;
	if (c->vlan > TENANT_VLAN_MAX)
		return TENANT_E_VLAN;
	if (c->prefixes > TENANT_PREFIXES_MAX)
		return TENANT_E_PREFIXES;
	if (c->vteps > TENANT_VTEPS_MAX)
		return TENANT_E_VTEPS;
	if (c->hosts > TENANT_HOSTS_MAX)
		return TENANT_E_HOSTS;
	if ((unsigned)c->ack_mode > TENANT_ACK_SITE || c->modes > TENANT_MODES_MAX)
		return TENANT_E_ACK_MODE;
	for (unsigned i = 0; i < c->modes; i++)
		if ((unsigned)c->mode[i].mode > TENANT_ACK_SITE)
			return TENANT_E_ACK_MODE;
	if ((c->limit_Bps && c->limit_Bps < c->guarantee_Bps) ||
	    (c->limit_Bps && c->limit_Bps < TENANT_RATE_MIN) ||
	    (c->guarantee_Bps && c->guarantee_Bps < TENANT_RATE_MIN))
		return TENANT_E_RATE;
	if (!c->weight || c->weight > TENANT_WEIGHT_MAX)
		return TENANT_E_WEIGHT;
	if (c->priority > TENANT_PRIORITY_MAX)
		return TENANT_E_PRIORITY;
	if (c->pcp > 8)
		return TENANT_E_PCP;
	if (c->memory_ppm > TENANT_PPM)
		return TENANT_E_SHARE;
	for (unsigned i = 0; i < 64; i++)
		if (c->dscp.map[i] > 63 || c->dscp_congested.map[i] > 63)
			return TENANT_E_DSCP;
	return TENANT_E_NONE;
}

static bool place_ok(const struct tenant_cfg *c, const struct tenant_at *at, const struct tenant_limits *lim)
{
	switch ((enum tenant_side)at->side) {
	case TENANT_NOWHERE:
		return false;
	case TENANT_LAN:
		return c->vlan && !at->tunnel;
	case TENANT_VTEP:
		return c->vni && !at->tunnel;
	case TENANT_TUNNEL:
		return at->tunnel < lim->tunnels;
	}
	return false; /* not an enumerator */
}

/* --- compiled form ---------------------------------------------------------------------------- */

/* Longest match per range. A range that already has a prefix of the same length has the same
 * prefix. */
static int match_fill(struct tenant *t, const struct tenant_limits *lim, struct tenant_err *err)
{
	const struct tenant_cfg *c = &t->cfg;
	uint8_t best[2 * TENANT_PREFIXES_MAX + 2] = {0};

	for (unsigned i = 0; i < c->prefixes; i++) {
		const struct tenant_prefix *p = &c->prefix[i];
		uint32_t at[4];

		range_of_prefix(&t->map, &p->p, at);
		for (unsigned half = 0; half < 4; half += 2)
			for (uint32_t k = at[half]; k < at[half + 1]; k++) {
				if (best[k] == p->p.len + 1)
					return tenant_fail(
					    err, RWY_EINVAL, TENANT_E_PREFIX_TWICE, c->name, (int)i);
				if (best[k] > p->p.len + 1)
					continue;
				best[k] = (uint8_t)(p->p.len + 1);
				t->at[k] = p->at;
			}
		if (!place_ok(c, &p->at, lim))
			return tenant_fail(err, RWY_EINVAL, TENANT_E_PLACE, c->name, (int)i);
		if (p->at.side == TENANT_TUNNEL)
			t->tunnels |= (uint64_t)1 << p->at.tunnel;
	}
	return 0;
}

static int prefixes_make(struct tenant *t, const struct tenant_limits *lim, struct tenant_err *err)
{
	const struct tenant_cfg *c = &t->cfg;
	struct prefix *p = malloc((c->prefixes ? c->prefixes : 1) * sizeof(*p));
	int r = RWY_ENOMEM;

	if (p) {
		r = 0;
		for (unsigned i = 0; i < c->prefixes && !r; i++) {
			p[i] = c->prefix[i].p;
			if (!prefix_ok(&p[i]))
				r = tenant_fail(err, RWY_EINVAL, TENANT_E_PREFIX, c->name, (int)i);
		}
		if (!r)
			r = range_init(&t->map, p, c->prefixes);
		free(p);
	}
	if (r == RWY_ENOMEM)
		return tenant_fail(err, r, TENANT_E_MEMORY, c->name, -1);
	return r ? r : match_fill(t, lim, err);
}

/* Sorts in place; a bad one is reported by its number in the configuration. */
static int vteps_make(struct rwy_ip *v, const struct tenant_cfg *from, struct tenant_err *err)
{
	for (unsigned i = 0; i < from->vteps; i++) {
		struct rwy_ip a = from->vtep[i];
		unsigned j = i;

		for (; j && memcmp(&v[j - 1], &a, 16) > 0; j--)
			v[j] = v[j - 1];
		v[j] = a;
		if (!host_ok(&a) || !from->vni || (j && rwy_ip_eq(&v[j - 1], &a)))
			return tenant_fail(err, RWY_EINVAL, TENANT_E_VTEP, from->name, (int)i);
	}
	return 0;
}

/* True if the VTEP is configured, or learning is on. */
static bool has_vtep(const struct tenant *t, const struct rwy_ip *vtep)
{
	const struct rwy_ip *base = t->cfg.vtep;
	unsigned n = t->cfg.vteps;

	if (t->cfg.vtep_learn)
		return true;
	while (n > 1) {
		unsigned half = n / 2;

		if (memcmp(&base[half], vtep, 16) <= 0)
			base += half;
		n -= half;
	}
	return n && rwy_ip_eq(base, vtep);
}

/* Like vteps_make; the tenant's VTEPs and prefixes must be made before. */
static int hosts_make(
    struct tenant *t, struct tenant_host *h, const struct tenant_cfg *from, struct tenant_err *err)
{
	static const uint8_t no_mac[6];

	for (unsigned i = 0; i < from->hosts; i++) {
		struct tenant_host a = from->host[i];
		enum tenant_side side = tenant_find(t, &a.addr).side;
		bool vtep = !rwy_ip_eq(&a.vtep, &none);
		unsigned j = i;

		for (; j && memcmp(&h[j - 1].addr, &a.addr, 16) > 0; j--)
			h[j] = h[j - 1];
		h[j] = a;
		if (side != (vtep ? TENANT_VTEP : TENANT_LAN) || (vtep && !has_vtep(t, &a.vtep)) ||
		    a.mac[0] & 1 || !memcmp(a.mac, no_mac, 6) || (j && rwy_ip_eq(&h[j - 1].addr, &a.addr)))
			return tenant_fail(err, RWY_EINVAL, TENANT_E_HOST, from->name, (int)i);
	}
	return 0;
}

static int gateway_check(const struct tenant *t, struct tenant_err *err)
{
	static const uint8_t no_mac[6];
	const struct tenant_cfg *c = &t->cfg;
	bool mac = memcmp(c->gw_mac, no_mac, 6) != 0;

	if ((c->gw_mac[0] & 1) || (!mac && (c->vni || c->proxy_arp || !rwy_ip_eq(&c->gw_ip[0], &none) ||
	                                       !rwy_ip_eq(&c->gw_ip[1], &none))))
		return tenant_fail(err, RWY_EINVAL, TENANT_E_GATEWAY, c->name, -1);
	for (int i = 0; i < 2; i++) {
		const struct rwy_ip *a = &c->gw_ip[i];
		struct tenant_at at;

		if (rwy_ip_eq(a, &none))
			continue;
		at = tenant_find(t, a);
		if (rwy_ip_is4(a) != (i == 0) || !host_ok(a) ||
		    (at.side != TENANT_LAN && at.side != TENANT_VTEP))
			return tenant_fail(err, RWY_EINVAL, TENANT_E_GATEWAY, c->name, i);
	}
	return 0;
}

/* Whether one of the tenant's prefixes overlaps p. */
static bool inside(const struct tenant *t, const struct prefix *p)
{
	uint32_t at[4];

	range_of_prefix(&t->map, p, at);
	for (unsigned half = 0; half < 4; half += 2)
		for (uint32_t k = at[half]; k < at[half + 1]; k++)
			if (t->at[k].side != TENANT_NOWHERE)
				return true;
	return p->len == 0;
}

static int acl_make(struct tenant *t, struct tenant_err *err)
{
	const struct tenant_cfg *c = &t->cfg;
	struct acl_err ae;
	struct acl *a;
	int r = acl_new(&a, c->rule, c->rules, c->allow_default, &ae);

	if (r == RWY_ENOMEM)
		return tenant_fail(err, r, TENANT_E_MEMORY, c->name, -1);
	if (r) {
		r = tenant_fail(err, r, TENANT_E_RULE, c->name, (int)ae.rule);
		err->rule_why = ae.why;
		return r;
	}
	t->acl = a;
	for (unsigned i = 0; i < c->rules; i++)
		if (!inside(t, &c->rule[i].src) || !inside(t, &c->rule[i].dst))
			return tenant_fail(err, RWY_EINVAL, TENANT_E_RULE_OUTSIDE, c->name, (int)i);
	return 0;
}

/* Allocates one block: the tenant, then its arrays in order of decreasing alignment. */
static struct tenant *block(const struct tenant_cfg *c)
{
	size_t rules = c->rules * sizeof(struct acl_rule),
	       prefixes = c->prefixes * sizeof(struct tenant_prefix),
	       vteps = c->vteps * sizeof(struct rwy_ip), hosts = c->hosts * sizeof(struct tenant_host),
	       at = (2 * (size_t)c->prefixes + 2) * sizeof(struct tenant_at),
	       size = sizeof(struct tenant) + rules + prefixes + vteps + at + hosts;
	struct tenant *t = calloc(1, size);
	uint8_t *p = (uint8_t *)(t + 1);

	if (!t)
		return NULL;
	t->cfg = *c;
	t->bytes = size;
	t->cfg.rule = memcpy(p, c->rules ? (const void *)c->rule : "", rules);
	t->cfg.prefix = memcpy(p + rules, c->prefixes ? (const void *)c->prefix : "", prefixes);
	t->cfg.vtep = (struct rwy_ip *)(void *)(p + rules + prefixes);
	t->at = (struct tenant_at *)(void *)(p + rules + prefixes + vteps);
	t->cfg.host = (struct tenant_host *)(void *)(p + rules + prefixes + vteps + at);
	return t;
}

int tenant_make(struct tenant **out, const struct tenant_cfg *cfg, const struct tenant_limits *lim,
    struct tenant_err *err)
{
	enum tenant_error e = name_ok(cfg->name) ? scalars_check(cfg) : TENANT_E_NAME;
	struct acl_err ae;
	struct tenant *t;
	int r;

	if (e != TENANT_E_NONE)
		return tenant_fail(err, RWY_EINVAL, e, cfg->name, -1);
	if (cfg->rules > ACL_RULES_MAX) {
		ae = (struct acl_err){ACL_E_RULES, cfg->rules};
		r = tenant_fail(err, RWY_EINVAL, TENANT_E_RULE, cfg->name, (int)cfg->rules);
		err->rule_why = ae.why;
		return r;
	}
	t = block(cfg);
	if (!t)
		return tenant_fail(err, RWY_ENOMEM, TENANT_E_MEMORY, cfg->name, -1);
	r = prefixes_make(t, lim, err);
	if (!r)
		r = vteps_make((struct rwy_ip *)(void *)(t->cfg.prefix + cfg->prefixes), cfg, err);
	if (!r)
		r = hosts_make(t, (struct tenant_host *)(uintptr_t)t->cfg.host, cfg, err);
	if (!r)
		r = gateway_check(t, err);
	if (!r)
		r = acl_make(t, err);
	if (r) {
		tenant_unmake(t);
		return r;
	}
	t->bytes += acl_bytes(t->acl) + t->map.n6 * sizeof(*t->map.lo6) + t->map.n4 * sizeof(*t->map.lo4);
	*out = t;
	return 0;
}

void tenant_unmake(const struct tenant *t)
{
	struct tenant *mine = (struct tenant *)(uintptr_t)t; /* tenant_make made it as not const */

	if (!t)
		return;
	acl_free((struct acl *)(uintptr_t)t->acl);
	range_fini(&mine->map);
	free(mine);
}

/* --- comparison ------------------------------------------------------------------------------- */

static bool rule_eq(const struct acl_rule *a, const struct acl_rule *b)
{
	return prefix_eq(&a->src, &b->src) && prefix_eq(&a->dst, &b->dst) && a->sport_lo == b->sport_lo &&
	       a->sport_hi == b->sport_hi && a->classes == b->classes && a->allow == b->allow;
}

static bool arrays_same(const struct tenant_cfg *a, const struct tenant_cfg *b)
{
	if (a->prefixes != b->prefixes || a->vteps != b->vteps || a->rules != b->rules ||
	    a->hosts != b->hosts || a->modes != b->modes)
		return false;
	for (unsigned i = 0; i < a->modes; i++)
		if (!prefix_eq(&a->mode[i].from, &b->mode[i].from) ||
		    !prefix_eq(&a->mode[i].to, &b->mode[i].to) || a->mode[i].mode != b->mode[i].mode)
			return false;
	/* hosts in another order count as a change, which is harmless */
	for (unsigned i = 0; i < a->hosts; i++)
		if (!rwy_ip_eq(&a->host[i].addr, &b->host[i].addr) ||
		    !rwy_ip_eq(&a->host[i].vtep, &b->host[i].vtep) ||
		    memcmp(a->host[i].mac, b->host[i].mac, 6) != 0)
			return false;
	for (unsigned i = 0; i < a->prefixes; i++)
		if (!prefix_eq(&a->prefix[i].p, &b->prefix[i].p) ||
		    a->prefix[i].at.side != b->prefix[i].at.side ||
		    a->prefix[i].at.tunnel != b->prefix[i].at.tunnel)
			return false;
	for (unsigned i = 0; i < a->rules; i++)
		if (!rule_eq(&a->rule[i], &b->rule[i]))
			return false;
	return true;
}

static bool timers_same(const struct tenant_timers *a, const struct tenant_timers *b)
{
	return a->ack_min == b->ack_min && a->ack_max == b->ack_max && a->retry == b->retry &&
	       a->rnr_retry == b->rnr_retry;
}

bool tenant_same(const struct tenant *t, const struct tenant_cfg *b)
{
	const struct tenant_cfg *a = &t->cfg;

	if (strcmp(a->name, b->name) != 0 || a->vni != b->vni || a->vlan != b->vlan ||
	    a->vtep_learn != b->vtep_learn || a->allow_default != b->allow_default ||
	    a->ack_mode != b->ack_mode || a->admission != b->admission ||
	    !timers_same(&a->timers, &b->timers) || a->guarantee_Bps != b->guarantee_Bps ||
	    a->limit_Bps != b->limit_Bps || a->weight != b->weight || a->priority != b->priority ||
	    a->pcp != b->pcp || memcmp(&a->dscp, &b->dscp, sizeof(a->dscp)) != 0 ||
	    memcmp(&a->dscp_congested, &b->dscp_congested, sizeof(a->dscp)) != 0 ||
	    a->memory_ppm != b->memory_ppm || memcmp(a->gw_mac, b->gw_mac, 6) != 0 ||
	    !rwy_ip_eq(&a->gw_ip[0], &b->gw_ip[0]) || !rwy_ip_eq(&a->gw_ip[1], &b->gw_ip[1]) ||
	    a->proxy_arp != b->proxy_arp || !arrays_same(a, b))
		return false;
	/* ours are sorted and distinct, so compare as sets */
	for (unsigned i = 0; i < b->vteps; i++) {
		unsigned j = 0;

		while (j < a->vteps && !rwy_ip_eq(&a->vtep[j], &b->vtep[i]))
			j++;
		if (j == a->vteps)
			return false;
		for (unsigned k = 0; k < i; k++)
			if (rwy_ip_eq(&b->vtep[k], &b->vtep[i]))
				return false; /* a duplicate must be refused, not shared */
	}
	return true;
}

/* --- admission -------------------------------------------------------------------------------- */

enum tenant_admit tenant_of_vxlan(const struct tenant_set *s, uint32_t vni, const struct rwy_ip *vtep,
    uint16_t vlan, const struct tenant **t)
{
	*t = tenant_by_vni(s, vni);
	if (!*t)
		return TENANT_UNKNOWN_VNI;
	if (vlan && vlan != (*t)->cfg.vlan)
		return TENANT_FOREIGN_TAG;
	return has_vtep(*t, vtep) ? TENANT_OK : TENANT_FOREIGN_VTEP;
}

enum tenant_admit tenant_admits(const struct tenant *t, enum tenant_side side, const struct acl_key *k,
    struct tenant_at *to, uint16_t *rule)
{
	struct acl_verdict v;

	*rule = ACL_DEFAULT;
	*to = tenant_find(t, &k->dst);
	if (tenant_find(t, &k->src).side != side)
		return TENANT_FORGED_SOURCE;
	if (to->side == TENANT_NOWHERE)
		return TENANT_NO_ROUTE;
	v = acl_lookup(t->acl, k);
	*rule = v.rule;
	return v.allow ? TENANT_OK : TENANT_DENIED;
}

const char *tenant_admit_name(enum tenant_admit r)
{
	static const char *const names[] = {
#define X(e, n, s) n,
	    TENANT_ADMIT(X)
#undef X
	};

	return (unsigned)r < TENANT_ADMIT_COUNT ? names[r] : "?";
}

const char *tenant_err_text(const struct tenant_err *e, char *buf, size_t len)
{
	static const char *const texts[] = {
#define X(c, s) s,
	    TENANT_ERRORS(X)
#undef X
	};
	const char *text = (unsigned)e->why < TENANT_ERROR_COUNT ? texts[e->why] : "?";
	char item[16] = "";

	if (e->item >= 0)
		snprintf(item, sizeof(item), " [%d]", e->item);
	snprintf(buf, len, "tenant %s: %s%s%s%s%s%s", e->name, text, item, e->other[0] ? ": " : "", e->other,
	    e->why == TENANT_E_RULE ? ": " : "", e->why == TENANT_E_RULE ? acl_error_text(e->rule_why) : "");
	return buf;
}
