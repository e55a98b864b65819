/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All counters, from the X lists, in two formats: GET /v1/counters (JSON) and GET /metrics
 * (Prometheus text). A counter added to a list appears in both without a change here.
 */
#include "gateway/api/guard.h"
#include "gateway/keys/keys.h"
#include "gateway/offload/queues.h"
#include "gateway/relay.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define X(f, s) {#f, s},
static const struct gw_counter_name engine_counters[] = {ENG_COUNTERS(X)},
                                    tunnel_counters[] = {WAN_COUNTERS(X)},
                                    gateway_counters[] = {GW_COUNTERS(X)},
                                    port_counters[] = {API_PORT_COUNTERS(X)},
                                    relay_counters[] = {PROXY_COUNTERS(X)},
                                    api_counter_names[] = {API_COUNTERS(X)},
                                    keys_counters[] = {GW_KEYS_COUNTERS(X)},
                                    keys_totals[] = {GW_KEYS_TOTALS(X)};
#undef X
#define COUNT(t) (sizeof(t) / sizeof(t[0]))
#define X(f, s)  uint64_t f;
struct port_values {
	API_PORT_COUNTERS(X)
};
#undef X

/* The counter structs consist of uint64_t in the lists' order. */
_Static_assert(sizeof(struct eng_counters) == COUNT(engine_counters) * sizeof(uint64_t), "");
_Static_assert(sizeof(struct wan_counters) == COUNT(tunnel_counters) * sizeof(uint64_t), "");
_Static_assert(sizeof(struct gw_counters) == COUNT(gateway_counters) * sizeof(uint64_t), "");
_Static_assert(sizeof(struct port_values) == COUNT(port_counters) * sizeof(uint64_t), "");

_Static_assert(sizeof(struct gw_keys_counters) == COUNT(keys_counters) * sizeof(uint64_t), "");
_Static_assert(sizeof(struct gw_keys_totals) == COUNT(keys_totals) * sizeof(uint64_t), "");
_Static_assert(sizeof(struct api_counters) == COUNT(api_counter_names) * sizeof(uint64_t), "");
_Static_assert(sizeof(struct proxy_counters) == COUNT(relay_counters) * sizeof(uint64_t), "");

static uint64_t value_at(const void *counters, size_t i)
{
	uint64_t v;

	memcpy(&v, (const char *)counters + i * sizeof(v), sizeof(v));
	return v;
}

static void values_add(void *sum, const void *counters, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t v = value_at(sum, i) + value_at(counters, i);

		memcpy((char *)sum + i * sizeof(v), &v, sizeof(v));
	}
}

static bool port_values(const struct api_req *req, unsigned port, struct port_values *out)
{
	struct gw_port_stats s;

	memset(out, 0, sizeof(*out));
	if (gw_port_stats_get(req->app, port, &s))
		return false;
#define X(f, t) out->f = s.f;
	API_PORT_COUNTERS(X)
#undef X
	return true;
}

/* --- JSON ------------------------------------------------------------------------------------ */

struct list {
	json_t *json;
	bool nonzero;
};

/* Adds one set: of a tunnel or port if label is set, of one worker if worker >= 0. */
static void list_add(struct list *l, const char *group, const struct gw_counter_name *c, size_t n,
    const void *values, const char *label, const char *label_value, int worker)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t v = value_at(values, i);
		json_t *o;

		if (l->nonzero && !v)
			continue;
		o = json_pack("{s:s, s:s, s:I, s:s}", "group", group, "name", c[i].name, "value",
		    (json_int_t)v, "help", c[i].text);
		if (label)
			json_object_set_new(o, label, json_string(label_value));
		if (worker >= 0)
			json_object_set_new(o, "worker", json_integer(worker));
		json_array_append_new(l->json, o);
	}
}

