/* SPDX-License-Identifier: Apache-2.0 */
/* roceway-controller: command line, and the order of starting and stopping. */
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/crl.h"
#include "base/log.h"
#include "base/notify.h"
#include "base/sandbox.h"
#include "controller/fleet/fleet.h"
#include "controller/job/reservation.h"
#include "controller/job/jobs.h"
#include "controller/job/react.h"
#include "controller/job/network.h"
#include "controller/server/endpoint.h"
#include "controller/server/metrics.h"
#include "controller/server/poll.h"
#include "controller/server/server.h"
#include "controller/server/trust.h"
#include "controller/state/ctlr.h"
#include "controller/state/event.h"
#include "controller/tables.h"

#define EXIT_USAGE 2

static struct ctlr ctlr = {.ops = &ctlr_ops, .endpoints = ctlr_endpoints, .lock = PTHREAD_MUTEX_INITIALIZER};
static struct ctlr_conf conf;
static _Atomic int stop, reload; /* a signal may interrupt any thread */

static void help(FILE *f)
{
	fputs("usage: roceway-controller --config FILE\n"
	      "       roceway-controller --check FILE | --endpoints | --print-metrics | --version | --help\n"
	      "\n"
	      "  -c, --config FILE    run with this configuration\n"
	      "  -k, --check FILE     check the configuration and exit; status 2 if it is wrong\n"
	      "      --endpoints      every method and path that is served\n"
	      "      --print-metrics  every metric, its type and meaning\n"
	      "  -V, --version\n"
	      "  -h, --help\n"
	      "\n"
	      "SIGHUP reads the CA and the revocation list again. SIGTERM ends it.\n",
	    f);
}

static void on_signal(int sig)
{
	if (sig == SIGHUP)
		reload = 1;
	else
		stop = 1;
}

static void signals(void)
{
	const struct sigaction sa = {.sa_handler = on_signal};

	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGHUP, &sa, NULL);
	signal(SIGPIPE, SIG_IGN);
}

/* Raises the limit of open files: two connections for each gateway, and those of the store. */
static void files_limit(unsigned connections)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l))
		return;
	if (l.rlim_cur < connections + 256) {
		l.rlim_cur = l.rlim_max < connections + 256 ? l.rlim_max : connections + 256;
		if (setrlimit(RLIMIT_NOFILE, &l) || l.rlim_cur < connections + 256)
			gw_log(GW_LOG_WARNING, "main", "only %llu open files for %u connections",
			    (unsigned long long)l.rlim_cur, connections);
	}
}

static int store_open(void)
{
	const char *urls[CTLR_ENDPOINTS_MAX];
	char text[STORE_TEXT] = "";
	int rc;

	for (unsigned i = 0; i < conf.endpoints; i++)
		urls[i] = conf.endpoint[i];
	if (conf.store == CTLR_SQLITE) {
		rc = store_sqlite_open(&ctlr.store, conf.path, conf.max_size, text);
	} else {
		const struct store_etcd_cfg e = {.endpoint = urls,
		    .endpoints = conf.endpoints,
		    .ca = *conf.etcd_ca ? conf.etcd_ca : NULL,
		    .cert = *conf.etcd_cert ? conf.etcd_cert : NULL,
		    .key = *conf.etcd_key ? conf.etcd_key : NULL,
		    .user = *conf.user ? conf.user : NULL,
		    .password = conf.password,
		    .prefix = conf.prefix};

		rc = store_etcd_open(&ctlr.store, &e, text);
	}
	if (rc)
		gw_log(GW_LOG_ERROR, "store", "%s", *text ? text : store_strerror(rc));
	return rc;
}

/* Loads the store. It waits for an etcd that does not answer yet, but not for a file that cannot be
 * read. */
static int load_store(void)
{
	int rc = ctlr_load_all(&ctlr);
	char text[STORE_TEXT];

	if (!rc)
		return 0;
	store_problem(ctlr.store, text);
	if (conf.store == CTLR_SQLITE) {
		gw_log(GW_LOG_ERROR, "store", "%s", text);
		return rc;
	}
	gw_log(GW_LOG_WARNING, "store", "%s (%s): trying until it does", store_strerror(rc), text);
	while (rc && !stop) {
		nanosleep(&(struct timespec){0, 500000000}, NULL);
		rc = ctlr_load_all(&ctlr);
	}
	return rc;
}

/* An event when the revocation list ends soon or has ended: when it is read, and once a day. */
static void crl_tick(rwy_time now, bool anew)
{
	static rwy_time next;
	char text[BASE_CRL_TEXT];

	if (now < next && !anew)
		return;
	next = now + 24 * 3600 * RWY_SEC;
	if (base_crl_old(ctlr_trust_crl_ends(ctlr.trust), time(NULL), text, sizeof(text)))
		ctlr_event(&ctlr, EVENT_WARNING, "tls", NULL, "%s", text);
}

static void main_tick(void)
{
	const rwy_time now = ctlr_now();
	const bool anew = reload;

	if (anew) {
		reload = 0;
		if (ctlr_trust_load(ctlr.trust, &conf))
			ctlr_event(&ctlr, EVENT_ERROR, "tls", NULL,
			    "CA or revocation list cannot be read: the old ones stay");
		else
			ctlr_event(&ctlr, EVENT_INFO, "tls", NULL, "CA and revocation list read again");
	}
	crl_tick(now, anew);
	ctlr_lock(&ctlr);
	ctlr_gateway_tick(&ctlr, now);
	ctlr_hosts_tick(&ctlr, now);
	ctlr_polls_tick(&ctlr, now);
	ctlr_unlock(&ctlr);
	ctlr_lock(&ctlr);
	ctlr_tunnels_tick(&ctlr, now);
	ctlr_job_end_tick(&ctlr);
	ctlr_job_move_tick(&ctlr);
	ctlr_job_react_tick(&ctlr, now);
	ctlr_reservation_tick(&ctlr, now);
	ctlr_ask_tick(&ctlr, now);
	ctlr_unlock(&ctlr);
}

