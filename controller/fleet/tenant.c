/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tenants of all sites. The gateways of a site get a tenant's part as an entry of their `tenants:`,
 * and the gateways' own parser checks it before it is stored. This file checks VNI, the VLAN at
 * each site, and the site of each prefix.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/job/jobs.h"
#include "controller/fleet/fleet.h"
#include "controller/plan/vni.h"
#include "controller/server/req.h"
#include "controller/state/change.h"
#include "controller/state/event.h"
#include "controller/state/work.h"

#define SITES_MAX 63 /* per tenant: a gateway's limit of tunnels */

/* Keys of the gateway's configuration, common to all sites or of one site. YAML would read "1" as
 * the number 1, so JSON's types are checked here. */
struct known {
	const char *key;
	json_type type; /* JSON_TRUE stands for both booleans */
};

static const struct known everywhere[] = {
    {"acl", JSON_ARRAY},
    {"acl_default", JSON_STRING},
    {"ack_mode", JSON_STRING},
    {"admission", JSON_STRING},
    {"ack_timeout_min", JSON_STRING},
    {"ack_timeout_max", JSON_STRING},
    {"retry", JSON_INTEGER},
    {"rnr_retry", JSON_INTEGER},
    {"ack_modes", JSON_ARRAY},
    {"guarantee", JSON_STRING},
    {"limit", JSON_STRING},
    {"weight", JSON_INTEGER},
    {"priority", JSON_INTEGER},
    {"dscp", JSON_STRING},
    {"dscp_congested", JSON_STRING},
    {NULL, JSON_NULL},
};
static const struct known at_site[] = {
    {"vlan", JSON_INTEGER},
    {"vteps", JSON_ARRAY},
    {"vtep_learning", JSON_TRUE},
    {"hosts", JSON_ARRAY},
    {"gateway_addresses", JSON_ARRAY},
    {"gateway_mac", JSON_STRING},
    {"proxy_arp", JSON_TRUE},
    {"memory_percent", JSON_INTEGER},
    {"pcp", JSON_STRING},
    {"prefixes", JSON_ARRAY},
    {NULL, JSON_NULL},
};

/* NULL: the key is known and its value has the right type; else the fault. */
static const char *key_problem(const struct known *k, const char *key, const json_t *v)
{
	while (k->key && strcmp(k->key, key) != 0)
		k++;
	if (!k->key)
		return "unknown field";
	if (k->type == JSON_TRUE ? json_is_boolean(v) : json_typeof(v) == k->type)
		return NULL;
	return k->type == JSON_TRUE      ? "expected true or false"
	       : k->type == JSON_ARRAY   ? "expected an array"
	       : k->type == JSON_INTEGER ? "expected an integer"
	                                 : "expected a string";
}

/* --- the gateway's entry ---------------------------------------------------------------------- */

static void copy_keys(json_t *to, const json_t *from, const struct known *k)
{
	for (; k->key; k++)
		if (json_object_get(from, k->key))
			json_object_set(to, k->key, json_object_get(from, k->key));
}

/* The tunnel to a site; NULL: there is none now. */
typedef const char *tunnel_name(void *ctx, const char *site);

static json_t *entry_json(
    const json_t *tenant, const char *name, const char *site, tunnel_name *tunnel, void *ctx)
{
	json_t *sites = json_object_get(tenant, "sites"), *here = json_object_get(sites, site), *there, *p;
	json_t *out = json_pack("{s:s, s:O}", "name", name, "vni", json_object_get(tenant, "vni"));
	json_t *prefixes = json_array();
	const char *key;
	size_t i;

	copy_keys(out, tenant, everywhere);
	copy_keys(out, here, at_site);
	json_object_foreach(sites, key, there)
	{
		const char *at = strcmp(key, site) != 0 ? tunnel(ctx, key) : "";

		json_array_foreach(json_object_get(there, "prefixes"), i, p) if (at) json_array_append_new(
		    prefixes, json_pack("{s:O, s:o}", "prefix", json_object_get(p, "prefix"), "at",
		                  *at ? json_string(at) : json_incref(json_object_get(p, "at"))));
	}
	json_object_set_new(out, "prefixes", prefixes);
	return out;
}

