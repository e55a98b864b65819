/* SPDX-License-Identifier: Apache-2.0 */
/* roceway tunnel: adds, changes and removes tunnels while traffic runs. state.c shows them. */
#include <stdlib.h>
#include <string.h>

#include "tools/roceway/roceway.h"

#define UNWANTED "\"\\\n\r\t#"

/* Prints KEY=VALUE as a line of YAML; prefixes are a list. */
static bool put_word(FILE *f, const char *word)
{
	const size_t n = strcspn(word, "=");
	const char *v = word + n + 1;
	const bool list = n == 8 && !strncmp(word, "prefixes", n) && *v != '[';

	if (!n || !word[n] || !*v || strpbrk(word, UNWANTED)) {
		cli_error("%s: expected KEY=VALUE, on one line and without quotes", word);
		return false;
	}
	fprintf(f, "%.*s: %s", (int)n, word, list ? "[" : "");
	for (bool first = true; *v; first = false) {
		const size_t m = list ? strcspn(v, ",") : strlen(v);
		const bool quote = *v != '[' && memchr(v, ':', m);

		fprintf(f, quote ? "%s\"%.*s\"" : "%s%.*s", first ? "" : ", ", (int)m, v);
		v += m + (list && v[m] == ',');
	}
	fputs(list ? "]\n" : "\n", f);
	return true;
}

static int send_change(const struct cli *cli, const char *method, const char *done, const char *body)
{
	const char *name = cli->word[1];
	char page[256];
	json_t *j;

	api_page_of(page, sizeof(page), "/v1/tunnels/", name);
	j = api_send(cli, method, page, body, NULL);
	if (!j)
		return EXIT_ERROR;
	if (cli->json)
		print_json(j);
	else
		printf("tunnel %.64s %s: %s\n", name,
		    ji(j, "added") || ji(j, "changed") || ji(j, "removed") ? done : "is as it was",
		    say_time(jn(j, "took_seconds")));
	json_decref(j);
	return EXIT_OK;
}

static int run_tunnel(const struct cli *cli)
{
	const char *action = cli->words ? cli->word[0] : "";
	const bool del = !strcmp(action, "del"), add = !strcmp(action, "add");
	char *text = NULL;
	bool good = true;
	size_t len;
	FILE *f;
	int rc;

	if (!del && !add && strcmp(action, "set") != 0) {
		cli_error("tunnel%s%s: expected add, set or del (roceway tunnels shows them)",
		    *action ? " " : "", action);
		return EXIT_USAGE;
	}
	if (cli->words < 2 || !*cli->word[1] || strchr(cli->word[1], '=')) {
		cli_error("tunnel %s: expected the tunnel's NAME", action);
		return EXIT_USAGE;
	}
	if (del != (cli->words == 2)) {
		cli_error(del ? "%s: one word too many for tunnel del" : "tunnel %s: expected KEY=VALUE",
		    del ? cli->word[2] : action);
		return EXIT_USAGE;
	}
	if (del)
		return send_change(cli, "DELETE", "removed", NULL);
	f = open_memstream(&text, &len);
	if (!f) {
		cli_error("out of memory");
		return EXIT_ERROR;
	}
	for (unsigned i = 2; i < cli->words && good; i++)
		good = put_word(f, cli->word[i]);
	fclose(f);
	rc = good ? send_change(cli, add ? "PUT" : "PATCH", add ? "added" : "changed", text) : EXIT_USAGE;
	free(text);
	return rc;
}

const struct cli_cmd cmd_tunnel = {.name = "tunnel",
    .operand = "add|set|del ...",
    .many = true,
    .text = "tunnels added, changed and removed while traffic runs",
    .more = "  roceway tunnel add NAME KEY=VALUE ...   a new one\n"
            "  roceway tunnel set NAME KEY=VALUE ...   rate, carrier, detour, dscp, thresholds, prefixes;\n"
            "                                          others stay\n"
            "  roceway tunnel del NAME                 its connections are forgotten\n"
            "\n"
            "Keys are those of `tunnels[]` in docs/configuration.md; prefixes=10.2.0.0/24,10.3.0.0/24.\n"
            "\n"
            "  roceway tunnel add site-c port=wan local=192.0.2.1 remote=192.0.2.3 security=none \\\n"
            "      prefixes=10.3.0.0/24\n"
            "  roceway tunnel set site-c rate=5Gbps\n"
            "  roceway tunnel set site-c carrier=tcp   the other end moves with it\n"
            "  roceway tunnel set site-c detour=tcp    what is lost repeatedly goes by TCP\n"
            "\n"
            "A restart or reload follows the file. Tunnels of the control center are not changed here.\n",
    .run = run_tunnel};
