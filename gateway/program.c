/* SPDX-License-Identifier: Apache-2.0 */
/* roceway-gateway and roceway-proxy: command line, order of start and stop. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <rte_eal.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_version.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/carrier/carrier.h"
#include "gateway/agent/ctrl.h"
#include "gateway/control/drain.h"
#include "gateway/datapath/lease.h"
#include "gateway/gw.h"
#include "gateway/keys/keys.h"
#include "base/notify.h"
#include "gateway/offload/offload.h"
#include "gateway/offload/queues.h"
#include "gateway/control/reload.h"
#include "gateway/port/kernel.h"
#include "gateway/port/mbuf.h"
#include "gateway/port/neigh.h"
#include "gateway/privileges.h"
#include "gateway/program.h"
#include "gateway/setup.h"
#include "gateway/control/reservations.h"
#include "gateway/control/siblings.h"
#include "gateway/control/status.h"
#include "gateway/control/tunnels.h"

#define EXIT_USAGE    2
#define EXIT_REPLACED 75 /* the other gateway of the pair took over; EX_TEMPFAIL of sysexits.h */

static const struct gw_program *program;

static void help(FILE *f)
{
	const char *name = program->name;

	fprintf(f,
	    "usage: %s --config FILE\n"
	    "       %s --check FILE | --check --config FILE\n"
	    "       %s --print-reference | --print-metrics | --version | --help\n"
	    "\n"
	    "  -c, --config FILE      run with this configuration\n"
	    "  -k, --check [FILE]     check the configuration and exit; status 2 if it is wrong\n"
	    "      --print-reference  every configuration key, as Markdown\n"
	    "      --print-metrics    every metric, its type and meaning\n"
	    "  -V, --version\n"
	    "  -h, --help\n",
	    name, name, name);
}

/* --- start ----------------------------------------------------------------------------------- */

static void log_summary(const struct gw_app *app)
{
	const struct conf *c = app->conf;
	const int pair = conf_standby(c);

	gw_log(GW_LOG_NOTICE, "main", "%s %s name=%s config=%s workers=%u polling=%s ports=%u tunnels=%u %s",
	    program->name, app->version, c->name, app->conf_path, c->workers,
	    c->polling == CONF_POLL_BUSY ? "busy" : "adaptive", c->ports, c->tunnels, rte_version());
	if (pair >= 0)
		gw_log(GW_LOG_NOTICE, "main", "one of a pair: tunnel=%s", c->tunnel[pair].name);
	else if (conf_wants_site(c))
		gw_log(GW_LOG_WARNING, "main",
		    "ack_mode `site` without a tunnel with `standby: true`: it is as `near`");
}

static int workers_start(struct gw_app *app, struct gw_pools *pools)
{
	for (unsigned i = 0; i < app->workers; i++) {
		int rc = gw_worker_start(&app->worker[i], app, i, pools);

		if (rc) {
			gw_log(GW_LOG_ERROR, "main", "worker=%u cannot be set up: %s", i, strerror(-rc));
			return rc;
		}
	}
	for (unsigned i = 0; i < app->workers; i++) {
		app->worker[i]->lcore = gw_eal_lcore(i);
		if (rte_eal_remote_launch(gw_worker_main, app->worker[i], app->worker[i]->lcore) != 0) {
			gw_log(GW_LOG_ERROR, "main", "worker=%u does not start", i);
			return RWY_EINVAL;
		}
	}
	return 0;
}

static int start(
    struct gw_app *app, struct gw_pools *pools, struct conf *conf, unsigned own_tunnels, unsigned own_tenants)
{
	const struct conf *c = app->conf;
	int rc = gw_eal_init(c);

