/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Applies the store's records to the objects in memory, at start and later. Stored state has no
 * other way in. A record that cannot be read, of another version or a foreign one, is reported once
 * and left alone.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/state/ctlr.h"
#include "controller/state/event.h"
#include "controller/state/flow.h"
#include "controller/state/orphan.h"
#include "controller/state/pair.h"
#include "controller/state/work.h"

static json_t *read_record(struct ctlr *c, const struct store_kv *kv)
{
	json_t *j = json_loadb(kv->value, kv->len, 0, NULL);

	if (!json_is_object(j)) {
		ctlr_event(c, EVENT_ERROR, "store", kv->key, "the record cannot be read: left alone");
		json_decref(j);
		return NULL;
	}
	return j;
}

bool ctlr_replica_alive(const struct ctlr *c, const char *name)
{
	return !strcmp(name, c->conf->name) || ctlr_map_find(&c->replicas, name);
}

bool ctlr_tunnel_is_ours(const struct ctlr *c, const struct ctlr_tunnel *t)
{
	for (unsigned i = 0; i < 2; i++)
		if (t->end[i]->up && ctlr_replica_alive(c, t->end[i]->owner))
			return !strcmp(t->end[i]->owner, c->conf->name);
	return false;
}

/* --- gateways --------------------------------------------------------------------------------- */

static void gateway_apply(struct ctlr *c, const struct store_kv *kv, const char *name)
{
	struct ctlr_gateway *g = ctlr_map_find(&c->gateways, name);
	struct model_registration reg;
	struct mdl_error err;
	struct ctlr_site *s;
	json_t *j;
	bool was_up, moved;

	if (!kv->value) {
		if (g) {
			char site[MDL_NAME];

			snprintf(site, sizeof(site), "%s", g->site ? g->site->name : "");
			ctlr_event(c, EVENT_INFO, "gateway", name, "removed");
			/* the others went with the same change */
			for (struct ctlr_tunnel *t = g->tunnel; t; t = t->next[ctlr_tunnel_side(t, g)])
				if (t->mod_rev)
					ctlr_orphan_add(c, t->name, name, t->mod_rev);
			ctlr_gateway_free(c, g);
			c->jobs_look = true;
			/* a site that nothing else names is freed with its gateway */
			s = ctlr_map_find(&c->sites, site);
			if (s)
				ctlr_work_add_site(c, s);
		}
		return;
	}
	j = read_record(c, kv);
	if (!j)
		return;
	if (mdl_read(json_object_get(j, "registration"), &model_registration_table, &reg, &err)) {
		ctlr_event(c, EVENT_ERROR, "store", kv->key, "%s: %s", err.field, err.text);
		json_decref(j);
		return;
	}
	g = ctlr_gateway_need(c, name);
	s = g ? ctlr_site_need(c, reg.site) : NULL;
	if (!s) {
		mdl_free(&model_registration_table, &reg);
		json_decref(j);
		return;
	}
	was_up = g->up;
	/* the gateway started anew and reports its sessions again; of a pair each member does */
	if (g->mod_rev && !reg.has_pair && strcmp(g->reg.boot_id, reg.boot_id) != 0)
		ctlr_gateway_drop_sessions(c, g, CTLR_ALL_MEMBERS);
	mdl_free(&model_registration_table, &g->reg);
	g->reg = reg;
	g->lease = strtoull(mdl_text_of(j, "lease"), NULL, 16);
	snprintf(g->owner, sizeof(g->owner), "%.31s", mdl_text_of(j, "owner"));
	g->up = !strcmp(mdl_text_of(j, "state"), "up");
	g->mod_rev = kv->mod_rev;
	g->expires = ctlr_lease_expiry(c);
	moved = g->site != s;
	ctlr_gateway_set_site(c, g, s);
	c->up += g->up;
	c->up -= was_up;
	g->changing = false;
	g->missed = 0;
	c->jobs_look |= was_up != g->up;
	if (was_up != g->up)
		ctlr_event(c, g->up ? EVENT_INFO : EVENT_WARNING, "gateway", name, "%s at site %s (%s)",
		    g->up ? "up" : "lost", s->name, g->owner);
	if (c->loaded && g->up && !s->stored && (moved || !was_up))
		ctlr_event(c, EVENT_WARNING, "gateway", name,
		    "its site %s has no record: put that, or mend its controller.site", s->name);
	ctlr_work_add_site(c, s);
	if (was_up && !g->up)
		ctlr_flow_replan_gateway(c, g);
	json_decref(j);
}

