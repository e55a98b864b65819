/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /v1/tunnels/NAME: adds, changes or removes one tunnel. Clients send the keys of tunnels[]
 * (docs/configuration.md), as JSON or YAML. Elsewhere: state of tunnels (state.c), effects of a
 * change (tunnels.h).
 */
#include <inttypes.h>

#include "gateway/api/api.h"
#include "base/log.h"
#include "gateway/control/change_lock.h"
#include "gateway/carrier/carrier.h"
#include "gateway/control/tunnels.h"

static void tunnel_put(const struct api_req *req, struct api_reply *reply, struct gw_network_done *done)
{
	struct conf_tunnel t;
	struct conf_error err;
	int rc;

	if (conf_tunnel_parse(req->body, req->body_len, req->name, NULL, &t, &err)) {
		api_fail_body(reply, &err);
		return;
	}
	rc = gw_tunnel_add(req->app, &t, done, &err);
	if (rc)
		api_fail(reply, rc == RWY_EAGAIN || rc == RWY_ENOMEM ? 503 : 409, "%s", err.msg);
}

/* A requested move is made even when the configuration already says so: the peer may have moved the
 * tunnel. Whether it can be made is asked first, so that all of a change is made, or nothing. */
static void move(const struct api_req *req, struct api_reply *reply, unsigned at, enum wan_carrier c)
{
	struct gw_carrier_info now;
	char why[160];

	gw_carrier_info(req->app, at, &now);
	if (now.wanted != c && gw_carrier_set(req->app, at, c, why, sizeof(why)) != 0)
		api_fail(reply, 409, "%s", why);
}

static void tunnel_patch(const struct api_req *req, struct api_reply *reply, struct gw_network_done *done)
{
	const int at = gw_tunnel_find(req->app, req->name);
	struct gw_carrier_info carrier;
	struct conf_tunnel t, now;
	struct conf_error err;
	char why[160];
	bool moves;
	int rc;

	if (at < 0) {
		api_fail(reply, 404, "no tunnel %.64s", req->name);
		return;
	}
	gw_carrier_info(req->app, (unsigned)at, &carrier);
	now = req->app->conf->tunnel[at];
	now.carrier = (enum conf_carrier)carrier.wanted;
	if (conf_tunnel_parse(req->body, req->body_len, req->name, &now, &t, &err)) {
		api_fail_body(reply, &err);
		return;
	}
	moves = t.carrier != (enum conf_carrier)carrier.wanted &&
	        gw_tunnel_side(req->app, (unsigned)at) == GW_SIDE_OWN;
	if (moves &&
	    gw_carrier_can(req->app, (unsigned)at, (enum wan_carrier)t.carrier, why, sizeof(why)) != 0) {
		api_fail(reply, 409, "%s", why);
		return;
	}
	rc = gw_tunnel_set(req->app, &t, done, &err);
	if (rc)
		api_fail(reply, rc == RWY_EAGAIN || rc == RWY_ENOMEM ? 503 : 409, "%s", err.msg);
	else if (moves)
		move(req, reply, (unsigned)at, (enum wan_carrier)t.carrier);
	if (!rc && !done->changed)
		done->changed = moves;
}

static void tunnel_delete(const struct api_req *req, struct api_reply *reply, struct gw_network_done *done)
{
	struct conf_error err;
	const int rc = gw_tunnel_del(req->app, req->name, done, &err);

	if (rc)
		api_fail(reply,
		    rc == RWY_ENOENT                       ? 404
		    : rc == RWY_EAGAIN || rc == RWY_ENOMEM ? 503
		                                           : 409,
		    "%s", err.msg);
}

void api_tunnel(const struct api_req *req, struct api_reply *reply)
{
	struct gw_network_done done = {0};
	const bool add = !strcmp(req->method, "PUT");

	gw_change_lock();
	(add ? tunnel_put : !strcmp(req->method, "PATCH") ? tunnel_patch : tunnel_delete)(req, reply, &done);
	gw_change_unlock();
	if (reply->status != 200)
		return;
	if (done.added || done.changed || done.removed)
		gw_log(GW_LOG_NOTICE, "tunnel", "tunnel=%s %s took_us=%" PRIu64, req->name,
		    done.added     ? "added"
		    : done.changed ? "changed"
		                   : "removed",
		    done.took / RWY_US);
	reply->json = json_pack("{s:s, s:f, s:I, s:I, s:I, s:I}", "name", req->name, "took_seconds",
	    (double)done.took / 1e9, "added", (json_int_t)done.added, "changed", (json_int_t)done.changed,
	    "removed", (json_int_t)done.removed, "removing", (json_int_t)gw_tunnels_removing(req->app));
	reply->status = add ? 201 : 200;
}