struct here {
	struct ctlr *c;
	const struct ctlr_gateway *g;
};

/* The tunnel of the largest weight to that site; by name among equals: the same at all replicas. */
static const char *heaviest_tunnel(void *ctx, const char *site)
{
	const struct here *h = ctx;
	const struct ctlr_tunnel *best = NULL;
	const char *name = NULL;

	for (const struct ctlr_tunnel *t = h->g->tunnel; t; t = t->next[ctlr_tunnel_side(t, h->g)]) {
		const struct ctlr_gateway *peer = t->end[!ctlr_tunnel_side(t, h->g)];

		if (!t->has || !peer->up || !peer->site || strcmp(peer->site->name, site) != 0)
			continue;
		if (best &&
		    (t->weight < best->weight || (t->weight == best->weight && strcmp(peer->name, name) > 0)))
			continue;
		best = t;
		name = peer->name;
	}
	return name;
}

json_t *ctlr_tenant_for(struct ctlr *c, const struct ctlr_tenant *nt, const struct ctlr_gateway *g)
{
	struct here h = {c, g};
	json_t *e, *own;

	if (!g->site || !json_object_get(json_object_get(nt->json, "sites"), g->site->name))
		return NULL;
	e = entry_json(nt->json, nt->name, g->site->name, heaviest_tunnel, &h);
	own = json_deep_copy(e); /* a copy, because it is used without the lock */
	json_decref(e);
	return own;
}

/* --- the check -------------------------------------------------------------------------------- */

/* Checks a site's part of a tenant. false: the reply says why. */
static bool site_shape(struct ctlr_req *r, const char *name, json_t *site)
{
	const char *key, *wrong;
	char field[96];
	json_t *v;

	snprintf(field, sizeof(field), "sites.%.64s", name);
	if (!mdl_is_name(name) || !json_is_object(site) || !json_object_get(site, "prefixes")) {
		ctlr_req_fail(r, 400, field, "%s: expected a site's name and an object with prefixes", field);
		return false;
	}
	json_object_foreach(site, key, v)
	{
		wrong = key_problem(at_site, key, v);
		if (!wrong && !strcmp(key, "vlan") && json_integer_value(v) < 0)
			wrong = "expected a number from 0 to 4094";
		if (!wrong)
			continue;
		snprintf(field, sizeof(field), "sites.%.31s.%.48s", name, key);
		ctlr_req_fail(r, 400, field, "%s: %s", field, wrong);
		return false;
	}
	return true;
}

/* The keys that the gateways' file does not have. */
static bool is_controllers(const char *key)
{
	return !strcmp(key, "vni") || !strcmp(key, "sites") || !strcmp(key, "permits");
}

static bool tenant_shape(struct ctlr_req *r, const json_t *j)
{
	json_t *sites = json_object_get(j, "sites"), *v;
	const json_t *vni = json_object_get(j, "vni");
	const char *key, *wrong;

	json_object_foreach((json_t *)(uintptr_t)j, key, v)
	{
		wrong = is_controllers(key) ? NULL : key_problem(everywhere, key, v);
		if (wrong) {
			ctlr_req_fail(r, 400, key, "%.64s: %s", key, wrong);
			return false;
		}
	}
	if (!json_is_integer(vni) || json_integer_value(vni) < 1 || json_integer_value(vni) > 0xffffff) {
		ctlr_req_fail(r, 400, "vni", "vni: expected a number from 1 to 16777215");
		return false;
	}
	if (!json_is_object(sites) || !json_object_size(sites) || json_object_size(sites) > SITES_MAX) {
		ctlr_req_fail(r, 400, "sites", "sites: expected an object of 1 to %u sites", SITES_MAX);
		return false;
	}
	json_object_foreach(sites, key, v)
	{
		if (!site_shape(r, key, v))
			return false;
	}
	return true;
}

