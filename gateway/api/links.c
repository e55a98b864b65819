/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/links: the links of a relay. */
#include "gateway/api/api.h"
#include "gateway/relay.h"

#include <inttypes.h>
#include <stdio.h>

#define LIMIT_MAX 100000

static json_t *link_json(const struct proxy_link *l)
{
	char id[20];

	snprintf(id, sizeof(id), "%016" PRIx64, l->id);
	return json_pack("{s:s, s:s, s:b, s:o, s:o, s:o, s:s, s:i, s:i, s:i, s:i, s:f, s:I, s:I, s:I, s:I}",
	    "link", id, "state", proxy_state_name((enum proxy_state)l->state), "pair", (int)l->pair, "local",
	    api_json_ip(&l->local), "remote", api_json_ip(&l->remote), "relay", api_json_ip(&l->relay),
	    "asked_by", l->local_active ? "local" : "remote", "port", (int)l->port, "local_qpn", (int)l->lqpn,
	    "remote_qpn", (int)l->rqpn, "alias_qpn", (int)l->alias, "age_seconds",
	    (double)rwy_since(l->since, gw_now()) / 1e9, "in_packets", (json_int_t)l->in_packets, "in_bytes",
	    (json_int_t)l->in_bytes, "out_packets", (json_int_t)l->out_packets, "out_bytes",
	    (json_int_t)l->out_bytes);
}

void api_links(const struct api_req *req, struct api_reply *reply)
{
	const uint64_t limit = api_number(req, reply, "limit", 1000, LIMIT_MAX);
	struct proxy_link some[GW_LINKS_MAX];
	struct proxy_map_now now = {0};
	json_t *list;
	uint32_t cursor = 0;

	if (reply->status != 200)
		return;
	list = json_array();
	while (cursor != UINT32_MAX && json_array_size(list) < limit) {
		int n = gw_links_get(req->app, &cursor, some, &now);

		if (n < 0) {
			json_decref(list);
			if (n == RWY_ENOENT)
				api_fail(reply, 404, "this is no relay: see roceway-proxy");
			else
				api_fail(reply, 503, "the worker does not answer");
			return;
		}
		for (int i = 0; i < n && json_array_size(list) < limit; i++)
			json_array_append_new(list, link_json(&some[i]));
	}
	reply->json = json_pack("{s:o, s:i, s:i, s:i}", "links", list, "half_open", (int)now.half_open,
	    "open", (int)now.open, "closed", (int)now.closed);
}
