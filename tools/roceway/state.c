/* SPDX-License-Identifier: Apache-2.0 */
/* The commands about the gateway's parts: status, health, tunnels, ports, neighbours, workers. */
#include "tools/roceway/roceway.h"

#include <string.h>

static void print_down(const json_t *list)
{
	const json_t *o;
	size_t i;

	json_array_foreach((json_t *)list, i, o) printf("               %s down for %s, since %s\n",
	    js(o, "name"), say_time(jn(o, "seconds")), js(o, "since"));
}

/* A gateway that is one of a pair. */
static void print_pair(const json_t *s)
{
	if (!json_is_object(s))
		return;
	printf("standby        %s for %s, the other gateway is %s%s\n", js(s, "state"),
	    say_time(jn(s, "seconds")), *js(s, "other") ? js(s, "other") : "silent",
	    jb(s, "degraded") ? ": NO TAKEOVER WITHOUT LOSS" : "");
}

/* How long it runs is not how long it is being drained. */
static void print_state(const json_t *j)
{
	const json_t *drain = json_object_get(j, "drain");
	const bool kept = !strcmp(js(drain, "state"), "drained") && !strcmp(js(drain, "then"), "keep");

	if (!strcmp(js(j, "state"), "running")) {
		printf("state          running for %s, since %s\n", say_time(jn(j, "uptime_seconds")),
		    js(j, "started"));
		return;
	}
	if (drain && !json_is_null(drain))
		printf("state          %s%s, the drain began %s ago\n", js(drain, "state"),
		    kept ? " until roceway drain --cancel" : "", say_time(jn(drain, "seconds")));
	else
		printf("state          %s\n", js(j, "state"));
	printf("started        %s, %s ago\n", js(j, "started"), say_time(jn(j, "uptime_seconds")));
}

/* How it stands with its control center, if the file names one. */
static void print_controller(const struct cli *cli)
{
	json_t *c = api_get_json(cli, "/v1/controller", NULL);

	if (c && strcmp(js(c, "state"), "none") != 0) {
		printf("controller     %s for %s", js(c, "state"), say_time(jn(c, "since_seconds")));
		if (ji(c, "refused") || *js(c, "refusal"))
			printf(", document %lld REFUSED: see roceway controller", ji(c, "refused"));
		putchar('\n');
	}
	json_decref(c);
}

static int run_status(const struct cli *cli)
{
	json_t *j = api_get_json(cli, "/v1/status", NULL);

	if (!j)
		return EXIT_ERROR;
	if (cli->json) {
		print_json(j);
	} else {
		printf("gateway        %s, Roceway %s\n", js(j, "name"), js(j, "version"));
		print_state(j);
		if (*js(j, "configuration"))
			printf("configuration  %s\n", js(j, "configuration"));
		printf("workers        %lld, %lld answering\n", ji(j, "workers"), ji(j, "workers_answering"));
		printf("ports          %lld, %lld up\n", ji(j, "ports"), ji(j, "ports_up"));
		printf("tunnels        %lld, %lld up\n", ji(j, "tunnels"), ji(j, "tunnels_up"));
		print_down(json_object_get(j, "tunnels_down"));
		if (ji(j, "tunnels_in_clear"))
			printf("               %lld WITHOUT KEYS: anybody on the path can read and forge "
			       "packets\n",
			    ji(j, "tunnels_in_clear"));
		print_pair(json_object_get(j, "standby"));
		print_controller(cli);
		printf("flows          %lld of at most %lld, ack mode %s\n", ji(j, "flows"),
		    ji(j, "flows_max"), js(j, "ack_mode"));
		printf("custody        %s of at most %s\n", say_bytes(jn(j, "custody_bytes")),
		    say_bytes(jn(j, "custody_max_bytes")));
		printf("buffers        %lld, %lld free\n", ji(j, "buffers"), ji(j, "buffers_free"));
		if (json_is_false(json_object_get(j, "sandbox")))
			printf("sandbox        OFF: the gateway keeps all system calls\n");
	}
	json_decref(j);
	return EXIT_OK;
}

const struct cli_cmd cmd_status = {.name = "status", .text = "the gateway at a glance", .run = run_status};

static int run_health(const struct cli *cli)
{
	long status = 0;
	json_t *j = api_get_json(cli, "/healthz", &status), *c;
	size_t i;

	if (!j)
		return EXIT_ERROR;
	if (cli->json)
		print_json(j);
	else
		json_array_foreach(json_object_get(j, "checks"), i, c) printf("%-4s  %-8s  %s\n",
		    jb(c, "note") ? "note"
		    : jb(c, "ok") ? "ok"
		                  : "BAD",
		    js(c, "name"), js(c, "detail"));
	json_decref(j);
	return status == 200 ? EXIT_OK : EXIT_ERROR;
}

