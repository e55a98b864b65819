/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/reservations: the rates that jobs' plans give to pairs of hosts, and what was sent. */
#include "gateway/api/api.h"
#include "gateway/control/reservations.h"

#include <stdlib.h>

void api_reservations(const struct api_req *req, struct api_reply *reply)
{
	struct gw_reservation_info *v;
	const unsigned n = gw_reservations_get(req->app, &v);
	json_t *list = json_array();

	for (unsigned i = 0; i < n; i++) {
		const struct gw_reservation *r = &v[i].r;
		json_t *o =
		    json_pack("{s:s, s:I, s:o, s:o, s:I, s:I, s:s, s:I, s:i, s:b, s:I, s:I, s:b, s:b}", "job",
		        r->job, "vni", (json_int_t)r->vni, "source", api_json_ip(&r->src), "destination",
		        api_json_ip(&r->dst), "source_qpn", (json_int_t)r->src_qpn, "destination_qpn",
		        (json_int_t)r->dst_qpn, "tunnel", r->tunnel, "rate_bps", (json_int_t)r->rate_bps,
		        "priority", (int)r->priority, "enforced", r->number != 0, "sent_bytes",
		        (json_int_t)v[i].sent, "sent_guaranteed_bytes", (json_int_t)v[i].sent_guaranteed,
		        "waiting", v[i].waiting, "limited", v[i].limited);

		json_array_append_new(list, o);
	}
	free(v);
	reply->json = json_pack("{s:o}", "reservations", list);
}
