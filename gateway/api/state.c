/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages about the gateway's parts: status, tunnels, ports, neighbors, workers. Counters are in
 * counters.c, health in health.c.
 */
#include "gateway/api/api.h"
#include "gateway/carrier/carrier.h"
#include "gateway/control/tunnels.h"
#include "gateway/keys/keys.h"
#include "gateway/offload/queues.h"
#include "wan/lease.h"

#include <stdlib.h>

#define NEIGHS_MAX 4096

static const char *role_name(enum conf_role r)
{
	return r == CONF_ROLE_LAN ? "lan" : "wan";
}

const char *api_state_name(enum gw_state state)
{
	static const char *const names[] = {[GW_STARTING] = "starting",
	    [GW_RUNNING] = "running",
	    [GW_DRAINING] = "draining",
	    [GW_STOPPING] = "stopping"};

	return names[state];
}

static double seconds(rwy_dur d)
{
	return (double)d / 1e9;
}

unsigned api_tunnels_in_clear(const struct conf *c)
{
	unsigned n = 0;

	for (unsigned i = 0; i < c->tunnels; i++)
		n += *c->tunnel[i].name && c->tunnel[i].security == CONF_SEC_NONE;
	return n;
}

bool api_tunnel_expected(const struct gw_app *a, unsigned tunnel)
{
	const int pair = atomic_load(&a->pair);
	const struct conf_tunnel *t = &a->conf->tunnel[tunnel];

	return *t->name && (t->standby || !(gw_pair_hides(pair) || pair == GW_PAIR_ASKS));
}

unsigned api_tunnels_count(const struct conf *c)
{
	unsigned n = 0;

	for (unsigned i = 0; i < c->tunnels; i++)
		n += *c->tunnel[i].name != 0;
	return n;
}

/* Makes the list of tunnels that are down. down: per tunnel, the time since which it is down; 0:
 * up. */
static json_t *down_json(const struct gw_app *a, const rwy_time *down)
{
	json_t *list = json_array();
	char since[32];

	for (unsigned t = 0; t < a->conf->tunnels; t++) {
		if (!down[t] || !api_tunnel_expected(a, t))
			continue;
		api_utc(down[t], since);
		json_array_append_new(
		    list, json_pack("{s:s, s:s, s:f}", "name", a->conf->tunnel[t].name, "since", since,
		              "seconds", seconds(rwy_since(down[t], gw_now()))));
	}
	return list;
}

void api_status(const struct api_req *req, struct api_reply *reply)
{
	struct gw_app *a = req->app;
	struct api_snap *snap = calloc(1, sizeof(*snap));
	unsigned *up = calloc(a->conf->tunnels + 1, sizeof(*up)), answering = 0, tunnels_up = 0, ports_up = 0;
	uint64_t flows = 0, custody = 0, custody_max = 0;
	rwy_time down[CONF_TUNNELS_MAX] = {0};
	uint32_t total, avail;
	char started[32];
	struct tm tm;

	for (unsigned w = 0; snap && up && w < a->workers; w++) {
		if (api_snap_worker(a, w, snap))
			continue;
		answering++;
		flows += snap->flows;
		custody += snap->custody;
		custody_max += snap->custody_max;
		for (unsigned t = 0; t < a->conf->tunnels; t++) {
			up[t] += snap->wan[t].up;
			if (!snap->wan[t].up && (!down[t] || snap->wan[t].since < down[t]))
				down[t] = snap->wan[t].since;
		}
	}
	for (unsigned t = 0; up && t < a->conf->tunnels; t++)
		tunnels_up += up[t] == a->workers && api_tunnel_expected(a, t);
	free(snap);
	free(up);
	for (unsigned p = 0; p < a->ports; p++) {
		struct gw_port_stats s;

		ports_up += !gw_port_stats_get(a, p, &s) && s.up;
	}
	gw_buffers_get(a, &total, &avail);
	strftime(started, sizeof(started), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&a->start_wall, &tm));
	reply->json =
	    json_pack("{s:s, s:s, s:s, s:s, s:f, s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:o, s:I, "
	              "s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:b}",
	        "name", a->conf->name, "version", a->version, "state",
	        api_state_name((enum gw_state)atomic_load(&a->state)), "started", started, "uptime_seconds",
	        seconds(rwy_since(a->start, gw_now())), "configuration", a->conf_path ? a->conf_path : "",
	        "ack_mode", eng_ack_mode_name((enum eng_ack_mode)a->conf->ack_mode), "workers",
	        (int)a->workers, "workers_answering", (int)answering, "tunnels_in_clear",
	        (int)api_tunnels_in_clear(a->conf), "ports", (int)a->ports, "ports_up", (int)ports_up,
	        "tunnels", (int)api_tunnels_count(a->conf), "tunnels_up", (int)tunnels_up, "tunnels_down",
	        down_json(a, down), "flows", (json_int_t)flows, "flows_max", (json_int_t)a->conf->conns_max,
	        "custody_bytes", (json_int_t)custody, "custody_max_bytes", (json_int_t)custody_max, "buffers",
	        (json_int_t)total, "buffers_free", (json_int_t)avail, "standby", api_standby_json(req),
	        "drain", api_drain_json(req), "sandbox", (int)a->conf->sandbox);
}

