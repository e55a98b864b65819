/* SPDX-License-Identifier: Apache-2.0 */
/* rwydc: one scenario of two data centers and the WAN between them in virtual time. See docs/simulator.md. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/sim/dc/show.h"
#include "tests/sim/dc/train.h"

#define BAD_INPUT 2

struct args {
	struct scen s;
	enum show_form form;
	const char *trace;
};

static void usage(FILE *f)
{
	fprintf(f, "usage: rwydc [--file FILE]... [--json | --csv | --csv-head | --hash] [--trace FILE.csv] "
	           "[KEY=VALUE]...\n"
	           "       rwydc train [--json] [--spans FILE.csv] [KEY=VALUE]...\n"
	           "  One run of two data centers in virtual time: hosts with RC NICs, leaf-spine fabrics, "
	           "Roceway gateways or\n"
	           "  plain border switches. Keys: docs/simulator.md\n");
}

/* False: err says why. */
static bool parse(struct args *a, int argc, char **argv, char *err, size_t size)
{
	static const struct {
		const char *name;
		enum show_form form;
	} forms[] = {
	    {"--json", SHOW_JSON}, {"--csv", SHOW_CSV}, {"--csv-head", SHOW_CSV_HEAD}, {"--hash", SHOW_HASH}};

	for (int i = 1; i < argc; i++) {
		char where[32];
		unsigned k = 0;

		while (k < 4 && strcmp(argv[i], forms[k].name) != 0)
			k++;
		snprintf(where, sizeof(where), "word %d", i);
		if (k < 4) {
			a->form = forms[k].form;
		} else if (strcmp(argv[i], "--trace") == 0 && i + 1 < argc) {
			a->trace = argv[++i];
		} else if (strcmp(argv[i], "--file") == 0 && i + 1 < argc) {
			if (!scen_file(&a->s, argv[++i], err, size))
				return false;
		} else if (!scen_word(&a->s, argv[i], where, err, size)) {
			return false;
		}
	}
	return scen_check(&a->s, err, size);
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool run(const struct args *a, FILE *trace)
{
	double begin = seconds();
	struct dc *dc = dc_new(&a->s);
	struct work w;
	struct dc_counts c;
	char words[1024];

	work_init(&w, dc, trace);
	work_run(&w);
	show(stdout, &w, seconds() - begin, a->form);
	if (dc->c.violations)
		fprintf(stderr, "rwydc: violation: %s\n", dc->first_violation);
	work_fini(&w);
	uint64_t before = dc->c.violations;

	dc_free(dc, &c);
	if (c.violations > before)
		fprintf(stderr, "rwydc: violation: buffers leaked in a gateway\n");
	if (!c.violations)
		return true;
	scen_print(&a->s, words, sizeof(words));
	fprintf(stderr, "rwydc: %llu violations; again with: rwydc %s\n", (unsigned long long)c.violations,
	    words);
	return false;
}

int main(int argc, char **argv)
{
	static struct args a;
	char err[512];
	FILE *trace = NULL;
	bool good;

	if (argc > 1 && strcmp(argv[1], "train") == 0)
		return train_main(argc - 1, argv + 1);
	if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
		usage(stdout);
		return 0;
	}
	scen_default(&a.s);
	if (!parse(&a, argc, argv, err, sizeof(err))) {
		fprintf(stderr, "rwydc: %s\n", err);
		return BAD_INPUT;
	}
	if (a.trace && !(trace = fopen(a.trace, "w"))) {
		perror(a.trace);
		return 1;
	}
	good = run(&a, trace);
	if (trace)
		fclose(trace);
	return good ? 0 : 1;
}