static void touch_apply(struct ctlr *c, const struct store_kv *kv, const char *name)
{
	struct ctlr_gateway *g = *name ? ctlr_map_find(&c->gateways, name) : NULL;

	if (*name && g) {
		g->touch_rev = kv->mod_rev;
		ctlr_work_add_documents(c, g);
	}
	if (*name)
		return;
	c->touch_rev = kv->mod_rev;
	CTLR_MAP_EACH(&c->gateways, g)
	{
		ctlr_work_add(c, g, CTLR_WORK_DOCUMENT);
		ctlr_work_add(c, g, CTLR_WORK_TUNNELS);
	}
}

/* --- sites ------------------------------------------------------------------------------------ */

static void site_prefixes(struct ctlr *c, struct ctlr_site *s, bool add)
{
	const char(*p)[MDL_ADDR] = s->m.prefixes.at;

	for (unsigned i = 0; i < s->m.prefixes.n; i++)
		if (!add)
			ctlr_lpm_del(&c->lpm, 0, p[i], s);
		else if (ctlr_lpm_add(&c->lpm, 0, p[i], s))
			ctlr_event(c, EVENT_ERROR, "site", s->name, "prefix %s is another site's", p[i]);
}

static void site_apply(struct ctlr *c, const struct store_kv *kv, const char *name)
{
	struct ctlr_site *s = ctlr_map_find(&c->sites, name);
	struct model_site m = {0};
	struct mdl_error err;
	json_t *j = kv->value ? read_record(c, kv) : NULL;

	if (kv->value && (!j || mdl_read(j, &model_site_table, &m, &err))) {
		if (j)
			ctlr_event(c, EVENT_ERROR, "store", kv->key, "%s: %s", err.field, err.text);
		json_decref(j);
		if (s && c->lpm.filling) /* it stays as it was */
			site_prefixes(c, s, true);
		return;
	}
	json_decref(j);
	if (!s && !kv->value)
		return;
	s = s ? s : ctlr_site_need(c, name);
	if (!s)
		return;
	site_prefixes(c, s, false);
	c->least -= ctlr_site_least(s);
	mdl_free(&model_site_table, &s->m);
	s->m = m;
	c->least += ctlr_site_least(s);
	s->stored = kv->value != NULL;
	s->mod_rev = kv->mod_rev;
	site_prefixes(c, s, true);
	ctlr_event(c, EVENT_INFO, "site", name, "%s", kv->value ? "set" : "removed");
	ctlr_work_add_site(c, s);
	ctlr_site_drop_unused(c, s);
}

/* --- tunnels ---------------------------------------------------------------------------------- */

static struct ctlr_tunnel *tunnel_named(struct ctlr *c, const char *name, bool make)
{
	const char *slash = strchr(name, '/');
	char a[MDL_NAME];
	struct ctlr_gateway *g[2];

	if (!make || !slash || (size_t)(slash - name) >= sizeof(a))
		return ctlr_map_find(&c->tunnels, name);
	snprintf(a, sizeof(a), "%.*s", (int)(slash - name), name);
	g[0] = ctlr_map_find(&c->gateways, a);
	g[1] = ctlr_map_find(&c->gateways, slash + 1);
	return g[0] && g[1] && strcmp(a, slash + 1) < 0 ? ctlr_tunnel_need(c, g[0], g[1]) : NULL;
}

/* Whether a path list has this path; one that is granted no more keeps only its number. */
static bool has_path(const json_t *list, const json_t *one)
{
	size_t i;
	json_t *p;

	json_array_foreach((json_t *)(uintptr_t)list, i,
	    p) if (mdl_number_of(p, "bandwidth_bps") &&
	           mdl_leg_is(p, mdl_text_of(one, "edge"), mdl_text_of(one, "path"))) return true;
	return false;
}

static void paths_event(
    struct ctlr *c, const char *tunnel, const json_t *was, const json_t *is, const char *what)
{
	size_t i;
	json_t *p;

	json_array_foreach((json_t *)(uintptr_t)is, i,
	    p) if (mdl_number_of(p, "bandwidth_bps") && !has_path(was, p)) ctlr_event(c, EVENT_INFO, "tunnel",
	    tunnel, "%s path %s at %s", what, mdl_text_of(p, "path"), mdl_text_of(p, "edge"));
}

/* The record's paths in networks' tunnels, and why there are none. */
static void tunnel_paths(struct ctlr *c, struct ctlr_tunnel *t, const json_t *record)
{
	json_t *is = json_object_get(record, "paths");
	const char *why = mdl_text_of(record, "unsteered");

	paths_event(c, t->name, t->paths, is, "goes by");
	paths_event(c, t->name, is, t->paths, "no longer goes by");
	if (*why && strcmp(why, t->unsteered) != 0)
		ctlr_event(c, EVENT_WARNING, "tunnel", t->name, "is not led into what was granted: %s", why);
	json_decref(t->paths);
	t->paths = json_incref(is);
	snprintf(t->unsteered, sizeof(t->unsteered), "%s", why);
}