/* --- tunnels --------------------------------------------------------------------------------- */

/* The reason of the congestion, its beginning ("": never), and the measured values. */
static json_t *congest_json(const struct gw_app *a, const struct wan_congest_state *s)
{
	char since[32] = "";

	if (s->since)
		api_utc(s->since, since);
	return json_pack("{s:s, s:s, s:f, s:f, s:f, s:i}", "by", wan_congest_name(s->by), "since", since,
	    "loss_ratio", s->loss_ppm / 1e6, "marks_ratio", s->marks_ppm / 1e6, "delay_seconds",
	    seconds(s->delay), "begins", (int)s->begins);
}

static json_t *halves_json(const struct gw_app *a, const struct api_snap *snap, unsigned tunnel)
{
	json_t *list = json_array();

	for (unsigned w = 0; w < a->workers; w++) {
		const struct wan_stats *s = &snap[w].wan[tunnel];

		json_array_append_new(list,
		    json_pack(
		        "{s:i, s:b, s:f, s:f, s:f, s:I, s:f, s:I, s:I, s:I, s:I, s:f, s:s, s:s, s:I, s:{s:I, "
		        "s:I, s:I, s:I}, s:o}",
		        "worker", (int)w, "up", s->up, "rtt_seconds", seconds(s->srtt), "min_rtt_seconds",
		        s->min_rtt == RWY_NEVER ? 0.0 : seconds(s->min_rtt), "rtt_variation_seconds",
		        seconds(s->rttvar), "rate_bytes_per_second", (json_int_t)s->rate_Bps, "rate_part",
		        (double)s->lease / WAN_LEASE_WHOLE, "window_bytes", (json_int_t)s->cwnd,
		        "inflight_bytes", (json_int_t)s->inflight, "custody_bytes",
		        (json_int_t)s->tx_queued_bytes, "held_bytes", (json_int_t)s->rx_held_bytes,
		        "loss_ratio", s->loss_ppm / 1e6, "congestion_control", s->cc, "ecn", s->ecn,
		        "ecn_marks", (json_int_t)s->ce, "fec", "sent", (json_int_t)s->fec[0].sent,
		        "sent_bytes", (json_int_t)s->fec[0].sent_bytes, "rebuilt",
		        (json_int_t)s->fec[0].rebuilt, "rebuilt_by_peer", (json_int_t)s->fec[0].reported,
		        "congestion", congest_json(a, &s->congest)));
	}
	return list;
}

