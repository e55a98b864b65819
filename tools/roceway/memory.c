/* SPDX-License-Identifier: Apache-2.0 */
/* roceway memory: who holds packet buffers. */
#include <stdlib.h>
#include <string.h>

#include "tools/roceway/roceway.h"

static const struct cli_opt opts[] = {
    {"limit", "N", "the N hosts and connections that hold most (default 10; 0: none)"},
    {NULL, NULL, NULL},
};

static const char *of_name(const json_t *o)
{
	return *js(o, "tenant") ? js(o, "tenant") : "-";
}

static const char *or_dash(double bytes)
{
	return bytes > 0 ? say_bytes(bytes) : "-";
}

static void workers_print(const json_t *workers)
{
	static const char *const columns[] = {">WORKER", ">HELD", ">MOST", ">ACKS WAIT AT", ">AT MOST",
	    ">RESERVED", ">HOSTS", ">WAITING", NULL};
	struct table *t = table_new(columns);
	const json_t *o;
	size_t i;

	json_array_foreach((json_t *)workers, i, o)
	{
		table_add(t, "%lld", ji(o, "worker"));
		table_add(t, "%s", say_bytes(jn(o, "held_bytes")));
		table_add(t, "%s", say_bytes(jn(o, "most_bytes")));
		table_add(t, "%s", say_bytes(jn(o, "soft_bytes")));
		table_add(t, "%s", say_bytes(jn(o, "max_bytes")));
		table_add(t, "%s", or_dash(jn(o, "reserved_bytes")));
		table_add(t, "%lld", ji(o, "hosts"));
		table_add(t, "%lld", ji(o, "waiting"));
	}
	table_print(t);
}

/* Prints the sums over all workers, which have the same kinds in the same order. */
static void kinds_print(const json_t *workers)
{
	static const char *const columns[] = {"KIND", ">BUFFERS", ">BYTES", ">AT MOST", "~WHAT", NULL};
	const json_t *first = json_object_get(json_array_get(workers, 0), "kinds"), *o, *w;
	struct table *t = table_new(columns);
	size_t i, k;

	json_array_foreach((json_t *)first, k, o)
	{
		double bufs = 0, bytes = 0, max = 0;

		json_array_foreach((json_t *)workers, i, w)
		{
			const json_t *same = json_array_get(json_object_get(w, "kinds"), k);

			bufs += jn(same, "buffers");
			bytes += jn(same, "bytes");
			max += jn(same, "max_bytes");
		}
		table_add(t, "%s", js(o, "kind"));
		table_add(t, "%s", say_count(bufs));
		table_add(t, "%s", say_bytes(bytes));
		table_add(t, "%s", or_dash(max));
		table_add(t, "%s", js(o, "help"));
	}
	table_print(t);
}

static void tenants_print(const json_t *tenants)
{
	static const char *const columns[] = {
	    "~TENANT", ">HELD", ">MOST", ">AT MOST", ">RESERVED", ">ANSWERS", ">RECEIVED", ">HOSTS", NULL};
	struct table *t = table_new(columns);
	const json_t *o;
	size_t i;

	json_array_foreach((json_t *)tenants, i, o)
	{
		table_add(t, "%s", of_name(o));
		table_add(t, "%s", say_bytes(jn(o, "held_bytes")));
		table_add(t, "%s", say_bytes(jn(o, "most_bytes")));
		table_add(t, "%s", say_bytes(jn(o, "max_bytes")));
		table_add(t, "%s", or_dash(jn(o, "reserved_bytes")));
		table_add(t, "%s", or_dash(jn(o, "answers_bytes")));
		table_add(t, "%s", or_dash(jn(o, "received_bytes")));
		table_add(t, "%lld", ji(o, "hosts"));
	}
	table_print(t);
}