const struct cli_cmd cmd_health = {.name = "health",
    .text = "health checks and their results",
    .more =
        "Exits with 0 if all checks pass, otherwise with 1. A note fails nothing: a tunnel without keys.\n",
    .run = run_health};

/* Fetches {KEY: [objects]} and prints it as JSON, in detail, or as a table by `row`. `more` (NULL:
 * nothing) prints what follows an object's table row. */
static int run_list(const struct cli *cli, const char *page, const char *key, const char *const *columns,
    void (*row)(struct table *t, const json_t *o), void (*more)(const json_t *o))
{
	json_t *j = api_get_json(cli, page, NULL), *o;
	struct table *t;
	size_t i;

	if (!j)
		return EXIT_ERROR;
	if (cli->json) {
		print_json(j);
	} else if (cli_value(cli, "detail")) {
		json_array_foreach(json_object_get(j, key), i, o)
		{
			if (i)
				putchar('\n');
			print_object(o);
		}
	} else {
		t = table_new(columns);
		json_array_foreach(json_object_get(j, key), i, o) row(t, o);
		table_print(t);
		json_array_foreach(json_object_get(j, key), i, o) if (more) more(o);
	}
	json_decref(j);
	return EXIT_OK;
}

static const struct cli_opt detail_opts[] = {
    {"detail", NULL, "everything that is known, line by line"}, {NULL, NULL, NULL}};

static const struct cli_opt tunnel_opts[] = {{"detail", NULL, "everything that is known, line by line"},
    {"paths", NULL, "the paths of each tunnel"}, {NULL, NULL, NULL}};

static const char *say_carrier(const char *name)
{
	return !strcmp(name, "native") ? "udp" : name;
}

static void tunnel_row(struct table *t, const json_t *o)
{
	const bool seen = jn(o, "rtt_seconds") > 0;
	const char *congested = js(json_object_get(o, "congestion"), "by");
	const json_t *c = json_object_get(o, "carrier");
	const bool as_wanted = !strcmp(js(c, "sending"), js(c, "wanted"));

	table_add(t, "%s", js(o, "name"));
	table_add(t, "%s", js(o, "state"));
	table_add(t, "%s", js(o, "remote"));
	const bool detour = !strcmp(js(c, "detour_state"), "ready");

	table_add(t, "%s%s%s%s%s", say_carrier(js(c, "sending")), detour ? "+" : "",
	    detour ? js(c, "detour") : "", as_wanted ? "" : "/",
	    as_wanted ? "" : say_carrier(js(c, "wanted")));
	table_add(t, "%s", seen ? say_time(jn(o, "rtt_seconds")) : "-");
	table_add(t, "%s", seen ? say_share(jn(o, "loss_ratio")) : "-");
	table_add(t, "%s", strcmp(congested, "none") != 0 ? congested : "-");
	table_add(t, "%s", seen ? say_bits(jn(o, "rate_bytes_per_second")) : "-");
	table_add(t, "%s", say_count(jn(o, "tx_flows") + jn(o, "rx_flows")));
	table_add(t, "%s", say_bytes(jn(o, "tx_bytes")));
	table_add(t, "%s", say_bytes(jn(o, "rx_bytes")));
}

static void tunnel_more(const json_t *o)
{
	if (strcmp(js(o, "state"), "up") != 0)
		printf("\n%s: %s for %s, since %s\n", js(o, "name"), js(o, "state"),
		    say_time(jn(o, "since_seconds")), js(o, "since"));
	if (!strcmp(js(o, "security"), "none"))
		printf("\n%s: NO KEYS: anybody on its path can read, change and forge its packets\n",
		    js(o, "name"));
	else if (*js(json_object_get(o, "keys"), "problem"))
		printf("\n%s: keys %s: %s\n", js(o, "name"), js(json_object_get(o, "keys"), "state"),
		    js(json_object_get(o, "keys"), "problem"));
}

