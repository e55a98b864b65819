/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /v1/tenants, /v1/tenants/NAME and /v1/reload: tenants as configured, their activity, and changes.
 * Clients send the keys of tenants[] (docs/configuration.md), as JSON or YAML. Elsewhere: effects
 * of a change (tenants.h), meaning of the keys (conf/).
 */
#include "gateway/api/api.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "gateway/control/change_lock.h"
#include "gateway/control/reload.h"
#include "gateway/control/tenants.h"
#include "gateway/control/tunnels.h"

#define LIMIT     100
#define LIMIT_MAX 1000
#define INDENT    4 /* indentation of tenants[] in the file */

/* --- reading ---------------------------------------------------------------------------------- */

static json_t *drops_json(const struct gw_tenant_info *i)
{
	json_t *o = json_object();

	for (unsigned r = TENANT_OK + 1; r < TENANT_ADMIT_COUNT; r++)
		json_object_set_new(
		    o, tenant_admit_name((enum tenant_admit)r), json_integer((json_int_t)i->drop[r]));
	return o;
}

static bool is_controllers(const struct api_req *req, const char *name)
{
	return gw_tenant_side(req->app, name) == GW_SIDE_CONTROLLER;
}

static json_t *info_json(const struct api_req *req, const struct gw_tenant_info *i)
{
	return json_pack(
	    "{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I,"
	    " s:I, s:s, s:o}",
	    "name", i->name, "vni", (json_int_t)i->vni, "vlan", (json_int_t)i->vlan, "index",
	    (json_int_t)i->index, "generation", (json_int_t)i->generation, "flows", (json_int_t)i->eng.flows,
	    "accepted", (json_int_t)i->eng.accepted, "accepted_bytes", (json_int_t)i->eng.accepted_bytes,
	    "delivered", (json_int_t)i->eng.delivered, "custody_bytes", (json_int_t)i->eng.custody,
	    "rx_packets", (json_int_t)i->rx_packets, "rx_bytes", (json_int_t)i->rx_bytes, "tx_packets",
	    (json_int_t)i->tx_packets, "tx_bytes", (json_int_t)i->tx_bytes, "forged_host",
	    (json_int_t)i->forged_host, "guarantee_Bps", (json_int_t)i->guarantee_Bps, "limit_Bps",
	    (json_int_t)i->limit_Bps, "weight", (json_int_t)i->weight, "from",
	    is_controllers(req, i->name) ? "controller" : "gateway", "drops", drops_json(i));
}

/* Appends a tenant to f; false: it was removed meanwhile. */
static bool print_one(const struct api_req *req, const char *name, enum conf_format format, FILE *f)
{
	struct conf_tenant t;

	if (gw_tenant_get(req->app, name, &t))
		return false;
	conf_tenant_print(f, req->app->conf, &t, format);
	conf_tenant_fini(&t);
	return true;
}

static json_t *config_json(const struct api_req *req, const char *name)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	json_t *j = NULL;
	bool there;

	if (!f)
		return NULL;
	there = print_one(req, name, CONF_JSON, f);
	if (!fclose(f) && there)
		j = json_loads(text, 0, NULL);
	free(text);
	return j;
}

/* Returns a page of tenants after `after`; NULL: the reply has failed. *more: further tenants
 * follow. */
static struct gw_tenant_info *page_get(const struct api_req *req, struct api_reply *reply, const char *after,
    unsigned limit, unsigned *n, bool *more)
{
	struct gw_tenant_info *v = malloc((limit + 1) * sizeof(*v));

	if (!v) {
		api_fail(reply, 503, "out of memory");
		return NULL;
	}
	*n = gw_tenants_get(req->app, after, v, limit + 1);
	*more = *n > limit;
	*n -= *more;
	return v;
}

/* text: the buffer of f; valid once f is closed. */
static void yaml_reply(struct api_reply *reply, FILE *f, char **text)
{
	if (fclose(f))
		api_fail(reply, 503, "out of memory");
	if (reply->status != 200) {
		free(*text);
		return;
	}
	reply->text = *text;
	reply->type = "text/yaml; charset=utf-8";
}

/* The section of the file. Tenants of the control center are left out: a document that has a name
 * of the file is refused. */
