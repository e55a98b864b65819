/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rwysim: two gateway engines, hosts and links in virtual time. Each seed draws a world (links, losses, ack
 * mode, queue pairs, faults) and a workload; at the end the hosts' memories must be what the operations say,
 * or the queue pair must have an error. A failing seed prints the command that repeats it.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/sim/explore.h"

/* Seeds that once failed, and what was wrong. They run first. */
static const struct {
	uint64_t seed;
	unsigned faults;
} regressions[] = {
    {569, F_REUSE}, /* of the first flight only the end arrived: congestion control took it for the path's
                       rate */
    {540, F_REUSE}, /* the same */
    {1534, 0},      /* the same */
    {1506, F_CRASH_NEAR}, /* the error for a host that cannot go back was wiped out by a fresh start */
    {2164, F_CRASH_FAR},  /* the same */
    {2228, F_CRASH_FAR},  /* the same */
    {1123, F_CRASH_NEAR}, /* the word to begin went down with a flow that the restarted gateway had refused */
    {1526, F_CRASH_NEAR}, /* the same */
    {39, F_CRASH_FAR},    /* the request that ends an idle host's QP came at a PSN it had seen */
};

static void help(void)
{
	printf(
	    "rwysim [--seeds N] [--from SEED] [--jobs J] | --seed SEED  [--faults MASK] [--slow TIMES] "
	    "[--verbose]\n"
	    "faults, as a sum; default: drawn from the seed\n"
	    "    1 outage of the WAN            2 the near gateway crashes    4 the far gateway crashes\n"
	    "    8 loss on the LANs            16 QPNs used again            32 little memory, long outage\n"
	    "   64 both gateways crash        128 a gateway stands still    256 a host dies\n");
}

/* A single fault, or two that meet, from the seed. */
static const unsigned kinds[] = {0, F_REUSE, F_LAN_LOSS, F_OUTAGE, F_CRASH_FAR, F_CRASH_NEAR, F_SQUEEZE,
    F_CRASH_BOTH, F_PAUSE, F_HOST, F_LAN_LOSS | F_OUTAGE, F_LAN_LOSS | F_CRASH_FAR, F_LAN_LOSS | F_CRASH_NEAR,
    F_LAN_LOSS | F_REUSE, F_PAUSE | F_OUTAGE, F_HOST | F_CRASH_FAR};
#define KINDS (sizeof(kinds) / sizeof(*kinds))

struct plan {
	uint64_t from, n;
	int faults; /* < 0: from the seed */
	struct how how;
};

struct sum {
	uint64_t passed, failed;
};

static unsigned faults_of(const struct plan *p, uint64_t seed)
{
	return p->faults >= 0 ? (unsigned)p->faults : kinds[seed % KINDS];
}

/* Every `jobs`-th seed, and of the seeds that once failed as well. */
static struct sum run_share(const struct plan *p, unsigned job, unsigned jobs)
{
	struct sum sum = {0};
	struct how how = p->how;

	for (unsigned i = job; i < sizeof(regressions) / sizeof(*regressions); i += jobs)
		if (p->faults < 0 || regressions[i].faults == (unsigned)p->faults)
			sim_run_seed(regressions[i].seed, regressions[i].faults, &how) ? sum.passed++
			                                                               : sum.failed++;
	for (uint64_t i = p->from + job; i < p->from + p->n; i += jobs) {
		how.quiet = sum.failed > 20;
		sim_run_seed(i, faults_of(p, i), &how) ? sum.passed++ : sum.failed++;
		if ((i - p->from) / jobs % 10000 == 9999 && !job)
			fprintf(stderr, "seed %llu\n", (unsigned long long)i);
	}
	return sum;
}

static struct sum in_parallel(const struct plan *p, unsigned jobs)
{
	struct sum all = {0}, one;
	int fd[2], status;

	if (pipe(fd) != 0)
		abort();
	fflush(stdout);
	for (unsigned k = 0; k < jobs; k++) {
		pid_t pid = fork();

		if (pid < 0)
			abort();
		if (pid)
			continue;
		one = run_share(p, k, jobs);
		fflush(stdout);
		_exit(write(fd[1], &one, sizeof(one)) == sizeof(one) ? 0 : 1);
	}
	close(fd[1]);
	while (read(fd[0], &one, sizeof(one)) == sizeof(one)) {
		all.passed += one.passed;
		all.failed += one.failed;
	}
	close(fd[0]);
	while (wait(&status) > 0)
		if (status) /* it died: whatever it ran is not passed */
			all.failed++;
	return all;
}

int main(int argc, char **argv)
{
	static const struct option opts[] = {{"seed", 1, 0, 's'}, {"seeds", 1, 0, 'n'}, {"from", 1, 0, 'f'},
	    {"jobs", 1, 0, 'j'}, {"faults", 1, 0, 'x'}, {"slow", 1, 0, 'w'}, {"verbose", 0, 0, 'v'},
	    {"help", 0, 0, 'h'}, {0}};
	struct plan plan = {.from = 1, .n = 100, .faults = -1};
	struct timespec start, end;
	struct sum sum;
	uint64_t seed = 0;
	unsigned jobs = 1;
	double took;
	bool one = false;
	int c;

	while ((c = getopt_long(argc, argv, "vh", opts, NULL)) != -1)
		switch (c) {
		case 's':
			seed = strtoull(optarg, NULL, 0);
			one = true;
			break;
		case 'n':
			plan.n = strtoull(optarg, NULL, 0);
			break;
		case 'f':
			plan.from = strtoull(optarg, NULL, 0);
			break;
		case 'j':
			jobs = (unsigned)strtoul(optarg, NULL, 0);
			break;
		case 'x':
			plan.faults = atoi(optarg);
			break;
		case 'v':
			plan.how.verbose = true;
			break;
		case 'w':
			plan.how.slow = atof(optarg);
			break;
		default:
			help();
			return c == 'h' ? 0 : 2;
		}
	if (one)
		return sim_run_seed(seed, faults_of(&plan, seed), &plan.how) ? 0 : 1;
	clock_gettime(CLOCK_MONOTONIC, &start);
	if (jobs > 1)
		sum = in_parallel(&plan, jobs);
	else
		sum = run_share(&plan, 0, 1);
	clock_gettime(CLOCK_MONOTONIC, &end);
	took = (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9;
	fprintf(stderr, "%.0f seeds a second\n", (double)(sum.passed + sum.failed) / (took > 0 ? took : 1));
	printf("%llu passed, %llu failed\n", (unsigned long long)sum.passed, (unsigned long long)sum.failed);
	return sum.failed ? 1 : 0;
}
