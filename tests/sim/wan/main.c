/* SPDX-License-Identifier: Apache-2.0 */
/* rwywan: one scenario of the WAN segment in virtual time. See docs/simulator.md. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/sim/wan/base.h"
#include "tests/sim/wan/run.h"

#define BAD_INPUT 2

struct args {
	struct scen s;
	bool json, csv, csv_head, hash, absolute;
	const char *trace, *rates;
};

static void usage(FILE *f)
{
	fprintf(f,
	    "usage: rwywan [--file FILE]... [--json | --csv | --csv-head] [--hash] [--absolute]\n"
	    "              [--trace FILE.csv] [--rates FILE.csv] [KEY=VALUE]...\n"
	    "  One run of two gateways over an emulated WAN in virtual time; completion times relative to\n"
	    "  the same run without loss (--absolute: in us). Keys: docs/simulator.md\n");
}

static bool file_arg(struct args *a, const char *path, char *err, size_t size)
{
	if (path)
		return scen_file(&a->s, path, err, size);
	snprintf(err, size, "--file wants a name");
	return false;
}

/* False: err says why. */
static bool parse(struct args *a, int argc, char **argv, char *err, size_t size)
{
	for (int i = 1; i < argc; i++) {
		char where[32];

		if (strcmp(argv[i], "--json") == 0)
			a->json = true;
		else if (strcmp(argv[i], "--csv") == 0)
			a->csv = true;
		else if (strcmp(argv[i], "--csv-head") == 0)
			a->csv = a->csv_head = true;
		else if (strcmp(argv[i], "--hash") == 0)
			a->hash = true;
		else if (strcmp(argv[i], "--absolute") == 0)
			a->absolute = true;
		else if (strcmp(argv[i], "--trace") == 0 && i + 1 < argc)
			a->trace = argv[++i];
		else if (strcmp(argv[i], "--rates") == 0 && i + 1 < argc)
			a->rates = argv[++i];
		else if (strcmp(argv[i], "--file") == 0) {
			if (!file_arg(a, argv[++i], err, size))
				return false;
		} else {
			snprintf(where, sizeof(where), "word %d", i);
			if (!scen_word(&a->s, argv[i], where, err, size))
				return false;
		}
	}
	scen_settle(&a->s);
	return scen_check(&a->s, err, size);
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int run(const struct scen *s, struct result *r, FILE *trace, FILE *rates)
{
	double begin = seconds();
	int rc = 0;

	memset(r, 0, sizeof(*r));
	switch (s->recovery) {
	case RECOVER_ROCEWAY:
		rc = run_roceway(s, r, trace, rates);
		break;
	case RECOVER_SR:
		run_sr(s, r);
		break;
	case RECOVER_EC:
		run_ec(s, r);
		break;
	case RECOVER_GBN:
		run_gbn(s, r);
		break;
	case RECOVER_TCP_CUBIC:
		run_tcp(s, r, &cc_cubic);
		break;
	case RECOVER_TCP_BBR:
		run_tcp(s, r, &cc_bbr);
		break;
	}
	r->wall = seconds() - begin;
	return rc;
}

/* The mean completion time of some of these messages without losses. The reference models are
 * compared with plain packets, without their parity. */
static int lossless_of(const struct args *a, double *mean)
{
	struct scen s = scen_lossless(&a->s);
	struct result r;

	*mean = 0;
	if (a->absolute || s.rtts > 0)
		return 0;
	if (s.recovery == RECOVER_EC)
		s.recovery = RECOVER_SR;
	s.warm = s.warm < 1 ? 1 : s.warm < 3 ? s.warm : 3;
	s.messages = s.messages < 3 || s.size > 128 << 20 ? 1 : s.arrival == ARRIVE_BACK ? s.messages : 3;
	int rc = run(&s, &r, NULL, NULL);

	*mean = result_mean(&r);
	result_fini(&r);
	return rc;
}

int main(int argc, char **argv)
{
	struct args a = {0};
	struct result r;
	char err[512];
	double lossless;
	FILE *trace = NULL, *rates = NULL;

	if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
		usage(stdout);
		return 0;
	}
	scen_default(&a.s);
	if (!parse(&a, argc, argv, err, sizeof(err))) {
		fprintf(stderr, "rwywan: %s\n", err);
		return BAD_INPUT;
	}
	if (a.trace && !(trace = fopen(a.trace, "w"))) {
		perror(a.trace);
		return 1;
	}
	if (a.rates && !(rates = fopen(a.rates, "w"))) {
		perror(a.rates);
		return 1;
	}
	int rc = lossless_of(&a, &lossless);

	if (rc >= 0)
		rc = run(&a.s, &r, trace, rates);
	if (trace)
		fclose(trace);
	if (rates)
		fclose(rates);
	if (rc < 0) {
		fprintf(stderr, "rwywan: %s\n",
		    rc == RWY_ENOMEM ? "no memory" : "the tunnel refuses this scenario");
		return rc == RWY_ENOMEM ? 1 : BAD_INPUT;
	}
	if (a.hash)
		printf("%016llx\n", (unsigned long long)r.hash);
	else if (a.json)
		show_json(stdout, &a.s, &r, lossless);
	else if (a.csv)
		show_csv(stdout, &a.s, &r, lossless, a.csv_head);
	else
		show_table(stdout, &a.s, &r, lossless);
	bool bad = r.violations != 0;

	result_fini(&r);
	return bad ? 1 : 0;
}