static const char *detour_state(const struct gw_app *a, const struct gw_carrier_info *i, unsigned ready)
{
	return i->detour == WAN_CARRIER_NATIVE    ? "off"
	       : i->sending != WAN_CARRIER_NATIVE ? "not_needed"
	       : !i->detouring                    ? "no_connection"
	       : ready < a->workers               ? "unanswered"
	                                          : "ready";
}

static json_t *carrier_json(const struct gw_app *a, unsigned tunnel, const struct api_tunnel *t)
{
	struct gw_carrier_info i;
	json_t *j;

	gw_carrier_info(a, tunnel, &i);
	j = json_pack("{s:s, s:s, s:s, s:i, s:i, s:i, s:s, s:s}", "sending", wan_carrier_name(i.sending),
	    "wanted", wan_carrier_name(i.wanted), "asked_by", i.by_peer ? "peer" : "gateway",
	    "tcp_connections", i.via == WAN_CARRIER_TCP ? (int)i.connections : 0, "quic_connections",
	    i.via == WAN_CARRIER_QUIC ? (int)i.connections : 0, "rdma_connections",
	    i.via == WAN_CARRIER_RDMA ? (int)i.connections : 0, "tcp_congestion_control", i.congestion,
	    "problem", i.problem);
	json_object_set_new(
	    j, "detour", json_string(i.detour == WAN_CARRIER_NATIVE ? "off" : wan_carrier_name(i.detour)));
	json_object_set_new(j, "detour_after", json_integer(i.detour_after));
	json_object_set_new(j, "detour_state", json_string(detour_state(a, &i, t->detour_ready)));
	json_object_set_new(j, "detours", json_integer((json_int_t)t->c.detours));
	json_object_set_new(j, "detour_datagrams", json_integer((json_int_t)t->c.retransmit_detour));
	json_object_set_new(j, "detour_no_room", json_integer((json_int_t)t->c.detour_no_room));
	json_object_set_new(j, "detour_late", json_integer((json_int_t)t->c.detour_late));
#define X(f, s) json_object_set_new(j, #f, json_integer((json_int_t)i.c.f));
	GW_CARRIER_COUNTERS(X)
#undef X
#define X(f, s) json_object_set_new(j, "quic_" #f, json_integer((json_int_t)i.quic.f));
	GW_QUIC_COUNTERS(X)
#undef X
	json_object_set_new(j, "refused_strangers", json_integer((json_int_t)i.strangers));
	json_object_set_new(j, "refused_slow", json_integer((json_int_t)i.slow));
	json_object_set_new(j, "refused_early", json_integer((json_int_t)i.early));
	json_object_set_new(j, "refused_rate", json_integer((json_int_t)i.rate));
	json_object_set_new(j, "refused_many", json_integer((json_int_t)i.many));
	return j;
}

/* UTC seconds as text; "" for 0. */
static const char *day(int64_t utc, char out[32])
{
	time_t at = (time_t)utc;
	struct tm tm;

	*out = 0;
	if (at)
		strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&at, &tm));
	return out;
}

/* The tunnel's keys as JSON: since when, cipher, peer, and the last problem. */
static json_t *keys_json(const struct gw_app *a, unsigned tunnel)
{
	char since[32] = "", expires[32], crl[32];
	struct gw_keys_info i;
	json_t *j;

	gw_keys_info(a, tunnel, &i);
	if (i.since)
		api_utc(i.since, since);
	j = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:b}", "state", gw_keys_state_name(i.state),
	    "since", since, "cipher", i.state == GW_KEYS_OFF ? "" : aead_alg_name(a->conf->keys.alg),
	    "peer_name", i.peer_name, "peer_certificate_expires", day(i.peer_expires, expires), "crl_expires",
	    day(i.crl_expires, crl), "problem", i.problem, "standby", i.standby);
#define X(f, s) json_object_set_new(j, #f, json_integer((json_int_t)i.c.f));
	GW_KEYS_COUNTERS(X)
