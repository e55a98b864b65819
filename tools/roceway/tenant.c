/* SPDX-License-Identifier: Apache-2.0 */
/*
 * roceway tenant: lists and changes tenants while traffic runs; roceway reload. KEY=VALUE becomes
 * YAML as in the file; the gateway knows its meaning.
 */
#include "tools/roceway/roceway.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAGE     1000
#define FILE_MAX (1u << 20)

static const struct cli_opt opts[] = {
    {"file", "FILE", "add, set: the tenant's keys as YAML or JSON; - is standard input"},
    {"yaml", NULL, "show: as it goes into the configuration file"},
    {NULL, NULL, NULL},
};

static const char *plural(long long n)
{
	return n == 1 ? "" : "s";
}

/* --- show ------------------------------------------------------------------------------------ */

static double drops_of(const json_t *o)
{
	double sum = 0;
	const char *key;
	json_t *v;

	json_object_foreach(json_object_get(o, "drops"), key, v) sum += json_number_value(v);
	return sum;
}

static void print_table(const json_t *all)
{
	static const char *const columns[] = {"~NAME", ">VNI", ">VLAN", ">FLOWS", ">CUSTODY", ">FROM HOSTS",
	    ">TO HOSTS", ">DROPS", ">GUARANTEE", ">LIMIT", NULL};
	struct table *t = table_new(columns);
	const json_t *o;
	size_t i;

	json_array_foreach((json_t *)all, i, o)
	{
		table_add(t, "%s", js(o, "name"));
		table_add(t, "%lld", ji(o, "vni"));
		table_add(t, ji(o, "vlan") ? "%lld" : "-", ji(o, "vlan"));
		table_add(t, "%s", say_count(jn(o, "flows")));
		table_add(t, "%s", say_bytes(jn(o, "custody_bytes")));
		table_add(t, "%s", say_bytes(jn(o, "rx_bytes")));
		table_add(t, "%s", say_bytes(jn(o, "tx_bytes")));
		table_add(t, "%s", say_count(drops_of(o)));
		table_add(t, "%s", jn(o, "guarantee_Bps") > 0 ? say_bits(jn(o, "guarantee_Bps")) : "-");
		table_add(t, "%s", jn(o, "limit_Bps") > 0 ? say_bits(jn(o, "limit_Bps")) : "-");
	}
	table_print(t);
}

/* Fetches all pages as one; NULL after an error line. */
static json_t *fetch_all(const struct cli *cli)
{
	json_t *all = json_array(), *j = NULL;
	char page[256], after[64] = "";

	do {
		json_decref(j);
		snprintf(page, sizeof(page), "/v1/tenants?limit=%d", PAGE);
		api_query(page, sizeof(page), "after", after);
		j = api_get_json(cli, page, NULL);
		if (!j) {
			json_decref(all);
			return NULL;
		}
		json_array_extend(all, json_object_get(j, "tenants"));
		snprintf(after, sizeof(after), "%s", js(j, "next"));
	} while (*after);
	json_object_set_new(j, "tenants", all);
	json_object_del(j, "next");
	return j;
}

static int show_all(const struct cli *cli)
{
	json_t *j = fetch_all(cli), *all = json_object_get(j, "tenants");

	if (!j)
		return EXIT_ERROR;
	if (cli->json) {
		print_json(j);
	} else {
		print_table(all);
		printf("\n%zu tenant%s, generation %lld", json_array_size(all),
		    plural((long long)json_array_size(all)), ji(j, "published"));
		if (ji(j, "running") < ji(j, "published"))
			printf(", a worker still runs %lld", ji(j, "running"));
		putchar('\n');
	}
	json_decref(j);
	return EXIT_OK;
}

static int show_yaml(const struct cli *cli, const char *path)
{
	char page[512], *text;

	snprintf(page, sizeof(page), "%s?yaml=1", path);
	text = api_get(cli, page, NULL);
	if (!text)
		return EXIT_ERROR;
	fputs(text, stdout);
	free(text);
	return EXIT_OK;
}