/* Adds the sums of workers from .. to-1. */
static void list_workers(struct list *l, const struct api_req *req, const struct api_snap *snap,
    unsigned from, unsigned to, int worker)
{
	struct eng_counters eng = {0};
	struct gw_counters gw = {0};
	struct gw_overlay_counters overlay = {0};

	for (unsigned w = from; w < to; w++) {
		struct gw_overlay_counters some;
		struct gw_counters one;

		values_add(&eng, &snap[w].eng, COUNT(engine_counters));
		gw_counters_get(req->app, w, &one);
		values_add(&gw, &one, COUNT(gateway_counters));
		gw_overlay_counters_get(req->app, w, &some);
		values_add(&overlay, &some, GW_OVERLAY_COUNTERS);
	}
	list_add(l, "engine", engine_counters, COUNT(engine_counters), &eng, NULL, NULL, worker);
	list_add(l, "gateway", gateway_counters, COUNT(gateway_counters), &gw, NULL, NULL, worker);
	list_add(l, "overlay", gw_overlay_names, GW_OVERLAY_COUNTERS, &overlay, NULL, NULL, worker);
	for (unsigned t = 0; t < req->app->conf->tunnels; t++) {
		struct api_tunnel sum;

		if (!*req->app->conf->tunnel[t].name)
			continue;
		api_tunnel_sum(snap + from, to - from, t, &sum);
		list_add(l, "tunnel", tunnel_counters, COUNT(tunnel_counters), &sum.c, "tunnel",
		    req->app->conf->tunnel[t].name, worker);
	}
}

static void list_keys(struct list *l, const struct api_req *req)
{
	const struct conf *c = req->app->conf;
	struct gw_keys_info i;

	for (unsigned t = 0; t < c->tunnels; t++) {
		if (!*c->tunnel[t].name)
			continue;
		gw_keys_info(req->app, t, &i);
		list_add(
		    l, "keys", keys_counters, COUNT(keys_counters), &i.c, "tunnel", c->tunnel[t].name, -1);
	}
	gw_keys_info(req->app, 0, &i);
	list_add(l, "keys", keys_totals, COUNT(keys_totals), &i.all, NULL, NULL, -1);
}

void api_counters(const struct api_req *req, struct api_reply *reply)
{
	struct list l = {.nonzero = api_flag(req, reply, "nonzero")};
	const bool per_worker = api_flag(req, reply, "workers");
	struct proxy_counters relay;
	struct api_counters api;
	struct api_snap *snap;

	if (reply->status != 200)
		return;
	snap = api_snap_all(req, reply);
	if (!snap)
		return;
	l.json = json_array();
	if (!per_worker)
		list_workers(&l, req, snap, 0, req->app->workers, -1);
	for (unsigned w = 0; per_worker && w < req->app->workers; w++)
		list_workers(&l, req, snap, w, w + 1, (int)w);
	if (gw_relay_counters_get(req->app, &relay))
		list_add(&l, "relay", relay_counters, COUNT(relay_counters), &relay, NULL, NULL, -1);
	list_keys(&l, req);
	api_guard_counters(&api);
	list_add(&l, "api", api_counter_names, COUNT(api_counter_names), &api, NULL, NULL, -1);
	for (unsigned p = 0; p < req->app->ports; p++) {
		struct port_values v;

		if (port_values(req, p, &v))
			list_add(&l, "port", port_counters, COUNT(port_counters), &v, "port",
			    req->app->conf->port[p].name, -1);
	}
	free(snap);
	reply->json = json_pack("{s:I, s:o}", "time_ns", (json_int_t)gw_now(), "counters", l.json);
}

/* --- Prometheus: label values are configured names, which need no escaping -------------------- */

static void head(FILE *f, const char *name, const char *type, const char *text)
{
	fprintf(f, "# HELP %s %s.\n# TYPE %s %s\n", name, text, name, type);
}

static void metric_counter(FILE *f, const char *group, const struct gw_counter_name *c, char name[96])
{
	snprintf(name, 96, "roceway_%s_%s_total", group, c->name);
	head(f, name, "counter", c->text);
}

static void metrics_workers(FILE *f, const struct api_req *req, const struct api_snap *snap)
{
	struct gw_overlay_counters overlay;
	struct eng_counters eng = {0};
	struct gw_counters gw;
	char name[96];

	for (unsigned w = 0; w < req->app->workers; w++)
		values_add(&eng, &snap[w].eng, COUNT(engine_counters));
	gw_counters_get(req->app, req->app->workers, &gw);
	for (size_t i = 0; i < COUNT(engine_counters); i++) {
		metric_counter(f, "engine", &engine_counters[i], name);
		fprintf(f, "%s %" PRIu64 "\n", name, value_at(&eng, i));
	}
	for (size_t i = 0; i < COUNT(gateway_counters); i++) {
		metric_counter(f, "gateway", &gateway_counters[i], name);
		fprintf(f, "%s %" PRIu64 "\n", name, value_at(&gw, i));
	}
	gw_overlay_counters_get(req->app, req->app->workers, &overlay);
	for (size_t i = 0; i < GW_OVERLAY_COUNTERS; i++) {
		metric_counter(f, "overlay", &gw_overlay_names[i], name);
		fprintf(f, "%s %" PRIu64 "\n", name, value_at(&overlay, i));
	}
}

