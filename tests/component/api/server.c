/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The API over a made-up gateway: the real gateway/api/ with fakes of what they ask (app.h, engine.h). Run
 * by cli_api.py; it serves until its standard input ends. No DPDK; captures get packets=N a second.
 *
 *   api_server SOCKET [workers=N] [flows=N] [tunnels=N] [stuck=WORKER] [down=1] [sparse=1] [siblings=1]
 *       [losing=1] [conf=FILE] [owed=BYTES] [owes=1] [packets=N] [own_tenants=N]
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "gateway/relay.h"
#include "gateway/app.h"
#include "gateway/agent/ctrl.h"
#include "base/log.h"
#include "gateway/control/reservations.h"
#include "gateway/control/siblings.h"
#include "gateway/control/tenants.h"
#include "gateway/carrier/carrier.h"
#include "gateway/tls/cert.h"
#include "gateway/keys/keys.h"
#include "gateway/control/tunnels_int.h"
#include "gateway/offload/queues.h"
#include "tests/component/api/drain.h"

#define UPTIME (100000 * RWY_SEC)

struct eng {
	unsigned worker;
};

static struct {
	struct gw_app app;
	struct conf *conf;
	struct eng eng[GW_WORKERS_MAX];
	uint32_t flows;
	int stuck;
	bool down, siblings, losing, sparse; /* sparse: some parts of the flow table are empty */
} fake = {.flows = 3, .stuck = -1};

unsigned fake_worker(const struct eng *e)
{
	return e->worker;
}

rwy_time gw_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (rwy_time)(ts.tv_sec + 1000000) * RWY_SEC + (rwy_time)ts.tv_nsec;
}

/* It started in 2023. */
uint64_t gw_utc(rwy_time t)
{
	return (uint64_t)fake.app.start_wall * RWY_SEC + t - fake.app.start;
}

int gw_call(struct gw_app *app, unsigned worker, void (*fn)(struct eng *e, void *arg), void *arg)
{
	if ((int)worker == fake.stuck)
		return RWY_EAGAIN;
	fn(&fake.eng[worker], arg);
	return 0;
}

/* --- counters: fixed ones, and some that change with every read ------------------------------- */

const struct eng_counters *eng_counters(const struct eng *e)
{
	static struct eng_counters c[GW_WORKERS_MAX];

	c[e->worker].lan_rx_packets += 1000;
	c[e->worker].lan_rx_bytes += 1000000;
	c[e->worker].drop_icrc = 7;
	return &c[e->worker];
}

bool gw_relay_counters_get(const struct gw_app *app, struct proxy_counters *out)
{
	memset(out, 0, sizeof(*out));
	out->refused_acl = 3;
	return true;
}

static struct conf_map fake_map; /* of one entry; port 0: none */

int gw_map_add(struct gw_app *app, const struct conf_map *m)
{
	if (fake_map.port)
		return RWY_EEXIST;
	fake_map = *m;
	return 0;
}

int gw_map_del(struct gw_app *app, const char *name)
{
	if (!fake_map.port || strcmp(fake_map.name, name) != 0)
		return RWY_ENOENT;
	fake_map.port = 0;
	return 0;
}

int gw_map_get(struct gw_app *app, struct gw_map_info out[CONF_MAP_MAX])
{
	if (!fake_map.port)
		return 0;
	out[0] = (struct gw_map_info){.entry = {.listen = fake_map.listen,
	                                  .port = fake_map.port,
	                                  .target = fake_map.target,
	                                  .target_port = fake_map.port}};
	memcpy(out[0].entry.name, fake_map.name, sizeof(out[0].entry.name));
	return 1;
}

int gw_links_get(
    struct gw_app *app, uint32_t *cursor, struct proxy_link out[GW_LINKS_MAX], struct proxy_map_now *now)
{
	*now = (struct proxy_map_now){.half_open = 0, .open = 1, .closed = 0};
	*cursor = UINT32_MAX;
	out[0] = (struct proxy_link){.id = 0x1234,
	    .state = PROXY_ESTABLISHED,
	    .local = rwy_ip_from4((const uint8_t[]){10, 1, 0, 2}),
	    .remote = rwy_ip_from4((const uint8_t[]){10, 2, 0, 2}),
	    .relay = rwy_ip_from4((const uint8_t[]){10, 1, 0, 1}),
	    .local_active = true,
	    .port = 20049,
	    .lqpn = 17,
	    .rqpn = 18,
	    .alias = 4711,
	    .in_packets = 5};
	return 1;
}

