/* SPDX-License-Identifier: Apache-2.0 */
/* roceway offload: the tenants' rules that hardware carries out, and why not the others. */
#include <string.h>

#include "tools/roceway/roceway.h"

static const struct cli_opt opts[] = {
    {"tenant", "NAME", "rules of this tenant"},
    {"summary", NULL, "ports alone"},
    {NULL, NULL, NULL},
};

static void ports_print(const json_t *ports)
{
	static const char *const columns[] = {
	    "PORT", "BACKEND", "~DEVICES", ">HARDWARE", ">KERNEL", ">SOFTWARE", "~ERROR", NULL};
	struct table *t = table_new(columns);
	json_t *o;
	size_t i;

	json_array_foreach((json_t *)(uintptr_t)ports, i, o)
	{
		table_add(t, "%s", js(o, "name"));
		table_add(t, "%s", js(o, "backend"));
		table_add(t, "%s%s%s", *js(o, "device") ? js(o, "device") : "-",
		    *js(o, "vxlan_device") ? " " : "", js(o, "vxlan_device"));
		table_add(t, "%lld", ji(o, "hardware"));
		table_add(t, "%lld", ji(o, "kernel"));
		table_add(t, "%lld", ji(o, "software"));
		table_add(t, "%s", *js(o, "error") ? js(o, "error") : "-");
	}
	table_print(t);
}

static void rule_row(struct table *t, const json_t *o)
{
	const json_t *rule = json_object_get(o, "acl_rule");

	table_add(t, "%s", *js(o, "tenant") ? js(o, "tenant") : "-");
	if (json_is_integer(rule))
		table_add(t, "%s %lld", js(o, "what"), ji(o, "acl_rule"));
	else
		table_add(t, "%s", js(o, "what"));
	table_add(t, "%s", *js(o, "match") ? js(o, "match") : "-");
	table_add(t, "%s", js(o, "action"));
	table_add(t, "%s%s", js(o, "where"), jb(o, "stale") ? " (stale)" : "");
	table_add(
	    t, "%s", json_is_integer(json_object_get(o, "packets")) ? say_count(jn(o, "packets")) : "-");
	table_add(t, "%s", *js(o, "why") ? js(o, "why") : "-");
}

static void rules_print(const json_t *rules)
{
	static const char *const columns[] = {
	    "~TENANT", "WHAT", "~MATCH", "~ACTION", "WHERE", ">PACKETS", "~WHY IN SOFTWARE", NULL};
	struct table *t = table_new(columns);
	json_t *o;
	size_t i;

	json_array_foreach((json_t *)(uintptr_t)rules, i, o) rule_row(t, o);
	table_print(t);
}

static int run_offload(const struct cli *cli)
{
	char page[256] = "/v1/offload";
	json_t *j;

	if (cli_value(cli, "tenant"))
		api_query(page, sizeof(page), "tenant", cli_value(cli, "tenant"));
	if (cli_value(cli, "summary"))
		api_query(page, sizeof(page), "summary", "1");
	j = api_get_json(cli, page, NULL);
	if (!j)
		return EXIT_ERROR;
	if (cli->json) {
		print_json(j);
	} else if (!json_array_size(json_object_get(j, "ports"))) {
		printf("no port has offload: everything is in software\n");
	} else {
		ports_print(json_object_get(j, "ports"));
		if (!cli_value(cli, "summary")) {
			putchar('\n');
			rules_print(json_object_get(j, "rules"));
		}
	}
	json_decref(j);
	return EXIT_OK;
}

const struct cli_cmd cmd_offload = {.name = "offload",
    .text = "tenants' rules in hardware and in software",
    .more = "WHERE is hardware, kernel (the kernel's own tc, when its driver refused) or software. Software\n"
            "enforces everything in any case. PACKETS is the device's count for the rule.\n",
    .opts = opts,
    .run = run_offload};