static void metrics_relay(FILE *f, const struct api_req *req)
{
	struct proxy_counters c;
	char name[96];

	if (!gw_relay_counters_get(req->app, &c))
		return;
	for (size_t i = 0; i < COUNT(relay_counters); i++) {
		metric_counter(f, "relay", &relay_counters[i], name);
		fprintf(f, "%s %" PRIu64 "\n", name, value_at(&c, i));
	}
}

static void metrics_api(FILE *f)
{
	struct api_counters c;
	char name[96];

	api_guard_counters(&c);
	for (size_t i = 0; i < COUNT(api_counter_names); i++) {
		metric_counter(f, "api", &api_counter_names[i], name);
		fprintf(f, "%s %" PRIu64 "\n", name, value_at(&c, i));
	}
}

/* X(metric, sentence, expression over `t`) */
#define TUNNEL_GAUGES(X)                                                                                     \
	X("up", "1 when every worker's half of the tunnel is up", t->workers_up == workers)                  \
	X("rtt_seconds", "smoothed round-trip time, the slowest worker's", (double)t->srtt / 1e9)            \
	X("min_rtt_seconds", "least round-trip time", (double)t->min_rtt / 1e9)                              \
	X("rate_bytes_per_second", "rate that congestion control allows, all workers", (double)t->rate_Bps)  \
	X("window_bytes", "bytes in flight allowed, all workers", (double)t->cwnd)                           \
	X("inflight_bytes", "bytes in flight", (double)t->inflight)                                          \
	X("custody_bytes", "bytes kept until the far host has them", (double)t->tx_queued_bytes)             \
	X("held_bytes", "bytes received and not yet delivered to local hosts", (double)t->rx_held_bytes)     \
	X("loss_ratio", "smoothed share of datagrams lost, the worst worker's", t->loss_ppm / 1e6)           \
	X("tx_flows", "flows towards the peer", t->tx_flows)                                                 \
	X("rx_flows", "flows from the peer", t->rx_flows)

static void metrics_tunnels(FILE *f, const struct api_req *req, const struct api_snap *snap)
{
	const struct conf *c = req->app->conf;
	const unsigned workers = req->app->workers;
	struct api_tunnel *all = calloc(c->tunnels + 1, sizeof(*all));
	char name[96];

	if (!all)
		return;
	for (unsigned i = 0; i < c->tunnels; i++)
		api_tunnel_sum(snap, workers, i, &all[i]);
#define X(m, text, expr)                                                                                     \
	head(f, "roceway_tunnel_" m, "gauge", text);                                                         \
	for (unsigned i = 0; i < c->tunnels; i++) {                                                          \
		const struct api_tunnel *t = &all[i];                                                        \
                                                                                                             \
		if (!*c->tunnel[i].name)                                                                     \
			continue;                                                                            \
		fprintf(                                                                                     \
		    f, "roceway_tunnel_" m "{tunnel=\"%s\"} %.15g\n", c->tunnel[i].name, (double)(expr));    \
	}
	TUNNEL_GAUGES(X)
#undef X
	for (size_t k = 0; k < COUNT(tunnel_counters); k++) {
		metric_counter(f, "tunnel", &tunnel_counters[k], name);
		for (unsigned i = 0; i < c->tunnels; i++)
			if (*c->tunnel[i].name)
				fprintf(f, "%s{tunnel=\"%s\"} %" PRIu64 "\n", name, c->tunnel[i].name,
				    value_at(&all[i].c, k));
	}
	free(all);
}