static void hosts_print(const json_t *hosts)
{
	static const char *const columns[] = {"~TENANT", "~HOST", ">HELD", ">MOST", ">CUSTODY", ">UNPAIRED",
	    ">RESPONSES", ">ANSWERS", ">RECEIVED", NULL};
	struct table *t = table_new(columns);
	const json_t *o;
	size_t i;

	json_array_foreach((json_t *)hosts, i, o)
	{
		table_add(t, "%s", of_name(o));
		table_add(t, "%s", js(o, "address"));
		table_add(t, "%s", say_bytes(jn(o, "held_bytes")));
		table_add(t, "%s", say_bytes(jn(o, "most_bytes")));
		table_add(t, "%s", or_dash(jn(o, "custody_bytes")));
		table_add(t, "%s", or_dash(jn(o, "unpaired_bytes")));
		table_add(t, "%s", or_dash(jn(o, "responses_bytes")));
		table_add(t, "%s", or_dash(jn(o, "answers_bytes")));
		table_add(t, "%s", or_dash(jn(o, "received_bytes")));
	}
	table_print(t);
}

static void flows_print(const json_t *flows)
{
	static const char *const columns[] = {"~LOCAL", ">QPN", "~REMOTE", ">QPN", ">HELD", ">MOST",
	    ">CUSTODY", ">RESPONSES", ">ANSWERS", ">RECEIVED", NULL};
	struct table *t = table_new(columns);
	const json_t *o;
	size_t i;

	json_array_foreach((json_t *)flows, i, o)
	{
		table_add(t, "%s", js(o, "local"));
		table_add(t, ji(o, "local_qpn") ? "%lld" : "?", ji(o, "local_qpn"));
		table_add(t, "%s", js(o, "remote"));
		table_add(t, ji(o, "remote_qpn") ? "%lld" : "?", ji(o, "remote_qpn"));
		table_add(t, "%s", say_bytes(jn(o, "held_bytes")));
		table_add(t, "%s", say_bytes(jn(o, "most_bytes")));
		table_add(t, "%s", or_dash(jn(o, "custody_bytes") + jn(o, "unpaired_bytes")));
		table_add(t, "%s", or_dash(jn(o, "responses_bytes")));
		table_add(t, "%s", or_dash(jn(o, "answers_bytes")));
		table_add(t, "%s", or_dash(jn(o, "received_bytes")));
	}
	table_print(t);
}

static void memory_print(const json_t *j)
{
	const json_t *hosts = json_object_get(j, "hosts"), *flows = json_object_get(j, "connections");

	workers_print(json_object_get(j, "workers"));
	putchar('\n');
	kinds_print(json_object_get(j, "workers"));
	putchar('\n');
	tenants_print(json_object_get(j, "tenants"));
	if (json_array_size(hosts)) {
		putchar('\n');
		hosts_print(hosts);
	}
	if (json_array_size(flows)) {
		putchar('\n');
		flows_print(flows);
	}
}

static int run_memory(const struct cli *cli)
{
	char page[64] = "/v1/memory";
	json_t *j;

	if (cli_value(cli, "limit"))
		api_query(page, sizeof(page), "limit", cli_value(cli, "limit"));
	j = api_get_json(cli, page, NULL);
	if (!j)
		return EXIT_ERROR;
	if (cli->json)
		print_json(j);
	else
		memory_print(j);
	json_decref(j);
	return EXIT_OK;
}

const struct cli_cmd cmd_memory = {.name = "memory",
    .text = "who holds packet buffers",
    .more =
        "HELD is what shares one bound: requests in custody and READ responses on their way over the WAN.\n"
        "Above ACKS WAIT AT hosts are slowed down, above AT MOST their packets are dropped and asked for\n"
        "again. WAITING counts the directions of connections that this happened to. MOST is the most\n"
        "ever. Below: all kinds, tenants, and the hosts and connections that hold most, of all kinds. HELD\n"
        "and MOST of a connection are those of its direction with more.\n",
    .opts = opts,
    .run = run_memory};
