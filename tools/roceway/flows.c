/* SPDX-License-Identifier: Apache-2.0 */
/* roceway flows: connections, the most recently active one first. */
#include "tools/roceway/roceway.h"

#include <stdlib.h>
#include <string.h>

#define PAGE 1000

static const struct cli_opt opts[] = {
    {"local", "IP", "only of this local host"},
    {"remote", "IP", "only to this remote host"},
    {"qpn", "QPN", "only with this queue pair at either end (12 or 0xc)"},
    {"state", "learning|paired|idle|failed|closing", "only in this state"},
    {"tunnel", "NAME", "only over this tunnel"},
    {"tenant", "NAME", "only of this tenant"},
    {"limit", "N", "show the N that were active last (default 100), or all"},
    {"detail", NULL, "everything that is known, line by line"},
    {NULL, NULL, NULL},
};

static void first_page(const struct cli *cli, char *page, size_t size)
{
	static const char *const filters[] = {"local", "remote", "qpn", "state", "tunnel", "tenant"};

	snprintf(page, size, "/v1/flows");
	for (unsigned i = 0; i < sizeof(filters) / sizeof(filters[0]); i++)
		if (cli_value(cli, filters[i]))
			api_query(page, size, filters[i], cli_value(cli, filters[i]));
}

struct flows {
	json_t *list;
	long long matching, total; /* flows that pass the filters; all flows */
};

static int latest_first(const void *a, const void *b)
{
	const double x = jn(*(json_t *const *)a, "last_seconds"), y = jn(*(json_t *const *)b, "last_seconds");

	return (x < y) - (x > y);
}

/* Sorts in place, the most recently active one first, and keeps at most `limit`. */
static void sort_and_cut(struct flows *f, unsigned long limit)
{
	const size_t n = json_array_size(f->list), most = n < limit ? n : limit;
	json_t **v = calloc(n + 1, sizeof(*v)), *sorted = json_array();

	for (size_t i = 0; v && i < n; i++)
		v[i] = json_array_get(f->list, i);
	if (v)
		qsort(v, n, sizeof(*v), latest_first);
	for (size_t i = 0; i < most; i++)
		json_array_append(sorted, v ? v[i] : json_array_get(f->list, i));
	free(v);
	json_decref(f->list);
	f->list = sorted;
}

/*
 * Fetches all flows in pages and sorts them here: the gateway sorts no more than a page. An idle
 * time is as of its page, so the time of the last packet decides.
 */
static int fetch_all(const struct cli *cli, const char *base, unsigned long limit, struct flows *f)
{
	char page[1200], next[64] = "";

	do {
		json_t *j;

		snprintf(page, sizeof(page), "%s", base);
		api_query(page, sizeof(page), "limit", "1000");
		if (*next)
			api_query(page, sizeof(page), "cursor", next);
		j = api_get_json(cli, page, NULL);
		if (!j)
			return EXIT_ERROR;
		json_array_extend(f->list, json_object_get(j, "flows"));
		snprintf(next, sizeof(next), "%s", js(j, "next"));
		f->total = ji(j, "total");
		json_decref(j);
	} while (*next);
	f->matching = (long long)json_array_size(f->list);
	sort_and_cut(f, limit);
	return EXIT_OK;
}

static int fetch(const struct cli *cli, unsigned long limit, struct flows *f)
{
	char base[1024], page[1200], n[32];
	json_t *j;

	first_page(cli, base, sizeof(base));
	if (limit > PAGE)
		return fetch_all(cli, base, limit, f);
	snprintf(page, sizeof(page), "%s", base);
	snprintf(n, sizeof(n), "%lu", limit);
	api_query(page, sizeof(page), "sort", "recent");
	api_query(page, sizeof(page), "limit", n);
	j = api_get_json(cli, page, NULL);
	if (!j)
		return EXIT_ERROR;
	json_array_extend(f->list, json_object_get(j, "flows"));
	f->matching = ji(j, "matching");
	f->total = ji(j, "total");
	json_decref(j);
	return EXIT_OK;
}