static void metrics_keys(FILE *f, const struct api_req *req)
{
	const struct conf *c = req->app->conf;
	struct gw_keys_info *all = calloc(c->tunnels + 1, sizeof(*all));
	char name[96];

	if (!all)
		return;
	for (unsigned t = 0; t <= c->tunnels; t++)
		gw_keys_info(req->app, t < c->tunnels ? t : 0, &all[t]);
	head(f, "roceway_tunnel_encrypted", "gauge",
	    "1 when the tunnel has keys; 0 while it waits for them, and with `security: none`");
	for (unsigned t = 0; t < c->tunnels; t++)
		if (*c->tunnel[t].name)
			fprintf(f, "roceway_tunnel_encrypted{tunnel=\"%s\",security=\"%s\"} %d\n",
			    c->tunnel[t].name, c->tunnel[t].security == CONF_SEC_KEYS ? "keys" : "none",
			    all[t].state == GW_KEYS_USED);
	head(f, "roceway_tunnel_peer_certificate_expires_seconds", "gauge",
	    "when the certificate of the tunnel's peer expires, seconds since 1970");
	for (unsigned t = 0; t < c->tunnels; t++)
		if (*c->tunnel[t].name && all[t].peer_expires)
			fprintf(f,
			    "roceway_tunnel_peer_certificate_expires_seconds{tunnel=\"%s\"} %" PRId64 "\n",
			    c->tunnel[t].name, all[t].peer_expires);
	head(f, "roceway_crl_expires_seconds", "gauge",
	    "nextUpdate of the revocation list keys.crl, seconds since 1970; it revokes after that, too");
	if (all[c->tunnels].crl_expires)
		fprintf(f, "roceway_crl_expires_seconds %" PRId64 "\n", all[c->tunnels].crl_expires);
	for (size_t k = 0; k < COUNT(keys_counters); k++) {
		metric_counter(f, "keys", &keys_counters[k], name);
		for (unsigned t = 0; t < c->tunnels; t++)
			if (*c->tunnel[t].name)
				fprintf(f, "%s{tunnel=\"%s\"} %" PRIu64 "\n", name, c->tunnel[t].name,
				    value_at(&all[t].c, k));
	}
	for (size_t k = 0; k < COUNT(keys_totals); k++) {
		metric_counter(f, "keys", &keys_totals[k], name);
		fprintf(f, "%s %" PRIu64 "\n", name, value_at(&all[c->tunnels].all, k));
	}
	free(all);
}

static void metrics_queue_rules(FILE *f, const struct api_req *req)
{
	static const char *const name[] = {"roceway_port_queue_rules", "roceway_port_queue_rules_installed"};

	for (unsigned k = 0; k < COUNT(name); k++) {
		head(f, name[k], "gauge",
		    k ? "Of them, those that the device has: the others' datagrams cross between workers"
		      : "Rules by which the device should give each worker its own datagrams");
		for (unsigned p = 0; p < req->app->ports; p++) {
			struct gw_queue_rules_info q = {0};

			if (req->app->conf->port[p].role != CONF_ROLE_WAN)
				continue;
			(void)gw_queue_rules_get(req->app, p, &q);
			fprintf(f, "%s{port=\"%s\"} %u\n", name[k], req->app->conf->port[p].name,
			    k ? q.installed : q.rules);
		}
	}
}

static void metrics_ports(FILE *f, const struct api_req *req)
{
	const struct conf *c = req->app->conf;
	struct port_values v[CONF_PORTS_MAX];
	char name[96];

	head(f, "roceway_port_up", "gauge", "1 when the port has link");
	for (unsigned p = 0; p < req->app->ports; p++) {
		struct gw_port_stats s;
		const bool up = !gw_port_stats_get(req->app, p, &s) && s.up;

		fprintf(f, "roceway_port_up{port=\"%s\",role=\"%s\"} %d\n", c->port[p].name,
		    c->port[p].role == CONF_ROLE_LAN ? "lan" : "wan", up);
		port_values(req, p, &v[p]);
	}
	for (size_t k = 0; k < COUNT(port_counters); k++) {
		metric_counter(f, "port", &port_counters[k], name);
		for (unsigned p = 0; p < req->app->ports; p++)
			fprintf(
			    f, "%s{port=\"%s\"} %" PRIu64 "\n", name, c->port[p].name, value_at(&v[p], k));
	}
}