	if (rc)
		return rc;
	gw_clock_init();
	rc = gw_ports_find(app);
	if (!rc)
		rc = gw_pools_new(pools, c->buffers, gw_ports_max_frame(app));
	if (!rc)
		rc = gw_ports_start(app, pools);
	if (!rc)
		rc = gw_taps_open(app);
	if (!rc)
		rc = gw_publisher_new(&app->publisher, app->workers);
	if (!rc)
		rc = gw_neigh_new(app);
	if (!rc)
		rc = gw_kernel_new(&app->kernel);
	if (!rc)
		rc = gw_control_new(app, pools);
	if (!rc)
		rc = gw_drain_new(app);
	if (!rc)
		rc = gw_jfile_open(app);
	if (!rc)
		rc = gw_directory_new(app);
	if (!rc)
		rc = gw_board_new(app);
	if (!rc)
		gw_recorder_open(app);
	if (!rc)
		rc = gw_tenants_new(app);
	if (!rc)
		rc = gw_tunnels_new(app, conf, own_tunnels, own_tenants);
	if (!rc)
		rc = gw_leases_new(app);
	if (!rc)
		rc = gw_siblings_new(app);
	if (!rc)
		rc = gw_reservations_new(app);
	if (!rc)
		rc = gw_offload_new(app);
	if (!rc)
		rc = gw_queue_rules_new(app);
	if (!rc)
		rc = gw_carriers_start(app, pools);
	if (!rc)
		rc = workers_start(app, pools);
	if (!rc)
		rc = gw_keys_start(app);
	return rc;
}

/* --- stop ------------------------------------------------------------------------------------ */

