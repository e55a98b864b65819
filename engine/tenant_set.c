/* SPDX-License-Identifier: Apache-2.0 */
/* Adding a tenant, and changing one while its connections go on. */
#include <stdlib.h>

#include "engine/standby.h"
#include "engine/memory.h"
#include "engine/responder.h"
#include "engine/steer.h"
#include "engine/tenants.h"
#include "engine/tunnel.h"

static int check_tenant_cfg(const struct eng *e, uint32_t idx, const struct eng_tenant_cfg *cfg)
{
	int other = cfg->vni ? eng_tenant_by_vni(e, cfg->vni) : -1;
	const struct wan_class_cfg *s = &cfg->share;

	if (!idx || idx >= ENG_TENANTS_MAX || !cfg->vni || cfg->vni > 0xffffff ||
	    (other >= 0 && (uint32_t)other != idx))
		return RWY_EINVAL;
	if (s->weight > WAN_WEIGHT_MAX || s->priority >= WAN_PRIORITIES ||
	    (s->limit_Bps && s->limit_Bps < s->guarantee_Bps) ||
	    (!s->weight && (s->limit_Bps || s->guarantee_Bps)))
		return RWY_EINVAL;
	if (cfg->modes > ENG_MODES_MAX)
		return RWY_EINVAL;
	for (unsigned i = 0; i < cfg->prefixes; i++)
		if (!eng_tunnel_there(e, cfg->prefix[i].tunnel) || cfg->prefix[i].len > 128)
			return RWY_EINVAL;
	if (idx < e->tenant_slots && e->tenant[idx] && e->tenant[idx]->removing)
		return RWY_EAGAIN;
	return 0;
}

static bool grow_tenants(struct eng *e, uint32_t idx)
{
	uint32_t n = e->tenant_slots;
	struct eng_tenant **v;

	while (n <= idx)
		n *= 2;
	if (n == e->tenant_slots)
		return true;
	v = calloc(n, sizeof(*v)); /* NOLINT(bugprone-sizeof-expression): pointers */
	if (!v)
		return false;
	memcpy(v, e->tenant, e->tenant_slots * sizeof(*v)); /* NOLINT(bugprone-sizeof-expression) */
	free(e->tenant);
	e->tenant = v;
	e->tenant_slots = n;
	return true;
}

/* Sets its share of every tunnel. The share was checked, so only RWY_ENOMEM is possible. */
static int set_tunnel_shares(struct eng *e, uint32_t idx, const struct wan_class_cfg *s)
{
	for (unsigned i = 0; i < e->cfg.tunnels; i++) {
		int r = s->weight && e->tunnel[i].wan ? wan_class_set(e->tunnel[i].wan, idx, s) : 0;

		if (r)
			return r;
	}
	return 0;
}

int eng_tenant_set(struct eng *e, uint32_t idx, const struct eng_tenant_cfg *cfg, rwy_time now)
{
	struct eng_prefix *prefix = NULL;
	struct eng_tenant *t, *fresh = NULL;
	int r = check_tenant_cfg(e, idx, cfg);

	if (r)
		return r;
	if (!grow_tenants(e, idx))
		return RWY_ENOMEM;
	if (cfg->prefixes && !(prefix = malloc(cfg->prefixes * sizeof(*prefix))))
		return RWY_ENOMEM;
	t = e->tenant[idx];
	if (!t && !(t = fresh = calloc(1, sizeof(*t)))) {
		free(prefix);
		return RWY_ENOMEM;
	}
	r = set_tunnel_shares(e, idx, &cfg->share);
	if (r) {
		free(prefix);
		free(fresh);
		return r;
	}
	if (cfg->prefixes)
		memcpy(prefix, cfg->prefix, cfg->prefixes * sizeof(*prefix));
	struct eng_tenant old = *t;

	t->cfg = *cfg;
	if (!cfg->timers.timeout_max)
		t->cfg.timers = e->cfg.timers;
	t->cfg.prefix = t->prefix = prefix;
	eng_modes_set(e, t, cfg->mode, cfg->modes);
	e->tenant[idx] = t;
	if (old.cfg.vni != cfg->vni && (r = eng_vni_enter(e, idx)) != 0) {
		*t = old;
		free(prefix);
		if (fresh) {
			e->tenant[idx] = NULL;
			free(fresh);
		}
		return r;
	}
	free(old.prefix);
	eng_mem_tenant_changed(e, t, old.cfg.reserve);
	if (fresh && e->journal_free && eng_sb_serves(e)) /* else when it begins to serve */
		eng_journal_restore(e, idx, now);
	return 0;
}
