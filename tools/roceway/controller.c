/* SPDX-License-Identifier: Apache-2.0 */
/* roceway controller: the gateway's relation to its control center. */
#include <string.h>

#include "tools/roceway/roceway.h"

#define WIDTH 100

static void row(const char *key, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void row(const char *key, const char *fmt, ...)
{
	char text[2048]; /* more than any reason has */
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	print_fact(key, 12, text);
}

static void print_names(const json_t *list)
{
	char text[WIDTH] = "";
	size_t i, used = 0;
	json_t *v;

	json_array_foreach((json_t *)(uintptr_t)list, i, v)
	{
		const char *name = json_string_value(v);

		if (used + strlen(name) + 6 > WIDTH - 14) {
			snprintf(text + used, sizeof(text) - used, " ...");
			break;
		}
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", used ? " " : "", name);
	}
	row("tunnels", "%s", used ? text : "none");
}

static void print_state(const json_t *j)
{
	const bool there = !strcmp(js(j, "state"), "registered");

	row("controller", "%s", js(j, "url"));
	row("state", "%s for %s", js(j, "state"), say_time(jn(j, "since_seconds")));
	row("as", *js(j, "member") ? "%s, site %s, member %s of the pair" : "%s, site %s", js(j, "name"),
	    js(j, "site"), js(j, "member"));
	if (there)
		row("lease", "%s, renewed %s ago", say_time(jn(j, "ttl_seconds")),
		    say_time(jn(j, "renewed_seconds")));
	else
		row("next try", "in %s", say_time(jn(j, "retry_seconds")));
	row("generation", "%lld runs", ji(j, "generation"));
	if (ji(j, "refused") || *js(j, "refusal"))
		row("refused", "%lld: %s", ji(j, "refused"), js(j, "refusal"));
	print_names(json_object_get(j, "tunnels"));
	if (!there && *js(j, "problem"))
		row("problem", "%s", js(j, "problem"));
}

static int run_controller(const struct cli *cli)
{
	json_t *j = api_get_json(cli, "/v1/controller", NULL), *v;
	const char *key;

	if (!j)
		return EXIT_ERROR;
	if (cli->json) {
		print_json(j);
	} else if (!strcmp(js(j, "state"), "none")) {
		puts("no controller: `controller:` is not in the configuration");
	} else {
		print_state(j);
		putchar('\n');
		json_object_foreach(json_object_get(j, "counters"), key, v) if (json_integer_value(v))
		    printf("%12lld  %s\n", (long long)json_integer_value(v), key);
	}
	json_decref(j);
	return EXIT_OK;
}

const struct cli_cmd cmd_controller = {
    .name = "controller", .text = "the control center: URL, state and generation", .run = run_controller};