static void log_final(const struct gw_app *app)
{
	struct gw_overlay_counters o;
	struct gw_counters c;
	char line[1800];
	size_t n = 0;

	gw_counters_get(app, app->workers, &c);
#define X(f, s)                                                                                              \
	if (c.f && n < sizeof(line))                                                                         \
		n += (size_t)snprintf(line + n, sizeof(line) - n, " " #f "=%" PRIu64, c.f);
	GW_COUNTERS(X)
#undef X
	gw_overlay_counters_get(app, app->workers, &o);
	for (unsigned i = 0; i < GW_OVERLAY_COUNTERS && n < sizeof(line); i++) {
		uint64_t v = ((const uint64_t *)(const void *)&o)[i];

		if (v)
			n += (size_t)snprintf(
			    line + n, sizeof(line) - n, " %s=%" PRIu64, gw_overlay_names[i].name, v);
	}
	gw_log(GW_LOG_NOTICE, "main", "stopped after %" PRIu64 " s%s",
	    rwy_since(app->start, gw_now()) / RWY_SEC, n ? line : "");
}

static void stop(struct gw_app *app, struct gw_pools *pools)
{
	gw_keys_stop(app);
	for (unsigned i = 0; i < app->workers; i++)
		if (app->worker[i])
			atomic_store(&app->worker[i]->stop, true);
	rte_eal_mp_wait_lcore();
	if (app->start)
		log_final(app);
	gw_carriers_stop(app);
	for (unsigned i = 0; i < app->workers; i++) {
		gw_worker_free(app->worker[i]);
		app->worker[i] = NULL;
	}
	gw_queue_rules_free(app);
	gw_offload_free(app);
	gw_tenants_free(app);
	gw_tunnels_log_end(app);
	gw_tunnels_free(app);
	gw_leases_free(app);
	gw_siblings_free(app);
	gw_reservations_free(app);
	gw_recorder_close(app);
	gw_board_free(app);
	gw_directory_free(app);
	gw_jfile_close(app);
	gw_drain_free(app);
	gw_control_free(app);
	gw_kernel_free(app->kernel);
	gw_publisher_free(app->publisher);
	gw_neigh_free(app);
	gw_taps_close(app);
	gw_ports_stop(app);
	gw_ports_free(app);
	gw_pools_free(pools);
	gw_eal_cleanup();
}

/* Returns the exit status. */
static int gateway_run(struct conf *conf, const char *path)
{
	struct gw_app app = {
	    .conf = conf, .conf_path = path, .version = RWY_VERSION, .workers = conf->workers};
	const unsigned own_tunnels = conf->tunnels, own_tenants = conf->tenants;
	struct gw_pools pools = {0};
	struct gw_ctrl_first first;
	bool api = false, replaced = false;
	int rc;

	gw_ctrl_first(conf, &first);
	log_summary(&app);
	rc = start(&app, &pools, conf, own_tunnels, own_tenants);
	if (!rc)
		rc = gw_privileges_sandbox(conf);
	if (!rc)
		api = (rc = gw_api_start(&app)) == 0;
	if (!rc)
		rc = gw_ctrl_start(&app, &first);
	if (!rc) {
		gw_telemetry_start(&app);
		app.start = gw_now();
		app.start_wall = time(NULL);
		atomic_store(&app.state, GW_RUNNING);
		gw_log(GW_LOG_NOTICE, "main", "ready");
		gw_status_say(&app, true, NULL);
		gw_control_run(&app);
		gw_reload_finish();
		gw_notify("STOPPING=1");
		atomic_store(&app.state, GW_STOPPING);
		replaced = atomic_load(&app.pair) == GW_PAIR_REPLACED && !gw_drain_stops(&app);
	}
	if (api)
		gw_api_stop(&app);
	gw_ctrl_stop(&app);
	stop(&app, &pools);
	return rc ? EXIT_FAILURE : replaced ? EXIT_REPLACED : EXIT_SUCCESS;
}

/* --- command line ---------------------------------------------------------------------------- */

/* Loads the file; NULL: a message was printed. */
static struct conf *load(const char *path)
{
	struct conf_error err;
	struct conf *conf;

	if (conf_load(&conf, path, &err) != 0) {
		conf_error_print(stderr, &err);
		return NULL;
	}
	if (program->relay == (conf->relay.addrs != 0))
		return conf;
	fprintf(stderr,
	    program->relay ? "%s: expected `relay` with `addresses`, found nothing: docs/proxy.md\n"
	                   : "%s: `relay` is for roceway-proxy, this is roceway-gateway\n",
	    path);
	conf_free(conf);
	return NULL;
}

/* A text that was cut is worth nothing: its reader must know. */
static int printed(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		return EXIT_SUCCESS;
	fprintf(stderr, "%s: cannot write to standard output\n", program->name);
	return EXIT_FAILURE;
}

static int check_only(const char *path)
{
	struct conf *conf = load(path);

	if (!conf)
		return EXIT_USAGE;
	printf("%s: good\n", path);
	conf_free(conf);
	return 0;
}

/* Call it before any thread exists, so that all inherit the mask: the control thread reads signals
 * from a file descriptor. */
static void signals_block(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static int gateway(const char *path)
{
	struct conf *conf = load(path);
	int rc;

	/* GnuTLS writes the secrets of all connections into the file that it names. */
	unsetenv("SSLKEYLOGFILE");
	if (!conf)
		return EXIT_USAGE;
	gw_log_init(conf->log_level);
	gw_log_json(conf->log_json);
	gw_privileges_drop();
	if (*conf->keys.certificate)
		gw_privileges_no_core();
	signals_block();
	rc = gateway_run(conf, path);
	conf_free(conf);
	return rc;
}

static int usage_error(const char *what)
{
	fprintf(stderr, "%s: %s\n", program->name, what);
	help(stderr);
	return EXIT_USAGE;
}

int gw_program_main(const struct gw_program *p, int argc, char **argv)
{
	static const struct option opts[] = {{"config", required_argument, NULL, 'c'},
	    {"check", optional_argument, NULL, 'k'}, {"print-reference", no_argument, NULL, 'r'},
	    {"print-metrics", no_argument, NULL, 'm'}, {"version", no_argument, NULL, 'V'},
	    {"help", no_argument, NULL, 'h'}, {0}};
	const char *path = NULL;
	bool check = false;
	int o;

	program = p;
	while ((o = getopt_long(argc, argv, "c:k::Vh", opts, NULL)) != -1) {
		switch (o) {
		case 'c':
			path = optarg;
			break;
		case 'k':
			check = true;
			path = optarg ? optarg : path;
			break;
		case 'r':
			conf_print_reference(stdout);
			return printed();
		case 'm':
			return gw_metrics_print(stdout) ? EXIT_FAILURE : printed();
		case 'V':
			printf("%s %s\n", program->name, RWY_VERSION);
			return 0;
		case 'h':
			help(stdout);
			return 0;
		default:
			help(stderr);
			return EXIT_USAGE;
		}
	}
	if (check && !path && optind < argc)
		path = argv[optind++];
	if (optind < argc)
		return usage_error("too many arguments");
	if (!path)
		return usage_error("no configuration: --config FILE");
	return check ? check_only(path) : gateway(path);
}
