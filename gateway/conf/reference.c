/* SPDX-License-Identifier: Apache-2.0 */
/* The reference manual from the schema, as Markdown. A test holds docs/configuration.md equal to it. */
#include "gateway/conf/schema.h"

static const char head[] =
    "# Configuration\n"
    "\n"
    "A gateway reads one YAML file. `roceway-gateway --check FILE` tells whether it is right, with the line "
    "of the first fault.\n"
    "[conf/gateway.yaml](../conf/gateway.yaml) is a complete one.\n"
    "\n"
    "This page is what `roceway-gateway --print-reference` prints, from the table that it checks by.\n"
    "\n"
    "Sizes: `4096`, `64KiB`, `32MiB`, `1.5GiB`. Durations: `50us`, `100ms`, `5s`, `10min`, `1h`. Rates, in "
    "bits per second:\n"
    "`500Mbps`, `2.5Gbps`. An unknown key, a key given twice, an alias, an anchor or a tag is an error.\n";

static void print_group(FILE *f, const struct conf_key *k)
{
	fprintf(f,
	    "\n## %s%s\n\n%s\n\n| key | value | default | restart | meaning |\n| --- | --- | --- | --- | --- "
	    "|\n",
	    k->path, k->type == CONF_T_GROUPS ? "[]" : "", k->text);
}

static void print_key(FILE *f, const struct conf_key *k)
{
	char what[160];

	conf_key_describe(k, what, sizeof(what));
	fprintf(f, "| `%s` | %s | ", strchr(k->path, '.') + 1, what);
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
	fputs(head, f);
	for (unsigned i = 0; i < conf_keys_count; i++)
		(strchr(conf_keys[i].path, '.') ? print_key : print_group)(f, &conf_keys[i]);
}
