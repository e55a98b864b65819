/* SPDX-License-Identifier: Apache-2.0 */
/*
 * roceway-run: runs a program whose RDMA connections go by relays. It checks the policy, sets the
 * environment up, and becomes the program.
 */
#include <errno.h>
#include <getopt.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/host.h"
#include "shim/talk.h"

#define USAGE 2 /* exit status */

static const char *const libraries[] = {"librwyredirect.so", "librwyverbs.so"};
#define LIBRARIES (sizeof(libraries) / sizeof(*libraries))

static const struct option options[] = {
    {"via", required_argument, NULL, 'v'},
    {"config", required_argument, NULL, 'c'},
    {"check", no_argument, NULL, 'k'},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

static void help(FILE *f)
{
	fputs(
	    "usage: roceway-run [--via RELAY] [--config FILE] [--] PROGRAM ...\n"
	    "       roceway-run [--via RELAY] [--config FILE] --check\n\n"
	    "  --via RELAY    all connections go by this relay: ADDRESS[,weight=N][,port=N]; several times:\n"
	    "                 by one of these\n"
	    "  --config FILE  which targets go by which relays; default: what roceway-host-agent wrote\n"
	    "                 to " SHIM_AGENT_FILE ", else\n"
	    "                 " SHIM_FILE "\n"
	    "  --check        says whether the file is right and which relays answer\n"
	    "  -h, --help     this text\n"
	    "  -V, --version  the version\n",
	    f);
}

/* --- the policy ------------------------------------------------------------------------------- */

static bool via_add(const char *relay)
{
	const char *was = getenv(SHIM_ENV_VIA);
	char all[1024];

	if (snprintf(all, sizeof(all), "%s%s%s", was ? was : "", was ? " " : "", relay) >= (int)sizeof(all)) {
		shim_say("--via: too many relays");
		return false;
	}
	return setenv(SHIM_ENV_VIA, all, 1) == 0;
}

/* A file of this process's folder must be found by those of others. */
static bool config_set(const char *file)
{
	char path[PATH_MAX];

	if (!realpath(file, path)) {
		shim_say("%s: %s", file, strerror(errno));
		return false;
	}
	return setenv(SHIM_ENV_FILE, path, 1) == 0;
}

/* Asks each relay something that it need not grant. */
static int check(const struct shim_policy *p)
{
	int bad = 0;

	for (unsigned i = 0; i < p->rules; i++) {
		const struct shim_rule *rule = &p->rule[i];
		bool is4 = rwy_ip_is4(&rule->addr);

		printf("%s/%u\n", shim_ip_text(&rule->addr), is4 ? rule->len - 96u : rule->len);
		for (unsigned k = 0; k < rule->relays; k++) {
			const struct shim_relay *r = &p->relay[rule->first + k];
			struct proxy_ask a = {.kind = PROXY_ASK_MAY, .target = {r->addr, 1}};
			int rc = shim_talk(r, NULL, &a);
			bool good = a.is_answer && a.answer == PROXY_ANSWER_LOOP && a.redirect_port;

			printf("  %s port %u order %u weight %u%s: ", shim_ip_text(&r->addr), r->port,
			    r->order + 1u, r->weight, r->down ? " down" : "");
			if (good)
				printf("answers\n");
			else if (a.is_answer)
				printf("%s\n", a.redirect_port || a.answer != PROXY_ANSWER_LOOP
				                   ? proxy_answer_text(a.answer)
				                   : proxy_answer_text(PROXY_ANSWER_NO_REDIRECT));
			else
				printf("%s\n", rc == -EHOSTUNREACH ? "no answer" : strerror(-rc));
			bad += !good;
		}
	}
	return bad ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* --- the program ------------------------------------------------------------------------------ */

/* Finds a library beside this program: where it is installed, or was built. */
static bool library_find(const char *name, char path[PATH_MAX])
{
	static const char *const places[] = {"../lib/roceway", "../lib"};
	char self[PATH_MAX], *folder;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n < 0)
		return false;
	self[n] = '\0';
	folder = dirname(self);
	for (unsigned i = 0; i < sizeof(places) / sizeof(*places); i++)
		if (snprintf(path, PATH_MAX, "%s/%s/%s", folder, places[i], name) < PATH_MAX &&
		    access(path, R_OK) == 0)
			return true;
	return false;
}

static bool preload_set(void)
{
	const char *was = getenv("LD_PRELOAD");
	char all[LIBRARIES * PATH_MAX + 4096], path[PATH_MAX];
	size_t n = 0;

	for (unsigned i = 0; i < LIBRARIES; i++) {
		if (!library_find(libraries[i], path)) {
			shim_say("%s is not installed beside this program", libraries[i]);
			return false;
		}
		n += (size_t)snprintf(all + n, sizeof(all) - n, "%s%s", n ? ":" : "", path);
	}
	if (was && *was && snprintf(all + n, sizeof(all) - n, ":%s", was) >= (int)(sizeof(all) - n)) {
		shim_say("LD_PRELOAD is too long");
		return false;
	}
	return setenv("LD_PRELOAD", all, 1) == 0;
}

static int run(char **argv)
{
	if (!preload_set())
		return EXIT_FAILURE;
	execvp(argv[0], argv);
	shim_say("%s: %s", argv[0], strerror(errno));
	return errno == ENOENT ? 127 : 126;
}

int main(int argc, char **argv)
{
	struct shim_policy *p;
	bool checks = false, via = false, config = false;
	int status;

	for (int o; (o = getopt_long(argc, argv, "+hV", options, NULL)) != -1;) {
		if (o == 'h' || o == 'V') {
			if (o == 'h')
				help(stdout);
			else
				puts("roceway-run " RWY_VERSION);
			return fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
		}
		if (o == '?') {
			help(stderr);
			return USAGE;
		}
		checks |= o == 'k';
		if (o == 'v' && !via)
			unsetenv(SHIM_ENV_VIA); /* of a roceway-run around this one */
		via |= o == 'v';
		config |= o == 'c';
		if ((o == 'v' && !via_add(optarg)) || (o == 'c' && !config_set(optarg)))
			return USAGE;
	}
	if (via && config) {
		shim_say("--via and --config exclude each other");
		return USAGE;
	}
	if (checks == (optind < argc)) {
		help(stderr);
		return USAGE;
	}
	if (config)
		unsetenv(SHIM_ENV_VIA);
	p = shim_host_policy();
	if (!p)
		return USAGE;
	status = USAGE;
	if (!p->rules && shim_host_file())
		shim_say(
		    "no relay is known: %s has no line `redirect PREFIX via RELAY ...`", shim_host_file());
	else if (!p->rules)
		shim_say("no relay is known: there is no " SHIM_FILE ", and no --via or --config");
	else
		status = checks ? check(p) : run(argv + optind);
	shim_host_policy_end(p);
	return status;
}
