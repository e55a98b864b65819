/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the reference manual from the schema, as Markdown. A test compares it with
 * docs/configuration.md. */
#include "conf/schema.h"

static const char head[] =
    "# Configuration\n"
    "\n"
    "A gateway reads one YAML file. `roceway-gateway --check FILE` checks it, and reports the line of the "
    "first error.\n"
    "[conf/samples/gateway.yaml](../conf/samples/gateway.yaml) is a complete one.\n"
    "\n"
    "`roceway-gateway --print-reference` prints this page, from the table by which it checks files.\n"
    "\n"
    "`roceway reload` (or SIGHUP) reads the file again. A key that needs a restart must then be as it was; "
    "the others are applied.\n"
    "\n"
    "Sizes: `4096`, `64KiB`, `32MiB`, `1.5GiB`. Durations: `50us`, `100ms`, `5s`, `10min`, `1h`. Rates, in "
    "bits per second:\n"
    "`500Mbps`, `2.5Gbps`. An unknown key, a key given twice, an alias, an anchor or a tag is an error.\n";

/* Keys of an inner group have a table of their own, after the table of the outer group. */
static size_t group_len(const struct conf_key *k)
{
	const char *dot = strrchr(k->path, '.');

	return dot ? (size_t)(dot - k->path) : 0;
}

static void print_head(FILE *f, const struct conf_key *k)
{
	const size_t n = group_len(k);
	const struct conf_key *g = conf_keys;
	const size_t bare = k->path[n - 1] == ']' ? n - 2 : n; /* without "[]" */

	while (strncmp(g->path, k->path, bare) != 0 || g->path[bare])
		g++;
	fprintf(f,
	    "\n## %.*s\n\n%s\n\n| key | value | default | restart | meaning |\n| --- | --- | --- | --- | --- "
	    "|\n",
	    (int)n, k->path, g->text);
}

static void print_key(FILE *f, const struct conf_key *k)
{
	char what[160];

	conf_key_describe(k, what, sizeof(what));
	fprintf(f, "| `%s` | %s | ", conf_key_name(k), what);
	if (!k->dflt)
		fputs("required", f);
	else if (*k->dflt)
		fprintf(f, "`%s`", k->dflt);
	else
		fputs("none", f);
	fprintf(f, " | %s | %s |\n", k->restart ? "yes" : "no", k->text);
}

void conf_print_reference(FILE *f)
{
	const struct conf_key *last = NULL;

	fputs(head, f);
	for (const struct conf_key *k = conf_keys; k < conf_keys + conf_keys_count; k++) {
		const size_t n = group_len(k);

		if (!n)
			continue;
		if (!last || group_len(last) != n || strncmp(last->path, k->path, n) != 0)
			print_head(f, k);
		print_key(f, k);
		last = k;
	}
}