/* Prints the tenant's configuration, then its counters; drops only if there were any. */
static int show_one(const struct cli *cli, const char *name)
{
	char path[256];
	json_t *j, *drops, *v;
	const char *key;
	void *tmp;

	api_page_of(path, sizeof(path), "/v1/tenants/", name);
	if (cli_value(cli, "yaml"))
		return show_yaml(cli, path);
	j = api_get_json(cli, path, NULL);
	if (!j)
		return EXIT_ERROR;
	if (cli->json) {
		print_json(j);
		json_decref(j);
		return EXIT_OK;
	}
	drops = json_object_get(j, "drops");
	json_object_foreach_safe(drops, tmp, key, v)
	{
		char name_of[64];

		snprintf(name_of, sizeof(name_of), "drop_%s", key);
		if (json_integer_value(v))
			json_object_set(j, name_of, v);
	}
	json_object_del(j, "drops");
	json_object_del(j, "config");
	if (show_yaml(cli, path)) {
		json_decref(j);
		return EXIT_ERROR;
	}
	for (const char *const *k =
	         (const char *const[]){"name", "vni", "vlan", "guarantee_Bps", "limit_Bps", "weight", NULL};
	     *k; k++)
		json_object_del(j, *k); /* printed above */
	putchar('\n');
	print_object(j);
	json_decref(j);
	return EXIT_OK;
}

/* --- from words to YAML ---------------------------------------------------------------------- */

/* Lists that are given entry by entry: prefix=10.1.0.0/24@vtep prefix=10.2.0.0/24@site-b */
struct entry {
	const char *word, *key;
	const char *part[3]; /* keys of an entry's parts; none: the entry is in flow style */
	unsigned least;
	bool plain; /* an entry is a value without parts */
};
static const struct entry entries[] = {
    {"prefix", "prefixes", {"prefix", "at"}, 2, false},
    {"vtep", "vteps", {NULL}, 1, true},
    {"gateway_address", "gateway_addresses", {NULL}, 1, true},
    {"host", "hosts", {"address", "mac", "vtep"}, 2, false},
    {"rule", "acl", {NULL}, 1, false},
};
#define UNWANTED "\"\\\n\r\t#"
#define ENTRIES  (sizeof(entries) / sizeof(entries[0]))

static bool is_word(const struct entry *e, const char *word)
{
	const size_t n = strlen(e->word);

	return !strncmp(word, e->word, n) && word[n] == '=';
}

static int fail_value(const char *word)
{
	cli_error("%s: expected KEY=VALUE, on one line and without quotes", word);
	return EXIT_USAGE;
}

/* Prints flow style ({...}, [...]) unchanged, other text in quotes where YAML needs them. */
static void put_value(FILE *f, const char *v, size_t n)
{
	const bool quote = n && *v != '{' && *v != '[' && memchr(v, ':', n);

	fprintf(f, quote ? "\"%.*s\"" : "%.*s", (int)n, v);
}

static int put_entry(FILE *f, const struct entry *e, const char *word)
{
	const char *v = word + strlen(e->word) + 1;
	unsigned i;

	if (!e->part[0] || *v == '{') {
		put_value(f, v, strlen(v));
		return EXIT_OK;
	}
	fputc('{', f);
	for (i = 0; v && i < 3 && e->part[i]; i++) {
		const size_t n = strcspn(v, "@");

		fprintf(f, "%s%s: ", i ? ", " : "", e->part[i]);
		put_value(f, v, n);
		v = v[n] ? v + n + 1 : NULL;
	}
	fputc('}', f);
	if (!v && i >= e->least)
		return EXIT_OK;
	cli_error("%s: expected %s=%s@%s%s%s%s", word, e->word, e->part[0], e->part[1],
	    e->part[2] ? "[@" : "", e->part[2] ? e->part[2] : "", e->part[2] ? "]" : "");
	return EXIT_USAGE;
}

/* Prints a list that is given at once: vteps=10.1.0.11,10.1.0.12 */
static void put_list(FILE *f, const char *v)
{
	fputc('[', f);
	for (bool first = true; *v; first = false) {
		const size_t n = strcspn(v, ",");

		fputs(first ? "" : ", ", f);
		put_value(f, v, n);
		v += n + (v[n] == ',');
	}
	fputc(']', f);
}

static int put_word(FILE *f, const char *word)
{
	const size_t n = strcspn(word, "=");
	const char *v = word + n + 1;
	bool list = false;

	if (!n || !word[n] || !*v || strpbrk(word, UNWANTED))
		return fail_value(word);
	for (unsigned e = 0; e < ENTRIES; e++)
		list = list ||
		       (entries[e].plain && strlen(entries[e].key) == n && !strncmp(word, entries[e].key, n));
	fprintf(f, "%.*s: ", (int)n, word);
	if (list && *v != '[')
		put_list(f, v);
	else
		put_value(f, v, strlen(v));
	fputc('\n', f);
	return EXIT_OK;
}