void gw_overlay_counters_get(const struct gw_app *app, unsigned worker, struct gw_overlay_counters *out)
{
	*out = (struct gw_overlay_counters){.vxlan[VXLAN_NESTED] = worker == app->workers ? app->workers : 1};
}

void gw_counters_get(const struct gw_app *app, unsigned worker, struct gw_counters *out)
{
	const unsigned n = worker == app->workers ? app->workers : 1;

	memset(out, 0, sizeof(*out));
	out->rx_packets = UINT64_C(10) * n;
	out->drop_tx_full = (UINT64_C(1) << 40) * n;
	out->capture_lost = fake_packets_lost();
}

void gw_worker_stats_get(const struct gw_app *app, unsigned worker, struct gw_worker_stats *out)
{
	*out = (struct gw_worker_stats){.turns = 1000000,
	    .busy_turns = 250000,
	    .sleeps = 12,
	    .busy = 30 * RWY_SEC,
	    .idle = 60 * RWY_SEC,
	    .asleep = 10 * RWY_SEC,
	    .turn_max = 950 * RWY_US,
	    .rx_bursts = 1000,
	    .rx_packets = 12345,
	    .heartbeat = 99,
	    .lcore = (int)worker + 1};
}

int gw_port_stats_get(const struct gw_app *app, unsigned port, struct gw_port_stats *out)
{
	if (port >= app->ports)
		return RWY_EINVAL;
	*out = (struct gw_port_stats){.up = !fake.down,
	    .speed_mbps = 100000,
	    .mac = {2, 0, 0, 0, 0, (uint8_t)port},
	    .driver = "net_null",
	    .tap = "rwy-lan",
	    .rx_queues = 1,
	    .tx_queues = 1,
	    .rx_packets = 1234567890,
	    .rx_bytes = UINT64_C(1) << 42,
	    .rx_missed = 3};
	return 0;
}

bool gw_queue_rules_get(const struct gw_app *app, unsigned port, struct gw_queue_rules_info *out)
{
	if (app->workers < 2 || port >= app->ports || app->conf->port[port].role != CONF_ROLE_WAN)
		return false;
	*out = (struct gw_queue_rules_info){.rules = 4, .installed = 2, .why = "no such pattern"};
	return true;
}

void gw_queue_rules_follow(struct gw_app *app)
{
}

size_t gw_neighs_get(const struct gw_app *app, struct gw_neigh_info *out, size_t max)
{
	static const uint8_t v4[4] = {10, 1, 0, 2};

	out[0] = (struct gw_neigh_info){.addr = rwy_ip_from4(v4),
	    .mac = {2, 0, 0, 0, 1, 2},
	    .port = 0,
	    .state = "reachable",
	    .used = true};
	memset(&out[1], 0, sizeof(out[1]));
	memset(out[1].addr.b, 0xfd, 16);
	out[1].port = 1;
	out[1].state = "stale";
	return 2;
}

void gw_buffers_get(const struct gw_app *app, uint32_t *total, uint32_t *avail)
{
	*total = app->conf->buffers;
	*avail = app->conf->buffers - 100;
}

/* The carrier changes at once, unless the kernel lacks bbr. */
static enum wan_carrier carrier_now[CONF_TUNNELS_MAX];

int gw_carrier_tunnel(struct gw_app *app, unsigned tunnel, const struct conf_tunnel *c)
{
	carrier_now[tunnel] = c ? (enum wan_carrier)c->carrier : WAN_CARRIER_NATIVE;
	return 0;
}

int gw_carrier_can(struct gw_app *app, unsigned tunnel, enum wan_carrier c, char *why, size_t size)
{
	if (c == WAN_CARRIER_TCP && !strcmp(app->conf->tunnel[tunnel].tcp_cc, "bbr")) {
		snprintf(
		    why, size, "tcp_congestion_control `bbr` is not in this kernel; the kernel has: reno");
		return RWY_EINVAL;
	}
	return 0;
}

