/* SPDX-License-Identifier: Apache-2.0 */
/* Sites: which addresses are where. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/fleet/fleet.h"
#include "controller/server/req.h"
#include "controller/state/change.h"
#include "controller/state/ctlr.h"

static json_t *site_json(const struct site *s)
{
	json_t *j = mdl_write(&model_site_table, &s->m);

	json_object_set_new(j, "name", json_string(s->name));
	if (!json_object_get(j, "prefixes"))
		json_object_set_new(j, "prefixes", json_array());
	return j;
}

enum outcome site_list(struct ctlr *c, struct req *r)
{
	struct site **page = calloc(c->sites.n + 1, sizeof(*page));
	const size_t n = page ? map_page(&c->sites, NULL, (void **)page, c->sites.n) : 0;
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		if (page[i]->stored || page[i]->gateways)
			json_array_append_new(list, site_json(page[i]));
	free(page);
	return req_reply(r, 200, json_pack("{s:o}", "sites", list));
}

enum outcome site_get(struct ctlr *c, struct req *r)
{
	const struct site *s = map_find(&c->sites, r->arg[0]);

	if (!s || (!s->stored && !s->gateways))
		return req_fail(r, 404, "", "there is no site %s", r->arg[0]);
	return req_reply(r, 200, site_json(s));
}

static bool prefixes_free(struct ctlr *c, struct req *r, const struct model_site *m)
{
	const char(*p)[MDL_ADDR] = m->prefixes.at;
	char field[32];

	for (unsigned i = 0; i < m->prefixes.n; i++) {
		const struct site *other = lpm_get(&c->lpm, 0, p[i]);

		snprintf(field, sizeof(field), "prefixes[%u]", i);
		if (other && strcmp(other->name, r->arg[0]) != 0) {
			req_fail(r, 409, field, "%s: site %s has %s", field, other->name, p[i]);
			return false;
		}
		for (unsigned k = 0; k < i; k++)
			if (!strcmp(p[i], p[k])) {
				req_fail(r, 400, field, "%s: %s is there twice", field, p[i]);
				return false;
			}
	}
	return true;
}

static void guard(struct ctlr *c, struct change *ch)
{
	change_cmp(ch, "guard/config", c->guard_rev);
	change_put(ch, "guard/config", json_object());
}

enum outcome site_put(struct ctlr *c, struct req *r)
{
	const struct site *s = map_find(&c->sites, r->arg[0]);
	char key[STORE_KEY_MAX];
	struct model_site m;
	struct change *ch;
	json_t *j, *has;
	bool fits;

	if (!req_read(r, &model_site_table, &m, NULL))
		return REQ_DONE;
	if (*m.name && strcmp(m.name, r->arg[0]) != 0) {
		mdl_free(&model_site_table, &m);
		return req_fail(r, 400, "name", "name: the path says %s", r->arg[0]);
	}
	fits = prefixes_free(c, r, &m);
	*m.name = 0;
	j = mdl_write(&model_site_table, &m);
	mdl_free(&model_site_table, &m);
	has = s && s->stored ? mdl_write(&model_site_table, &s->m) : NULL;
	if (!fits || (has && json_equal(has, j))) {
		json_decref(j);
		json_decref(has);
		return fits ? req_done(r, 200, c->rev) : REQ_DONE;
	}
	json_decref(has);
	ch = change_new(NULL, NULL);
	guard(c, ch);
	snprintf(key, sizeof(key), "site/%s", r->arg[0]);
	change_put(ch, key, j);
	return req_commit(r, ch, s && s->stored ? 200 : 201);
}

enum outcome site_delete(struct ctlr *c, struct req *r)
{
	const struct site *s = map_find(&c->sites, r->arg[0]);
	char key[STORE_KEY_MAX];
	struct net_tenant *nt;
	struct change *ch;

	if (!s || !s->stored)
		return req_fail(r, 404, "", "there is no site %s", r->arg[0]);
	if (s->gateways)
		return req_fail(r, 409, "", "%u gateways are there, %s first", s->gateways, s->gateway->name);
	MAP_EACH(&c->tenants, nt)
	{
		if (json_object_get(json_object_get(nt->json, "sites"), r->arg[0]))
			return req_fail(r, 409, "", "tenant %s is there", nt->name);
	}
	ch = change_new(NULL, NULL);
	guard(c, ch);
	snprintf(key, sizeof(key), "site/%s", r->arg[0]);
	change_del(ch, key);
	change_put(ch, "touch/", json_object());
	return req_commit(r, ch, 200);
}