static int put_words(FILE *f, const char *const *word, unsigned n)
{
	int rc = EXIT_OK;

	for (unsigned i = 0; i < n && !rc; i++) {
		bool entry = false;

		for (unsigned e = 0; e < ENTRIES; e++)
			entry = entry || is_word(&entries[e], word[i]);
		if (!entry)
			rc = put_word(f, word[i]);
	}
	for (unsigned e = 0; e < ENTRIES && !rc; e++) {
		unsigned found = 0;

		for (unsigned i = 0; i < n && !rc; i++) {
			if (!is_word(&entries[e], word[i]))
				continue;
			if (strpbrk(word[i], UNWANTED) || !word[i][strlen(entries[e].word) + 1])
				return fail_value(word[i]);
			if (!found++)
				fprintf(f, "%s:\n", entries[e].key);
			fputs("  - ", f);
			rc = put_entry(f, &entries[e], word[i]);
			fputc('\n', f);
		}
	}
	return rc;
}

/* --- changes --------------------------------------------------------------------------------- */

static char *read_file(const char *path)
{
	FILE *f = strcmp(path, "-") != 0 ? fopen(path, "re") : stdin;
	char *text = malloc(FILE_MAX + 2);
	size_t n = f && text ? fread(text, 1, FILE_MAX + 1, f) : 0;
	const bool bad = !f || !text || ferror(f) || n > FILE_MAX || memchr(text, 0, n);

	if (bad)
		cli_error("cannot read %s: %s", path,
		    !f || ferror(f) ? strerror(errno)
		    : n > FILE_MAX  ? "it is larger than 1 MiB"
		    : !text         ? "out of memory"
		                    : "it is no text");
	if (f && f != stdin)
		fclose(f);
	if (bad) {
		free(text);
		return NULL;
	}
	text[n] = 0;
	return text;
}

/* The text to send. NULL, after cli_error(): *rc is the exit code. */
static char *make_body(const struct cli *cli, const char *file, int *rc)
{
	char *text = NULL;
	size_t len;
	FILE *f;

	*rc = EXIT_USAGE;
	if (file && cli->words > 2) {
		cli_error("%s: either --file or KEY=VALUE", cli->word[2]);
		return NULL;
	}
	if (!file && cli->words == 2) {
		cli_error("tenant %s: expected KEY=VALUE or --file", cli->word[0]);
		return NULL;
	}
	if (file) {
		text = read_file(file);
		*rc = text ? EXIT_OK : EXIT_ERROR;
		return text;
	}
	f = open_memstream(&text, &len);
	if (!f) {
		cli_error("out of memory");
		*rc = EXIT_ERROR;
		return NULL;
	}
	*rc = put_words(f, cli->word + 2, cli->words - 2);
	fclose(f);
	if (!*rc)
		return text;
	free(text);
	return NULL;
}

static void print_done(const struct cli *cli, const json_t *j, const char *what)
{
	if (cli->json) {
		print_json(j);
		return;
	}
	printf("%s: generation %lld, %s", what, ji(j, "generation"), say_time(jn(j, "took_seconds")));
	if (ji(j, "running") < ji(j, "published"))
		printf(", a worker still runs %lld", ji(j, "running"));
	putchar('\n');
}

static int tenant_change(const struct cli *cli, const char *method, const char *done)
{
	const char *name = cli->word[1], *file = cli_value(cli, "file");
	char page[256], what[128], *body = NULL;
	int rc = EXIT_OK;
	json_t *j;

	if (strcmp(method, "DELETE") != 0)
		body = make_body(cli, file, &rc);
	else if (cli->words > 2 || file) {
		cli_error("%s: one word too many for tenant del", file ? "--file" : cli->word[2]);
		return EXIT_USAGE;
	}
	if (rc || (!body && strcmp(method, "DELETE") != 0))
		return rc;
	api_page_of(page, sizeof(page), "/v1/tenants/", name);
	j = api_send(cli, method, page, body, file && strcmp(file, "-") != 0 ? file : NULL);
	free(body);
	if (!j)
		return EXIT_ERROR;
	snprintf(what, sizeof(what), "tenant %.64s %s", name,
	    ji(j, "added") || ji(j, "changed") || ji(j, "removed") ? done : "is as it was");
	print_done(cli, j, what);
	json_decref(j);
	return EXIT_OK;
}