int gw_carrier_set(struct gw_app *app, unsigned tunnel, enum wan_carrier c, char *why, size_t size)
{
	const int rc = gw_carrier_can(app, tunnel, c, why, size);

	if (!rc)
		carrier_now[tunnel] = c;
	return rc;
}

static enum wan_carrier detour_now[CONF_TUNNELS_MAX];
static unsigned detour_after[CONF_TUNNELS_MAX];

int gw_carrier_detour(
    struct gw_app *app, unsigned tunnel, enum wan_carrier by, unsigned after, char *why, size_t size)
{
	detour_now[tunnel] = by;
	detour_after[tunnel] = after;
	return 0;
}

void gw_carrier_info(const struct gw_app *app, unsigned tunnel, struct gw_carrier_info *out)
{
	*out = (struct gw_carrier_info){.wanted = carrier_now[tunnel],
	    .detour = detour_now[tunnel],
	    .detour_after = detour_after[tunnel],
	    .detouring = detour_now[tunnel] != WAN_CARRIER_NATIVE,
	    .sending = carrier_now[tunnel],
	    .connections = carrier_now[tunnel] ? 4 : 0,
	    .via = carrier_now[tunnel],
	    .congestion = "cubic",
	    .c.fallbacks = 3};
}

int gw_keys_tunnel(struct gw_app *app, unsigned tunnel, const struct conf_tunnel *c)
{
	return 0;
}

int gw_keys_read(struct gw_cert **out, const struct conf *c, char *why, size_t size)
{
	*out = NULL;
	return 0;
}

void gw_keys_take(struct gw_app *app, const struct conf *c, struct gw_cert *cert)
{
}

void gw_cert_free(struct gw_cert *c)
{
}

void gw_keys_info(const struct gw_app *app, unsigned tunnel, struct gw_keys_info *out)
{
	const bool keys = app->conf->tunnel[tunnel].security == CONF_SEC_KEYS;

	*out = (struct gw_keys_info){.state = keys ? GW_KEYS_USED : GW_KEYS_OFF,
	    .since = keys ? UPTIME / 2 : 0,
	    .peer_expires = keys ? 1900000000 : 0,
	    .c.exchanges = keys,
	    .all.strangers = 2};
	snprintf(
	    out->peer_name, sizeof(out->peer_name), "%s", conf_tunnel_peer_name(&app->conf->tunnel[tunnel]));
}

const char *gw_keys_state_name(enum gw_keys_state s)
{
	return s == GW_KEYS_OFF ? "none" : "used";
}

int gw_siblings_own(struct gw_app *app, const struct conf *c)
{
	return 0;
}

unsigned gw_siblings_get(struct gw_app *app, struct gw_sibling_info *out, unsigned max)
{
	if (!fake.siblings || max < 2)
		return 0;
	out[0] = (struct gw_sibling_info){.name = "gw-a2",
	    .addr = rwy_ip_from4((const uint8_t[4]){10, 1, 0, 102}),
	    .weight = 3,
	    .mac_known = true,
	    .mac = {2, 0, 0, 0, 1, 2},
	    .pairs = 4,
	    .packets = 12345};
	out[1] = (struct gw_sibling_info){.name = "gw-a3",
	    .addr = rwy_ip_from4((const uint8_t[4]){10, 1, 0, 103}),
	    .lost = true,
	    .controller = true};
	return 2;
}

/* With siblings there is a plan: of two reservations one sends 100 kB between two looks. */
unsigned gw_reservations_get(struct gw_app *app, struct gw_reservation_info **out)
{
	static uint64_t sent;
	const struct gw_reservation r = {.src = rwy_ip_from4((const uint8_t[4]){10, 1, 0, 10}),
	    .dst = rwy_ip_from4((const uint8_t[4]){10, 2, 0, 10}),
	    .rate_bps = 6521740,
	    .number = 1,
	    .job = "train",
	    .tunnel = "b1"};

	*out = fake.siblings ? calloc(2, sizeof(**out)) : NULL;
	if (!*out)
		return 0;
	sent += 100000;
	(*out)[0] = (struct gw_reservation_info){
	    .r = r, .sent = sent, .sent_guaranteed = sent, .waiting = true, .limited = true};
	(*out)[1].r = r;
	(*out)[1].r.number = 0;
	(*out)[1].r.dst_qpn = 77;
	(*out)[1].r.priority = 3;
	(*out)[1].r.has_dscp = true;
	(*out)[1].r.dscp = 46;
	return 2;
}

