/* SPDX-License-Identifier: Apache-2.0 */
/* roceway flows: connections, fetched page by page. */
#include "tools/roceway/roceway.h"

#include <stdlib.h>
#include <string.h>

#define PAGE 1000

static const struct cli_opt opts[] = {
    {"local", "IP", "only of this local host"},
    {"remote", "IP", "only to this remote host"},
    {"qpn", "QPN", "only with this queue pair at either end (12 or 0xc)"},
    {"state", "STATE", "only learning, paired, failed or closing"},
    {"tunnel", "NAME", "only over this tunnel"},
    {"tenant", "NAME", "only of this tenant"},
    {"limit", "N", "show at most N (default 100), or all"},
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

/* Adds pages up to `limit` flows to `all`; returns the last page's `next` ("" at the end) in `next`. */
static int fetch(const struct cli *cli, unsigned long limit, json_t *all, char next[64], long long *total)
{
	char base[1024], page[1200], n[32];

	first_page(cli, base, sizeof(base));
	*next = 0;
	do {
		const unsigned long left = limit - json_array_size(all);
		json_t *j;

		memcpy(page, base, sizeof(base));
		snprintf(n, sizeof(n), "%lu", left < PAGE ? left : PAGE);
		api_query(page, sizeof(page), "limit", n);
		if (*next)
			api_query(page, sizeof(page), "cursor", next);
		j = api_get_json(cli, page, NULL);
		if (!j)
			return EXIT_ERROR;
		json_array_extend(all, json_object_get(j, "flows"));
		snprintf(next, 64, "%s", js(j, "next"));
		*total = ji(j, "total");
		json_decref(j);
	} while (*next && json_array_size(all) < limit);
	return EXIT_OK;
}

/* Of some of them: only then is there a column for it. */
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
		table_add(t, "%s", say_time(jn(o, "idle_seconds")));
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

static int run(const struct cli *cli)
{
	json_t *all, *o;
	unsigned long limit;
	long long total = 0;
	char next[64];
	size_t i;

	if (!read_limit(cli, &limit))
		return EXIT_USAGE;
	all = json_array();
	if (fetch(cli, limit, all, next, &total)) {
		json_decref(all);
		return EXIT_ERROR;
	}
	if (cli->json) {
		o = json_pack("{s:I, s:O, s:s?}", "total", (json_int_t)total, "flows", all, "next",
		    *next ? next : NULL);
		print_json(o);
		json_decref(o);
	} else if (cli_value(cli, "detail")) {
		json_array_foreach(all, i, o)
		{
			if (i)
				putchar('\n');
			print_object(o);
		}
	} else {
		print_table(all);
		printf("\n%zu shown, %lld flows in all%s\n", json_array_size(all), total,
		    *next ? "; there may be more: --limit" : "");
	}
	json_decref(all);
	return EXIT_OK;
}

const struct cli_cmd cmd_flows = {.name = "flows",
    .text = "RDMA connections",
    .more =
        "SENT counts requests of the local host taken into custody, RECEIVED requests delivered to it.\n"
        "A QPN of `?` is not known yet. LIMIT is what keeps the local host from sending faster: the path, "
        "the\n"
        "far site (its credit: host or memory there), the memory here, or the window of the host itself.\n",
    .opts = opts,
    .run = run};
