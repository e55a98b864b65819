/* SPDX-License-Identifier: Apache-2.0 */
/* roceway drain: the gateway delivers all that it acknowledged to its hosts, and stops. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/roceway/roceway.h"

#define PAGE      "/v1/drain"
#define ASK_MS    100 /* between two looks; a drained gateway waits longer for the next one */
#define SAY_EVERY 1.0 /* seconds between two lines */

static const struct cli_opt opts[] = {
    {"keep", NULL, "stay drained, instead of a stop: hosts wait until --cancel or a restart"},
    {"hand-over", NULL, "one of a pair: the standby takes over, and this gateway starts again"},
    {"timeout", "SECONDS", "give up and serve on after this time; default: never"},
    {"cancel", NULL, "serve again"},
    {NULL, NULL, NULL},
};

struct progress {
	bool json, terminal;
	double first_bytes, first_at; /* what was left at the first look */
	double said_at;               /* seconds of the drain; < 0: nothing yet */
};

/* Bytes a second since the first look. */
static double rate_of(const struct progress *p, const json_t *j)
{
	const double took = jn(j, "seconds") - p->first_at, done = p->first_bytes - jn(j, "bytes_left");

	return took > 0 && done > 0 ? done / took : 0;
}

static void say_line(const struct progress *p, json_t *j)
{
	const double rate = rate_of(p, j), left = jn(j, "bytes_left");

	if (p->json) {
		json_object_set_new(j, "rate_bytes_per_second", json_real(rate));
		json_object_set_new(j, "eta_seconds", rate > 0 ? json_real(left / rate) : json_null());
		json_dumpf(j, stdout, JSON_COMPACT | JSON_REAL_PRECISION(15));
		putchar('\n');
		fflush(stdout);
		return;
	}
	printf("%s%s: %lld flows, %s left", p->terminal ? "\r\033[K" : "", js(j, "state"),
	    ji(j, "flows_left"), say_bytes(left));
	if (left > 0 && rate > 0) {
		printf(", %s/s", say_bytes(rate));
		printf(", about %s", say_time(left / rate));
	}
	printf("%s", p->terminal ? "" : "\n");
	fflush(stdout);
}

static void say_progress(struct progress *p, json_t *j, bool last)
{
	const double now = jn(j, "seconds");

	if (p->said_at < 0) {
		p->first_bytes = jn(j, "bytes_left");
		p->first_at = now;
	} else if (!last && now - p->said_at < (p->terminal ? 0 : SAY_EVERY)) {
		return;
	}
	p->said_at = now;
	say_line(p, j);
	if (last && p->terminal)
		putchar('\n');
}

/* The gateway serves again, before it was drained. */
static int say_given_up(const json_t *j)
{
	const char *end = js(j, "end");

	if (!strcmp(end, "timed out"))
		cli_error("not drained in time: the gateway serves on");
	else if (!strcmp(end, "not taken over"))
		cli_error("the standby did not take over: the gateway serves on");
	else
		cli_error("the drain was cancelled: the gateway serves on");
	return EXIT_ERROR;
}

static void say_done(const json_t *j)
{
	if (jb(j, "taken_over"))
		printf("the standby has taken over\n");
	if (!strcmp(js(j, "then"), "keep"))
		printf("the gateway stays drained: roceway drain --cancel serves again\n");
	else if (!strcmp(js(j, "then"), "hand-over"))
		printf("the gateway starts again, as the standby\n");
	else
		printf("the gateway stops\n");
}

static int watch(const struct cli *cli, json_t *j)
{
	struct progress p = {
	    .json = cli->json, .terminal = !cli->json && isatty(STDOUT_FILENO), .said_at = -1};

	for (;;) {
		const bool off = !strcmp(js(j, "state"), "off"), done = !strcmp(js(j, "state"), "drained");

		if (off) {
			if (p.terminal)
				putchar('\n');
			const int rc = say_given_up(j);

			json_decref(j);
			return rc;
		}
		say_progress(&p, j, done);
		if (done) {
			if (!cli->json)
				say_done(j);
			json_decref(j);
			return EXIT_OK;
		}
		json_decref(j);
		nanosleep(&(struct timespec){.tv_nsec = ASK_MS * 1000000L}, NULL);
		j = api_get_json(cli, PAGE "?told=1", NULL);
		if (!j)
			return EXIT_ERROR;
	}
}

static int cancel(const struct cli *cli)
{
	json_t *j = api_send(cli, "DELETE", PAGE, NULL, NULL);

	if (!j)
		return EXIT_ERROR;
	if (cli->json)
		print_json(j);
	else
		printf("the gateway serves again\n");
	json_decref(j);
	return EXIT_OK;
}

static int run_drain(const struct cli *cli)
{
	const char *timeout = cli_value(cli, "timeout");
	const bool keep = cli_value(cli, "keep"), hand_over = cli_value(cli, "hand-over");
	char page[128] = PAGE;
	json_t *j;

	if (cli_value(cli, "cancel") && (keep || hand_over || timeout)) {
		cli_error("--cancel goes with no other option");
		return EXIT_USAGE;
	}
	if (keep && hand_over) {
		cli_error("--keep and --hand-over exclude each other");
		return EXIT_USAGE;
	}
	if (cli_value(cli, "cancel"))
		return cancel(cli);
	if (timeout && (!timeout[strspn(timeout, "0")] || timeout[strspn(timeout, "0123456789")])) {
		cli_error("--timeout %s: expected seconds from 1 on", timeout);
		return EXIT_USAGE;
	}
	if (!keep && !hand_over && !timeout) {
		/* One that is under way is only shown: a POST would change what follows it. */
		j = api_get_json(cli, PAGE "?told=1", NULL);
		if (!j)
			return EXIT_ERROR;
		if (strcmp(js(j, "state"), "off") != 0)
			return watch(cli, j);
		json_decref(j);
	}
	if (keep)
		api_query(page, sizeof(page), "keep", "1");
	if (hand_over)
		api_query(page, sizeof(page), "hand_over", "1");
	if (timeout)
		api_query(page, sizeof(page), "timeout", timeout);
	j = api_send(cli, "POST", page, NULL, NULL);
	return j ? watch(cli, j) : EXIT_ERROR;
}

const struct cli_cmd cmd_drain = {.name = "drain",
    .text = "stops the gateway when all that it acknowledged is delivered",
    .more = "Requests are acknowledged when the far hosts have them, until nothing is left that a host was\n"
            "acknowledged and its far host does not have. Then the gateway stops; no connection ends.\n"
            "\n"
            "One of a pair of gateways whose standby has everything hands over to it before it stops. With\n"
            "--hand-over it does not stop: it starts again, as the standby of the other one.\n"
            "\n"
            "Progress: connections that are still owed something, bytes, rate, time that it may take.\n"
            "With --json an object a second, one a line.\n"
            "\n"
            "When this command is interrupted, the drain goes on: `roceway drain` without options shows it\n"
            "again and changes nothing, --cancel ends it. With --keep, --hand-over or --timeout it goes on\n"
            "with these. Exits with 0 when the gateway is drained, otherwise with 1.\n",
    .opts = opts,
    .run = run_drain};
