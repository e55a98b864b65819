/* SPDX-License-Identifier: Apache-2.0 */
/* roceway counters and roceway metrics. The gateway sends each counter with its sentence; none is
 * known here. */
#include "tools/roceway/roceway.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static const struct cli_opt opts[] = {
    {"all", NULL, "also those that are 0"},
    {"workers", NULL, "each worker's instead of the sum"},
    {"watch", "INTERVAL", "changes in each interval (1s, 500ms), until interrupted"},
    {"count", "N", "with --watch: N intervals, then end"},
    {NULL, NULL, NULL},
};

/* Writes the counter's object: "tunnel site-b". */
static void scope(const json_t *c, char *out, size_t size)
{
	const char *name = *js(c, "tunnel") ? js(c, "tunnel") : js(c, "port");
	int n = snprintf(out, size, "%s%s%s", js(c, "group"), *name ? " " : "", name);

	if (json_object_get(c, "worker"))
		snprintf(out + n, size - (size_t)n, " #%lld", ji(c, "worker"));
}

static bool wanted(const struct cli *cli, const json_t *c)
{
	char where[128];

	scope(c, where, sizeof(where));
	return !cli->operand || strstr(js(c, "name"), cli->operand) || strstr(where, cli->operand);
}

static json_t *fetch(const struct cli *cli, bool nonzero)
{
	char page[128] = "/v1/counters";
	json_t *j, *list, *c;

	if (nonzero)
		api_query(page, sizeof(page), "nonzero", "1");
	if (cli_value(cli, "workers"))
		api_query(page, sizeof(page), "workers", "1");
	j = api_get_json(cli, page, NULL);
	list = json_object_get(j, "counters");
	for (size_t i = 0; i < json_array_size(list);) {
		c = json_array_get(list, i);
		if (wanted(cli, c))
			i++;
		else
			json_array_remove(list, i);
	}
	return j;
}

static void print_values(const json_t *j)
{
	static const char *const columns[] = {"~WHERE", "~COUNTER", ">VALUE", "~MEANING", NULL};
	struct table *t = table_new(columns);
	char where[128];
	json_t *c;
	size_t i;

	json_array_foreach(json_object_get(j, "counters"), i, c)
	{
		scope(c, where, sizeof(where));
		table_add(t, "%s", where);
		table_add(t, "%s", js(c, "name"));
		table_add(t, "%lld", ji(c, "value"));
		table_add(t, "%s", js(c, "help"));
	}
	table_print(t);
}

static int none_has(const struct cli *cli)
{
	cli_error("no counter has %s in its name or place", cli->operand);
	return EXIT_ERROR;
}

/* An empty table does not tell counters that are 0 from a word that no counter has. */
static int explain_nothing(const struct cli *cli)
{
	json_t *all = fetch(cli, false);
	const size_t n = json_array_size(json_object_get(all, "counters"));

	if (!all)
		return EXIT_ERROR;
	json_decref(all);
	if (!n)
		return none_has(cli);
	if (cli->json)
		return EXIT_OK;
	if (n == 1)
		puts("the one that matches is 0 (--all shows it)");
	else
		printf("all %zu that match are 0 (--all shows them)\n", n);
	return EXIT_OK;
}

/* --- watching -------------------------------------------------------------------------------- */

/* Two answers of a page have the same counters in the same order, unless the gateway was replaced
 * in between. */
static bool same_shape(const json_t *a, const json_t *b)
{
	return json_array_size(a) == json_array_size(b);
}

static json_t *differences(const json_t *before, const json_t *after)
{
	const json_t *a = json_object_get(before, "counters"), *b = json_object_get(after, "counters");
	const double seconds = (jn(after, "time_ns") - jn(before, "time_ns")) / 1e9;
	json_t *out = json_array();

	for (size_t i = 0; same_shape(a, b) && i < json_array_size(b); i++) {
		json_t *c = json_array_get(b, i), *d;
		const long long delta = ji(c, "value") - ji(json_array_get(a, i), "value");

		if (delta <= 0 || seconds <= 0)
			continue;
		d = json_copy(c);
		json_object_set_new(d, "delta", json_integer(delta));
		json_object_set_new(d, "per_second", json_real((double)delta / seconds));
		json_array_append_new(out, d);
	}
	return json_pack("{s:f, s:o}", "seconds", seconds, "counters", out);
}