/* One row for each path. */
static void path_rows(struct table *t, const json_t *o)
{
	const json_t *p;
	size_t i;

	json_array_foreach(json_object_get(o, "paths"), i, p)
	{
		const bool seen = jn(p, "rtt_seconds") > 0;

		table_add(t, "%s", js(o, "name"));
		table_add(t, "%lld", ji(p, "path"));
		if (*js(p, "label"))
			table_add(t, "%s", js(p, "label"));
		else
			table_add(t, "udp %lld", ji(p, "udp_port"));
		table_add(t, "%s", js(p, "state"));
		table_add(t, "%s", js(p, "remote"));
		table_add(t, "%s", seen ? say_time(jn(p, "rtt_seconds")) : "-");
		table_add(t, "%s", seen ? say_share(jn(p, "loss_ratio")) : "-");
		table_add(t, "%s", say_bits(jn(p, "rate_max_bytes_per_second")));
		table_add(t, "%s", seen ? say_bits(jn(p, "rate_bytes_per_second")) : "-");
		table_add(t, "%s", say_bytes(jn(p, "tx_bytes")));
		table_add(t, "%s", say_count(jn(p, "silences")));
	}
}

static int run_tunnels(const struct cli *cli)
{
	static const char *const by_path[] = {"~TUNNEL", ">PATH", "~NAME", "STATE", "~REMOTE", ">RTT",
	    ">LOSS", ">AT MOST", ">RATE", ">SENT", ">SILENT", NULL};
	static const char *const columns[] = {"~TUNNEL", "STATE", "~REMOTE", "VIA", ">RTT", ">LOSS", "BAD",
	    ">RATE", ">FLOWS", ">SENT", ">RECEIVED", NULL};

	if (cli_value(cli, "paths") && !cli->json)
		return run_list(cli, "/v1/tunnels", "tunnels", by_path, path_rows, NULL);
	return run_list(cli, cli_value(cli, "detail") || cli->json ? "/v1/tunnels?workers=1" : "/v1/tunnels",
	    "tunnels", columns, tunnel_row, tunnel_more);
}

const struct cli_cmd cmd_tunnels = {.name = "tunnels",
    .text = "tunnels to peer gateways",
    .more =
        "VIA is the carrier: udp (native), tcp, quic or rdma; after a slash the configured one, if it\n"
        "differs: --detail shows the reason. udp+tcp: what is lost repeatedly goes by TCP (`detour`).\n"
        "BAD is the cause of persistent congestion: loss, marks or delay.\n"
        "RATE is the rate that congestion control allows now, or that TCP reaches.\n"
        "FLOWS are ordered streams in both directions: a connection has up to four, for the requests of\n"
        "each host and the responses to them. SENT and RECEIVED count datagrams' bytes since start.\n"
        "Below the table: tunnels that are not up, and tunnels without keys, with the reason.\n"
        "--paths has a row for each path: usable, tried (it answers again, and carries a little), silent\n"
        "(no answer: its data went elsewhere), resting (it shares a bottleneck with another path, which\n"
        "carries for both), held (it stops for some round trips, for a test whether it does), spare (it\n"
        "answers, and another path carries), unproven (it never answered), off (nothing is sent by it).\n"
        "NAME is its label, or its UDP port. AT MOST is its configured or granted rate, SILENT how often\n"
        "it fell silent.\n",
    .opts = tunnel_opts,
    .run = run_tunnels};

static void port_row(struct table *t, const json_t *o)
{
	char *addrs = NULL, all[512] = "";
	json_t *a;
	size_t i;

	json_array_foreach(json_object_get(o, "addresses"), i, a)
	{
		addrs = all + strlen(all);
		snprintf(addrs, sizeof(all) - strlen(all), "%s%s", i ? " " : "", json_string_value(a));
	}
	table_add(t, "%s", js(o, "name"));
	table_add(t, "%s", js(o, "role"));
	table_add(t, "%s", jb(o, "up") ? "up" : "down");
	table_add(t, "%s", ji(o, "speed_mbps") ? say_bits(jn(o, "speed_mbps") * 125000) : "-");
	table_add(t, "%lld", ji(o, "mtu"));
	table_add(t, "%s", all);
	if (json_is_object(json_object_get(o, "queue_rules")))
		table_add(t, "%lld/%lld", ji(json_object_get(o, "queue_rules"), "installed"),
		    ji(json_object_get(o, "queue_rules"), "rules"));
	else
		table_add(t, "-");
	table_add(t, "%s", say_count(jn(o, "rx_packets")));
	table_add(t, "%s", say_count(jn(o, "tx_packets")));
	table_add(t, "%s",
	    say_count(jn(o, "rx_missed") + jn(o, "rx_errors") + jn(o, "rx_nombuf") + jn(o, "tx_errors")));
}

static void port_more(const json_t *o)
{
	const char *why = js(json_object_get(o, "queue_rules"), "why");

	if (*why)
		printf("port %s: queue rules are missing: %s\n", js(o, "name"), why);
}

