/* SPDX-License-Identifier: Apache-2.0 */
/* The gateway's reports to its control center: load, quality of its links, sessions. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/carrier/carrier.h"
#include "gateway/agent/internal.h"
#include "gateway/control/tunnels.h"
#include "gateway/relay.h"

#define LOAD_EVERY    (10 * RWY_SEC)
#define A_CALL        64 /* sessions visited in one call of a worker */
#define TUNNELS_CALL  8
#define CALLS_A_BATCH 64
/* A tunnel within this part of its own rate counts as filling it. */
#define OWN_RATE_SHARE 8

/* --- load ------------------------------------------------------------------------------------ */

struct load {
	uint64_t flows, custody, custody_max, bytes;
};

static void load_of(struct eng *e, void *arg)
{
	const struct eng_counters *c = eng_counters(e);
	struct load *l = arg;

	l->flows += eng_flow_count(e);
	l->custody += eng_custody_bytes(e);
	l->custody_max += eng_custody_max(e);
	l->bytes += c->lan_rx_bytes + c->lan_tx_bytes;
}

static uint64_t ppm(uint64_t part, uint64_t all)
{
	const uint64_t v = all ? (uint64_t)((unsigned __int128)part * 1000000 / all) : 0;

	return v > 1000000 ? 1000000 : v;
}

json_t *ctrl_load(void *ctx)
{
	struct gw_ctrl *k = ctx;
	const rwy_time now = gw_now();
	const rwy_dur dt = k->load_at ? now - k->load_at : 0;
	uint32_t cursor = UINT32_MAX; /* the numbers alone */
	struct proxy_map_now links;
	struct load l = {0};
	json_t *o;
	rwy_dur busy = 0;
	uint64_t rate = 0, cpu = 0;

	for (unsigned w = 0; w < k->app->workers; w++) {
		struct gw_worker_stats s;

		(void)!gw_call(k->app, w, load_of, &l);
		gw_worker_stats_get(k->app, w, &s);
		busy += s.busy;
	}
	if (dt && l.bytes >= k->load_bytes) /* the sum lacks a worker that did not answer */
		rate = (uint64_t)((unsigned __int128)(l.bytes - k->load_bytes) * 8 * RWY_SEC / dt);
	if (dt && busy >= k->load_busy)
		cpu = ppm(busy - k->load_busy, dt * k->app->workers);
	k->load_at = now;
	k->load_bytes = l.bytes;
	k->load_busy = busy;
	o = json_pack("{s:I, s:I, s:I, s:I}", "sessions", (json_int_t)l.flows, "rate_bps", (json_int_t)rate,
	    "cpu_ppm", (json_int_t)cpu, "custody_ppm", (json_int_t)ppm(l.custody, l.custody_max));
	if (gw_links_get(k->app, &cursor, NULL, &links) >= 0)
		json_object_set_new(o, "links", json_integer(links.open));
	return o;
}

/* --- links ----------------------------------------------------------------------------------- */

struct look {
	struct wan_stats s[TUNNELS_CALL];
	unsigned from, n;
};

static void look_at(struct eng *e, void *arg)
{
	struct look *l = arg;

	for (unsigned i = 0; i < l->n; i++)
		eng_tunnel_stats(e, l->from + i, &l->s[i]);
}

/* One tunnel, summed over all workers. */
struct link {
	rwy_dur srtt, min, var;
	uint32_t loss_ppm, burst16;
	uint64_t Bps;
	rwy_time at;
	bool stream;
	enum wan_carrier by;
};

static void link_add(struct link *k, const struct wan_stats *s)
{
	k->stream = k->stream || s->stream;
	if (!s->measured_at || !s->srtt || s->stream)
		return;
	if (s->srtt > k->srtt)
		k->srtt = s->srtt;
	if (!k->min || s->min_rtt < k->min)
		k->min = s->min_rtt;
	if (s->rttvar > k->var)
		k->var = s->rttvar;
	if (s->loss_ppm > k->loss_ppm)
		k->loss_ppm = s->loss_ppm;
	if (s->burst16 > k->burst16)
		k->burst16 = s->burst16;
	k->Bps += s->path_Bps;
	k->at = rwy_time_max(k->at, s->measured_at);
}

/* While a tunnel sends by TCP, QUIC or RDMA nothing goes natively, not even probes, so the
 * measurements of its connections are all that is known of the path. There is no bandwidth: the
 * rate of TCP and QUIC is their reaction to loss and distance, and the NIC's is its own, not the
 * path's capacity. */
