/* SPDX-License-Identifier: Apache-2.0 */
/* roceway map: the listen map of a relay, shown and changed while it runs. */
#include <stdlib.h>
#include <string.h>

#include "tools/roceway/roceway.h"

#define UNWANTED "\"\\\n\r\t#"

static void entry_row(struct table *t, const json_t *o)
{
	table_add(t, "%s", js(o, "name"));
	table_add(t, "%s", js(o, "listen"));
	table_add(t, "%lld", ji(o, "port"));
	table_add(t, "%s", js(o, "target"));
	table_add(t, "%lld", ji(o, "target_port"));
	table_add(t, "%lld", ji(o, "links"));
	if (ji(o, "links_max"))
		table_add(t, "%lld", ji(o, "links_max"));
	else
		table_add(t, "any");
}

static int run_show(const struct cli *cli)
{
	static const char *const columns[] = {
	    "~NAME", "~LISTEN", ">PORT", "~TARGET", ">PORT", ">LINKS", ">MAX", NULL};

	json_t *j = api_get_json(cli, "/v1/map", NULL), *o;
	struct table *t;
	size_t i;

	if (!j)
		return EXIT_ERROR;
	if (cli->json) {
		print_json(j);
	} else {
		t = table_new(columns);
		json_array_foreach(json_object_get(j, "map"), i, o) entry_row(t, o);
		table_print(t);
	}
	json_decref(j);
	return EXIT_OK;
}

/* Sends the change; body NULL: DELETE. */
static int send_change(const struct cli *cli, const char *body)
{
	const char *name = cli->word[1];
	char page[256];
	json_t *j;

	api_page_of(page, sizeof(page), "/v1/map/", name);
	j = api_send(cli, body ? "PUT" : "DELETE", page, body, NULL);
	if (!j)
		return EXIT_ERROR;
	if (cli->json)
		print_json(j);
	else
		printf("map %.64s %s\n", name, body ? "added" : "removed");
	json_decref(j);
	return EXIT_OK;
}

static int run_add(const struct cli *cli)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	int rc = EXIT_OK;

	if (!f) {
		cli_error("out of memory");
		return EXIT_ERROR;
	}
	for (unsigned i = 2; i < cli->words && rc == EXIT_OK; i++) {
		const char *word = cli->word[i];
		const size_t n = strcspn(word, "=");

		if (!n || !word[n] || !word[n + 1] || strpbrk(word, UNWANTED)) {
			cli_error("%s: expected KEY=VALUE, on one line and without quotes", word);
			rc = EXIT_USAGE;
			break;
		}
		fprintf(
		    f, strchr(word + n, ':') ? "%.*s: \"%s\"\n" : "%.*s: %s\n", (int)n, word, word + n + 1);
	}
	fclose(f);
	if (rc == EXIT_OK)
		rc = send_change(cli, text);
	free(text);
	return rc;
}

static int run_map(const struct cli *cli)
{
	const char *action = cli->words ? cli->word[0] : "list";
	const bool add = !strcmp(action, "add"), del = !strcmp(action, "del");

	if (!add && !del && strcmp(action, "list") != 0) {
		cli_error("map %s: expected add, del or list", action);
		return EXIT_USAGE;
	}
	if (!add && !del && cli->words < 2)
		return run_show(cli);
	if ((add || del) && (cli->words < 2 || !*cli->word[1] || strchr(cli->word[1], '='))) {
		cli_error("map %s: expected the entry's NAME", action);
		return EXIT_USAGE;
	}
	if (add != (cli->words > 2)) {
		cli_error(add ? "map %s: expected KEY=VALUE" : "map %s: one word too many", action);
		return EXIT_USAGE;
	}
	return add ? run_add(cli) : send_change(cli, NULL);
}

const struct cli_cmd cmd_map = {.name = "map",
    .operand = "list|add|del ...",
    .many = true,
    .text = "the listen map of a relay (roceway-proxy)",
    .more = "  roceway map                            the entries and their open links\n"
            "  roceway map add NAME KEY=VALUE ...     keys: those of `relay.map[]`\n"
            "  roceway map del NAME                   its links stay\n"
            "\n"
            "  roceway map add nfs listen=10.1.0.254 port=20049 target=10.2.0.7\n"
            "\n"
            "A restart follows the file.\n",
    .run = run_map};
