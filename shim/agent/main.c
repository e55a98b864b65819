/* SPDX-License-Identifier: Apache-2.0 */
/*
 * roceway-host-agent: keeps the file by which a host's programs go by relays. The policy is the
 * controller's, or a file of the operator; the agent asks the relays whether they are there. So a
 * program's next connection leaves out what is down, without waiting for it.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/notify.h"
#include "shim/agent/watch.h"
#include "shim/agent/write.h"
#include "shim/host.h"

#define USAGE   2              /* exit status */
#define TELL    (60 * RWY_SEC) /* the least time between two lines about one fault */
#define TURN_MS 20             /* longest wait for an answer of a relay */

struct agent {
	struct hagent_conf conf;
	struct hagent_watch *watch; /* NULL: the policy is a file */
	struct hagent_probe *probe;
	struct shim_policy policy;
	bool has_policy;
	char head[HAGENT_WHY]; /* where it is from */
	char *written;         /* text of the file; NULL: not known */
	bool dirty;            /* it is to be written */
	bool failed;           /* the last time it was not */
	rwy_time tell_at;      /* when that is logged again */
	bool gone;
	struct stat seen; /* of conf.policy */
};

static volatile sig_atomic_t stop;

static rwy_time clock_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (rwy_time)t.tv_sec * RWY_SEC + (rwy_time)t.tv_nsec;
}

/* --- the policy ------------------------------------------------------------------------------- */

/* Takes a policy over if it is one. It is large: on the heap. */
static bool policy_take(struct agent *a, const char *text, char *why, size_t size)
{
	struct shim_policy *p = malloc(sizeof(*p));
	const bool good = p && shim_policy_parse(p, text, why, size) == 0;

	if (!p)
		snprintf(why, size, "no memory");
	if (good) {
		a->policy = *p;
		a->has_policy = true;
		a->dirty = true;
		hagent_probe_set(a->probe, &a->policy);
	}
	free(p);
	return good;
}

static bool on_policy(
    void *ctx, const char *text, uint64_t generation, const char *from, char why[HAGENT_WHY])
{
	struct agent *a = ctx;

	if (!policy_take(a, text, why, HAGENT_WHY))
		return false;
	snprintf(a->head, sizeof(a->head), "Generation %" PRIu64 " of %.200s, site %s.", generation, from,
	    a->conf.site);
	gw_log(GW_LOG_NOTICE, "policy", "generation %" PRIu64 " of %s: %u prefixes", generation, from,
	    a->policy.rules);
	return true;
}

static json_t *on_down(void *ctx)
{
	const struct agent *a = ctx;
	json_t *list = json_array();

	for (unsigned i = 0; i < a->policy.relays && json_array_size(list) < 256; i++) {
		const struct shim_relay *r = &a->policy.relay[i];
		bool before = false;

		for (unsigned k = 0; k < i && !before; k++)
			before = rwy_ip_eq(&a->policy.relay[k].addr, &r->addr);
		if (!before && hagent_probe_down(a->probe, r))
			json_array_append_new(list, json_string(shim_ip_text(&r->addr)));
	}
	return list;
}

/* The operator's file, when it has changed. A wrong one is told once, and the one before stays. */
static void file_look(struct agent *a)
{
	struct shim_policy *p;
	char why[HAGENT_WHY];
	struct stat st;

	if (stat(a->conf.policy, &st) != 0)
		memset(&st, 0, sizeof(st));
	if (a->has_policy && st.st_ino == a->seen.st_ino && st.st_size == a->seen.st_size &&
	    st.st_mtim.tv_sec == a->seen.st_mtim.tv_sec && st.st_mtim.tv_nsec == a->seen.st_mtim.tv_nsec)
		return;
	a->seen = st;
	p = malloc(sizeof(*p));
	if (!p || shim_policy_file(p, a->conf.policy, why, sizeof(why)) != 0) {
		gw_log(GW_LOG_ERROR, "policy", "%s", p ? why : "no memory");
	} else {
		a->policy = *p;
		a->dirty = true;
		hagent_probe_set(a->probe, &a->policy);
		snprintf(a->head, sizeof(a->head), "From %.250s.", a->conf.policy);
		gw_log(GW_LOG_NOTICE, "policy", "%s: %u prefixes", a->conf.policy, a->policy.rules);
	}
	a->has_policy = true;
	free(p);
}

/* --- the file of the programs ----------------------------------------------------------------- */