static void link_stream(const struct gw_app *app, unsigned tunnel, struct link *k)
{
	struct gw_carrier_info i;

	gw_carrier_info(app, tunnel, &i);
	if (i.sending == WAN_CARRIER_NATIVE) { /* since a moment: what is known is the carrier's */
		k->at = 0;
		return;
	}
	*k = (struct link){.stream = true,
	    .by = i.sending,
	    .srtt = i.path.srtt,
	    .min = i.path.min_rtt,
	    .var = i.path.rttvar,
	    .loss_ppm = i.path.loss_ppm,
	    .at = i.path.at};
}

/* A tunnel that fills its own rate shows that rate, not the path's capacity. */
static void link_bound(struct link *k, uint64_t rate_Bps)
{
	if (k->Bps >= rate_Bps - rate_Bps / OWN_RATE_SHARE)
		k->Bps = 0;
}

static json_t *link_json(const struct link *k, const char *peer)
{
	const uint64_t age = rwy_since(k->at, gw_now()) / RWY_MS;
	const uint32_t burst = (k->burst16 + 8) / 16;
	const uint64_t bps = k->Bps * 8;

	return json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "peer", peer, "carrier",
	    wan_carrier_name(k->by), "rtt_us", (json_int_t)(k->srtt / RWY_US), "rtt_min_us",
	    (json_int_t)(k->min / RWY_US), "jitter_us", (json_int_t)(k->var / RWY_US), "loss_ppm",
	    (json_int_t)(k->loss_ppm > 1000000 ? 1000000 : k->loss_ppm), "burst",
	    (json_int_t)(burst > 65535 ? 65535 : burst), "bandwidth_bps", (json_int_t)bps, "age_ms",
	    (json_int_t)(age > 3600000 ? 3600000 : age));
}

static const char *peer_of(const struct gw_ctrl *k, const char *tunnel)
{
	for (unsigned i = 0; i < k->tunnels; i++)
		if (*tunnel && !strcmp(k->tunnel[i][0], tunnel))
			return k->tunnel[i][1];
	return NULL;
}

static json_t *link_with_paths(struct gw_ctrl *k, const struct link *l, unsigned tunnel, const char *peer)
{
	json_t *o = link_json(l, peer), *paths = l->stream ? NULL : ctrl_paths(k, tunnel, gw_now());

	if (paths)
		json_object_set_new(o, "paths", paths);
	return o;
}

json_t *ctrl_links(void *ctx)
{
	struct gw_ctrl *k = ctx;
	struct link *v = calloc(CONF_TUNNELS_MAX, sizeof(*v));
	struct look *l = calloc(1, sizeof(*l));
	json_t *list = json_array();
	unsigned n;

	gw_tunnels_read(k->app);
	n = k->app->conf->tunnels;
	for (unsigned w = 0; v && l && w < k->app->workers; w++)
		for (l->from = 0; l->from < n; l->from += TUNNELS_CALL) {
			l->n = n - l->from < TUNNELS_CALL ? n - l->from : TUNNELS_CALL;
			if (gw_call(k->app, w, look_at, l) != 0)
				break;
			for (unsigned i = 0; i < l->n; i++)
				link_add(&v[l->from + i], &l->s[i]);
		}
	for (unsigned i = 0; v && i < n; i++) {
		const char *peer = peer_of(k, k->app->conf->tunnel[i].name);

		if (v[i].stream)
			link_stream(k->app, i, &v[i]);
		link_bound(&v[i], k->app->conf->tunnel[i].rate_Bps);
		if (peer && v[i].at)
			json_array_append_new(list, link_with_paths(k, &v[i], i, peer));
	}
	gw_tunnels_read_end(k->app);
	free(v);
	free(l);
	if (json_array_size(list))
		return list;
	json_decref(list);
	return NULL;
}

/* --- sessions -------------------------------------------------------------------------------- */

static void object_put(const struct gw_ctrl *k, json_t *list, unsigned worker, const struct eng_session *s,
    const struct gw_link_name *link, const char *event)
{
	const uint64_t bytes = s->tx_bytes + s->rx_bytes;
	json_t *o =
	    json_pack("{s:o, s:s, s:I}", "id", json_sprintf("%.8s-%u-%" PRIu64, k->boot_id, worker, s->id),
	        "event", event, "bytes", (json_int_t)bytes);
	const char *tunnel = s->tunnel < CONF_TUNNELS_MAX ? k->app->conf->tunnel[s->tunnel].name : "";

	if (!strcmp(event, "opened"))
		json_object_update_new(
		    o, json_pack("{s:I, s:o, s:o, s:I, s:I, s:I}", "vni", (json_int_t)s->vni, "source",
		           ctrl_ip(&s->local), "destination", ctrl_ip(&s->remote), "source_qpn",
		           (json_int_t)s->local_qpn, "destination_qpn", (json_int_t)s->remote_qpn, "udp_port",
		           (json_int_t)s->udp_port));
	if (!strcmp(event, "opened") && *tunnel)
		json_object_set_new(o, "tunnel", json_string(tunnel));
	if (!strcmp(event, "opened") && link->id) {
		json_object_set_new(o, "link", json_sprintf("%016" PRIx64, link->id));
		json_object_set_new(o, "relay", ctrl_ip(&link->relay));
	}
	json_array_append_new(list, o);
}

