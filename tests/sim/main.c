/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rwysim: two gateway engines, hosts and links in virtual time. Each seed draws a world (links,
 * losses, ack mode, queue pairs, faults) and a workload. At the end the hosts' memories must be
 * what the operations make of them, or the queue pair must have an error. A failing seed prints the
 * command that repeats it.
 */
#include <getopt.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/sim/explore.h"
#include "tests/sim/kinds.h"
#include "tests/sim/known.h"
#include "tests/sim/states.h"
#include "tests/sim/words.h"

static void help(void)
{
	printf("rwysim [--seeds N] [--seconds S] [--from SEED] [--jobs J] | --seed SEED | --unmended\n"
	       "       [--faults WORDS | --with WORDS] [--slow TIMES] [--hash] [--states] [--alone]\n"
	       "       [--aes] [--verbose] [--packets QPN]\n"
	       "--seconds: N seeds, and more until S seconds are over\n"
	       "--unmended: seeds that fail, and why\n"
	       "--states: how often each cell of the state tables was entered\n"
	       "--packets: each packet that this queue pair and its peer send and get\n"
	       "--faults: these, with commas between them, or `none`; default: drawn from the seed;\n"
	       "--with: and these (docs/simulator.md)\n");
	sim_words_help();
}

#define JOBS_MAX 256

struct plan {
	uint64_t from, n;
	double seconds; /* run further seeds until then */
	struct timespec start;
	bool given; /* the faults; else the seed chooses them */
	uint64_t faults;
	uint64_t with; /* added to those of a seed */
	struct how how;
};

/* Shared by the jobs, which are processes. */
struct shared {
	_Atomic uint64_t next; /* next piece of work: first the seeds that once failed */
	_Atomic uint64_t passed, failed;
	_Atomic uint64_t runs, detours; /* datagrams with several packets; that took a detour */
	struct {
		uint64_t seed;
		uint64_t faults;
	} at[JOBS_MAX]; /* the seed of each job */
	struct sim_states states;
};

static uint64_t faults_of(const struct plan *p, uint64_t seed)
{
	return p->given ? p->faults : sim_kind_of(seed) | p->with;
}

static void run_one(const struct plan *p, struct shared *sh, unsigned job, uint64_t seed, uint64_t faults)
{
	struct how how = p->how;
	uint64_t runs = 0, detours = 0;

	sh->at[job].seed = seed;
	sh->at[job].faults = faults;
	how.quiet = sh->failed > 20;
	how.runs = &runs;
	how.detours = &detours;
	if (sim_run_seed(seed, faults, &how))
		sh->passed++;
	else
		sh->failed++;
	sh->runs += runs;
	sh->detours += detours;
}

/* The further worlds of a seed. */
static void run_further(const struct plan *p, struct shared *sh, unsigned job, uint64_t seed)
{
	uint64_t faults;

	for (unsigned world = 0; !p->given && world < SIM_FURTHER; world++)
		if (sim_kind_of_further(world, seed, &faults))
			run_one(p, sh, job, seed, faults | p->with);
}

static double elapsed(const struct timespec *start)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - start->tv_sec) + (double)(now.tv_nsec - start->tv_nsec) / 1e9;
}

static bool goes_on(const struct plan *p, uint64_t i)
{
	return i < sim_regressions_n + p->n || (p->seconds > 0 && elapsed(&p->start) < p->seconds);
}

/* Takes one seed at a time, so that a slow one delays no other. */
static void run_job(const struct plan *p, struct shared *sh, unsigned job)
{
	uint64_t i;

	while (goes_on(p, i = sh->next++)) {
		uint64_t seed = p->from + i - sim_regressions_n;

		if (i >= sim_regressions_n) {
			run_one(p, sh, job, seed, faults_of(p, seed));
			run_further(p, sh, job, seed);
			if (i % 10000 == 9999)
				fprintf(stderr, "seed %llu, %llu failed\n", (unsigned long long)seed,
				    (unsigned long long)sh->failed);
		} else if (!p->given || sim_regressions[i].faults == p->faults) {
			run_one(p, sh, job, sim_regressions[i].seed, sim_regressions[i].faults);
		}
	}
}

static pid_t start_job(const struct plan *p, struct shared *sh, unsigned job)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		abort();
	if (pid)
		return pid;
	run_job(p, sh, job);
	fflush(stdout);
	_exit(0);
}

static void in_parallel(const struct plan *p, struct shared *sh, unsigned jobs)
{
	char faults[SIM_WORDS_MAX];
	pid_t pid[JOBS_MAX], ended;
	int status;

	for (unsigned k = 0; k < jobs; k++)
		pid[k] = start_job(p, sh, k);
	while ((ended = wait(&status)) > 0)
		for (unsigned k = 0; status && k < jobs; k++)
			if (pid[k] == ended) { /* it died; another process continues */
				sh->failed++;
				sim_words_of(sh->at[k].faults, faults);
				printf("FAIL seed=%llu faults=%s: died, status %#x\n",
				    (unsigned long long)sh->at[k].seed, faults, status);
				pid[k] = start_job(p, sh, k);
			}
}