static const char *same_name(void *ctx, const char *site)
{
	return site;
}

/* A configuration that has a tunnel to each other site, as the gateway's parser needs it. */
static struct conf *surroundings(const json_t *sites, const char *here, struct conf_error *err)
{
	struct conf *conf = NULL;
	char *text = NULL;
	const char *name;
	unsigned n = 1;
	json_t *site;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return NULL;
	fputs("gateway: {name: here}\nports:\n"
	      "  - {name: l, device: net_null0, role: lan, addresses: [169.254.0.1/24]}\n"
	      "  - {name: w, device: net_null1, role: wan, addresses: [169.254.1.1/24]}\n"
	      "controller: {urls: ['https://c'], ca: /c, certificate: /d, key: /k, site: here}\ntunnels:\n",
	    f);
	json_object_foreach((json_t *)(uintptr_t)sites, name, site) if (strcmp(name, here) != 0) fprintf(f,
	    "  - {name: \"%s\", port: w, local: 169.254.1.1, remote: 169.254.1.%u, udp_port: %u, prefixes: "
	    "[169.254.%u.0/24], security: none, rate: 1000Gbps}\n",
	    name, n + 1, 4793 + n, n + 9),
	    n++;
	if (n == 1)
		fputs("  - {name: none, port: w, local: 169.254.1.1, remote: 169.254.1.2, prefixes: "
		      "[169.254.9.0/24], "
		      "security: none, rate: 1000Gbps}\n",
		    f);
	if (!fclose(f) && conf_parse(&conf, text, len, "", err))
		conf = NULL;
	free(text);
	return conf;
}

/* Checks the site's entry with the gateway's parser. */
static bool site_ok(struct ctlr_req *r, const json_t *j, const char *name, const char *site)
{
	json_t *e = entry_json(j, name, site, same_name, NULL);
	char *text = json_dumps(e, JSON_COMPACT), field[64];
	struct conf_error err = {.msg = "out of memory"};
	struct conf *conf = text ? surroundings(json_object_get(j, "sites"), site, &err) : NULL;
	struct conf_tenant t;
	int rc = conf ? conf_tenant_parse(conf, text, strlen(text), name, NULL, &t, &err) : RWY_EINVAL;

	if (!rc)
		conf_tenant_fini(&t);
	conf_free(conf);
	free(text);
	json_decref(e);
	snprintf(field, sizeof(field), "sites.%s", site);
	if (rc)
		ctlr_req_fail(r, conf ? 400 : 503, field, "%s: %s", field, err.msg);
	return !rc;
}

/* --- requests --------------------------------------------------------------------------------- */

/* A tenant without a VNI keeps the one that it has, or gets a free one. Two requests that choose
 * the same one compare guard/config, so the later one chooses again. False: the reply says why. */
static bool vni_given(struct ctlr *c, struct ctlr_req *r, json_t *j, const struct ctlr_tenant *own)
{
	uint32_t *used, vni = own ? own->vni : 0;
	const struct ctlr_tenant *nt;
	unsigned n = 0;

	if (json_object_get(j, "vni"))
		return true;
	used = calloc(c->tenants.n + 1, sizeof(*used));
	if (!used)
		return ctlr_req_fail(r, 503, "", "out of memory"), false;
	CTLR_MAP_EACH(&c->tenants, nt)
	{
		used[n++] = nt->vni;
	}
	if (!vni)
		vni = plan_vni_free(used, n, c->conf->vni_first, c->conf->vni_last);
	free(used);
	if (!vni)
		return ctlr_req_fail(r, 409, "vni", "vni: all VNIs from %u to %u have tenants",
		           c->conf->vni_first, c->conf->vni_last),
		       false;
	json_object_set_new(j, "vni", json_integer(vni));
	return true;
}