/* Gives up system calls that it does not need, and does not go on if the kernel cannot. */
static int sandbox(void)
{
	char why[128];

	if (!conf.sandbox) {
		gw_log(GW_LOG_WARNING, "main",
		    "sandbox: off: an intruder in this process can use all system calls and start programs");
		return 0;
	}
	if (!base_sandbox_enter(BASE_SANDBOX_CONTROLLER, why, sizeof(why)))
		return 0;
	gw_log(GW_LOG_ERROR, "main",
	    "cannot give up system calls: %s; `controller.sandbox: off` runs it without that", why);
	return RWY_EINVAL;
}

static int run_controller(void)
{
	int rc;

	gw_log_init(conf.log_level);
	gw_log(GW_LOG_NOTICE, "main", "roceway-controller %s name=%s store=%s", RWY_VERSION, conf.name,
	    conf.store == CTLR_SQLITE ? conf.path : "etcd");
	signals();
	files_limit(conf.connections);
	ctlr.conf = &conf;
	ctlr.started = ctlr_now();
	rc = sandbox();
	if (!rc)
		rc = ctlr_events_new(&ctlr.events);
	if (!rc)
		rc = ctlr_trust_new(&ctlr.trust);
	if (!rc)
		rc = ctlr_trust_load(ctlr.trust, &conf);
	if (!rc)
		rc = plan_book_new(&ctlr.book);
	if (!rc)
		rc = ctlr_networks_open(&ctlr);
	if (!rc)
		rc = store_open();
	if (!rc)
		rc = load_store();
	if (!rc && !stop)
		rc = ctlr_writer_start(&ctlr);
	if (rc || stop)
		goto out;
	rc = ctlr_http_start(&ctlr);
	if (!rc)
		gw_notify("READY=1");
	while (!rc && !stop) {
		main_tick();
		nanosleep(&(struct timespec){0, CTLR_TICK_MS * 1000000L}, NULL);
	}
	gw_log(GW_LOG_NOTICE, "main", "stopping");
	ctlr_networks_stop(&ctlr);
	ctlr_http_refuse(&ctlr); /* before changes are acknowledged that no watch reports */
	ctlr_writer_stop(&ctlr);
	ctlr_http_stop(&ctlr);
out:
	ctlr_networks_stop(&ctlr);
	ctlr_networks_close(&ctlr);
	ctlr_free(&ctlr);
	store_close(ctlr.store);
	ctlr_trust_free(ctlr.trust);
	ctlr_events_free(ctlr.events);
	return rc ? 1 : 0;
}

static int check_file(const char *path)
{
	struct conf_error err;

	if (!ctlr_conf_load(&conf, path, &err) && !ctlr_conf_providers_check(&conf, path, &err))
		return 0;
	conf_error_print(stderr, &err);
	return EXIT_USAGE;
}

/* A text that was cut is worth nothing: its reader must know. */
static int printed(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		return EXIT_SUCCESS;
	fputs("roceway-controller: cannot write to standard output\n", stderr);
	return EXIT_FAILURE;
}

static int usage_error(const char *what)
{
	if (what)
		fprintf(stderr, "roceway-controller: %s\n", what);
	help(stderr);
	return EXIT_USAGE;
}

static int print_endpoints(void)
{
	for (const struct ctlr_endpoint *e = ctlr_endpoints; e->method; e++)
		printf("%s %s\n", e->method, e->path);
	return printed();
}

/* Prints the comments of a controller's metrics that has nothing yet. */
static int print_metrics(void)
{
	char *text = ctlr_metrics_text(&ctlr), *save = NULL;

	if (!text)
		return EXIT_FAILURE;
	for (char *l = strtok_r(text, "\n", &save); l; l = strtok_r(NULL, "\n", &save))
		if (*l == '#')
			puts(l);
	free(text);
	return printed();
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"config", required_argument, NULL, 'c'},
	    {"check", required_argument, NULL, 'k'}, {"endpoints", no_argument, NULL, 'e'},
	    {"print-metrics", no_argument, NULL, 'm'}, {"version", no_argument, NULL, 'V'},
	    {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
	const char *path = NULL;
	bool only_check = false;
	int opt, rc;

	while ((opt = getopt_long(argc, argv, "c:k:Vh", options, NULL)) != -1) {
		switch (opt) {
		case 'c':
		case 'k':
			path = optarg;
			only_check = opt == 'k';
			break;
		case 'e':
			return print_endpoints();
		case 'm':
			return print_metrics();
		case 'V':
			printf("roceway-controller %s\n", RWY_VERSION);
			return 0;
		case 'h':
			help(stdout);
			return 0;
		default:
			return usage_error(NULL);
		}
	}
	if (optind != argc)
		return usage_error("too many arguments");
	if (!path)
		return usage_error("no configuration: --config FILE");
	rc = check_file(path);
	if (!rc && only_check)
		printf("%s: good\n", path);
	return rc || only_check ? rc : run_controller();
}
