/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/map and /v1/map/NAME: the listen map of a relay; clients send the keys of relay.map[]. */
#include "gateway/api/api.h"
#include "base/log.h"
#include "gateway/control/change_lock.h"
#include "gateway/relay.h"

#include <stdlib.h>

static void fail(const struct api_req *req, struct api_reply *reply, int rc)
{
	switch (rc) {
	case RWY_EEXIST:
		api_fail(
		    reply, 409, "%.64s: another entry has this name, or this address and port", req->name);
		return;
	case RWY_ENOENT:
		if (req->app->conf->relay.addrs)
			api_fail(reply, 404, "no entry %.64s in the listen map", req->name);
		else
			api_fail(reply, 404, "this is no relay: see roceway-proxy");
		return;
	case RWY_ENOMEM:
		api_fail(reply, 503, "the listen map is full");
		return;
	default:
		api_fail(reply, 503, "the worker does not answer");
	}
}

void api_map(const struct api_req *req, struct api_reply *reply)
{
	struct gw_map_info *all = calloc(CONF_MAP_MAX, sizeof(*all));
	int n = all ? gw_map_get(req->app, all) : RWY_EAGAIN;
	json_t *list;

	if (n < 0) {
		free(all);
		fail(req, reply, n);
		return;
	}
	list = json_array();
	for (int i = 0; i < n; i++) {
		const struct proxy_entry *e = &all[i].entry;

		json_array_append_new(
		    list, json_pack("{s:s, s:o, s:i, s:o, s:i, s:I, s:I}", "name", e->name, "listen",
		              api_json_ip(&e->listen), "port", (int)e->port, "target",
		              api_json_ip(&e->target), "target_port", (int)e->target_port, "links",
		              (json_int_t)all[i].links, "links_max", (json_int_t)e->links_max));
	}
	free(all);
	reply->json = json_pack("{s:o}", "map", list);
}

static int entry_put(const struct api_req *req, struct api_reply *reply)
{
	struct conf_error err;
	struct conf_map m;

	if (!req->app->conf->relay.addrs)
		return RWY_ENOENT;
	if (conf_map_parse(req->app->conf, req->body, req->body_len, req->name, &m, &err)) {
		api_fail_body(reply, &err);
		return 0;
	}
	return gw_map_add(req->app, &m);
}

void api_map_entry(const struct api_req *req, struct api_reply *reply)
{
	const bool add = !strcmp(req->method, "PUT");
	int rc;

	gw_change_lock();
	rc = add ? entry_put(req, reply) : gw_map_del(req->app, req->name);
	gw_change_unlock();
	if (rc)
		fail(req, reply, rc);
	if (reply->status != 200)
		return;
	gw_log(GW_LOG_NOTICE, "relay", "map=%s %s", req->name, add ? "added" : "removed");
	reply->json = json_pack("{s:s, s:b}", "name", req->name, "added", add);
	reply->status = add ? 201 : 200;
}