static int run_ports(const struct cli *cli)
{
	static const char *const columns[] = {"PORT", "ROLE", "LINK", ">SPEED", ">MTU", "~ADDRESSES",
	    ">RULES", ">RX PACKETS", ">TX PACKETS", ">LOST", NULL};

	return run_list(cli, "/v1/ports", "ports", columns, port_row, port_more);
}

const struct cli_cmd cmd_ports = {.name = "ports",
    .text = "network ports",
    .more =
        "LOST sums packets that the port missed, found faulty, had no buffer for, or failed to send.\n"
        "RULES are the queue rules that the device of a WAN port has, of those that it should have: by\n"
        "them it gives each of several workers its own datagrams. Below the table: ports that lack some,\n"
        "with the reason. -: a LAN port, or one worker.\n",
    .opts = detail_opts,
    .run = run_ports};

static void neighbour_row(struct table *t, const json_t *o)
{
	table_add(t, "%s", js(o, "address"));
	table_add(t, "%s", js(o, "mac"));
	table_add(t, "%s", js(o, "port"));
	table_add(t, "%s", js(o, "state"));
	table_add(t, "%s", jb(o, "used") ? "yes" : "no");
}

static int run_neighbours(const struct cli *cli)
{
	static const char *const columns[] = {"~ADDRESS", "MAC", "~PORT", "STATE", "USED", NULL};

	return run_list(cli, "/v1/neighbours", "neighbours", columns, neighbour_row, NULL);
}

const struct cli_cmd cmd_neighbours = {.name = "neighbours",
    .text = "hosts and routers on the ports' subnets",
    .more = "STATE is the kernel's. USED: a flow used the entry recently.\n",
    .run = run_neighbours};

static void sibling_row(struct table *t, const json_t *o)
{
	table_add(t, "%s", js(o, "name"));
	table_add(t, "%s", js(o, "state"));
	table_add(t, "%s", js(o, "address"));
	table_add(t, "%s", jb(o, "mac_known") ? js(o, "mac") : "not known");
	table_add(t, "%s", js(o, "from"));
	table_add(t, "%lld", ji(o, "pairs"));
	table_add(t, "%s", say_count(jn(o, "packets")));
}

static int run_siblings(const struct cli *cli)
{
	static const char *const columns[] = {
	    "~SIBLING", "STATE", "~ADDRESS", "MAC", "FROM", ">ASSIGNED", ">PACKETS", NULL};

	return run_list(cli, "/v1/siblings", "siblings", columns, sibling_row, NULL);
}

const struct cli_cmd cmd_siblings = {.name = "siblings",
    .text = "other gateways of this site",
    .more = "A lost one gets no packets. FROM: its source, the file or the control center.\n"
            "ASSIGNED counts address pairs that a plan assigned to it; others follow the weights.\n"
            "PACKETS were forwarded to it, because it owns their address pairs.\n",
    .opts = detail_opts,
    .run = run_siblings};

static void worker_row(struct table *t, const json_t *o)
{
	const double busy = jn(o, "busy_seconds"),
	             all = busy + jn(o, "idle_seconds") + jn(o, "asleep_seconds");
	const double bursts = jn(o, "rx_bursts");

	table_add(t, "%lld", ji(o, "worker"));
	table_add(t, "%lld", ji(o, "lcore"));
	table_add(t, "%s", jb(o, "answering") ? "yes" : "NO");
	table_add(t, "%s", say_share(all > 0 ? busy / all : 0));
	table_add(t, "%s", say_share(all > 0 ? jn(o, "asleep_seconds") / all : 0));
	table_add(t, "%s", say_time(jn(o, "turn_max_seconds")));
	table_add(t, "%s", say_count(jn(o, "rx_packets")));
	table_add(t, "%.1f", bursts > 0 ? jn(o, "rx_packets") / bursts : 0);
	table_add(t, "%lld", ji(o, "flows"));
}

static int run_workers(const struct cli *cli)
{
	static const char *const columns[] = {">WORKER", ">LCORE", "ANSWERS", ">BUSY", ">ASLEEP",
	    ">LONGEST TURN", ">RX PACKETS", ">PER BURST", ">FLOWS", NULL};

	return run_list(cli, "/v1/workers", "workers", columns, worker_row, NULL);
}

const struct cli_cmd cmd_workers = {.name = "workers",
    .text = "packet threads and how busy they are",
    .more = "BUSY and ASLEEP are shares of the time since start.\n",
    .run = run_workers};