/* The record of a tunnel that cannot be: it goes, if that is because a gateway is not there. */
static void tunnel_without_end(struct ctlr *c, const char *name, uint64_t mod_rev)
{
	const char *slash = strchr(name, '/');
	char end[2][MDL_NAME];

	if (!slash)
		return;
	snprintf(end[0], MDL_NAME, "%.*s", (int)(slash - name), name);
	snprintf(end[1], MDL_NAME, "%s", slash + 1);
	for (unsigned i = 0; i < 2; i++)
		if (!ctlr_map_find(&c->gateways, end[i])) {
			ctlr_orphan_add(c, name, end[i], mod_rev);
			return;
		}
}

static void tunnel_apply(struct ctlr *c, const struct store_kv *kv, const char *name)
{
	struct ctlr_tunnel *t = tunnel_named(c, name, kv->value != NULL);
	enum plan_carrier carrier;
	json_t *j;

	c->jobs_look |= !kv->value || !t || !t->has;
	if (!kv->value && t)
		ctlr_tunnel_free(c, t);
	if (kv->value && !t)
		tunnel_without_end(c, name, kv->mod_rev);
	if (!kv->value || !t)
		return;
	j = read_record(c, kv);
	if (!j)
		return;
	carrier = plan_carrier_find(mdl_text_of(j, "carrier"));
	t->changing = false;
	if (carrier >= PLAN_CARRIER_COUNT || !mdl_number_of(j, "rate_bps")) {
		ctlr_event(c, EVENT_ERROR, "store", kv->key, "the record cannot be read: left alone");
		json_decref(j);
		return;
	}
	if (t->has && t->carrier != carrier)
		ctlr_event(c, EVENT_INFO, "tunnel", name, "from %s to %s: %s", plan_carrier_name(t->carrier),
		    plan_carrier_name(carrier), mdl_text_of(j, "rule"));
	if (!t->has || t->carrier != carrier || !t->hyst.has) {
		/* another replica decided it, or this one before it started */
		t->hyst = (struct plan_hyst){.has = 1,
		    .carrier = (uint8_t)carrier,
		    .challenger = (uint8_t)carrier,
		    .changed_at = ctlr_now()};
	}
	t->has = true;
	t->carrier = (uint8_t)carrier;
	t->rate_bps = mdl_number_of(j, "rate_bps");
	t->reserved_bps = mdl_number_of(j, "reserved_bps");
	t->weight = (uint32_t)mdl_number_of(j, "weight");
	snprintf(t->rule, sizeof(t->rule), "%.23s", mdl_text_of(j, "rule"));
	tunnel_paths(c, t, j);
	t->mod_rev = kv->mod_rev;
	ctlr_work_add_documents(c, t->end[0]);
	ctlr_work_add_documents(c, t->end[1]);
	json_decref(j);
}

/* --- links, replicas -------------------------------------------------------------------------- */

static void link_sites_plan(struct ctlr *c, const struct ctlr_push *p)
{
	for (unsigned i = 0; i < 2; i++) {
		struct ctlr_site *s = ctlr_map_find(&c->sites, p->site[i]);

		for (struct ctlr_gateway *g = s ? s->gateway : NULL; g; g = g->site_next)
			for (struct ctlr_tunnel *t = g->tunnel; t; t = t->next[ctlr_tunnel_side(t, g)])
				ctlr_work_add_tunnel(c, t);
	}
}

static void link_apply(struct ctlr *c, const struct store_kv *kv, const char *name)
{
	struct ctlr_push *p = ctlr_map_find(&c->pushes, name);
	struct mdl_error err;
	json_t *j;

	if (!kv->value) {
		if (p) {
			link_sites_plan(c, p);
			ctlr_map_del(&c->pushes, &p->node);
			free(p);
		}
		return;
	}
	j = read_record(c, kv);
	if (j && !p) {
		p = calloc(1, sizeof(*p));
		if (p)
			snprintf(p->key, sizeof(p->key), "%s", name);
		if (p && (sscanf(name, "%31[^/]/%31[^/]/%31s", p->site[0], p->site[1], p->source) != 3 ||
		             ctlr_map_add(&c->pushes, &p->node, p->key))) {
			free(p);
			p = NULL;
		}
		if (p)
			p->id = ++c->push_id;
	}
	if (j && p && mdl_read(json_object_get(j, "link"), &model_link_push_table, &p->m, &err))
		ctlr_event(c, EVENT_ERROR, "store", kv->key, "%s: %s", err.field, err.text);
	if (j && p) {
		p->at_ms = mdl_number_of(j, "at_ms");
		p->mod_rev = kv->mod_rev;
		link_sites_plan(c, p);
	}
	json_decref(j);
}