static bool tenant_acceptable(struct ctlr *c, struct ctlr_req *r, json_t *j)
{
	const char *name = json_string_value(json_object_get(j, "name")), *site;
	json_t *v;

	if (json_object_get(j, "name") && (!name || strcmp(name, r->arg[0]) != 0)) {
		ctlr_req_fail(r, 400, "name", "name: the path says %s", r->arg[0]);
		return false;
	}
	json_object_del(j, "name");
	if (!vni_given(c, r, j, ctlr_map_find(&c->tenants, r->arg[0])) || !tenant_shape(r, j) ||
	    !ctlr_permits_acceptable(r, json_object_get(j, "permits")) ||
	    ctlr_tenant_prefix_twice(r, json_object_get(j, "sites")))
		return false;
	json_object_foreach(json_object_get(j, "sites"), site, v)
	{
		if (!ctlr_map_find(&c->sites, site)) {
			ctlr_req_fail(r, 409, "sites", "sites: there is no site %s", site);
			return false;
		}
		if (!site_ok(r, j, r->arg[0], site))
			return false;
	}
	return !ctlr_tenant_clashes(c, r, j, r->arg[0]) && ctlr_permits_fit(c, r, j, r->arg[0]);
}

enum ctlr_outcome ctlr_api_tenant_put(struct ctlr *c, struct ctlr_req *r)
{
	const struct ctlr_tenant *nt = ctlr_map_find(&c->tenants, r->arg[0]);
	char key[STORE_KEY_MAX];
	struct mdl_error err;
	struct ctlr_change *ch;
	json_t *j = mdl_parse(r->body ? r->body : "", r->len, &err);

	if (!j)
		return ctlr_req_bad_body(r, &err);
	if (!tenant_acceptable(c, r, j)) {
		json_decref(j);
		return REQ_DONE;
	}
	if (nt && json_equal(nt->json, j)) {
		json_decref(j);
		return ctlr_req_reply_revision(r, 200, c->rev);
	}
	ch = ctlr_change_new(NULL, NULL);
	ctlr_change_cmp(ch, "guard/config", c->guard_rev);
	ctlr_change_put(ch, "guard/config", json_object());
	if (nt)
		ctlr_change_put(ch, "touch/", json_object()); /* sites may have been removed */
	snprintf(key, sizeof(key), "tenant/%.31s", r->arg[0]);
	ctlr_change_put(ch, key, j);
	return ctlr_req_commit(r, ch, nt ? 200 : 201);
}

enum ctlr_outcome ctlr_api_tenant_delete(struct ctlr *c, struct ctlr_req *r)
{
	const struct ctlr_job *j = ctlr_job_of_tenant(c, r->arg[0]);
	char key[STORE_KEY_MAX];
	struct ctlr_change *ch;

	if (!ctlr_map_find(&c->tenants, r->arg[0]))
		return ctlr_req_fail(r, 404, "", "there is no tenant %s", r->arg[0]);
	if (j) /* whoever gets its VNI next would get what was reserved for the job */
		return ctlr_req_fail(r, 409, "", "job %s names it: withdraw its jobs first", j->name);
	ch = ctlr_change_new(NULL, NULL);
	ctlr_change_cmp(ch, "guard/config", c->guard_rev);
	ctlr_change_put(ch, "guard/config", json_object());
	ctlr_change_put(ch, "touch/", json_object());
	snprintf(key, sizeof(key), "tenant/%.31s", r->arg[0]);
	ctlr_change_del(ch, key);
	return ctlr_req_commit(r, ch, 200);
}

static json_t *tenant_json(const struct ctlr_tenant *nt)
{
	json_t *j = json_deep_copy(nt->json);

	json_object_set_new(j, "name", json_string(nt->name));
	return j;
}