#undef X
	return j;
}

static json_t *tunnel_json(const struct api_req *req, const struct api_snap *snap, unsigned i)
{
	const struct conf_tunnel *c = &req->app->conf->tunnel[i];
	struct api_tunnel t;
	json_t *prefixes = json_array();
	char since[32];

	api_tunnel_sum(snap, req->app->workers, i, &t);
	api_utc(t.since, since);
	for (unsigned p = 0; p < c->prefixes; p++)
		json_array_append_new(prefixes, api_json_prefix(&c->prefix[p]));
	return json_pack(
	    "{s:s, s:s, s:s, s:f, s:i, s:i, s:s, s:o, s:o, s:i, s:o, s:s, s:s, s:I, s:f, s:f, s:I, s:I, "
	    "s:I, s:I, s:I, s:I, s:I,"
	    " s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:o, s:o, s:o, s:o}",
	    "name", c->name, "state",
	    t.workers_up == req->app->workers ? "up"
	    : t.workers_up                    ? "partly"
	                                      : "down",
	    "since", since, "since_seconds", seconds(rwy_since(t.since, gw_now())), "workers_up",
	    (int)t.workers_up, "workers", (int)req->app->workers, "port", c->port, "local",
	    api_json_ip(&c->local), "remote", api_json_ip(&c->remote), "udp_port", (int)c->udp_port,
	    "prefixes", prefixes, "security", c->security == CONF_SEC_KEYS ? "keys" : "none",
	    "congestion_control", c->cc, "rate_max_bytes_per_second", (json_int_t)c->rate_Bps, "rtt_seconds",
	    seconds(t.srtt), "min_rtt_seconds", seconds(t.min_rtt), "rate_bytes_per_second",
	    (json_int_t)t.rate_Bps, "window_bytes", (json_int_t)t.cwnd, "inflight_bytes",
	    (json_int_t)t.inflight, "custody_bytes", (json_int_t)t.tx_queued_bytes, "held_bytes",
	    (json_int_t)t.rx_held_bytes, "tx_flows", (json_int_t)t.tx_flows, "rx_flows",
	    (json_int_t)t.rx_flows, "loss_ratio", t.loss_ppm / 1e6, "tx_bytes", (json_int_t)t.c.tx_bytes,
	    "rx_bytes", (json_int_t)t.c.rx_bytes, "tx_datagrams", (json_int_t)t.c.tx_datagrams,
	    "rx_datagrams", (json_int_t)t.c.rx_datagrams, "lost", (json_int_t)t.c.lost, "peer_restarts",
	    (json_int_t)t.c.peer_restarts, "from",
	    gw_tunnel_side(req->app, i) == GW_SIDE_CONTROLLER ? "controller" : "gateway", "congestion",
	    congest_json(req->app, &t.congest), "carrier", carrier_json(req->app, i, &t), "keys",
	    keys_json(req->app, i), "paths", api_paths_json(req, snap, i));
}

void api_tunnels(const struct api_req *req, struct api_reply *reply)
{
	const bool halves = api_flag(req, reply, "workers");
	struct api_snap *snap;
	json_t *list;

	if (reply->status != 200)
		return;
	snap = api_snap_all(req, reply);
	if (!snap)
		return;
	list = json_array();
	for (unsigned i = 0; i < req->app->conf->tunnels; i++) {
		if (!*req->app->conf->tunnel[i].name)
			continue;
		json_t *t = tunnel_json(req, snap, i);

		if (halves)
			json_object_set_new(t, "halves", halves_json(req->app, snap, i));
		json_array_append_new(list, t);
	}
	free(snap);
	reply->json = json_pack("{s:o}", "tunnels", list);
}

/* --- ports, neighbours, workers -------------------------------------------------------------- */