bool gw_ctrl_status(const struct gw_app *app, struct agent_status *out)
{
	*out = (struct agent_status){.state = AGENT_REGISTERED,
	    .url = "https://192.0.2.10:7443",
	    .ttl_ms = 3000,
	    .generation = 17,
	    .refused = 18,
	    .since_ms = 7200000,
	    .renewed_ms = 400,
	    .why =
	        "tunnel site-c: expected an address of a port of role `wan` for `local`, found `192.0.2.7`",
	    .registrations = 1,
	    .documents = 4};
	return app->conf->controller.urls;
}

/* Workers accept every tunnel, and release it at once. */
int gw_tunnel_build(struct gw_app *app, unsigned worker, const struct conf *c, unsigned i)
{
	return (int)worker == fake.stuck ? RWY_EAGAIN : 0;
}

int gw_tunnels_set(struct gw_app *app, unsigned worker, const struct conf *c)
{
	return 0;
}

int gw_tunnels_detach(struct gw_app *app, unsigned worker, uint64_t set, uint64_t *gone)
{
	*gone = set;
	return 0;
}

/* --- flows and tunnels ------------------------------------------------------------------------------------
 */

static void flow_make(const struct eng *e, uint32_t i, struct eng_flow_info *f)
{
	static const char *const state[] = {"idle", "learning", "failed"};
	uint8_t v4[4] = {10, 1, (uint8_t)(i >> 8), (uint8_t)i};

	memset(f, 0, sizeof(*f));
	f->local = rwy_ip_from4(v4);
	v4[1] = 2;
	f->remote = rwy_ip_from4(v4);
	if (i % 5 == 4) /* the longest possible addresses */
	{
		memset(f->local.b, 0xfd, 16);
		memset(f->remote.b, 0xfe, 16);
	}
	f->tenant = i < fake.conf->tenants ? i : 0; /* as long as the file has enough tenants */
	f->local_qpn = 16 + i + (e->worker << 20);
	f->remote_qpn = i % 3 == 1 ? 0 : 0xffff00 + (i & 0xff);
	memcpy(f->tunnel, fake.conf->tunnel[i % fake.conf->tunnels].name, ENG_NAME_MAX);
	f->state = state[i % 3];
	f->learned = i % 2 ? "cm" : "passive";
	f->limit = i % 3 ? "window" : "path";
	f->error = i % 3 == 2 ? "the far host did not answer 7 retransmissions" : "";
	f->pmtu = 1024;
	f->requester_retry = 7;
	f->requester_timeout_max = RWY_SEC;
	f->requester_patience = i % 2 ? RWY_NEVER : 17 * RWY_SEC;
	f->ack_mode = eng_ack_mode_name(ENG_ACK_NEAR);
	f->patience = i % 2 ? 2 * RWY_SEC : 0;
	f->impatient = i % 3 == 1;
	f->responder_psn = i;
	f->tx_packets = UINT64_C(1000) * i;
	f->tx_bytes = (uint64_t)i * 1000000007;
	f->rx_bytes = UINT64_C(1234567890123);
	f->custody_bytes = f->held[ENG_MEM_CUSTODY] = 31 << 20;
	f->held[ENG_MEM_ANSWERS] = (uint64_t)i << 10;
	f->held_most = 33 << 20;
	/* As in a table, in no order; no two at the same time. */
	f->last = fake.app.start + UPTIME - 90 * RWY_SEC - ((i * 7919 % 10007) * 2 + e->worker) * RWY_SEC;
}

#define HOLE 0x80000000u

unsigned eng_flows(const struct eng *e, uint32_t *cursor, struct eng_flow_info *out, unsigned max)
{
	unsigned n = 0;

	/* An empty part: the same cursor always gives the same answer. */
	if (fake.sparse && *cursor && !(*cursor & HOLE)) {
		*cursor |= HOLE;
		return 0;
	}
	*cursor &= ~HOLE;
	for (; n < max && *cursor < fake.flows; n++)
		flow_make(e, (*cursor)++, &out[n]);
	if (*cursor >= fake.flows)
		*cursor = 0;
	return n;
}