/* The documents that have it are touched by the same change. */
static void detour_apply(struct ctlr *c, const struct store_kv *kv, const char *name)
{
	struct ctlr_detour *d = ctlr_map_find(&c->detours, name);
	json_t *j = kv->value ? read_record(c, kv) : NULL;
	struct model_detour m;
	struct mdl_error err;

	if (!kv->value && d) {
		ctlr_map_del(&c->detours, &d->node);
		free(d);
		ctlr_event(c, EVENT_INFO, "tunnel", name, "no detour");
	}
	if (!j)
		return;
	if (mdl_read(j, &model_detour_table, &m, &err)) {
		ctlr_event(c, EVENT_ERROR, "store", kv->key, "%s: %s", err.field, err.text);
		json_decref(j);
		return;
	}
	ctlr_event(c, EVENT_INFO, "tunnel", name, "detour by %s", mdl_text_of(j, "detour"));
	json_decref(j);
	if (!d && (d = calloc(1, sizeof(*d)))) {
		snprintf(d->key, sizeof(d->key), "%s", name);
		if (ctlr_map_add(&c->detours, &d->node, d->key)) {
			free(d);
			return;
		}
	}
	if (d) {
		d->m = m;
		d->mod_rev = kv->mod_rev;
	}
}

struct replica {
	struct ctlr_map_node node;
	char name[MDL_NAME];
};

static void replica_apply(struct ctlr *c, const struct store_kv *kv, const char *name)
{
	struct replica *r = ctlr_map_find(&c->replicas, name);
	struct ctlr_gateway *g;

	if (kv->value && !r) {
		r = calloc(1, sizeof(*r));
		if (!r)
			return;
		snprintf(r->name, sizeof(r->name), "%.31s", name);
		if (ctlr_map_add(&c->replicas, &r->node, r->name))
			free(r);
		ctlr_event(c, EVENT_INFO, "replica", name, "is there");
	}
	if (kv->value || !r)
		return;
	ctlr_event(c, EVENT_WARNING, "replica", name, "is gone");
	ctlr_map_del(&c->replicas, &r->node);
	free(r);
	CTLR_MAP_EACH(&c->gateways, g)
	{ /* its gateways have one term to find another replica */
		if (!strcmp(g->owner, name)) {
			g->expires = ctlr_lease_expiry(c);
			ctlr_work_add(c, g, CTLR_WORK_TUNNELS);
		}
	}
	ctlr_pair_owner_gone(c, name);
}

/* --- all records ------------------------------------------------------------------------------ */

static void guard_apply(struct ctlr *c, const struct store_kv *kv, const char *name)
{
	c->guard_rev = kv->value ? kv->mod_rev : 0;
}

/* Records of other rooms' objects. */

static void other_reservation(struct ctlr *c, const struct store_kv *kv, const char *name)
{
	c->ops->reservation_apply(c, kv, name);
}

static void other_job(struct ctlr *c, const struct store_kv *kv, const char *name)
{
	c->ops->job_apply(c, kv, name);
}

static void other_tenant(struct ctlr *c, const struct store_kv *kv, const char *name)
{
	c->ops->tenant_apply(c, kv, name);
}

static const struct {
	const char *prefix;
	void (*apply)(struct ctlr *c, const struct store_kv *kv, const char *name);
	unsigned names; /* names that follow the prefix, separated by slashes */
} kinds[] = {
    {"gateway/", gateway_apply, 1},
    {"reservation/", other_reservation, 1},
    {"detour/", detour_apply, 2},
    {"guard/", guard_apply, 1},
    {"job/", other_job, 1},
    {"link/", link_apply, 3},
    {"pair/", ctlr_pair_apply, 1},
    {"replica/", replica_apply, 1},
    {"site/", site_apply, 1},
    {"tenant/", other_tenant, 1},
    {"touch/", touch_apply, 1},
    {"tunnel/", tunnel_apply, 2},
};

/* True if s consists of n names separated by slashes. */
static bool names_match(const char *s, unsigned n)
{
	char name[MDL_NAME];

	for (; n; n--) {
		const size_t len = strcspn(s, "/");

		if (len >= sizeof(name) || !s[len] != (n == 1))
			return false;
		memcpy(name, s, len);
		name[len] = 0;
		if (!mdl_is_name(name))
			return false;
		s += len + 1;
	}
	return true;
}

void ctlr_apply_record(struct ctlr *c, const struct store_kv *kv)
{
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const size_t n = strlen(kinds[i].prefix);
		const char *name = kv->key + n;

		if (strncmp(kv->key, kinds[i].prefix, n) != 0)
			continue;
		if (names_match(name, kinds[i].names) || (!*name && kinds[i].apply == touch_apply))
			kinds[i].apply(c, kv, name);
		else
			ctlr_event(
			    c, EVENT_ERROR, "store", NULL, "%.80s: no key of ours: left alone", kv->key);
	}
}
