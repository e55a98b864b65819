/* SPDX-License-Identifier: Apache-2.0 */
/*
 * roceway report: one file for a bug report: what the gateway says of itself, its configuration
 * without secrets, its log, and the machine. A part that cannot be had is named in the report.
 */
#include "tools/roceway/recorder.h"
#include "tools/roceway/report.h"

#include <errno.h>
#include <glob.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CONF_DEFAULT "/etc/roceway/gateway.yaml"
#define JOURNAL_DIR  "/run/roceway/journal"
#define LINE         4096

extern char **environ;

static const struct cli_opt report_opts[] = {
    {"output", "FILE", "default: roceway-report-NAME-TIME.tar.gz in this folder"},
    {"interval", "SECONDS", "between the two samples of the counters, 0 to 3600; default: 2"},
    {NULL, NULL, NULL},
};

struct report {
	const struct cli *cli;
	char dir[256];
	FILE *notes; /* what is missing */
	int failed;  /* errno of a part that could not be written; 0: none */
	char name[64], conf[256];
};

static void on_signal(int sig)
{
	report_stopped = 1;
}

static FILE *part(struct report *r, const char *name)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", r->dir, name);
	f = fopen(path, "we");
	if (!f)
		fprintf(r->notes, "%s: %s\n", name, strerror(errno));
	return f;
}

/* Why an earlier write failed: another one of some pages fails in the same way. The part is of no
 * use any more. */
static int write_again(int fd)
{
	static const char pages[16384];

	for (unsigned i = 0; i < 2; i++) /* the first one may find room for a piece */
		if (write(fd, pages, sizeof(pages)) < 0)
			return errno;
	return EIO;
}

static void part_close(struct report *r, FILE *f)
{
	const int bad = ferror(f) ? write_again(fileno(f)) : 0;
	const int rc = fclose(f) && !bad ? errno : bad;

	if (rc && !r->failed)
		r->failed = rc;
}

/* A page of the API as it is; 404: it is not for this one, as a relay's pages for a gateway. */
static bool add_page(struct report *r, const char *page, const char *name)
{
	long status = 0;
	char *text = report_stopped ? NULL : api_get(r->cli, page, &status);
	FILE *f = text && status != 404 ? part(r, name) : NULL;

	if (!text)
		fprintf(r->notes, "%s: no answer\n", page);
	else if (status != 200 && status != 404)
		fprintf(r->notes, "%s: HTTP status %ld\n", page, status);
	if (f) {
		fprintf(f, "%s\n", text);
		part_close(r, f);
	}
	free(text);
	return f;
}

/* True for a line whose key's value is a secret: the key ends in one of these words. */
static bool is_secret(const char *key, size_t len)
{
	static const char *const words[] = {"password", "secret", "token", "passphrase"};

	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		const size_t n = strlen(words[i]);

		if (len >= n && !strncasecmp(key + len - n, words[i], n))
			return true;
	}
	return false;
}

/* Copies YAML; the value of a secret, and user:password@ of a URL, become "removed". A key may be
 * quoted, and several may be on a line. */
static void copy_without_secrets(FILE *in, FILE *out)
{
	char line[LINE];

	while (fgets(line, sizeof(line), in)) {
		bool cut = false;

		for (char *c = strchr(line, ':'); c && !cut; c = strchr(c + 1, ':')) {
			const char *end = c, *key;

			while (end > line && strchr("\"' \t", end[-1]))
				end--;
			for (key = end; key > line && !strchr("\"' \t{,?", key[-1]);)
				key--;
			if (is_secret(key, (size_t)(end - key))) {
				fprintf(out, "%.*s: removed\n", (int)(c - line), line);
				cut = true;
			}
		}
		if (!cut && strstr(line, "://") && strchr(strstr(line, "://"), '@')) {
			fprintf(out, "%.*s://removed%s", (int)(strstr(line, "://") - line), line,
			    strchr(strstr(line, "://"), '@'));
			cut = true;
		}
		if (!cut)
			fputs(line, out);
	}
}

static void add_file(struct report *r, const char *path, const char *name)
{
	FILE *in = fopen(path, "re"), *out;

	if (!in) {
		fprintf(r->notes, "%s: %s\n", path, strerror(errno));
		return;
	}
	out = part(r, name);
	if (out) {
		copy_without_secrets(in, out);
		if (ferror(in))
			fprintf(r->notes, "%s: it could not be read to its end\n", path);
		part_close(r, out);
	}
	fclose(in);
}

