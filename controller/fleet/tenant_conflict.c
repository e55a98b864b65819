/* SPDX-License-Identifier: Apache-2.0 */
/* No two tenants have the same VNI or VLAN, and no two sites of a tenant the same prefix. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "controller/fleet/fleet.h"
#include "controller/server/req.h"

bool ctlr_tenant_clashes(struct ctlr *c, struct ctlr_req *r, const json_t *j, const char *own)
{
	const json_int_t vni = json_integer_value(json_object_get(j, "vni"));
	const struct ctlr_tenant *nt;
	const char *name;
	char field[96];
	json_t *site;

	CTLR_MAP_EACH(&c->tenants, nt)
	{
		if (!strcmp(nt->name, own))
			continue;
		if (nt->vni == vni)
			return ctlr_req_fail(
			           r, 409, "vni", "vni: tenant %s has %" PRId64, nt->name, (int64_t)vni),
			       true;
		json_object_foreach(json_object_get(j, "sites"), name, site)
		{
			const json_t *other = json_object_get(json_object_get(nt->json, "sites"), name);
			const json_int_t vlan = json_integer_value(json_object_get(site, "vlan"));

			if (!vlan || vlan != json_integer_value(json_object_get(other, "vlan")))
				continue;
			snprintf(field, sizeof(field), "sites.%.31s.vlan", name);
			return ctlr_req_fail(r, 409, field, "%s: tenant %s has %" PRId64 " there", field,
			           nt->name, (int64_t)vlan),
			       true;
		}
	}
	return false;
}

bool ctlr_tenant_prefix_twice(struct ctlr_req *r, const json_t *sites)
{
	json_t *seen = json_object(), *site, *p;
	char canon[MDL_ADDR], field[96];
	const char *name;
	bool bad = false;
	size_t i;

	json_object_foreach((json_t *)(uintptr_t)sites, name, site)
	{
		json_array_foreach(json_object_get(site, "prefixes"), i, p)
		{
			const char *text = json_string_value(json_object_get(p, "prefix"));

			if (bad)
				continue;
			snprintf(field, sizeof(field), "sites.%.31s.prefixes[%zu].prefix", name, i);
			bad = !text || !mdl_prefix(text, canon) || json_object_get(seen, canon);
			if (bad)
				ctlr_req_fail(
				    r, 400, field, "%s: expected a prefix that is at no other place", field);
			else
				json_object_set_new(seen, canon, json_true());
		}
	}
	json_decref(seen);
	return bad;
}