static void print_differences(const json_t *d)
{
	static const char *const columns[] = {"~WHERE", "~COUNTER", ">VALUE", ">CHANGE", ">PER SECOND", NULL};
	struct table *t = table_new(columns);
	char where[128];
	json_t *c;
	size_t i;

	json_array_foreach(json_object_get(d, "counters"), i, c)
	{
		const char *name = js(c, "name");
		const double rate = jn(c, "per_second");
		const bool bytes = strlen(name) > 6 && !strcmp(name + strlen(name) - 6, "_bytes");

		scope(c, where, sizeof(where));
		table_add(t, "%s", where);
		table_add(t, "%s", name);
		table_add(t, "%lld", ji(c, "value"));
		table_add(t, "+%lld", ji(c, "delta"));
		table_add(t, "%s", bytes ? say_bits(rate) : say_count(rate));
	}
	printf("in %s:\n", say_time(jn(d, "seconds")));
	table_print(t);
	putchar('\n');
}

static bool read_interval(const char *s, struct timespec *out)
{
	char *end;
	const double v = strtod(s, &end);
	const double unit = !strcmp(end, "ms") ? 1e-3 : !strcmp(end, "s") ? 1 : !strcmp(end, "min") ? 60 : 0;

	if (*s < '0' || *s > '9' || !unit || v * unit < 0.01 || v * unit > 86400)
		return false;
	out->tv_sec = (time_t)(v * unit);
	out->tv_nsec = (long)((v * unit - (double)out->tv_sec) * 1e9);
	return true;
}

static int watch(const struct cli *cli, const struct timespec *interval, unsigned long count)
{
	json_t *before = fetch(cli, false);

	if (before && cli->operand && !json_array_size(json_object_get(before, "counters"))) {
		json_decref(before);
		return none_has(cli);
	}
	for (unsigned long i = 0; before && (!count || i < count); i++) {
		json_t *after, *d;

		nanosleep(interval, NULL);
		after = fetch(cli, false);
		if (after) {
			d = differences(before, after);
			if (cli->json) {
				json_dumpf(d, stdout, JSON_COMPACT);
				putchar('\n');
			} else {
				print_differences(d);
			}
			fflush(stdout);
			json_decref(d);
		}
		json_decref(before);
		before = after;
	}
	json_decref(before);
	return before ? EXIT_OK : EXIT_ERROR;
}

static int run_counters(const struct cli *cli)
{
	const char *interval = cli_value(cli, "watch"), *count = cli_value(cli, "count");
	struct timespec ts;
	char *end = "";
	unsigned long n = count ? strtoul(count, &end, 10) : 0;
	bool empty;
	json_t *j;

	if (count && (!interval || *count < '0' || *count > '9' || *end || !n)) {
		cli_error("--count: expected a number from 1 on, together with --watch, found %s", count);
		return EXIT_USAGE;
	}
	if (interval && !read_interval(interval, &ts)) {
		cli_error("--watch: expected an interval such as 1s or 500ms, found %s", interval);
		return EXIT_USAGE;
	}
	if (interval)
		return watch(cli, &ts, n);
	j = fetch(cli, !cli_value(cli, "all"));
	if (!j)
		return EXIT_ERROR;
	empty = cli->operand && !json_array_size(json_object_get(j, "counters"));
	if (cli->json)
		print_json(j);
	else if (!empty)
		print_values(j);
	json_decref(j);
	return empty ? explain_nothing(cli) : EXIT_OK;
}

const struct cli_cmd cmd_counters = {.name = "counters",
    .operand = "PATTERN",
    .text = "every count with its meaning; drops are named drop_*",
    .more = "Shows those that are not 0. PATTERN: only where the name or the place has it (drop_, tunnel).\n",
    .opts = opts,
    .run = run_counters};

static int run_metrics(const struct cli *cli)
{
	char *text = api_get(cli, "/metrics", NULL);

	if (!text)
		return EXIT_ERROR;
	fputs(text, stdout);
	free(text);
	return EXIT_OK;
}

const struct cli_cmd cmd_metrics = {.name = "metrics",
    .no_json = true,
    .text = "all counters and gauges as Prometheus text",
    .more = "The same as GET /metrics on the socket.\n",
    .run = run_metrics};
