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
#include "gateway/control/tunnels_int.h"
#include "gateway/offload/queues.h"
#include "tests/component/api/drain.h"
#include "tests/component/api/gateway.h"

struct fake_gateway fake_gateway = {.flows = 3, .stuck = -1};

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
	return (uint64_t)fake_gateway.app.start_wall * RWY_SEC + t - fake_gateway.app.start;
}

int gw_call(struct gw_app *app, unsigned worker, void (*fn)(struct eng *e, void *arg), void *arg)
{
	if ((int)worker == fake_gateway.stuck)
		return RWY_EAGAIN;
	fn(&fake_gateway.eng[worker], arg);
	return 0;
}

/* --- counters of the gateway ------------------------------------------------------------------ */

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

int gw_map_set(struct gw_app *app, const struct conf_relay *c)
{
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
	*out = (struct gw_port_stats){.up = !fake_gateway.down,
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

int gw_siblings_own(struct gw_app *app, const struct conf *c)
{
	return 0;
}

unsigned gw_siblings_get(struct gw_app *app, struct gw_sibling_info *out, unsigned max)
{
	if (!fake_gateway.siblings || max < 2)
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

	*out = fake_gateway.siblings ? calloc(2, sizeof(**out)) : NULL;
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
	fake_gateway.conf = c;
	fake_gateway.flows = option(argv, "flows", fake_gateway.flows);
	fake_gateway.stuck = (int)option(argv, "stuck", (unsigned)-1);
	fake_gateway.down = option(argv, "down", 0);
	fake_gateway.sparse = option(argv, "sparse", 0);
	fake_gateway.losing = option(argv, "losing", 0);
	fake_gateway.siblings = option(argv, "siblings", 0);
	fake_gateway.app = (struct gw_app){.conf = c,
	    .conf_path = text_option(argv, "conf", "conf/samples/gateway.yaml"),
	    .version = RWY_VERSION,
	    .start_wall = 1700000000,
	    .start = gw_now() - FAKE_UPTIME,
	    .state = GW_RUNNING,
	    .workers = option(argv, "workers", 1),
	    .ports = c->ports};
	for (unsigned i = 0; i < GW_WORKERS_MAX; i++)
		fake_gateway.eng[i].worker = i;
	for (unsigned i = 0; i < fake_gateway.app.workers; i++)
		fake_gateway.app.worker[i] =
		    (struct gw_worker *)&fake_gateway.eng[i]; /* there; nobody looks into it */
	if (gw_publisher_new(&fake_gateway.app.publisher, fake_gateway.app.workers) ||
	    gw_tenants_new(&fake_gateway.app) ||
	    gw_tunnels_new(&fake_gateway.app, c, c->tunnels, option(argv, "own_tenants", c->tenants)))
		return 1;
	if (fake_recorder_start(gw_now()))
		return 1;
	if (fake_packets_start(&fake_gateway.app, option(argv, "packets", 0)))
		return 1;
	if (fake_drain_start(&fake_gateway.app, option(argv, "owed", 0), option(argv, "owes", 0)))
		return 1;
	return gw_api_start(&fake_gateway.app) ? 1 : 0;
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
	gw_api_stop(&fake_gateway.app);
	fake_packets_stop();
	fake_recorder_stop();
	gw_tenants_free(&fake_gateway.app);
	gw_tunnels_free(&fake_gateway.app);
	gw_publisher_free(fake_gateway.app.publisher);
	conf_free(fake_gateway.conf);
	return 0;
}
