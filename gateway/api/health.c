/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /livez, /readyz, /healthz: 200 or 503, with the checks made. Alive: the workers answer. Ready:
 * also running, every port has link and at least one tunnel is up: without tunnels it is not, for
 * it can carry nothing. Healthy: also every tunnel is up.
 */
#include "gateway/api/api.h"
#include "base/crl.h"
#include "gateway/keys/keys.h"

#include <stdlib.h>

struct checks {
	json_t *list;
	bool ok;
};

static void check_add(struct checks *c, const char *name, bool ok, const char *fmt, unsigned a, unsigned b)
{
	json_array_append_new(c->list, json_pack("{s:s, s:b, s:b, s:o}", "name", name, "ok", ok, "note",
	                                   false, "detail", json_sprintf(fmt, a, b)));
	c->ok = c->ok && ok;
}

/* It fails nothing, but nobody shall overlook it. */
static void check_note(struct checks *c)
{
	json_object_set_new(json_array_get(c->list, json_array_size(c->list) - 1), "note", json_true());
}

static void check_alive(const struct api_req *req, struct checks *c, unsigned *tunnels_up)
{
	const struct gw_app *a = req->app;
	struct api_snap *snap = calloc(1, sizeof(*snap));
	unsigned answering = 0, up[CONF_TUNNELS_MAX] = {0};

	for (unsigned w = 0; snap && w < a->workers; w++) {
		if (api_snap_worker(req->app, w, snap))
			continue;
		answering++;
		for (unsigned t = 0; t < a->conf->tunnels; t++)
			up[t] += snap->wan[t].up;
	}
	free(snap);
	*tunnels_up = 0;
	for (unsigned t = 0; t < a->conf->tunnels; t++)
		*tunnels_up += up[t] == a->workers && api_tunnel_expected(a, t);
	check_add(c, "workers", answering == a->workers, "%u of %u answer", answering, a->workers);
}

static void check_ports(const struct api_req *req, struct checks *c)
{
	unsigned up = 0;

	for (unsigned p = 0; p < req->app->ports; p++) {
		struct gw_port_stats s;

		up += !gw_port_stats_get(req->app, p, &s) && s.up;
	}
	check_add(c, "ports", up == req->app->ports, "%u of %u up", up, req->app->ports);
}

static void check_security(const struct api_req *req, struct checks *c)
{
	const struct conf *conf = req->app->conf;
	const unsigned none = api_tunnels_in_clear(conf);

	check_add(c, "security", true,
	    none ? "%u of %u tunnels without keys (`security: none`)" : "no tunnel with `security: none`",
	    none, api_tunnels_count(conf));
	if (none)
		check_note(c);
}

/* Its list of revoked certificates ends soon, or has ended. */
static void check_crl(const struct api_req *req, struct checks *c)
{
	struct gw_keys_info i;
	char text[BASE_CRL_TEXT];

	gw_keys_info(req->app, 0, &i);
	if (!base_crl_old((time_t)i.crl_expires, time(NULL), text, sizeof(text)))
		return;
	check_add(c, "keys", true, text, 0, 0);
	check_note(c);
}

/* Ready is also who has no standby, or waits for copies; healthy is only a whole pair. */
static void check_standby(const struct api_req *req, struct checks *c, bool healthy)
{
	bool ok;
	const char *text = api_standby_health(req, &ok);

	if (text)
		check_add(c, "standby", ok || !healthy, text, 0, 0);
}

static unsigned tunnels_expected(const struct gw_app *a)
{
	unsigned n = 0;

	for (unsigned t = 0; t < a->conf->tunnels; t++)
		n += api_tunnel_expected(a, t);
	return n;
}

static void finish(struct checks *c, struct api_reply *reply)
{
	reply->status = c->ok ? 200 : 503;
	reply->json = json_pack("{s:b, s:o}", "ok", c->ok, "checks", c->list);
}

void api_livez(const struct api_req *req, struct api_reply *reply)
{
	struct checks c = {json_array(), true};
	unsigned tunnels;

	check_alive(req, &c, &tunnels);
	finish(&c, reply);
}

static void ready_or_healthy(const struct api_req *req, struct api_reply *reply, bool healthy)
{
	const enum gw_state state = (enum gw_state)atomic_load(&req->app->state);
	const unsigned all = tunnels_expected(req->app);
	struct checks c = {json_array(), true};
	unsigned tunnels;

	check_add(&c, "state", state == GW_RUNNING, api_state_name(state), 0, 0);
	check_alive(req, &c, &tunnels);
	check_ports(req, &c);
	check_security(req, &c);
	check_crl(req, &c);
	check_standby(req, &c, healthy);
	check_add(&c, "tunnels", tunnels >= (healthy && all ? all : 1), "%u of %u up", tunnels, all);
	finish(&c, reply);
}

void api_readyz(const struct api_req *req, struct api_reply *reply)
{
	ready_or_healthy(req, reply, false);
}

void api_healthz(const struct api_req *req, struct api_reply *reply)
{
	ready_or_healthy(req, reply, true);
}
