/* SPDX-License-Identifier: Apache-2.0 */
/* roceway analyze: what a capture says about each queue pair. It asks no gateway. */
#include "tools/roceway/analyze.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/analyze/file.h"
#include "tools/roceway/read.h"
#include "tools/roceway/roceway.h"

#define POINTS 4000
#define LIMIT  20

static const struct cli_opt opts[] = {
    {"html", "FILE", "also write a page with plots"},
    {"limit", "N", "only the N flows with most data (default 20), or all"},
    {"qpn", "QPN", "only this destination queue pair (17 or 0x11)"},
    {NULL, NULL, NULL},
};

static int by_bytes(const void *a, const void *b)
{
	const struct an_flow *x = *(const struct an_flow *const *)a, *y = *(const struct an_flow *const *)b;

	if (x->c.bytes != y->c.bytes)
		return x->c.bytes < y->c.bytes ? 1 : -1;
	return x->c.packets < y->c.packets ? 1 : x->c.packets > y->c.packets ? -1 : 0;
}

/* Flows with requests, those with most data first. *n: how many; freed by the caller. */
static const struct an_flow **sorted(const struct an *a, long qpn, size_t *n)
{
	const struct an_flow **v;
	size_t all = 0;

	*n = 0;
	for (const struct an_flow *f = an_flows(a); f; f = f->next)
		all++;
	v = calloc(all + 1, sizeof(const struct an_flow *));
	if (!v)
		return NULL;
	for (const struct an_flow *f = an_flows(a); f; f = f->next)
		if ((f->c.packets || f->c.icrc_bad) && (qpn < 0 || f->key.dqpn == (uint32_t)qpn))
			v[(*n)++] = f;
	qsort(v, *n, sizeof(*v), by_bytes);
	return v;
}

static const char *operations(const struct an_flow *f)
{
	static char out[48];

	snprintf(out, sizeof(out), "%s%s%s%s", f->c.writes ? "WRITE " : "", f->c.sends ? "SEND " : "",
	    f->c.reads ? "READ " : "", f->c.atomics ? "ATOMIC " : "");
	if (*out)
		out[strlen(out) - 1] = '\0';
	return out;
}

static const char *hist_cell(const struct an_hist *h, double q)
{
	return h->n ? say_time((double)an_hist_quantile(h, q) / 1e9) : "-";
}

static void print_flows(const struct an_flow *const *v, size_t n)
{
	static const char *const columns[] = {"~REQUESTER > RESPONDER QPN", "~OPERATIONS", ">DATA", ">RATE",
	    ">RTT", ">P50", ">P99", ">RESENT", "LIMIT", NULL};
	struct table *t = table_new(columns);

	for (size_t i = 0; i < n; i++) {
		const struct an_flow *f = v[i];
		char name[ANALYZE_NAME_MAX];

		analyze_name(f, name);
		table_add(t, "%s", name);
		table_add(t, "%s", operations(f));
		table_add(t, "%s", say_bytes((double)f->c.bytes));
		table_add(t, "%s", say_bits(analyze_rate(f)));
		table_add(t, "%s", hist_cell(&f->rtt, 0.5));
		table_add(t, "%s", hist_cell(&f->completion, 0.5));
		table_add(t, "%s", hist_cell(&f->completion, 0.99));
		table_add(t, "%llu", (unsigned long long)f->c.resent_packets);
		table_add(t, "%s", f->findings ? f->finding[0].word : "-");
	}
	table_print(t);
}

static void print_findings(const struct an_flow *const *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char name[ANALYZE_NAME_MAX];

		if (!v[i]->findings)
			continue;
		analyze_name(v[i], name);
		printf("\n%s\n", name);
		for (unsigned k = 0; k < v[i]->findings; k++)
			print_fact(v[i]->finding[k].word, 12, v[i]->finding[k].text);
	}
}

/* Prints what makes the figures less certain. */
static void notes(const struct an_totals *t)
{
	if (t->malformed)
		printf("%llu RoCEv2 packets are malformed\n", (unsigned long long)t->malformed);
	if (t->cut)
		printf("%llu packets are cut by the snap length: their ICRC is not checked\n",
		    (unsigned long long)t->cut);
	if (t->copies)
		printf("%llu packets are in the capture twice, as in one of several interfaces: they count "
		       "once\n",
		    (unsigned long long)t->copies);
	if (t->unpaired)
		printf("%llu responses belong to no request: it is not in the capture, or queue pairs of "
		       "the same hosts have equal PSNs\n",
		    (unsigned long long)t->unpaired);
	if (t->backwards)
		printf("%llu packets have an earlier time than the one before\n",
		    (unsigned long long)t->backwards);
}