static int run_unmended(void)
{
	char faults[SIM_WORDS_MAX];
	unsigned failed = 0;

	for (unsigned i = 0; i < sim_unmended_n; i++) {
		const struct sim_unmended *k = &sim_unmended[i];
		bool ok = sim_run_seed(k->seed, k->faults, &(struct how){0});

		failed += !ok;
		sim_words_of(k->faults, faults);
		printf("%s seed=%llu faults=%s: %s\n", ok ? "ok" : "  as expected",
		    (unsigned long long)k->seed, faults, k->why);
	}
	printf("%u of %u fail\n", failed, sim_unmended_n);
	return 0;
}

/* What the command line asks for. */
struct args {
	struct plan plan;
	uint64_t seed;
	unsigned jobs;
	bool one, states, unmended;
};

static bool take_option(struct args *a, int c)
{
	struct plan *p = &a->plan;

	switch (c) {
	case 's':
		a->seed = strtoull(optarg, NULL, 0);
		a->one = true;
		return true;
	case 'n':
		p->n = strtoull(optarg, NULL, 0);
		return true;
	case 'S':
		p->seconds = atof(optarg);
		return true;
	case 'f':
		p->from = strtoull(optarg, NULL, 0);
		return true;
	case 'j':
		a->jobs = (unsigned)strtoul(optarg, NULL, 0);
		return true;
	case 'x':
		p->given = true;
		return sim_words_parse(optarg, &p->faults);
	case 'm':
		return sim_words_parse(optarg, &p->with);
	case 'v':
		p->how.verbose = true;
		return true;
	case 'p':
		p->how.packets = (uint32_t)strtoul(optarg, NULL, 0);
		return true;
	case 'd':
		p->how.hash = true;
		return true;
	case 'a':
		p->how.alone = true;
		return true;
	case 'A':
		p->how.aead = aead_best();
		return true;
	case 'u':
		a->unmended = true;
		return true;
	case 't':
		a->states = true;
		return true;
	case 'w':
		p->how.slow = atof(optarg);
		return true;
	default:
		return false;
	}
}

/* Runs the plan. Returns the exit status. */
static int run_plan(struct plan *plan, unsigned jobs, bool states)
{
	struct shared *sh =
	    mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t all;
	double took;

	if (sh == MAP_FAILED)
		abort();
	clock_gettime(CLOCK_MONOTONIC, &plan->start);
	sim_states_into(&sh->states);
	if (jobs > 1)
		in_parallel(plan, sh, jobs < JOBS_MAX ? jobs : JOBS_MAX);
	else
		run_job(plan, sh, 0);
	all = sh->passed + sh->failed;
	took = elapsed(&plan->start);
	sim_states_print(&sh->states, states);
	printf("%llu datagrams had several packets, %llu took a detour\n", (unsigned long long)sh->runs,
	    (unsigned long long)sh->detours);
	printf("%llu passed, %llu failed\n", (unsigned long long)sh->passed, (unsigned long long)sh->failed);
	printf("%llu seeds, %.1f seeds a second, %llu violations\n", (unsigned long long)all,
	    (double)all / (took > 0 ? took : 1), (unsigned long long)sh->failed);
	return sh->failed ? 1 : 0;
}

int main(int argc, char **argv)
{
	static const struct option opts[] = {{"seed", 1, 0, 's'}, {"seeds", 1, 0, 'n'},
	    {"seconds", 1, 0, 'S'}, {"from", 1, 0, 'f'}, {"jobs", 1, 0, 'j'}, {"faults", 1, 0, 'x'},
	    {"with", 1, 0, 'm'}, {"slow", 1, 0, 'w'}, {"hash", 0, 0, 'd'}, {"states", 0, 0, 't'},
	    {"packets", 1, 0, 'p'}, {"unmended", 0, 0, 'u'}, {"alone", 0, 0, 'a'}, {"aes", 0, 0, 'A'},
	    {"verbose", 0, 0, 'v'}, {"help", 0, 0, 'h'}, {0}};
	struct args a = {.plan = {.from = 1, .n = 100}, .jobs = 1};
	int c;

	/* The large tables of engines come zeroed from the kernel, page by page as they are used.
	 * Free memory would have to be cleared, and there is never so much of it in one piece. */
	mallopt(M_MMAP_THRESHOLD, 2 << 20);
	mallopt(M_TRIM_THRESHOLD, 2 << 20);
	setvbuf(stdout, NULL, _IOLBF, 0); /* the jobs share it */
	while ((c = getopt_long(argc, argv, "vh", opts, NULL)) != -1)
		if (!take_option(&a, c)) {
			if (optarg)
				fprintf(stderr, "rwysim: no such fault in `%s`; --help lists them\n", optarg);
			else
				help();
			return c == 'h' ? 0 : 2;
		}
	if (optind != argc) {
		fprintf(stderr, "rwysim: %s: expected an option; --help lists them\n", argv[optind]);
		return 2;
	}
	if (a.unmended)
		return run_unmended();
	if (a.one)
		return sim_run_seed(a.seed, faults_of(&a.plan, a.seed), &a.plan.how) ? 0 : 1;
	return run_plan(&a.plan, a.jobs, a.states);
}
