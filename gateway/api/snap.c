/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of workers' data, made on their threads in bounded steps, and sums over workers.
 */
#include "gateway/api/api.h"

#include <arpa/inet.h>
#include <stdlib.h>

#define TUNNELS_A_CALL 16 /* packets wait meanwhile */

struct step {
	struct api_snap *snap;
	unsigned from, to; /* tunnels */
};

static void copy_step(struct eng *e, void *arg)
{
	const struct step *s = arg;

	if (!s->from) {
		s->snap->eng = *eng_counters(e);
		s->snap->flows = eng_flow_count(e);
		s->snap->custody = eng_custody_bytes(e);
		s->snap->custody_max = eng_custody_max(e);
	}
	for (unsigned i = s->from; i < s->to; i++) {
		eng_tunnel_stats(e, i, &s->snap->wan[i]);
		for (unsigned k = 0; k < WAN_PATHS_MAX && eng_path_stats(e, i, k, &s->snap->path[i][k]); k++)
			;
	}
}

int api_snap_worker(struct gw_app *app, unsigned worker, struct api_snap *out)
{
	const unsigned tunnels = app->conf->tunnels;
	struct step s = {.snap = out};
	int rc;

	do {
		s.to = s.from + TUNNELS_A_CALL < tunnels ? s.from + TUNNELS_A_CALL : tunnels;
		rc = gw_call(app, worker, copy_step, &s);
		s.from = s.to;
	} while (!rc && s.from < tunnels);
	return rc;
}

struct api_snap *api_snap_all(const struct api_req *req, struct api_reply *reply)
{
	struct api_snap *snap = calloc(req->app->workers, sizeof(*snap));

	if (!snap)
		api_fail(reply, 500, "out of memory");
	for (unsigned i = 0; snap && i < req->app->workers; i++) {
		if (!api_snap_worker(req->app, i, &snap[i]))
			continue;
		api_fail(reply, 503, "worker %u does not answer", i);
		free(snap);
		snap = NULL;
	}
	return snap;
}

void api_tunnel_sum(const struct api_snap *snap, unsigned workers, unsigned tunnel, struct api_tunnel *out)
{
	bool all_up = true;

	memset(out, 0, sizeof(*out));
	for (unsigned i = 0; i < workers; i++) {
		const struct wan_stats *w = &snap[i].wan[tunnel];

		/* The first worker that is down decides; when all are up, the last one that came
		 * up. */
		if (!i || w->up < all_up ||
		    (w->up == all_up && (w->up ? w->since > out->since : w->since < out->since)))
			out->since = w->since;
		all_up = all_up && w->up;
		out->workers_up += w->up;
		out->detour_ready += w->detour_proven;
		if (w->srtt > out->srtt)
			out->srtt = w->srtt;
		if (w->min_rtt && w->min_rtt != RWY_NEVER && (!out->min_rtt || w->min_rtt < out->min_rtt))
			out->min_rtt = w->min_rtt;
		if (out->congest.by == WAN_CONGEST_NONE ||
		    (w->congest.by != WAN_CONGEST_NONE && w->congest.since < out->congest.since))
			out->congest = w->congest;
		out->rate_Bps += w->rate_Bps;
		out->cwnd += w->cwnd;
		out->inflight += w->inflight;
		out->tx_queued_bytes += w->tx_queued_bytes;
		out->rx_held_bytes += w->rx_held_bytes;
		out->tx_flows += w->tx_flows;
		out->rx_flows += w->rx_flows;
		if (w->loss_ppm > out->loss_ppm)
			out->loss_ppm = w->loss_ppm;
#define X(f, s) out->c.f += w->c.f;
		WAN_COUNTERS(X)
#undef X
	}
}

json_t *api_json_ip(const struct rwy_ip *a)
{
	char text[INET6_ADDRSTRLEN];

	inet_ntop(rwy_ip_is4(a) ? AF_INET : AF_INET6, rwy_ip_is4(a) ? a->b + 12 : a->b, text, sizeof(text));
	return json_string(text);
}

json_t *api_json_prefix(const struct conf_prefix *p)
{
	json_t *ip = api_json_ip(&p->addr), *all;

	all = json_sprintf("%s/%d", json_string_value(ip), rwy_ip_is4(&p->addr) ? p->len - 96 : p->len);
	json_decref(ip);
	return all;
}

json_t *api_json_mac(const uint8_t mac[6])
{
	return json_sprintf("%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
}
