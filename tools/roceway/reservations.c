/* SPDX-License-Identifier: Apache-2.0 */
/* roceway reservations: what jobs' plans promise to pairs of hosts, and what these send now. */
#include "tools/roceway/roceway.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PAGE "/v1/reservations"

static const struct cli_opt options[] = {
    {"interval", "SECONDS", "what is sent now is measured over these, 0.1 to 60; default: 1"},
    {"detail", NULL, "everything that is known, line by line"}, {NULL, NULL, NULL}};

static void print_end(struct table *t, const json_t *o, const char *address, const char *qpn)
{
	if (ji(o, qpn))
		table_add(t, "%s QP %lld", js(o, address), ji(o, qpn));
	else
		table_add(t, "%s", js(o, address));
}

static bool same(const json_t *a, const json_t *b)
{
	static const char *const keys[] = {"vni", "source", "destination", "source_qpn", "destination_qpn"};

	for (unsigned i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (!json_equal(json_object_get(a, keys[i]), json_object_get(b, keys[i])))
			return false;
	return true;
}

/* Bytes that it had sent; both lists have the same order unless a document came between. */
static double sent_before(const json_t *list, size_t at, const json_t *o)
{
	const json_t *x = json_array_get(list, at);
	size_t i;

	if (x && same(x, o))
		return jn(x, "sent_bytes");
	json_array_foreach((json_t *)(uintptr_t)list, i, x) if (same(x, o)) return jn(x, "sent_bytes");
	return jn(o, "sent_bytes");
}

static const char *state_of(const json_t *o)
{
	if (!jb(o, "enforced"))
		return "NOT ENFORCED";
	return jb(o, "limited") ? "at its rate" : jb(o, "waiting") ? "waits" : "idle";
}

static void print_table(const json_t *before, const json_t *after, double seconds)
{
	static const char *const columns[] = {"~JOB", ">VNI", "~SOURCE", "~DESTINATION", "~TUNNEL",
	    ">PRIORITY", ">DSCP", ">PLANNED", ">NOW", "STATE", NULL};
	struct table *t = table_new(columns);
	const json_t *o;
	size_t i;

	json_array_foreach((json_t *)(uintptr_t)after, i, o)
	{
		const double sent = jn(o, "sent_bytes") - sent_before(before, i, o);

		table_add(t, "%s", js(o, "job"));
		table_add(t, "%lld", ji(o, "vni"));
		print_end(t, o, "source", "source_qpn");
		print_end(t, o, "destination", "destination_qpn");
		table_add(t, "%s", js(o, "tunnel"));
		table_add(t, "%lld", ji(o, "priority"));
		if (json_object_get(o, "dscp"))
			table_add(t, "%lld", ji(o, "dscp"));
		else
			table_add(t, "-");
		table_add(t, "%s", say_bits(jn(o, "rate_bps") / 8));
		table_add(t, "%s", say_bits((sent > 0 ? sent : 0) / seconds));
		table_add(t, "%s", state_of(o));
	}
	table_print(t);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int measure(const struct cli *cli, double interval)
{
	const struct timespec wait = {
	    .tv_sec = (time_t)interval, .tv_nsec = (long)((interval - (double)(time_t)interval) * 1e9)};
	json_t *before, *after;
	double began;

	before = api_get_json(cli, PAGE, NULL);
	began = now();
	if (!before)
		return EXIT_ERROR;
	nanosleep(&wait, NULL);
	after = api_get_json(cli, PAGE, NULL);
	if (after)
		print_table(json_object_get(before, "reservations"), json_object_get(after, "reservations"),
		    now() - began);
	json_decref(before);
	json_decref(after);
	return after ? EXIT_OK : EXIT_ERROR;
}

static int print_all(const struct cli *cli)
{
	json_t *j = api_get_json(cli, PAGE, NULL), *o;
	size_t i;

	if (!j)
		return EXIT_ERROR;
	if (cli->json) {
		print_json(j);
	} else {
		json_array_foreach(json_object_get(j, "reservations"), i, o)
		{
			if (i)
				putchar('\n');
			print_object(o);
		}
	}
	json_decref(j);
	return EXIT_OK;
}

static int run_reservations(const struct cli *cli)
{
	const char *text = cli_value(cli, "interval");
	char *end = NULL;
	const double interval = text ? strtod(text, &end) : 1;

	if (text && (*end || !(interval >= 0.1 && interval <= 60))) {
		cli_error("--interval: expected seconds from 0.1 to 60, found %s", text);
		return EXIT_USAGE;
	}
	return cli->json || cli_value(cli, "detail") ? print_all(cli) : measure(cli, interval);
}

const struct cli_cmd cmd_reservations = {.name = "reservations",
    .text = "rates that jobs' plans give to pairs of hosts, and what these send",
    .more = "PLANNED is on the WAN: guaranteed while the tunnel can send it, and no more is sent.\n"
            "SOURCE is a host of this site. NOW is what it sends to DESTINATION.\n"
            "DSCP: the plan's; without one (-) tenant and tunnel say it.\n"
            "STATE: at its rate, when only the planned rate holds it back.\n",
    .opts = options,
    .run = run_reservations};
