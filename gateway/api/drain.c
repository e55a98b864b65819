/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/drain: POST begins to drain the gateway, DELETE cancels, GET has the progress. */
#include "gateway/api/api.h"
#include "gateway/control/drain.h"

#include <string.h>

#define TIMEOUT_MAX 86400 /* seconds */

static const char *end_name(enum gw_drain_end end)
{
	switch (end) {
	case GW_DRAIN_NO_END:
		return "";
	case GW_DRAIN_CANCELLED:
		return "cancelled";
	case GW_DRAIN_TIMED_OUT:
		return "timed out";
	case GW_DRAIN_NOT_TAKEN:
		return "not taken over";
	}
	rwy_unreachable();
}

static const char *drain_name(enum gw_drain_state state)
{
	switch (state) {
	case GW_DRAIN_OFF:
		return "off";
	case GW_DRAIN_ON:
		return "draining";
	case GW_DRAIN_YIELDS:
		return "yielding";
	case GW_DRAIN_DONE:
		return "drained";
	}
	rwy_unreachable();
}

static json_t *drain_json(const struct api_req *req, const struct gw_drain_info *info)
{
	const struct gw_drain_info i = *info;

	return json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:i, s:i, s:f, s:f, s:b}", "state",
	    drain_name(i.state), "then",
	    i.state == GW_DRAIN_OFF ? ""
	    : i.order.keep          ? "keep"
	    : i.order.hand_over     ? "hand-over"
	                            : "stop",
	    "by",
	    i.state == GW_DRAIN_OFF ? ""
	    : i.order.signal        ? "SIGTERM"
	                            : "operator",
	    "end", end_name(i.end), "flows_left", (json_int_t)i.flows, "bytes_left", (json_int_t)i.bytes,
	    "workers", (int)req->app->workers, "workers_drained", (int)i.settled, "seconds",
	    (double)i.elapsed / 1e9, "timeout_seconds", (double)i.order.timeout / 1e9, "taken_over", i.taken);
}

json_t *api_drain_json(const struct api_req *req)
{
	struct gw_drain_info i;

	gw_drain_get(req->app, &i);
	return i.state == GW_DRAIN_OFF ? json_null() : drain_json(req, &i);
}

static void drain_post(const struct api_req *req, struct api_reply *reply)
{
	struct gw_drain_order order = {.keep = api_flag(req, reply, "keep"),
	    .hand_over = api_flag(req, reply, "hand_over"),
	    .timeout = api_number(req, reply, "timeout", 0, TIMEOUT_MAX) * RWY_SEC};

	if (reply->status == 200 && api_param(req, "timeout") && !order.timeout)
		api_fail(reply, 400, "parameter timeout: expected seconds from 1 on");
	if (reply->status == 200 && order.keep && order.hand_over)
		api_fail(reply, 400, "keep and hand_over exclude each other");
	if (reply->status != 200)
		return;
	switch (gw_drain_begin(req->app, &order)) {
	case 0:
		return;
	case RWY_ENOENT:
		api_fail(reply, 409, "no standby has everything: see /v1/standby");
		return;
	default:
		api_fail(reply, 409, "the gateway stops already, or hands over");
	}
}

static void drain_delete(const struct api_req *req, struct api_reply *reply)
{
	if (req->params) {
		api_fail(reply, 400, "parameters are for POST");
		return;
	}
	switch (gw_drain_cancel(req->app)) {
	case 0:
		return;
	case RWY_ENOENT:
		api_fail(reply, 409, "the gateway is not being drained");
		return;
	default:
		api_fail(reply, 409, "the gateway stops, or hands over");
	}
}

void api_drain(const struct api_req *req, struct api_reply *reply)
{
	const bool told = api_flag(req, reply, "told");
	struct gw_drain_info i;

	if (!strcmp(req->method, "POST"))
		drain_post(req, reply);
	else if (!strcmp(req->method, "DELETE"))
		drain_delete(req, reply);
	if (reply->status != 200)
		return;
	gw_drain_get(req->app, &i);
	/* `roceway drain` asks so: a drained gateway waits for it before it stops. */
	if (told && i.state == GW_DRAIN_DONE)
		reply->sent = gw_drain_told;
	reply->json = drain_json(req, &i);
}