static void tenants_yaml(const struct api_req *req, struct api_reply *reply)
{
	char after[TENANT_NAME_MAX] = "", *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	unsigned all = 0, n;
	bool more = true;

	if (!f) {
		api_fail(reply, 503, "out of memory");
		return;
	}
	while (more && reply->status == 200) {
		struct gw_tenant_info *v = page_get(req, reply, after, LIMIT_MAX, &n, &more);

		for (unsigned i = 0; v && i < n; i++) {
			if (is_controllers(req, v[i].name))
				continue;
			fputs(all++ ? "" : "tenants:\n", f);
			(void)print_one(req, v[i].name, CONF_YAML, f);
		}
		if (v && n)
			snprintf(after, sizeof(after), "%s", v[n - 1].name);
		free(v);
	}
	if (!all)
		fputs("tenants: []\n", f);
	yaml_reply(reply, f, &text);
}

void api_tenants(const struct api_req *req, struct api_reply *reply)
{
	const unsigned limit = (unsigned)api_number(req, reply, "limit", LIMIT, LIMIT_MAX);
	const char *after = api_param(req, "after");
	uint64_t published, running;
	struct gw_tenant_info *v;
	json_t *list;
	unsigned n;
	bool more;

	if (!limit)
		api_fail(reply, 400, "parameter limit: expected a number from 1 to %d", LIMIT_MAX);
	if (reply->status == 200 && api_flag(req, reply, "yaml")) {
		tenants_yaml(req, reply);
		return;
	}
	v = reply->status == 200 ? page_get(req, reply, after ? after : "", limit, &n, &more) : NULL;
	if (!v)
		return;
	list = json_array();
	for (unsigned i = 0; i < n; i++)
		json_array_append_new(list, info_json(req, &v[i]));
	gw_tenants_generation(req->app, &published, &running);
	reply->json = json_pack("{s:I, s:I, s:o, s:s?}", "published", (json_int_t)published, "running",
	    (json_int_t)running, "tenants", list, "next", more ? v[n - 1].name : NULL);
	free(v);
}

static void no_tenant(const struct api_req *req, struct api_reply *reply)
{
	api_fail(reply, 404, "no tenant %.64s", req->name);
}

/* Prints a tenant's keys alone, as they can be sent again: without their indentation in the
 * file. */
static void tenant_yaml(const struct api_req *req, struct api_reply *reply)
{
	char *text, *from, *to;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f) {
		api_fail(reply, 503, "out of memory");
		return;
	}
	if (!print_one(req, req->name, CONF_YAML, f))
		no_tenant(req, reply);
	yaml_reply(reply, f, &text);
	if (reply->status != 200)
		return;
	for (from = to = text; *from;) {
		const size_t n = strcspn(from, "\n") + 1; /* each line ends with a newline */

		memmove(to, from + INDENT, n - INDENT);
		to += n - INDENT;
		from += n;
	}
	*to = 0;
}

static void tenant_show(const struct api_req *req, struct api_reply *reply)
{
	struct gw_tenant_info info;
	json_t *config;

	if (api_flag(req, reply, "yaml")) {
		tenant_yaml(req, reply);
		return;
	}
	config = reply->status == 200 ? config_json(req, req->name) : NULL;
	if (!config || gw_tenant_info_get(req->app, req->name, &info)) {
		no_tenant(req, reply);
		json_decref(config);
		return;
	}
	reply->json = info_json(req, &info);
	json_object_set_new(reply->json, "config", config);
}

/* --- changes ---------------------------------------------------------------------------------- */

/* The change is valid by itself, but conflicts with others or cannot be made now. */
static void fail_change(struct api_reply *reply, int rc, const struct conf_error *err)
{
	api_fail(reply,
	    rc == RWY_ENOENT                       ? 404
	    : rc == RWY_EAGAIN || rc == RWY_ENOMEM ? 503
	                                           : 409,
	    "%s", err->msg);
}

static json_t *done_json(const struct api_req *req, const struct gw_tenants_done *d)
{
	uint64_t published, running;

	gw_tenants_generation(req->app, &published, &running);
	return json_pack("{s:I, s:f, s:I, s:I, s:I, s:I, s:I, s:I}", "generation", (json_int_t)d->generation,
	    "took_seconds", (double)d->took / 1e9, "published", (json_int_t)published, "running",
	    (json_int_t)running, "added", (json_int_t)d->added, "changed", (json_int_t)d->changed, "removed",
	    (json_int_t)d->removed, "same", (json_int_t)d->same);
}