static void metrics_app(FILE *f, const struct api_req *req, const struct api_snap *snap)
{
	const struct gw_app *a = req->app;
	const int state = atomic_load(&a->state);
	uint64_t flows = 0, custody = 0, custody_max = 0;
	uint32_t total, avail;

	for (unsigned w = 0; w < a->workers; w++) {
		flows += snap[w].flows;
		custody += snap[w].custody;
		custody_max += snap[w].custody_max;
	}
	gw_buffers_get(a, &total, &avail);
	head(f, "roceway_info", "gauge", "Version and name");
	fprintf(f, "roceway_info{version=\"%s\",name=\"%s\"} 1\n", a->version, a->conf->name);
	head(f, "roceway_start_time_seconds", "gauge", "when the gateway started, seconds since 1970");
	fprintf(f, "roceway_start_time_seconds %lld\n", (long long)a->start_wall);
	head(f, "roceway_running", "gauge", "1 when neither starting nor stopping");
	fprintf(f, "roceway_running %d\n", state == GW_RUNNING || state == GW_DRAINING);
	head(f, "roceway_draining", "gauge", "1 while it delivers what it acknowledged, before a stop");
	fprintf(f, "roceway_draining %d\n", state == GW_DRAINING);
	head(f, "roceway_flows", "gauge", "connections in the flow tables");
	fprintf(f, "roceway_flows %" PRIu64 "\n", flows);
	head(f, "roceway_custody_bytes", "gauge", "bytes in custody");
	fprintf(f, "roceway_custody_bytes %" PRIu64 "\n", custody);
	head(f, "roceway_custody_limit_bytes", "gauge",
	    "above it ACKs wait: memory.custody_total, or less if memory.buffers is");
	fprintf(f, "roceway_custody_limit_bytes %" PRIu64 "\n", custody_max);
	head(f, "roceway_buffers", "gauge", "packet buffers in all");
	fprintf(f, "roceway_buffers %u\n", total);
	head(f, "roceway_buffers_free", "gauge", "packet buffers free");
	fprintf(f, "roceway_buffers_free %u\n", avail);
}

static void metrics_loops(FILE *f, const struct api_req *req)
{
	static const char *const mode[] = {"busy", "idle", "asleep"};

	head(f, "roceway_worker_seconds_total", "counter",
	    "time of a worker: in loop turns with work, without work, and sleeping");
	for (unsigned w = 0; w < req->app->workers; w++) {
		struct gw_worker_stats s;

		gw_worker_stats_get(req->app, w, &s);
		for (unsigned m = 0; m < 3; m++)
			fprintf(f, "roceway_worker_seconds_total{worker=\"%u\",mode=\"%s\"} %.9g\n", w,
			    mode[m],
			    (double)(m == 0   ? s.busy
			             : m == 1 ? s.idle
			                      : s.asleep) /
			        1e9);
	}
}

static void metrics_all(FILE *f, const struct api_req *req, const struct api_snap *snap)
{
	metrics_app(f, req, snap);
	metrics_loops(f, req);
	metrics_ports(f, req);
	metrics_queue_rules(f, req);
	metrics_tunnels(f, req, snap);
	api_paths_metrics(f, req, snap);
	metrics_keys(f, req);
	metrics_workers(f, req, snap);
	api_metrics_memory(f, req);
	metrics_relay(f, req);
	metrics_api(f);
	api_metrics_siblings(f, req);
	api_metrics_reservations(f, req);
	api_metrics_standby(f, req);
}

int gw_metrics_print(FILE *out)
{
	struct conf *none = calloc(1, sizeof(*none));
	struct gw_app app = {.conf = none, .version = ""};
	const struct api_req req = {.app = &app};
	char *text = NULL, *save = NULL;
	size_t size;
	FILE *f = none ? open_memstream(&text, &size) : NULL;

	if (f) {
		metrics_all(f, &req, NULL);
		if (fclose(f)) {
			free(text);
			text = NULL;
		}
	}
	free(none);
	if (!text)
		return RWY_ENOMEM;
	for (char *l = strtok_r(text, "\n", &save); l; l = strtok_r(NULL, "\n", &save))
		if (*l == '#')
			fprintf(out, "%s\n", l);
	free(text);
	return 0;
}

void api_metrics(const struct api_req *req, struct api_reply *reply)
{
	struct api_snap *snap = api_snap_all(req, reply);
	size_t size;
	FILE *f;

	if (!snap)
		return;
	f = open_memstream(&reply->text, &size);
	if (!f) {
		api_fail(reply, 500, "out of memory");
		free(snap);
		return;
	}
	metrics_all(f, req, snap);
	free(snap);
	if (fclose(f))
		api_fail(reply, 500, "out of memory");
	reply->type = "text/plain; version=0.0.4; charset=utf-8";
}