uint32_t eng_flow_count(const struct eng *e)
{
	return fake.flows;
}

void eng_tunnel_stats(const struct eng *e, unsigned tunnel, struct wan_stats *out)
{
	memset(out, 0, sizeof(*out));
	out->up = !fake.down && tunnel != 1;
	out->since = fake.app.start + UPTIME - (out->up ? 7200 : 190 - e->worker) * RWY_SEC;
	out->c.tx_bytes = UINT64_C(123456789012);
	out->c.lost = 42;
	out->detour_proven = detour_now[tunnel] != WAN_CARRIER_NATIVE;
	out->c.retransmit_detour = 22;
	out->srtt = out->up ? 20 * RWY_MS + 123456 : 0;
	out->min_rtt = out->up ? 20 * RWY_MS : RWY_NEVER;
	out->rate_Bps = 1187500000;
	out->inflight = 20 << 20;
	out->loss_ppm = 120;
	out->tx_flows = out->rx_flows = 5000;
	if (out->up)
		out->congest = (struct wan_congest_state){
		    .by = WAN_CONGEST_LOSS, .since = RWY_SEC, .loss_ppm = 52000, .begins = 1};
	snprintf(out->cc, sizeof(out->cc), "auto: steady");
}

bool eng_path_stats(const struct eng *e, unsigned tunnel, unsigned path, struct wan_path_stats *out)
{
	const struct conf_tunnel *t = &fake.conf->tunnel[tunnel];

	if (path > t->paths)
		return false;
	*out = (struct wan_path_stats){.state = path ? "silent" : "usable",
	    .srtt = 20 * RWY_MS,
	    .rate_Bps = 1000000,
	    .loss_ppm = 100 * path,
	    .silences = path,
	    .tx_bytes = 1000,
	    .moved = 7 * path};
	return true;
}

void eng_memory(const struct eng *e, struct eng_memory *out)
{
	*out = (struct eng_memory){.held = 77u << 20,
	    .most = 90u << 20,
	    .max = 96u << 20,
	    .soft = 77u << 20,
	    .reserved = 10u << 20,
	    .buf_cost = 2560,
	    .hosts = 40,
	    .waiting = e->worker,
	    .reassembly = 12,
	    .fec = 3};
	for (unsigned k = 0; k < ENG_MEM_N; k++) {
		out->kind[k].bufs = 1000 * k;
		out->kind[k].bytes = 2560000ull * k;
	}
	out->kind[ENG_MEM_UNPAIRED].max = 6u << 20;
	out->kind[ENG_MEM_ANSWERS].max = 24u << 20;
	out->kind[ENG_MEM_RECEIVED].max = 48u << 20;
}

unsigned eng_memory_hosts(const struct eng *e, uint32_t *cursor, struct eng_memory_host *out, unsigned max)
{
	unsigned n = 0;

	for (; n < max && *cursor < fake.flows; (*cursor)++, n++) {
		uint8_t v4[4] = {10, 1, (uint8_t)(*cursor >> 8), (uint8_t)*cursor};

		out[n] = (struct eng_memory_host){.addr = rwy_ip_from4(v4),
		    .held = 2560ull * *cursor,
		    .most = 9u << 20,
		    .kind = {2560ull * *cursor},
		    .sides = 2,
		    .half_open = 1};
	}
	if (*cursor >= fake.flows)
		*cursor = 0;
	return n;
}

/* One of a pair if the configuration says so. */
bool eng_standby_info(const struct eng *e, struct eng_standby_info *out)
{
	*out = (struct eng_standby_info){.state = fake.losing ? "losing"
	                                          : fake.down ? "alone"
	                                                      : "paired",
	    .other = fake.down ? "" : "ready",
	    .since = fake.app.start + UPTIME - 90 * RWY_SEC,
	    .serves = true,
	    .site = !fake.down,
	    .term = 7,
	    .witness = "site-b",
	    .took_by = "silent",
	    .took_at = fake.app.start + UPTIME - 120 * RWY_SEC,
	    .lost_by = fake.down ? "stuck" : "",
	    .lost_at = fake.app.start + UPTIME - 90 * RWY_SEC,
	    .flows = fake.down ? 0 : 3,
	    .bytes = fake.down ? 0 : 1 << 20};
	return true;
}

