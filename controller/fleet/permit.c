/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pairs of hosts, or of queue pairs, of a tenant that may begin RC connections when its `admission`
 * is `controller`. They go to the gateways beside the assignments, which permit their pairs, too.
 */
#include <stdio.h>
#include <string.h>

#include "controller/fleet/fleet.h"
#include "controller/server/req.h"

#define PERMITS_MAX 4096 /* of a tenant */
#define QPN_MAX     0xffffff

static bool is_address(const json_t *p, const char *key)
{
	const char *text = json_string_value(json_object_get(p, key));
	char canon[MDL_ADDR];

	return text && mdl_ip(text, canon);
}

/* QPNs are optional, but both or none: a queue pair has one peer. */
static bool is_qpn(const json_t *p, const char *key, bool other)
{
	const json_t *v = json_object_get(p, key);

	return v ? json_is_integer(v) && json_integer_value(v) >= 1 && json_integer_value(v) <= QPN_MAX
	         : !other;
}

/* NULL: the pair is as it must be; else the fault, with its field. */
static const char *permit_problem(const json_t *p, const char **field)
{
	static const char *const keys[] = {"source", "destination", "source_qpn", "destination_qpn"};
	const json_t *v;
	const char *key;

	*field = "";
	if (!json_is_object(p))
		return "expected an object";
	json_object_foreach((json_t *)(uintptr_t)p, key, v)
	{
		unsigned i = 0;

		while (i < 4 && strcmp(key, keys[i]) != 0)
			i++;
		*field = key;
		if (i == 4)
			return "unknown field";
	}
	for (unsigned i = 0; i < 2; i++) {
		*field = keys[i];
		if (!is_address(p, keys[i]))
			return "expected an address";
	}
	for (unsigned i = 2; i < 4; i++) {
		*field = keys[i];
		if (!is_qpn(p, keys[i], json_object_get(p, keys[5 - i])))
			return "expected a QPN from 1 to 16777215 at both ends, or at none";
	}
	return NULL;
}

bool ctlr_permits_acceptable(struct ctlr_req *r, const json_t *list)
{
	const char *key, *wrong;
	char field[96];
	json_t *p;
	size_t i;

	if (!list)
		return true;
	if (!json_is_array(list) || json_array_size(list) > PERMITS_MAX) {
		ctlr_req_fail(r, 400, "permits", "permits: expected an array of at most %u", PERMITS_MAX);
		return false;
	}
	json_array_foreach((json_t *)(uintptr_t)list, i, p)
	{
		wrong = permit_problem(p, &key);
		if (!wrong)
			continue;
		snprintf(field, sizeof(field), "permits[%zu]%s%.40s", i, *key ? "." : "", key);
		ctlr_req_fail(r, 400, field, "%s: %s", field, wrong);
		return false;
	}
	return true;
}

/* How many permits the gateways of a site get of a tenant; NULL: it does not exist. */
static size_t permits_at(const json_t *tenant, const char *site)
{
	return json_object_get(json_object_get(tenant, "sites"), site)
	           ? json_array_size(json_object_get(tenant, "permits"))
	           : 0;
}

bool ctlr_permits_fit(struct ctlr *c, struct ctlr_req *r, const json_t *tenant, const char *own)
{
	const struct ctlr_tenant *before = ctlr_map_find(&c->tenants, own), *t;
	const char *site;
	json_t *v;

	json_object_foreach(json_object_get(tenant, "sites"), site, v)
	{
		const size_t mine = permits_at(tenant, site);
		size_t others = 0;

		/* no more than before: a store of an older version may have too many */
		if (mine <= permits_at(before ? before->json : NULL, site))
			continue;
		CTLR_MAP_EACH(&c->tenants, t)
		{
			others += t != before ? permits_at(t->json, site) : 0;
		}
		if (mine + others <= CONF_DOCUMENT_PAIRS_MAX)
			continue;
		ctlr_req_fail(r, 409, "permits",
		    "permits: the gateways of site %s take %u of all tenants: others have %zu there, and %s "
		    "has %zu",
		    site, CONF_DOCUMENT_PAIRS_MAX, others, own, mine);
		return false;
	}
	return true;
}

void ctlr_permits_add(const struct ctlr_tenant *t, json_t *list)
{
	json_t *p;
	size_t i;

	json_array_foreach(json_object_get(t->json, "permits"), i, p)
	{
		json_t *own = json_deep_copy(p);

		json_object_set_new(own, "vni", json_integer(t->vni));
		json_array_append_new(list, own);
	}
}