static void scan_begin(struct gw_ctrl *k, enum ctrl_scan scan)
{
	k->scan = scan;
	k->scan_worker = 0;
	k->scan_cursor = 0;
	k->scan_part = 0;
	k->scanned = gw_now();
}

/*
 * The rings' contents are older than the scan that follows: they are discarded. The control center
 * ends the sessions that the scan does not name.
 */
void ctrl_resync(void *ctx)
{
	struct gw_ctrl *k = ctx;
	struct gw_session_event e;

	for (unsigned w = 0; w < k->app->workers; w++) {
		struct gw_session_ring *r = gw_sessions_of(k->app, w);

		if (!r)
			continue;
		k->lost[w] = atomic_load(&r->lost);
		for (unsigned i = 0; i < GW_SESSION_RING && gw_session_get(r, &e); i++)
			;
	}
	scan_begin(k, SCAN_OPEN);
}

struct scan {
	const struct gw_worker *w;
	struct eng_session v[A_CALL];
	struct gw_link_name link[A_CALL];
	uint32_t cursor;
	unsigned n;
};

static void scan_some(struct eng *e, void *arg)
{
	struct scan *s = arg;

	s->n = eng_sessions(e, &s->cursor, s->v, A_CALL);
	for (unsigned i = 0; i < s->n; i++)
		s->link[i] = gw_link_of(s->w, &s->v[i]);
}

/* Adds a part of a scan. */
static void scan(struct gw_ctrl *k, json_t *list)
{
	struct scan s;

	for (unsigned calls = 0; calls < CALLS_A_BATCH && json_array_size(list) + A_CALL <= CTRL_BATCH;
	     calls++) {
		if (k->scan_worker >= k->app->workers) {
			k->scan = SCAN_NONE;
			return;
		}
		s.cursor = k->scan_cursor;
		s.w = k->app->worker[k->scan_worker];
		if (gw_call(k->app, k->scan_worker, scan_some, &s) != 0)
			return; /* the worker hangs: try later */
		for (unsigned i = 0; i < s.n; i++)
			object_put(k, list, k->scan_worker, &s.v[i], &s.link[i],
			    k->scan == SCAN_OPEN ? "opened" : "load");
		k->scan_cursor = s.cursor;
		if (!s.cursor)
			k->scan_worker++;
	}
}

static void events(struct gw_ctrl *k, json_t *list)
{
	struct gw_session_event e;

	for (unsigned w = 0; w < k->app->workers; w++) {
		struct gw_session_ring *r = gw_sessions_of(k->app, w);

		while (r && json_array_size(list) < CTRL_BATCH && gw_session_get(r, &e))
			object_put(k, list, w, &e.s, &e.link, e.open ? "opened" : "closed");
		if (r && atomic_load(&r->lost) != k->lost[w]) {
			json_array_clear(list); /* the scan names all that live */
			ctrl_resync(k);
			return;
		}
	}
}

json_t *ctrl_sessions(void *ctx, uint64_t *part, bool *last)
{
	struct gw_ctrl *k = ctx;
	json_t *list = json_array();
	enum ctrl_scan was;
	size_t n;

	gw_tunnels_read(k->app);
	if (k->scan == SCAN_NONE && rwy_since(k->scanned, gw_now()) > LOAD_EVERY)
		scan_begin(k, SCAN_LOAD);
	/* During a full scan new events wait and follow it. */
	if (k->scan != SCAN_OPEN)
		events(k, list);
	was = k->scan;
	n = json_array_size(list);
	if (k->scan != SCAN_NONE && n + A_CALL <= CTRL_BATCH)
		scan(k, list);
	gw_tunnels_read_end(k->app);
	*last = was == SCAN_OPEN && k->scan == SCAN_NONE;
	if (*last || (was == SCAN_OPEN && json_array_size(list) > n))
		*part = ++k->scan_part;
	if (json_array_size(list) || *part)
		return list;
	json_decref(list);
	return NULL;
}
