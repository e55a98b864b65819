/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a job's plan: demand and result, its tunnels in networks, its events. */
#include "tools/roceway/explain.h"

#include <string.h>

#define FACT 10

/* Prints the share of each pair of gateways in the networks' tunnels. */
static void print_parts(const json_t *tunnels)
{
	static const char *const columns[] = {"~TUNNEL", "~GATEWAYS", ">PART", "SINCE", NULL};
	struct table *t = table_new(columns);
	const json_t *n;
	const char *pair;
	json_t *v;
	size_t i;

	json_array_foreach((json_t *)tunnels, i, n)
	{
		json_object_foreach(json_object_get(n, "pairs"), pair, v)
		{
			table_add(t, "%s", js(n, "name"));
			table_add(t, "%s", pair);
			table_add(t, "%s", explain_bps(json_object_get(n, "pairs"), pair));
			table_add(t, "%s", explain_when(n, "reserved_ms"));
		}
	}
	table_print(t);
}

static bool is_asked(const json_t *p, const json_t *row, bool reverse)
{
	const char *from = reverse ? "destination" : "source", *to = reverse ? "source" : "destination";
	const char *from_qpn = reverse ? "destination_qpn" : "source_qpn",
	           *to_qpn = reverse ? "source_qpn" : "destination_qpn";

	return !strcmp(js(p, from), js(row, "source")) && !strcmp(js(p, to), js(row, "destination")) &&
	       ji(p, from_qpn) == ji(row, "source_qpn") && ji(p, to_qpn) == ji(row, "destination_qpn");
}

/* The demand for a row of the plan: that of its pair, in either order, or of every pair. NULL:
 * none. */
static const json_t *asked(const json_t *job, const json_t *row)
{
	const json_t *p;
	size_t i;

	json_array_foreach(json_object_get(job, "pairs"), i,
	    p) if (is_asked(p, row, false) || is_asked(p, row, true)) return p;
	return json_object_get(job, "demand");
}

/* Bytes, with the time between bursts; or a rate. */
static void add_asked(struct table *t, const json_t *a)
{
	if (ji(a, "period_us"))
		table_add(t, "%s / %s", say_bytes(jn(a, "bytes")), explain_us(a, "period_us"));
	else if (ji(a, "bytes"))
		table_add(t, "%s", say_bytes(jn(a, "bytes")));
	else
		table_add(t, "%s", explain_bps(a, "bandwidth_bps"));
}

static const char *at_most(const json_t *o, const char *key)
{
	return ji(o, key) ? explain_us(o, key) : "any";
}

/* True if a pair of the job, or all of them, asks for this. */
static bool any(const json_t *job, const char *key)
{
	const json_t *p;
	size_t i;

	json_array_foreach(json_object_get(job, "pairs"), i, p) if (ji(p, key)) return true;
	return ji(json_object_get(job, "demand"), key);
}

/* Prints the plan, without columns that are empty in all rows. */
static void print_plan(const json_t *job, const json_t *plan)
{
	const bool qpns = any(job, "source_qpn"), delay = any(job, "delay_us"),
	           jitter = any(job, "jitter_us");
	const char *columns[11] = {"~FROM", "~TO"};
	unsigned n = 2;
	struct table *t;
	const json_t *row, *a;
	size_t i;

	if (qpns)
		columns[n++] = ">QPNS";
	columns[n++] = ">ASKED";
	if (delay)
		columns[n++] = ">DELAY";
	if (jitter)
		columns[n++] = ">JITTER";
	columns[n++] = "~GATEWAYS";
	columns[n++] = "CARRIER";
	columns[n++] = ">THEY SEND";
	columns[n++] = ">AT EDGE";
	t = table_new(columns);
	json_array_foreach((json_t *)plan, i, row)
	{
		a = asked(job, row);
		table_add(t, "%s", js(row, "source"));
		table_add(t, "%s", js(row, "destination"));
		if (qpns)
			table_add(t, ji(row, "source_qpn") ? "%lld %lld" : "others", ji(row, "source_qpn"),
			    ji(row, "destination_qpn"));
		add_asked(t, a);
		if (delay)
			table_add(t, "%s", at_most(a, "delay_us"));
		if (jitter)
			table_add(t, "%s", at_most(a, "jitter_us"));
		table_add(t, "%s", *js(row, "pair") ? js(row, "pair") : "by queue pair");
		table_add(t, "%s", js(row, "carrier"));
		table_add(t, "%s", explain_bps(row, "gateway_bps"));
		table_add(t, "%s", explain_bps(row, "edge_bps"));
	}
	table_print(t);
}

static void print_number(const char *name, const json_t *o, const char *key)
{
	char text[24];

	if (!json_object_get(o, key))
		return;
	snprintf(text, sizeof(text), "%lld", ji(o, key));
	print_fact(name, FACT, text);
}

void explain_print_job(const json_t *j, const json_t *events)
{
	const json_t *job = json_object_get(j, "job"), *network = json_object_get(j, "network");
	const json_t *plan = json_object_get(j, "plan");
	const json_t *n;
	size_t i;

	print_fact("job", FACT, js(j, "name"));
	print_fact("state", FACT, js(j, "state"));
	if (*js(j, "reason"))
		print_fact("because", FACT, js(j, "reason"));
	if (*js(job, "tenant"))
		print_fact("tenant", FACT, js(job, "tenant"));
	print_number("priority", job, "priority");
	print_number("DSCP", job, "dscp");
	if (*js(job, "carrier"))
		print_fact("only by", FACT, js(job, "carrier"));
	print_fact("spread by", FACT, *js(job, "granularity") ? js(job, "granularity") : "address-pair");
	if (ji(j, "deadline_ms"))
		print_fact("ends", FACT, explain_when(j, "deadline_ms"));
	else
		print_fact("ends", FACT,
		    ji(job, "duration_ms") ? say_time(jn(job, "duration_ms") / 1e3) : "when withdrawn");
	putchar('\n');
	print_plan(job, plan);
	json_array_foreach((json_t *)network, i, n)
	{
		if (!i)
			puts("\nIn networks:");
		printf("%s: %s, %s\n", js(n, "name"), explain_bps(n, "bandwidth_bps"),
		    strcmp(js(n, "shape"), "same-path")
		        ? "several paths at an edge, shared by their bandwidth"
		        : "one path at each edge");
	}
	if (json_array_size(network)) {
		putchar('\n');
		explain_print_network(network);
		putchar('\n');
		print_parts(network);
	}
	if (json_array_size(events)) {
		puts("\nWhat happened to it:");
		explain_print_events(events);
	}
}