/* The output of a program is a part, which may not be written, like any other part. */
static void add_output(struct report *r, const char *name, const char *const *argv)
{
	FILE *f = report_stopped ? NULL : part(r, name);
	int from, rc, status;
	pid_t pid;

	if (!f)
		return;
	rc = report_start(argv, true, &from, &pid);
	if (rc) {
		fprintf(r->notes, "%s: %s\n", argv[0], strerror(rc));
	} else {
		rc = report_copy(from, fileno(f));
		close(from);
		status = report_wait(pid);
		if (rc && !r->failed)
			r->failed = rc;
		if (!rc && WIFSIGNALED(status))
			fprintf(r->notes, "%s: %s was killed by a signal\n", name, argv[0]);
	}
	part_close(r, f);
}

static void add_machine(struct report *r)
{
	static const char *const files[][2] = {{"/proc/version", "kernel.txt"},
	    {"/proc/cmdline", "cmdline.txt"}, {"/proc/meminfo", "meminfo.txt"},
	    {"/proc/cpuinfo", "cpuinfo.txt"}, {"/etc/os-release", "os.txt"},
	    {"/proc/interrupts", "interrupts.txt"}};
	static const char *const journal[] = {"journalctl", "--no-pager", "-o", "short-iso", "-n", "5000",
	    "-u", "roceway-gateway", "-u", "roceway-proxy", NULL};
	static const char *const packages[] = {"dpkg-query", "-W", "roceway*", "*rte-*", "*isal*", NULL};

	for (unsigned i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		add_file(r, files[i][0], files[i][1]);
	add_output(r, "log.txt", journal);
	add_output(r, "packages.txt", packages);
}

/* The pages. False: the gateway does not answer. */
static bool add_gateway(struct report *r, double interval)
{
	static const char *const pages[][2] = {{"/healthz", "health.json"},
	    {"/v1/tunnels?workers=1", "tunnels.json"}, {"/v1/flows?limit=1000&sort=recent", "flows.json"},
	    {"/v1/recorder?limit=10000", "recorder.json"}, {"/v1/tenants?limit=1000", "tenants.json"},
	    {"/v1/memory?limit=100", "memory.json"}, {"/v1/ports", "ports.json"},
	    {"/v1/neighbours", "neighbours.json"}, {"/v1/siblings", "siblings.json"},
	    {"/v1/standby", "standby.json"}, {"/v1/reservations", "reservations.json"},
	    {"/v1/workers", "workers.json"}, {"/v1/offload?summary=1", "offload.json"},
	    {"/v1/controller", "controller.json"}, {"/v1/drain", "drain.json"}, {"/metrics", "metrics.txt"},
	    {"/v1/links?limit=1000", "links.json"}, {"/v1/map", "map.json"}};

	if (!add_page(r, "/v1/status", "status.json"))
		return false;
	add_page(r, "/v1/counters?workers=1", "counters-1.json");
	for (unsigned i = 0; i < sizeof(pages) / sizeof(pages[0]); i++)
		add_page(r, pages[i][0], pages[i][1]);
	for (double left = interval; left > 0 && !report_stopped; left -= 0.1)
		usleep((useconds_t)(left < 0.1 ? left * 1e6 : 1e5));
	/* It may have gone meanwhile. */
	return add_page(r, "/v1/counters?workers=1", "counters-2.json");
}

/* The value of `journal_dir` in the configuration; its default if that has none. */
static void journal_dir(const struct report *r, char out[256])
{
	char line[LINE];
	FILE *f = fopen(r->conf, "re");

	snprintf(out, 256, JOURNAL_DIR);
	while (f && fgets(line, sizeof(line), f)) {
		char *at = strstr(line, "journal_dir:");
		const char *hash = strchr(line, '#');

		if (!at || (hash && hash < at))
			continue;
		at += strlen("journal_dir:");
		at += strspn(at, " \"'");
		at[strcspn(at, "\"', }#\n")] = 0;
		snprintf(out, 256, "%.255s", at);
	}
	if (f)
		fclose(f);
}

/* Files of flight recorders, also of processes that are gone: roceway-NAME.recorder.crash. */
static void add_recorders(struct report *r)
{
	const struct recorder_filter all = {.limit = RECORDER_LIMIT};
	char dir[256], pattern[320], name[160];
	glob_t found;

	journal_dir(r, dir);
	snprintf(pattern, sizeof(pattern), "%s/roceway-*.recorder*", dir);
	if (glob(pattern, 0, NULL, &found) != 0) {
		fprintf(r->notes, "%s: %s\n", pattern,
		    access(dir, R_OK | X_OK) ? strerror(errno) : "there is none");
		return;
	}
	for (size_t i = 0; i < found.gl_pathc; i++) {
		int rc;
		json_t *j = recorder_file_read(found.gl_pathv[i], &all, &rc);
		FILE *f;

		if (!j)
			continue; /* said already */
		snprintf(name, sizeof(name), "%.140s.json", strrchr(found.gl_pathv[i], '/') + 1);
		f = part(r, name);
		if (f) {
			json_dumpf(j, f, JSON_COMPACT);
			part_close(r, f);
		}
		json_decref(j);
	}
	globfree(&found);
}

static void read_status(struct report *r)
{
	json_t *j = api_get_json(r->cli, "/v1/status", NULL);

	snprintf(r->name, sizeof(r->name), "%.31s", j ? js(j, "name") : "none");
	snprintf(r->conf, sizeof(r->conf), "%.200s",
	    j && *js(j, "configuration") ? js(j, "configuration") : CONF_DEFAULT);
	json_decref(j);
}

static void remove_dir(const char *dir)
{
	const char *const argv[] = {"rm", "-rf", "--", dir, NULL};
	pid_t pid;

	if (!posix_spawnp(&pid, argv[0], NULL, NULL, (char *const *)argv, environ))
		report_wait(pid);
}

/* A folder of its own. False, after cli_error(). */
static bool make_dir(struct report *r)
{
	const char *tmp = getenv("TMPDIR");
	const struct sigaction sa = {.sa_handler = on_signal};

	if (snprintf(r->dir, sizeof(r->dir), "%s/roceway-report-XXXXXX", tmp && *tmp ? tmp : "/tmp") >=
	    (int)sizeof(r->dir)) {
		cli_error("TMPDIR is too long");
		return false;
	}
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	if (signal(SIGHUP, on_signal) == SIG_IGN) /* nohup(1) */
		signal(SIGHUP, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a file as large as it may be is a full disk */
	if (mkdtemp(r->dir))
		return true;
	cli_error("cannot make %s: %s", r->dir, strerror(errno));
	return false;
}

static int run_report(const struct cli *cli)
{
	const char *output = cli_value(cli, "output"), *text = cli_value(cli, "interval");
	struct report r = {.cli = cli};
	char *end = "", made[160], stamp[32];
	const double interval = text ? strtod(text, &end) : 2;
	const time_t now = time(NULL);
	struct tm tm;
	bool answers;
	int rc;

	if (*end || !(interval >= 0 && interval <= 3600)) {
		cli_error("--interval: expected seconds from 0 to 3600, found %s", text);
		return EXIT_USAGE;
	}
	if (!make_dir(&r))
		return EXIT_ERROR;
	r.notes = stderr;
	r.notes = part(&r, "missing.txt");
	if (!r.notes) {
		remove_dir(r.dir);
		return EXIT_ERROR;
	}
	read_status(&r);
	answers = *r.name && strcmp(r.name, "none") != 0 && add_gateway(&r, interval);
	if (!answers)
		fprintf(r.notes, "the gateway at %s does not answer\n", cli->socket);
	add_file(&r, r.conf, "configuration.yaml");
	add_recorders(&r);
	add_machine(&r);
	part_close(&r, r.notes);
	strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%SZ", gmtime_r(&now, &tm));
	snprintf(made, sizeof(made), "roceway-report-%s-%s.tar.gz", r.name, stamp);
	rc = EXIT_ERROR;
	if (report_stopped)
		cli_error("interrupted");
	else if (r.failed)
		cli_error("cannot write the report's parts in %s: %s", r.dir, strerror(r.failed));
	else
		rc = report_pack(r.dir, output ? output : made);
	remove_dir(r.dir);
	return rc ? rc : answers ? EXIT_OK : EXIT_ERROR;
}

const struct cli_cmd cmd_report = {.name = "report",
    .no_json = true,
    .text = "one file for a bug report: state, counters, configuration, log",
    .more = "It has the addresses of hosts and the names of tenants; passwords are removed, and keys are in\n"
            "no file that it reads. Without a running gateway it has the configuration, the log and the\n"
            "machine, and the exit status is 1; missing.txt says what could not be had.\n",
    .opts = report_opts,
    .run = run_report};