static void file_drop(struct agent *a)
{
	if (a->gone)
		return;
	a->gone = true;
	free(a->written);
	a->written = NULL;
	if (unlink(a->conf.write) == 0)
		gw_log(GW_LOG_WARNING, "file", "%s is gone: programs go by the operator's own file",
		    a->conf.write);
}

static void file_put(struct agent *a, rwy_time now)
{
	char *text = hagent_write_text(&a->policy, a->probe, a->head);
	const bool tell = !a->failed || now >= a->tell_at;

	a->dirty = !text;
	if (!text || (a->written && !strcmp(text, a->written))) {
		free(text);
		return;
	}
	if (!hagent_write_file(a->conf.write, text, tell)) {
		a->tell_at = tell ? now + TELL : a->tell_at;
		a->failed = a->dirty = true;
		free(text);
		return;
	}
	if (a->failed)
		gw_log(GW_LOG_NOTICE, "file", "%s is written again", a->conf.write);
	a->failed = false;
	a->gone = false;
	free(a->written);
	a->written = text;
}

/* --- the loop --------------------------------------------------------------------------------- */

static void turn(struct agent *a)
{
	const rwy_time now = clock_now();
	const bool due = now >= hagent_probe_next(a->probe);

	if (a->watch)
		hagent_watch_turn(a->watch, now);
	else if (due || !a->has_policy)
		file_look(a);
	if (hagent_probe_turn(a->probe, now)) {
		a->dirty = true;
		if (a->watch)
			hagent_watch_news(a->watch);
	}
	if (a->watch && a->conf.drop && !hagent_watch_holds(a->watch, now)) {
		a->dirty = a->has_policy; /* it comes back with the lease */
		file_drop(a);
	} else if (a->dirty && a->has_policy && (due || !a->failed)) {
		file_put(a, now);
	}
}

static int run(struct agent *a)
{
	static const struct hagent_watch_ops ops = {.policy = on_policy, .down = on_down};
	int rc = hagent_probe_new(&a->probe, a->conf.probe_ms * RWY_MS);

	if (!rc && a->conf.urls)
		rc = hagent_watch_new(&a->watch, &a->conf, &ops, a);
	if (!rc)
		gw_notify("READY=1");
	while (!rc && !stop) {
		turn(a);
		if (a->watch)
			hagent_watch_wait(a->watch, TURN_MS);
		else
			nanosleep(&(struct timespec){0, TURN_MS * 1000000L}, NULL);
	}
	if (rc)
		gw_log(GW_LOG_ERROR, "main", "no memory");
	hagent_watch_free(a->watch);
	hagent_probe_free(a->probe);
	free(a->written); /* the file stays: programs go on by what was known last */
	return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}

static void on_signal(int sig)
{
	stop = 1;
}

static void help(FILE *f)
{
	fputs("usage: roceway-host-agent --config FILE\n"
	      "       roceway-host-agent --check FILE\n\n"
	      "  --config FILE  run, with this configuration\n"
	      "  --check FILE   say whether the configuration is right\n"
	      "  -h, --help     this text\n"
	      "  -V, --version  the version\n",
	    f);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"config", required_argument, NULL, 'c'},
	    {"check", required_argument, NULL, 'k'}, {"help", no_argument, NULL, 'h'},
	    {"version", no_argument, NULL, 'V'}, {NULL, 0, NULL, 0}};
	static struct agent agent; /* the policy is large */
	const char *path = NULL;
	bool checks = false;
	char err[600];

	for (int o; (o = getopt_long(argc, argv, "hV", options, NULL)) != -1;) {
		if (o == 'h' || o == 'V') {
			if (o == 'h')
				help(stdout);
			else
				puts("roceway-host-agent " RWY_VERSION);
			return fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
		}
		if (o == '?' || path) {
			help(stderr);
			return USAGE;
		}
		path = optarg;
		checks = o == 'k';
	}
	if (!path || optind != argc) {
		help(stderr);
		return USAGE;
	}
	if (hagent_conf_load(&agent.conf, path, err, sizeof(err)) != 0) {
		fprintf(stderr, "%s\n", err);
		return USAGE;
	}
	if (checks) {
		printf("%s: good\n", path);
		return EXIT_SUCCESS;
	}
	gw_log_init(GW_LOG_INFO);
	signal(SIGTERM, on_signal);
	signal(SIGINT, on_signal);
	signal(SIGPIPE, SIG_IGN);
	return run(&agent);
}