uint64_t eng_custody_bytes(const struct eng *e)
{
	return UINT64_C(77) << 20;
}

void gw_log(int level, const char *module, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

int gw_log_set(int level)
{
	static int is = GW_LOG_INFO;
	int was = is;

	is = level;
	return was;
}

static const char *text_option(char **argv, const char *name, const char *dflt)
{
	const size_t n = strlen(name);

	for (; *argv; argv++)
		if (!strncmp(*argv, name, n) && (*argv)[n] == '=')
			return *argv + n + 1;
	return dflt;
}

static unsigned option(char **argv, const char *name, unsigned dflt)
{
	const size_t n = strlen(name);

	for (; *argv; argv++)
		if (!strncmp(*argv, name, n) && (*argv)[n] == '=')
			return (unsigned)strtol(*argv + n + 1, NULL, 10);
	return dflt;
}

static int start(char **argv)
{
	struct conf_error err;
	struct conf *c;
	unsigned tunnels = option(argv, "tunnels", 1);

	if (conf_load(&c, text_option(argv, "conf", "conf/samples/gateway.yaml"), &err)) {
		conf_error_print(stderr, &err);
		return 1;
	}
	snprintf(c->api_socket, sizeof(c->api_socket), "%s", argv[1]);
	if (!option(argv, "metrics", 0)) /* the sample's port is one for all tests that run now */
		c->api_metrics[0] = 0;
	for (; c->tunnels < tunnels && c->tunnels < CONF_TUNNELS_MAX; c->tunnels++) {
		c->tunnel[c->tunnels] = c->tunnel[0];
		snprintf(c->tunnel[c->tunnels].name, CONF_NAME, "name-of-30-characters-abc-%03u",
		    c->tunnels % 1000);
		memset(c->tunnel[c->tunnels].remote.b, 0xfd, 16);
	}
	c->port[0].offload = option(argv, "offload", 0) ? CONF_OFFLOAD_TC : CONF_OFFLOAD_OFF;
	fake.conf = c;
	fake.flows = option(argv, "flows", fake.flows);
	fake.stuck = (int)option(argv, "stuck", (unsigned)-1);
	fake.down = option(argv, "down", 0);
	fake.sparse = option(argv, "sparse", 0);
	fake.losing = option(argv, "losing", 0);
	fake.siblings = option(argv, "siblings", 0);
	fake.app = (struct gw_app){.conf = c,
	    .conf_path = text_option(argv, "conf", "conf/samples/gateway.yaml"),
	    .version = RWY_VERSION,
	    .start_wall = 1700000000,
	    .start = gw_now() - UPTIME,
	    .state = GW_RUNNING,
	    .workers = option(argv, "workers", 1),
	    .ports = c->ports};
	for (unsigned i = 0; i < GW_WORKERS_MAX; i++)
		fake.eng[i].worker = i;
	for (unsigned i = 0; i < fake.app.workers; i++)
		fake.app.worker[i] = (struct gw_worker *)&fake.eng[i]; /* there; nobody looks into it */
	if (gw_publisher_new(&fake.app.publisher, fake.app.workers) || gw_tenants_new(&fake.app) ||
	    gw_tunnels_new(&fake.app, c, c->tunnels, option(argv, "own_tenants", c->tenants)))
		return 1;
	if (fake_recorder_start(gw_now()))
		return 1;
	if (fake_packets_start(&fake.app, option(argv, "packets", 0)))
		return 1;
	if (fake_drain_start(&fake.app, option(argv, "owed", 0), option(argv, "owes", 0)))
		return 1;
	return gw_api_start(&fake.app) ? 1 : 0;
}

int main(int argc, char **argv)
{
	char byte;

	if (argc < 2 || start(argv))
		return 1;
	puts("ready");
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
	fake_drain_stop();
	gw_api_stop(&fake.app);
	fake_packets_stop();
	fake_recorder_stop();
	gw_tenants_free(&fake.app);
	gw_tunnels_free(&fake.app);
	gw_publisher_free(fake.app.publisher);
	conf_free(fake.conf);
	return 0;
}
