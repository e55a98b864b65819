/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /v1/offload: ports with offload, and each of their rules: what it is, where it is, why it is
 * in software. ?tenant=NAME: only this tenant; ?summary=1: only ports.
 */
#include <stdio.h>
#include <stdlib.h>

#include "gateway/api/api.h"
#include "gateway/offload/offload.h"
#include "gateway/control/tenants.h"

#define TEXT 320

struct page {
	json_t *ports, *rules;
	const char *port;              /* port of the rules that follow */
	char (*name)[TENANT_NAME_MAX]; /* tenants' names, by index */
	uint32_t names;
	const char *only; /* NULL: all tenants */
	bool summary;
};

static void on_port(void *arg, const struct gw_offload_port *p)
{
	struct page *page = arg;

	page->port = p->name;
	json_array_append_new(page->ports,
	    json_pack("{s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:i}", "name", p->name, "backend", p->backend,
	        "device", p->device, "vxlan_device", p->vxlan, "error", p->error, "hardware",
	        (int)p->count.hardware, "kernel", (int)p->count.kernel, "software", (int)p->count.software));
}

static const char *tenant_name(const struct page *page, uint32_t index)
{
	return index && index < page->names ? page->name[index] : "";
}

static void on_rule(void *arg, const struct offload_entry *e)
{
	const struct offload_rule *r = &e->rule;
	struct page *page = arg;
	const char *tenant = tenant_name(page, r->tenant);
	char match[TEXT], act[TEXT];
	json_t *o;

	if (page->summary || (page->only && strcmp(page->only, tenant) != 0))
		return;
	o = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:b}", "port", page->port, "tenant", tenant,
	    "what", offload_what_name(r->what), "match", gw_offload_match_text(r, match, sizeof(match)),
	    "action", gw_offload_act_text(r, act, sizeof(act)), "where", offload_where_name(e->where), "why",
	    e->why ? e->why : "", "priority", (int)r->prio, "stale", e->stale);
	json_object_set_new(o, "acl_rule", r->item >= 0 ? json_integer(r->item) : json_null());
	json_object_set_new(o, "packets", e->counted ? json_integer((json_int_t)e->packets) : json_null());
	json_object_set_new(o, "bytes", e->counted ? json_integer((json_int_t)e->bytes) : json_null());
	json_array_append_new(page->rules, o);
}

/* Reads the present names by index: rules have numbers. */
static void names_read(struct gw_app *app, struct page *page)
{
	struct gw_tenant_info info[64];
	const char *after = "";
	char last[TENANT_NAME_MAX];
	unsigned n;

	do {
		n = gw_tenants_get(app, after, info, 64);
		for (unsigned i = 0; i < n; i++) {
			if (info[i].index >= page->names) {
				const uint32_t names = 2 * info[i].index;
				void *more = realloc(page->name, names * sizeof(*page->name));

				if (!more)
					return;
				page->name = more;
				memset(
				    page->name + page->names, 0, (names - page->names) * sizeof(*page->name));
				page->names = names;
			}
			memcpy(page->name[info[i].index], info[i].name, TENANT_NAME_MAX);
		}
		if (n)
			after = memcpy(last, info[n - 1].name, sizeof(last));
	} while (n == 64);
}

void api_offload(const struct api_req *req, struct api_reply *reply)
{
	struct page page = {.only = api_tenant_param(req, reply)};

	page.summary = api_flag(req, reply, "summary");
	if (reply->status != 200)
		return;
	page.ports = json_array();
	page.rules = json_array();
	names_read(req->app, &page);
	gw_offload_each(req->app, on_port, on_rule, &page);
	free(page.name);
	reply->json = json_pack("{s:o, s:o}", "ports", page.ports, "rules", page.rules);
}
