/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rwystall: how long queue pairs stand still when the active gateway of a pair dies, hands over,
 * stands still, or loses its standby, in virtual time (docs/simulator.md, "Stalls"). One world a
 * round; it prints, for each operation and each site of the requester, how long queue pairs had no
 * completion, and when the pair noticed and served.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/dc/words.h"
#include "tests/sim/stall/stall.h"

#define BAD_INPUT  2
#define ROUNDS_MAX 10000
#define QPS_MAX    256
#define K(key, unit, lo, hi)                                                                                 \
	{                                                                                                    \
#key, unit, offsetof(struct stall_scen, key), lo, hi, NULL                                   \
	}

static const struct word keys[] = {
    K(seed, W_WHOLE, 0, 9e15),
    K(rounds, W_WHOLE, 1, ROUNDS_MAX),
    {"event", W_CHOICE, offsetof(struct stall_scen, event), 0, 0,
        "nothing kill hand-over still cable standby"},
    K(rtt, W_TIME, 2e3, 1e9),
    K(loss, W_SHARE, 0, .5),
    K(qps, W_WHOLE, 2 * STALL_OPS, QPS_MAX),
    K(size, W_BYTES, 1, 1 << 20),
    K(depth, W_WHOLE, 1, 1024),
    K(gap, W_TIME, 1e3, 1e9),
    K(beat, W_TIME, 1e6, 1e9),
    K(timeout, W_TIME, 1e6, 1e12),
    K(keys, W_WHOLE, 0, 2),
    K(workers, W_WHOLE, 1, SIM_PAIR_WORKERS),
    K(nic, W_WHOLE, 0, 1),
    K(both, W_WHOLE, 0, 1),
    K(trace, W_WHOLE, 0, 1),
};
static const struct words words = {keys, sizeof(keys) / sizeof(keys[0])};

static const struct stall_scen defaults = {.seed = 1,
    .rounds = 20,
    .event = STALL_KILL,
    .rtt = 1e6,
    .qps = 20,
    .size = 4096,
    .depth = 16,
    .gap = 1e6,
    .beat = 10e6,
    .workers = 1,
    .timeout = 67e6};

static int by_time(const void *a, const void *b)
{
	rwy_dur x = *(const rwy_dur *)a, y = *(const rwy_dur *)b;

	return (x > y) - (x < y);
}

static double ms(rwy_dur d)
{
	return d == RWY_NEVER ? -1 : (double)d / 1e6;
}

static void show_times(const char *what, rwy_dur *v, unsigned n)
{
	qsort(v, n, sizeof(*v), by_time);
	printf("%-28s median %8.2f  p99 %8.2f  longest %8.2f ms\n", what, ms(v[n / 2]),
	    ms(v[(n - 1) * 99 / 100]), ms(v[n - 1]));
}

static void *room(size_t n)
{
	void *p = calloc(n, sizeof(rwy_dur));

	if (!p)
		abort();
	return p;
}

/* Returns how many operations failed. */
static unsigned run_all(const struct stall_scen *s)
{
	static const char *const names[STALL_OPS] = {"WRITE", "SEND", "READ", "ATOMIC", "mixed"};
	unsigned rounds = (unsigned)s->rounds;
	struct stall_round all = {0};
	rwy_dur *noticed = room(rounds), *served = room(rounds), *whole = room(rounds);

	for (unsigned i = 0; i < 2 * STALL_OPS; i++)
		all.stall[i / 2][i % 2] = room((size_t)(s->qps * s->rounds));
	for (unsigned i = 0; i < rounds; i++) {
		stall_run(s, (uint64_t)s->seed + i, &all);
		noticed[i] = all.noticed;
		served[i] = all.served;
		whole[i] = all.whole;
	}
	if (s->event != STALL_NOTHING && s->event != STALL_HAND_OVER)
		show_times("noticed", noticed, rounds);
	if (s->event != STALL_NOTHING) {
		show_times("served", served, rounds);
		show_times("whole again", whole, rounds);
	}
	for (unsigned i = 0; i < 2 * STALL_OPS; i++) {
		char what[40];

		snprintf(what, sizeof(what), "%s of host %c", names[i / 2], 'A' + i % 2);
		show_times(what, all.stall[i / 2][i % 2], all.n[i / 2][i % 2]);
		free(all.stall[i / 2][i % 2]);
	}
	free(noticed);
	free(served);
	free(whole);
	printf("%u operations failed\n", all.failed);
	return all.failed;
}

int main(int argc, char **argv)
{
	struct stall_scen s = defaults;
	char err[512], where[24];

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "-h") || !strcmp(argv[i], "--help")) {
			words_help(&words, "rwystall",
			    "How long queue pairs stand still when a gateway of a pair dies, in virtual "
			    "time.");
			return 0;
		}
		snprintf(where, sizeof(where), "word %d", i);
		if (!words_set(&words, &s, argv[i], where, err, sizeof(err))) {
			fprintf(stderr, "rwystall: %s\n", err);
			return BAD_INPUT;
		}
	}
	return run_all(&s) ? 1 : 0;
}
