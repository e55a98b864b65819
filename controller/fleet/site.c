/* SPDX-License-Identifier: Apache-2.0 */
/* Sites and their prefixes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/fleet/fleet.h"
#include "controller/server/req.h"
#include "controller/state/change.h"
#include "controller/state/ctlr.h"

static json_t *site_json(const struct ctlr_site *s)
{
	json_t *j = mdl_write(&model_site_table, &s->m);

	json_object_set_new(j, "name", json_string(s->name));
	if (!json_object_get(j, "prefixes"))
		json_object_set_new(j, "prefixes", json_array());
	return j;
}

enum ctlr_outcome ctlr_api_site_list(struct ctlr *c, struct ctlr_req *r)
{
	struct ctlr_site **page = calloc(c->sites.n + 1, sizeof(*page));
	const size_t n = page ? ctlr_map_page(&c->sites, NULL, (void **)page, c->sites.n) : 0;
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		if (page[i]->stored || page[i]->gateways)
			json_array_append_new(list, site_json(page[i]));
	free(page);
	return ctlr_req_reply(r, 200, json_pack("{s:o}", "sites", list));
}

enum ctlr_outcome ctlr_api_site_get(struct ctlr *c, struct ctlr_req *r)
{
	const struct ctlr_site *s = ctlr_map_find(&c->sites, r->arg[0]);

	if (!s || (!s->stored && !s->gateways))
		return ctlr_req_fail(r, 404, "", "there is no site %s", r->arg[0]);
	return ctlr_req_reply(r, 200, site_json(s));
}

static bool prefixes_free(struct ctlr *c, struct ctlr_req *r, const struct model_site *m)
{
	const char(*p)[MDL_ADDR] = m->prefixes.at;
	char field[32];

	for (unsigned i = 0; i < m->prefixes.n; i++) {
		const struct ctlr_site *other = ctlr_lpm_get(&c->lpm, 0, p[i]);

		snprintf(field, sizeof(field), "prefixes[%u]", i);
		if (other && strcmp(other->name, r->arg[0]) != 0) {
			ctlr_req_fail(r, 409, field, "%s: site %s has %s", field, other->name, p[i]);
			return false;
		}
		for (unsigned k = 0; k < i; k++)
			if (!strcmp(p[i], p[k])) {
				ctlr_req_fail(r, 400, field, "%s: %s is there twice", field, p[i]);
				return false;
			}
	}
	return true;
}

static void guard(struct ctlr *c, struct ctlr_change *ch)
{
	ctlr_change_cmp(ch, "guard/config", c->guard_rev);
	ctlr_change_put(ch, "guard/config", json_object());
}

enum ctlr_outcome ctlr_api_site_put(struct ctlr *c, struct ctlr_req *r)
{
	const struct ctlr_site *s = ctlr_map_find(&c->sites, r->arg[0]);
	char key[STORE_KEY_MAX];
	struct model_site m;
	struct ctlr_change *ch;
	json_t *j, *has;
	bool fits;

	if (!ctlr_req_read(r, &model_site_table, &m, NULL))
		return REQ_DONE;
	if (*m.name && strcmp(m.name, r->arg[0]) != 0) {
		mdl_free(&model_site_table, &m);
		return ctlr_req_fail(r, 400, "name", "name: the path says %s", r->arg[0]);
	}
	fits = prefixes_free(c, r, &m);
	*m.name = 0;
	j = mdl_write(&model_site_table, &m);
	mdl_free(&model_site_table, &m);
	has = s && s->stored ? mdl_write(&model_site_table, &s->m) : NULL;
	if (!fits || (has && json_equal(has, j))) {
		json_decref(j);
		json_decref(has);
		return fits ? ctlr_req_reply_revision(r, 200, c->rev) : REQ_DONE;
	}
	json_decref(has);
	ch = ctlr_change_new(NULL, NULL);
	guard(c, ch);
	snprintf(key, sizeof(key), "site/%s", r->arg[0]);
	ctlr_change_put(ch, key, j);
	return ctlr_req_commit(r, ch, s && s->stored ? 200 : 201);
}

enum ctlr_outcome ctlr_api_site_delete(struct ctlr *c, struct ctlr_req *r)
{
	const struct ctlr_site *s = ctlr_map_find(&c->sites, r->arg[0]);
	char key[STORE_KEY_MAX];
	struct ctlr_tenant *nt;
	struct ctlr_change *ch;

	if (!s || !s->stored)
		return ctlr_req_fail(r, 404, "", "there is no site %s", r->arg[0]);
	if (s->gateways)
		return ctlr_req_fail(
		    r, 409, "", "%u gateways are there, %s first", s->gateways, s->gateway->name);
	CTLR_MAP_EACH(&c->tenants, nt)
	{
		if (json_object_get(json_object_get(nt->json, "sites"), r->arg[0]))
			return ctlr_req_fail(r, 409, "", "tenant %s is there", nt->name);
	}
	ch = ctlr_change_new(NULL, NULL);
	guard(c, ch);
	snprintf(key, sizeof(key), "site/%s", r->arg[0]);
	ctlr_change_del(ch, key);
	ctlr_change_put(ch, "touch/", json_object());
	return ctlr_req_commit(r, ch, 200);
}
