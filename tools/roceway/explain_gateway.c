/* SPDX-License-Identifier: Apache-2.0 */
/* Prints how the control center stands with a gateway: of a pair, who serves, and why. */
#include "tools/roceway/explain.h"

#define FACT 9

static void add_event(struct table *t, const json_t *e)
{
	if (json_is_object(e))
		table_add(t, "%s %s", explain_when(e, "at_ms"), js(e, "by"));
	else
		table_add(t, "-");
}

static void print_members(const json_t *members)
{
	static const char *const columns[] = {"~MEMBER", "LEASE", "STATE", "OTHER", ">EPOCH", ">DOCUMENT",
	    "~VERSION", ">HEARD", "~CAME TO SERVE", "~LOST ITS STANDBY", NULL};
	struct table *t = table_new(columns);
	const json_t *m;
	size_t i;

	json_array_foreach((json_t *)members, i, m)
	{
		const bool said = *js(m, "state") != 0;

		table_add(t, "%s", js(m, "member"));
		table_add(t, "%s", js(m, "lease"));
		table_add(t, "%s", said ? js(m, "state") : "-");
		table_add(t, "%s", *js(m, "other") ? js(m, "other") : said ? "silent" : "-");
		table_add(t, said ? "%lld" : "-", ji(m, "epoch"));
		table_add(t, "%lld", ji(m, "generation_running"));
		table_add(t, "%s", js(m, "version"));
		table_add(t, "%s", say_time(jn(m, "age_ms") / 1e3));
		add_event(t, json_object_get(m, "served"));
		add_event(t, json_object_get(m, "lost"));
	}
	table_print(t);
}

static void print_pair(const json_t *p)
{
	char text[64];

	print_fact(
	    "pair", FACT, json_is_true(json_object_get(p, "protected")) ? "protected" : "not protected");
	print_fact("because", FACT, js(p, "why"));
	print_fact("serves", FACT, *js(p, "serves") ? js(p, "serves") : "nobody says so");
	snprintf(text, sizeof(text), "%lld, since %s", ji(p, "epoch"), explain_when(p, "since_ms"));
	print_fact("epoch", FACT, ji(p, "epoch") ? text : "none");
	if (*js(p, "differ"))
		print_fact("differ in", FACT, js(p, "differ"));
}

void explain_print_gateway(const json_t *g, const json_t *events)
{
	const json_t *p = json_object_get(g, "pair");
	char text[64];

	print_fact("gateway", FACT, js(g, "name"));
	print_fact("site", FACT, js(g, "site"));
	print_fact("state", FACT, js(g, "state"));
	snprintf(text, sizeof(text), "%lld runs, %lld is the present one", ji(g, "generation_running"),
	    ji(g, "generation"));
	print_fact("document", FACT, text);
	if (*js(g, "refusal"))
		print_fact("refuses", FACT, js(g, "refusal"));
	if (p) {
		print_pair(p);
		putchar('\n');
		print_members(json_object_get(p, "members"));
	}
	if (json_array_size(events)) {
		puts("\nWhat happened to it:");
		explain_print_events(events);
	}
}
