/* SPDX-License-Identifier: Apache-2.0 */
/* `rwydc train`: reads the words, runs one step, prints its figures. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/engine.h"
#include "tests/sim/dc/gw.h"
#include "tests/sim/dc/train.h"
#include "tests/sim/dc/words.h"

#define BAD_INPUT 2
#define K(key, unit, lo, hi)                                                                                 \
	{                                                                                                    \
#key, unit, offsetof(struct train_cfg, key), lo, hi, NULL                                    \
	}
#define CHOICE(key, choices)                                                                                 \
	{                                                                                                    \
#key, W_CHOICE, offsetof(struct train_cfg, key), 0, 0, choices                               \
	}
#define DAY 864e11

static const struct word keys[] = {
    K(stages, W_WHOLE, 1, PIPE_STAGES_MAX),
    K(split, W_WHOLE, 1, PIPE_STAGES_MAX),
    K(tp, W_WHOLE, 1, TRAIN_TP_MAX),
    K(third, W_WHOLE, 0, PIPE_STAGES_MAX - 1),
    K(server, W_WHOLE, 1, PIPE_STAGES_MAX),
    K(micro, W_WHOLE, 1, 4096),
    K(slot, W_TIME, 3, DAY),
    K(slot2, W_TIME, 0, DAY),
    K(tail, W_TIME, 0, DAY),
    K(early, W_WHOLE, 0, 4096),
    K(act, W_BYTES, 1, 1 << 30),
    K(nvlink, W_BITS, 1e9, 1e14),
    K(cross, W_WHOLE, 0, 1024),
    K(guarantee, W_SHARE, 0, 1),
    K(ahead, W_TIME, 0, DAY),
    K(limit, W_TIME, 1e6, DAY),
    CHOICE(overlap, "off on"),
    CHOICE(net, "off on"),
};
static const struct words words = {keys, sizeof(keys) / sizeof(keys[0])};

/* The paper's job and plan; docs/simulator.md has the sources. */
static const struct train_cfg train_default = {.stages = 6,
    .split = 4,
    .tp = 4,
    .server = 2,
    .micro = 15,
    .slot = 3.0302e9,
    .act = 2.0 * 16384 * 4096 * 2,
    .nvlink = 3600e9,
    .limit = 3600e9,
    .net = 1};

struct args {
	struct scen s;
	struct train_cfg t;
	bool json;
	const char *spans;
};

static void defaults(struct args *a)
{
	scen_default(&a->s);
	a->s.spines = 2;
	a->s.rtt = 20e6;
	a->s.wan = 5e9;
	a->s.gwrate = 100e9;
	a->t = train_default;
}

static bool ours(const char *word)
{
	size_t n = strcspn(word, "=");

	for (unsigned i = 0; i < words.n; i++)
		if (strlen(words.tab[i].name) == n && strncmp(words.tab[i].name, word, n) == 0)
			return true;
	return false;
}

static bool check(const struct args *a, char *err, size_t size)
{
	const struct train_cfg *t = &a->t;
	const char *why = NULL;

	if (t->split > t->stages)
		why = "split is within stages";
	else if (t->third > 0 && (t->third <= t->split || t->third >= t->stages))
		why = "third is a stage after split";
	else if (a->s.leaves < 2 || (a->s.leaves - 1) * a->s.hosts < t->stages * t->tp)
		why = "a site holds all stages on all its leaves but the last";
	else if (t->act < t->tp)
		why = "act is at least a byte a GPU";
	if (why)
		snprintf(err, size, "scenario: %s", why);
	return !why && scen_check(&a->s, err, size);
}

static bool parse(struct args *a, int argc, char **argv, char *err, size_t size)
{
	for (int i = 1; i < argc; i++) {
		char where[32];

		snprintf(where, sizeof(where), "word %d", i);
		if (strcmp(argv[i], "--json") == 0)
			a->json = true;
		else if (strcmp(argv[i], "--spans") == 0 && i + 1 < argc)
			a->spans = argv[++i];
		else if (ours(argv[i]) ? !words_set(&words, &a->t, argv[i], where, err, size)
		                       : !scen_word(&a->s, argv[i], where, err, size))
			return false;
	}
	a->s.sites = a->t.third > 0 ? 3 : 2;
	return check(a, err, size);
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int train_main(int argc, char **argv)
{
	static struct args a, base;
	static struct train t;
	char err[512], said[2048];
	FILE *spans = NULL;
	struct dc_counts c;
	struct dc *dc;
	size_t n;
	double begin = seconds();

	defaults(&a);
	base = a;
	if (!parse(&a, argc, argv, err, sizeof(err))) {
		fprintf(stderr, "rwydc train: %s\n", err);
		return BAD_INPUT;
	}
	if (a.spans && !(spans = fopen(a.spans, "w"))) {
		perror(a.spans);
		return 1;
	}
	words_print(&words, &a.t, &base.t, said, sizeof(said) / 2);
	n = strlen(said);
	if (n)
		said[n++] = ' ';
	scen_print(&a.s, said + n, sizeof(said) - n);
	dc = dc_new(&a.s);
	train_init(&t, dc, &a.t, spans);
	train_run(&t);
	train_show(stdout, &t, said, seconds() - begin, a.json);
	if (dc->c.violations)
		fprintf(stderr, "rwydc: violation: %s\n", dc->first_violation);
	train_fini(&t);
	dc_free(dc, &c);
	if (spans)
		fclose(spans);
	if (c.violations)
		fprintf(stderr, "rwydc: %llu violations; again with: rwydc train %s\n",
		    (unsigned long long)c.violations, said);
	return c.violations ? 1 : 0;
}