/* null: a LAN port, or one worker. */
static json_t *queue_rules(const struct api_req *req, unsigned port)
{
	struct gw_queue_rules_info q;

	if (!gw_queue_rules_get(req->app, port, &q))
		return json_null();
	return json_pack(
	    "{s:i, s:i, s:s}", "rules", (int)q.rules, "installed", (int)q.installed, "why", q.why);
}

void api_ports(const struct api_req *req, struct api_reply *reply)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < req->app->ports; i++) {
		const struct conf_port *c = &req->app->conf->port[i];
		struct gw_port_stats s = {0};
		json_t *addrs = json_array(), *o;

		if (gw_port_stats_get(req->app, i, &s))
			memset(&s, 0, sizeof(s));
		for (unsigned a = 0; a < c->addrs; a++)
			json_array_append_new(addrs, api_json_prefix(&c->addr[a]));
		o = json_pack("{s:s, s:s, s:b, s:I, s:o, s:o, s:i, s:i, s:s, s:s, s:s, s:i, s:i}", "name",
		    c->name, "role", role_name(c->role), "up", s.up, "speed_mbps", (json_int_t)s.speed_mbps,
		    "mac", api_json_mac(s.mac), "addresses", addrs, "mtu", (int)c->mtu, "vlan", (int)c->vlan,
		    "device", c->device, "driver", s.driver, "kernel_interface", s.tap, "rx_queues",
		    (int)s.rx_queues, "tx_queues", (int)s.tx_queues);
		json_object_set_new(o, "queue_rules", queue_rules(req, i));
#define X(f, t) json_object_set_new(o, #f, json_integer((json_int_t)s.f));
		API_PORT_COUNTERS(X)
#undef X
		json_array_append_new(list, o);
	}
	reply->json = json_pack("{s:o}", "ports", list);
}

void api_neighbours(const struct api_req *req, struct api_reply *reply)
{
	struct gw_neigh_info *all = calloc(NEIGHS_MAX, sizeof(*all));
	json_t *list = json_array();
	size_t total = all ? gw_neighs_get(req->app, all, NEIGHS_MAX) : 0;

	for (size_t i = 0; i < total && i < NEIGHS_MAX; i++)
		json_array_append_new(
		    list, json_pack("{s:o, s:o, s:s, s:s, s:b}", "address", api_json_ip(&all[i].addr), "mac",
		              api_json_mac(all[i].mac), "port",
		              all[i].port < req->app->ports ? req->app->conf->port[all[i].port].name : "",
		              "state", all[i].state, "used", all[i].used));
	free(all);
	reply->json = json_pack("{s:I, s:o}", "total", (json_int_t)total, "neighbours", list);
}

static void count_flows(struct eng *e, void *arg)
{
	*(uint32_t *)arg = eng_flow_count(e);
}

void api_workers(const struct api_req *req, struct api_reply *reply)
{
	json_t *list = json_array();

	for (unsigned w = 0; w < req->app->workers; w++) {
		struct gw_worker_stats s;
		uint32_t flows = 0;
		const bool answers = !gw_call(req->app, w, count_flows, &flows);

		gw_worker_stats_get(req->app, w, &s);
		json_array_append_new(list,
		    json_pack("{s:i, s:b, s:i, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:I, s:I, s:I}",
		        "worker", (int)w, "answering", answers, "lcore", (json_int_t)s.lcore, "flows",
		        (json_int_t)flows, "turns", (json_int_t)s.turns, "busy_turns",
		        (json_int_t)s.busy_turns, "sleeps", (json_int_t)s.sleeps, "busy_seconds",
		        seconds(s.busy), "idle_seconds", seconds(s.idle), "asleep_seconds", seconds(s.asleep),
		        "turn_max_seconds", seconds(s.turn_max), "rx_bursts", (json_int_t)s.rx_bursts,
		        "rx_packets", (json_int_t)s.rx_packets, "heartbeat", (json_int_t)s.heartbeat));
	}
	reply->json = json_pack("{s:o}", "workers", list);
}