static void print_totals(const struct an_totals *t, size_t shown, size_t all)
{
	printf("%llu packets in %s, %llu of them RoCEv2", (unsigned long long)t->packets,
	    say_time((double)rwy_since(t->first, t->last) / 1e9), (unsigned long long)t->roce);
	putchar('\n');
	notes(t);
	if (shown < all)
		printf("%zu of %zu flows; --limit all shows the rest\n", shown, all);
	putchar('\n');
}

static int write_html(const char *path, const struct an_totals *t, const struct an_flow *const *v, size_t n)
{
	FILE *out = fopen(path, "w");
	int rc;

	if (!out) {
		cli_error("%s: %s", path, strerror(errno));
		return EXIT_ERROR;
	}
	rc = analyze_html(out, "Roceway: capture", t, v, n);
	if (fclose(out) != 0 || rc != 0) {
		cli_error("%s: %s", path, strerror(errno));
		return EXIT_ERROR;
	}
	return EXIT_OK;
}

/* A number from min to max; -1, after cli_error, when it is none. */
static long number(const char *opt, const char *text, long min, long max)
{
	char *end;
	long v;

	errno = 0;
	v = strtol(text, &end, 0);
	if (errno || end == text || *end || v < min || v > max) {
		cli_error("--%s: '%s' is no number from %ld to %ld", opt, text, min, max);
		return -1;
	}
	return v;
}

static int tell(const struct cli *cli, const struct an *a, long qpn, size_t limit)
{
	const char *html = cli_value(cli, "html");
	size_t all, n;
	const struct an_flow **v = sorted(a, qpn, &all);
	int rc = EXIT_OK;

	if (!v) {
		cli_error("not enough memory");
		return EXIT_ERROR;
	}
	n = all < limit ? all : limit;
	if (html)
		rc = write_html(html, an_totals(a), v, n);
	if (rc == EXIT_OK && cli->json) {
		json_t *j = analyze_json(an_totals(a), v, n);

		print_json(j);
		json_decref(j);
	} else if (rc == EXIT_OK) {
		print_totals(an_totals(a), n, all);
		if (n) {
			print_flows(v, n);
			print_findings(v, n);
		} else if (qpn >= 0) {
			printf("no flow has QPN 0x%lx in this capture\n", (unsigned long)qpn);
		} else {
			printf("no requests of RC queue pairs in this capture\n");
		}
	}
	free(v);
	return rc;
}

static int run_analyze(const struct cli *cli)
{
	const char *limit_text = cli_value(cli, "limit"), *qpn_text = cli_value(cli, "qpn");
	long limit = LIMIT, qpn = -1;
	struct an *a;
	int rc;

	if (limit_text && !strcmp(limit_text, "all"))
		limit = INT32_MAX;
	else if (limit_text && (limit = number("limit", limit_text, 1, INT32_MAX)) < 0)
		return EXIT_USAGE;
	if (qpn_text && (qpn = number("qpn", qpn_text, 0, 0xffffff)) < 0)
		return EXIT_USAGE;
	if (cli_value(cli, "html") && !strcmp(cli_value(cli, "html"), "-")) {
		cli_error("--html: expected a file, found -: standard output has the table");
		return EXIT_USAGE;
	}
	if (!cli->words || cli->words > AN_FILES_MAX) {
		cli_error("analyze: name 1 to %d capture files", AN_FILES_MAX);
		return EXIT_USAGE;
	}
	a = an_new(cli_value(cli, "html") ? POINTS : 0);
	if (!a) {
		cli_error("not enough memory");
		return EXIT_ERROR;
	}
	if (!cli_read_captures(cli, a, NULL)) {
		an_free(a);
		return EXIT_ERROR;
	}
	an_end(a);
	rc = tell(cli, a, qpn, (size_t)limit);
	an_free(a);
	return rc;
}

const struct cli_cmd cmd_analyze = {.name = "analyze",
    .operand = "FILE",
    .no_socket = true,
    .many = true,
    .text = "what limited each queue pair, from a capture (pcap, pcapng)",
    .more =
        "Any capture of RoCEv2 will do, with or without a gateway, also of VXLAN; - is standard input.\n"
        "Several files are read as one, in the order of time: a ring of files of one place.\n"
        "\n"
        "RTT is from a packet to its ACK as seen at the place of the capture, P50 and P99 from the first\n"
        "packet of a message to its last ACK. LIMIT is the first finding; all of them follow the table.\n",
    .opts = opts,
    .run = run_analyze};