enum ctlr_outcome ctlr_api_tenant_get(struct ctlr *c, struct ctlr_req *r)
{
	const struct ctlr_tenant *nt = ctlr_map_find(&c->tenants, r->arg[0]);

	return nt ? ctlr_req_reply(r, 200, tenant_json(nt))
	          : ctlr_req_fail(r, 404, "", "there is no tenant %s", r->arg[0]);
}

enum ctlr_outcome ctlr_api_tenant_list(struct ctlr *c, struct ctlr_req *r)
{
	struct ctlr_tenant **page = calloc(c->tenants.n + 1, sizeof(*page));
	const size_t n = page ? ctlr_map_page(&c->tenants, NULL, (void **)page, c->tenants.n) : 0;
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, tenant_json(page[i]));
	free(page);
	return ctlr_req_reply(r, 200, json_pack("{s:o}", "tenants", list));
}

/* --- from the store --------------------------------------------------------------------------- */

static void set_prefixes(struct ctlr *c, const struct ctlr_tenant *nt, uint64_t rev, bool add)
{
	json_t *site, *p;
	const char *name;
	char canon[MDL_ADDR];
	size_t i;

	json_object_foreach(json_object_get(nt->json, "sites"), name, site)
	{
		struct ctlr_site *s = ctlr_site_need(c, name);

		json_array_foreach(json_object_get(site, "prefixes"), i, p)
		{
			const char *text = json_string_value(json_object_get(p, "prefix"));

			if (!s || !text || !mdl_prefix(text, canon))
				continue;
			if (!add)
				ctlr_lpm_del(&c->lpm, nt->vni, canon, s);
			else if (ctlr_lpm_add(&c->lpm, nt->vni, canon, s))
				ctlr_event(c, EVENT_ERROR, "tenant", nt->name, "%s is at two places", canon);
		}
		if (s && rev > s->changed_rev)
			s->changed_rev = rev;
		if (s)
			ctlr_work_add_site(c, s);
	}
}

static void tenant_free(struct ctlr *c, struct ctlr_tenant *nt)
{
	ctlr_map_del(&c->tenants, &nt->node);
	json_decref(nt->json);
	free(nt);
}

void ctlr_tenant_apply(struct ctlr *c, const struct store_kv *kv, const char *name)
{
	struct ctlr_tenant *nt = ctlr_map_find(&c->tenants, name);
	json_t *j = kv->value ? json_loadb(kv->value, kv->len, 0, NULL) : NULL;

	if (kv->value && !json_is_object(j)) {
		ctlr_event(c, EVENT_ERROR, "store", kv->key, "the record cannot be read: left alone");
		json_decref(j);
		if (nt && c->lpm.filling) /* its prefixes, too */
			set_prefixes(c, nt, nt->mod_rev, true);
		return;
	}
	if (nt)
		set_prefixes(c, nt, kv->mod_rev, false);
	if (!kv->value) {
		if (nt)
			tenant_free(c, nt);
		ctlr_job_set_tenant(c);
		ctlr_event(c, EVENT_INFO, "tenant", name, "removed");
		return;
	}
	if (!nt)
		nt = CTLR_MAP_NEED(&c->tenants, struct ctlr_tenant, name, name);
	if (!nt) {
		json_decref(j);
		return;
	}
	json_decref(nt->json);
	nt->json = j;
	nt->vni = (uint32_t)json_integer_value(json_object_get(j, "vni"));
	nt->mod_rev = kv->mod_rev;
	set_prefixes(c, nt, kv->mod_rev, true);
	ctlr_job_set_tenant(c);
	ctlr_event(c, EVENT_INFO, "tenant", name, "set, VNI %u", nt->vni);
}

void ctlr_tenants_free(struct ctlr *c)
{
	struct ctlr_map_node *n;

	while ((n = ctlr_map_next(&c->tenants, NULL)))
		tenant_free(c, (struct ctlr_tenant *)n);
}