/* True if a flow has a tenant: only then there is a column for it. */
static bool have_tenants(const json_t *all)
{
	const json_t *o;
	size_t i;

	json_array_foreach((json_t *)all, i, o) if (*js(o, "tenant")) return true;
	return false;
}

static void print_table(const json_t *all)
{
	static const char *const columns[] = {"~TENANT", "~LOCAL", ">QPN", "~REMOTE", ">QPN", "STATE",
	    ">SENT", ">RECEIVED", ">CUSTODY", "LIMIT", ">IDLE", NULL};
	const bool tenants = have_tenants(all);
	struct table *t = table_new(columns + !tenants);
	const json_t *o;
	size_t i;

	json_array_foreach((json_t *)all, i, o)
	{
		if (tenants)
			table_add(t, "%s", *js(o, "tenant") ? js(o, "tenant") : "-");
		table_add(t, "%s", js(o, "local"));
		table_add(t, ji(o, "local_qpn") ? "%lld" : "?", ji(o, "local_qpn"));
		table_add(t, "%s", js(o, "remote"));
		table_add(t, ji(o, "remote_qpn") ? "%lld" : "?", ji(o, "remote_qpn"));
		table_add(t, "%s", js(o, "state"));
		table_add(t, "%s", say_bytes(jn(o, "tx_bytes")));
		table_add(t, "%s", say_bytes(jn(o, "rx_bytes")));
		table_add(t, "%s", say_bytes(jn(o, "custody_bytes")));
		table_add(t, "%s", js(o, "limit"));
		if (jn(o, "idle_seconds") < 60)
			table_add(t, "%s", say_time(jn(o, "idle_seconds")));
		else
			table_add(t, "%.0f s", jn(o, "idle_seconds"));
	}
	table_print(t);
}

static bool read_limit(const struct cli *cli, unsigned long *limit)
{
	const char *s = cli_value(cli, "limit");
	char *end = "";

	*limit = !s ? 100 : !strcmp(s, "all") ? ~0ul : strtoul(s, &end, 10);
	if (!s || !strcmp(s, "all") || (*s >= '0' && *s <= '9' && !*end && *limit))
		return true;
	cli_error("--limit: expected a number from 1 on, or all, found %s", s);
	return false;
}

static void print_count(const struct flows *f)
{
	const long long shown = (long long)json_array_size(f->list);

	if (shown < f->matching)
		printf("\n%lld of %lld shown, the most recently active (more: --limit N, --limit all)", shown,
		    f->matching);
	else
		printf("\n%lld shown", shown);
	printf("; %lld flows in all\n", f->total);
}

static int run_flows(const struct cli *cli)
{
	struct flows f = {0};
	unsigned long limit;
	json_t *o;
	size_t i;

	if (!read_limit(cli, &limit))
		return EXIT_USAGE;
	f.list = json_array();
	if (fetch(cli, limit, &f)) {
		json_decref(f.list);
		return EXIT_ERROR;
	}
	if (cli->json) {
		o = json_pack("{s:I, s:I, s:O, s:n}", "total", (json_int_t)f.total, "matching",
		    (json_int_t)f.matching, "flows", f.list, "next");
		print_json(o);
		json_decref(o);
	} else if (cli_value(cli, "detail")) {
		json_array_foreach(f.list, i, o)
		{
			if (i)
				putchar('\n');
			print_object(o);
		}
	} else {
		print_table(f.list);
		print_count(&f);
	}
	json_decref(f.list);
	return EXIT_OK;
}

const struct cli_cmd cmd_flows = {.name = "flows",
    .text = "RDMA connections",
    .more =
        "The most recently active first. A connection is idle when it had no packet for 5 seconds.\n"
        "SENT counts requests of the local host taken into custody, RECEIVED requests delivered to it.\n"
        "A QPN of `?` is not known yet. LIMIT is the limit of the local host's rate: the path, the\n"
        "far site (its credit: host or memory there), the memory here, or the window of the host itself.\n",
    .opts = opts,
    .run = run_flows};