static void tenant_add(const struct api_req *req, struct api_reply *reply, struct gw_tenants_done *done)
{
	struct conf_error err;
	struct conf_tenant t;
	int rc;

	if (conf_tenant_parse(req->app->conf, req->body, req->body_len, req->name, NULL, &t, &err)) {
		api_fail_body(reply, &err);
		return;
	}
	rc = gw_tenant_add(req->app, &t, done, &err);
	conf_tenant_fini(&t);
	if (rc)
		fail_change(reply, rc, &err);
}

/* False: a document says what this tenant is, and the change would stay unknown to who wrote it. */
static bool is_ours(const struct api_req *req, struct api_reply *reply)
{
	if (is_controllers(req, req->name))
		api_fail(reply, 409, "tenant %.64s is the control center's", req->name);
	return reply->status == 200;
}

static void tenant_set(const struct api_req *req, struct api_reply *reply, struct gw_tenants_done *done)
{
	struct conf_tenant base, t;
	struct conf_error err;
	int rc;

	if (!is_ours(req, reply))
		return;
	rc = gw_tenant_get(req->app, req->name, &base);
	if (rc == RWY_ENOENT)
		no_tenant(req, reply);
	else if (rc)
		api_fail(reply, 503, "out of memory");
	if (rc)
		return;
	if (conf_tenant_parse(req->app->conf, req->body, req->body_len, req->name, &base, &t, &err)) {
		api_fail_body(reply, &err);
	} else {
		rc = gw_tenant_set(req->app, &t, done, &err);
		conf_tenant_fini(&t);
		if (rc)
			fail_change(reply, rc, &err);
	}
	conf_tenant_fini(&base);
}

static void tenant_del(const struct api_req *req, struct api_reply *reply, struct gw_tenants_done *done)
{
	struct conf_error err;
	int rc;

	if (!is_ours(req, reply))
		return;
	rc = gw_tenant_del(req->app, req->name, done, &err);
	if (rc == RWY_ENOENT)
		no_tenant(req, reply);
	else if (rc)
		fail_change(reply, rc, &err);
}

void api_tenant(const struct api_req *req, struct api_reply *reply)
{
	const bool put = !strcmp(req->method, "PUT");
	struct gw_tenants_done done = {0};

	if (!strcmp(req->method, "GET")) {
		tenant_show(req, reply);
		return;
	}
	gw_change_lock();
	(put ? tenant_add : !strcmp(req->method, "PATCH") ? tenant_set : tenant_del)(req, reply, &done);
	gw_change_unlock();
	if (reply->status != 200)
		return;
	if (done.added || done.changed || done.removed)
		gw_log(GW_LOG_INFO, "tenant", "tenant=%s %s generation=%" PRIu64 " took_us=%" PRIu64,
		    req->name,
		    done.added     ? "added"
		    : done.changed ? "changed"
		                   : "removed",
		    done.generation, done.took / RWY_US);
	reply->json = done_json(req, &done);
	json_object_set_new(reply->json, "name", json_string(req->name));
	reply->status = put ? 201 : 200;
}

void api_reload(const struct api_req *req, struct api_reply *reply)
{
	struct gw_reload_done done;
	struct conf_error err;
	const int rc = gw_reload(req->app, &done, &err);

	if (rc && err.line)
		api_fail(reply, rc == RWY_EAGAIN || rc == RWY_ENOMEM ? 503 : 409, "%s:%u:%u: %s", err.file,
		    err.line, err.column, err.msg);
	else if (rc)
		api_fail(
		    reply, rc == RWY_EAGAIN || rc == RWY_ENOMEM ? 503 : 409, "%s: %s", err.file, err.msg);
	if (rc)
		return;
	reply->json = done_json(req, &done.network.tenants);
	json_object_set_new(reply->json, "file", json_string(req->app->conf_path));
	json_object_set_new(reply->json, "tunnels",
	    json_pack("{s:I, s:I, s:I, s:I}", "added", (json_int_t)done.network.added, "changed",
	        (json_int_t)done.network.changed, "removed", (json_int_t)done.network.removed, "same",
	        (json_int_t)done.network.same));
	json_object_set_new(reply->json, "log_level_changed", json_boolean(done.log_level_changed));
	json_object_set_new(reply->json, "took_seconds", json_real((double)done.took / 1e9));
}