static int run_tenant(const struct cli *cli)
{
	const char *action = cli->words ? cli->word[0] : "show";
	const bool show = !strcmp(action, "show");

	if (!show && strcmp(action, "add") != 0 && strcmp(action, "set") != 0 && strcmp(action, "del") != 0) {
		cli_error("tenant %s: expected show, add, set or del", action);
		return EXIT_USAGE;
	}
	if ((show && cli_value(cli, "file")) || (!show && cli_value(cli, "yaml"))) {
		cli_error("--%s is not for tenant %s", show ? "file" : "yaml", action);
		return EXIT_USAGE;
	}
	if (cli_value(cli, "yaml") && cli->json) {
		cli_error("--yaml and --json exclude each other");
		return EXIT_USAGE;
	}
	if (show && cli->words > 2) {
		cli_error("%s: one word too many for tenant show", cli->word[2]);
		return EXIT_USAGE;
	}
	if (!show && (cli->words < 2 || !*cli->word[1] || strchr(cli->word[1], '='))) {
		cli_error("tenant %s: expected the tenant's NAME", action);
		return EXIT_USAGE;
	}
	if (show && cli->words == 2)
		return show_one(cli, cli->word[1]);
	if (show)
		return cli_value(cli, "yaml") ? show_yaml(cli, "/v1/tenants") : show_all(cli);
	return !strcmp(action, "add")   ? tenant_change(cli, "PUT", "added")
	       : !strcmp(action, "set") ? tenant_change(cli, "PATCH", "changed")
	                                : tenant_change(cli, "DELETE", "removed");
}

const struct cli_cmd cmd_tenant = {.name = "tenant",
    .operand = "show|add|set|del ...",
    .many = true,
    .text = "tenants, and their changes while traffic runs",
    .more =
        "  roceway tenant show [NAME]              all, or one with everything that is known\n"
        "  roceway tenant add NAME KEY=VALUE ...   a new one\n"
        "  roceway tenant set NAME KEY=VALUE ...   changes these keys, the others stay\n"
        "  roceway tenant del NAME\n"
        "\n"
        "Keys are those of `tenants[]` in docs/configuration.md. Lists are written entry by entry, as often\n"
        "as needed, and replace the old list: prefix=10.1.0.0/24@vtep, prefix=10.2.0.0/24@site-b,\n"
        "vtep=10.1.0.11, gateway_address=10.1.0.1, host=10.1.0.5@02:00:00:00:00:05@10.1.0.11,\n"
        "rule='{action: deny, source: 10.1.0.66/32}'; or at once, as in the file: acl='[]'.\n"
        "\n"
        "  roceway tenant add red vni=5001 vlan=101 prefix=10.1.0.0/24@vtep prefix=10.2.0.0/24@site-b \\\n"
        "      vtep=10.1.0.11 guarantee=1Gbps\n"
        "  roceway tenant set red limit=5Gbps\n"
        "\n"
        "It is done when every worker runs it. A restart or reload follows the file: `show --yaml`\n"
        "prints the entries for it.\n",
    .opts = opts,
    .run = run_tenant};

/* --- reload ---------------------------------------------------------------------------------- */

static int run_reload(const struct cli *cli)
{
	json_t *j = api_send(cli, "POST", "/v1/reload", NULL, NULL);
	const json_t *tunnels = json_object_get(j, "tunnels");
	char what[512];

	if (!j)
		return EXIT_ERROR;
	snprintf(what, sizeof(what),
	    "%.200s: %lld tenant%s added, %lld changed, %lld removed, %lld as before", js(j, "file"),
	    ji(j, "added"), plural(ji(j, "added")), ji(j, "changed"), ji(j, "removed"), ji(j, "same"));
	print_done(cli, j, what);
	if (!cli->json) {
		printf("tunnels: %lld added, %lld changed, %lld removed, %lld as before\n",
		    ji(tunnels, "added"), ji(tunnels, "changed"), ji(tunnels, "removed"),
		    ji(tunnels, "same"));
		if (jb(j, "log_level_changed"))
			printf("the log level has changed\n");
	}
	json_decref(j);
	return EXIT_OK;
}

const struct cli_cmd cmd_reload = {.name = "reload",
    .text = "has the gateway read its configuration file again",
    "Tunnels, tenants, siblings, the gateway's weight, the groups of the API and the log level are\n"
    "applied, and certificates read again. A file that is wrong, or that changes what needs a restart,\n"
    "is refused: the message says where, and nothing changes. Tunnels and tenants that are not in the\n"
    "file are removed, but for those of the control center.\n",
    .run = run_reload};
