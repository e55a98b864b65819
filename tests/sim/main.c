/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rwysim: two gateway engines, hosts and links in virtual time. Each seed draws a world (links, losses, ack
 * mode, queue pairs, faults) and a workload; at the end the hosts' memories must be what the operations say,
 * or the queue pair must have an error. A failing seed prints the command that repeats it.
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
#include "tests/sim/states.h"

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
    {2005036, F_LAN_LOSS | F_CRASH_NEAR}, /* the NAK for a READ whose answer was lost named a late duplicate:
                                             the host had gone on and did not hear it */
    {2005051, F_LAN_LOSS | F_CRASH_FAR},  /* the same */
    {2005202, F_LAN_LOSS | F_CRASH_NEAR}, /* the first packet and the NAK that asked for it were lost: nobody
                                             began earlier */
    {2005095, F_LAN_LOSS | F_CRASH_NEAR}, /* the last ACK before the crash was lost: what it acknowledged came
                                             again, from the middle of a message, and was nobody's */
    {4036971, F_LAN_LOSS |
                  F_CRASH_FAR}, /* failed before the far gateway's word to begin: the error waited for it */
    {7403, F_LAN_LOSS | F_CRASH_FAR}, /* the same, and nobody knew yet whose queue pair the error was for */
    {2015467, F_LAN_LOSS | F_CRASH_FAR},
    {13, F_TENANTS | F_CHANGES}, /* accepted before the ack mode changed: never acknowledged */
    {22, F_TENANTS | F_CHANGES},
    {10033005, F_LAN_LOSS | F_REUSE}, /* the first packets of a new connection were lost, the rest taken for
                                         old ones that had arrived */
    {10054909, F_LAN_LOSS | F_REUSE}, /* the same */
    {10113247, F_HOST | F_CRASH_FAR}, /* requests that came while a host was asked, to be told the worst,
                                         ended the asking */
    {20111131, F_LAN_LOSS | F_CRASH_FAR}, /* the answers' flow of an earlier life came late, and took the
                                             place of the present one's: the answers in that never came */
    {20015766, F_SQUEEZE}, /* held back until an ACK crossed the host's retransmission, which was taken for a
                              new connection's, and an outage kept the far host from saying that it was not */
    {21203549, F_HOST | F_LAN_LOSS | F_REUSE}, /* the first ATOMIC of a new connection was answered with that
                                                  of one that had failed */
    {42003584, F_LAN_LOSS | F_REUSE | F_TENANTS | F_CHANGES}, /* the same, where the flow was refused */
    {21171757, F_LAN_LOSS | F_REUSE | F_TENANTS | F_CHANGES}, /* the near gateway had failed a connection;
                                                                 what the far one had of it was executed on
                                                                 the next queue pair of that number */
    {42002036, F_HOST | F_LAN_LOSS | F_REUSE},                /* the same */
    {21243039, F_HOST | F_CRASH_FAR | F_TENANTS | F_CHANGES}, /* an answer to a READ of before was taken for
                                                                 the one to the question where a host is */
    {60029587, F_REUSE | F_MOVES}, /* new queue pairs sooner than a round trip by the reliable carrier, which
                                      is longer than the path's: taken for the old ones */
    {60635208, F_LAN_LOSS | F_CRASH_NEAR}, /* the error was lost on the LAN, its host taken for a new one: the
                                       far host in error answered nothing, and nobody knew whose it was */
    {60436239, F_HOST | F_CRASH_FAR | F_TENANTS | F_CHANGES}, /* paired after it had failed, it took requests
                                                                 again, for nobody: they leaked */
    {60932231,
        F_LAN_LOSS | F_REUSE | F_HOST}, /* a new connection's first request came late, after what its host
                                           answered: it was taken for the old one's, an ATOMIC was not done */
    {60520948, F_REUSE | F_SQUEEZE}, /* a queue on the way back was taken for one of ours, and the rate became
                                        next to nothing: hosts' first answers came too late */
    {60562834, F_REUSE | F_SQUEEZE}, {60616654, F_REUSE | F_SQUEEZE},
    {60520447, F_REUSE | F_MOVES},   /* moves to the carrier and back began the wait for a lost datagram anew,
                                        each time */
    {80690218, F_REUSE | F_SQUEEZE}, /* a new connection's requests came while the last of the old one was in
                                        custody, far ahead of its: told what was missing, once, and from then
                                        on nobody asked whose they were */
    {80940562, F_REUSE | F_SQUEEZE}, /* the same */
    {80880995, F_LAN_LOSS | F_CRASH_FAR | F_TENANTS}, /* the host had said which PSN it expects, to a gateway
                                                         that then crashed, and did not answer the question
                                                         where it stands: what was lost was not told */
    {85, F_SLOW},        /* a host that still answered the READs of its other queue pairs was asked again */
    {94, F_SLOW},        /* the same */
    {700713, F_SQUEEZE}, /* what was acknowledged after an outage that lost its ACKs made the round trip of a
                            path that reorders 2 s long */
    {408, F_SLOW | F_LAN_LOSS | F_CRASH_NEAR}, /* half of a READ's answer went down with the near gateway, and
                                                  the other half was of no use to the next one */
};

static void help(void)
{
	printf(
	    "rwysim [--seeds N] [--seconds S] [--from SEED] [--jobs J] | --seed SEED\n"
	    "       [--faults MASK | --with MASK] [--slow TIMES] [--hash] [--states] [--verbose]\n"
	    "--seconds: N seeds, and more until S seconds are over\n"
	    "faults, as a sum; default: drawn from the seed; --with: and these\n"
	    "    1 outage of the WAN            2 the near gateway crashes    4 the far gateway crashes\n"
	    "    8 loss on the LANs            16 QPNs used again            32 little memory, long outage\n"
	    "   64 both gateways crash        128 a gateway stands still    256 a host dies\n"
	    "  512 tenants with the same addresses              1024 that change, go and come back (with "
	    "512)\n"
	    " 2048 the tunnel moves to a reliable carrier and back, and that breaks\n"
	    " 4096 ATOMICs and small READs in masses\n"
	    " 8192 hosts are slow, and asked for much\n");
}

/* A single fault, or two that meet, from the seed. */
static const unsigned kinds[] = {0, F_REUSE, F_LAN_LOSS, F_OUTAGE, F_CRASH_FAR, F_CRASH_NEAR, F_SQUEEZE,
    F_CRASH_BOTH, F_PAUSE, F_HOST, F_LAN_LOSS | F_OUTAGE, F_LAN_LOSS | F_CRASH_FAR, F_LAN_LOSS | F_CRASH_NEAR,
    F_LAN_LOSS | F_REUSE, F_PAUSE | F_OUTAGE, F_HOST | F_CRASH_FAR, F_SQUEEZE | F_REUSE,
    F_HOST | F_LAN_LOSS | F_REUSE, F_MASS, F_MASS | F_LAN_LOSS, F_MASS | F_CRASH_NEAR};
#define KINDS (sizeof(kinds) / sizeof(*kinds))

#define REGRESSIONS (sizeof(regressions) / sizeof(*regressions))
#define JOBS_MAX    256

struct plan {
	uint64_t from, n;
	double seconds; /* further seeds until then */
	struct timespec start;
	int faults;    /* < 0: from the seed */
	unsigned with; /* and these */
	struct how how;
};

/* What the jobs, processes of ours, share. */
struct shared {
	_Atomic uint64_t next; /* work nobody has taken yet: first the seeds that once failed */
	_Atomic uint64_t passed, failed;
	struct {
		uint64_t seed;
		unsigned faults;
	} at[JOBS_MAX]; /* what each job runs */
	struct sim_states states;
};

static unsigned faults_of(const struct plan *p, uint64_t seed)
{
	if (p->faults >= 0)
		return (unsigned)p->faults;
	unsigned kind = kinds[seed % KINDS];
	/* New connections of hosts that try for half a second: not where a carrier may break and its sender
	 * not know for as long, nor where other tenants may be guaranteed more than the path has. */
	bool calm = kind == (F_SQUEEZE | F_REUSE);

	return kind | (seed / KINDS % 4 ? 0 : F_TENANTS) | (seed / KINDS % 8 || calm ? 0 : F_CHANGES) |
	       (seed / KINDS % 6 == 3 && !calm ? F_MOVES : 0) |
	       (seed / KINDS % 5 == 2 && !(kind & F_SQUEEZE) ? F_SLOW : 0) | p->with;
}

static void run_one(const struct plan *p, struct shared *sh, unsigned job, uint64_t seed, unsigned faults)
{
	struct how how = p->how;

	sh->at[job].seed = seed;
	sh->at[job].faults = faults;
	how.quiet = sh->failed > 20;
	if (sim_run_seed(seed, faults, &how))
		sh->passed++;
	else
		sh->failed++;
}

static double elapsed(const struct timespec *start)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - start->tv_sec) + (double)(now.tv_nsec - start->tv_nsec) / 1e9;
}

static bool goes_on(const struct plan *p, uint64_t i)
{
	return i < REGRESSIONS + p->n || (p->seconds > 0 && elapsed(&p->start) < p->seconds);
}

/* A seed at a time, so that a slow one keeps nobody waiting. */
static void run_job(const struct plan *p, struct shared *sh, unsigned job)
{
	uint64_t i;

	while (goes_on(p, i = sh->next++)) {
		uint64_t seed = p->from + i - REGRESSIONS;

		if (i >= REGRESSIONS) {
			run_one(p, sh, job, seed, faults_of(p, seed));
			if (i % 10000 == 9999)
				fprintf(stderr, "seed %llu, %llu failed\n", (unsigned long long)seed,
				    (unsigned long long)sh->failed);
		} else if (p->faults < 0 || regressions[i].faults == (unsigned)p->faults) {
			run_one(p, sh, job, regressions[i].seed, regressions[i].faults);
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
	pid_t pid[JOBS_MAX], ended;
	int status;

	for (unsigned k = 0; k < jobs; k++)
		pid[k] = start_job(p, sh, k);
	while ((ended = wait(&status)) > 0)
		for (unsigned k = 0; status && k < jobs; k++)
			if (pid[k] == ended) { /* it died, and another goes on */
				sh->failed++;
				printf("FAIL seed=%llu faults=%u: died, status %#x\n",
				    (unsigned long long)sh->at[k].seed, sh->at[k].faults, status);
				pid[k] = start_job(p, sh, k);
			}
}

int main(int argc, char **argv)
{
	static const struct option opts[] = {{"seed", 1, 0, 's'}, {"seeds", 1, 0, 'n'},
	    {"seconds", 1, 0, 'S'}, {"from", 1, 0, 'f'}, {"jobs", 1, 0, 'j'}, {"faults", 1, 0, 'x'},
	    {"with", 1, 0, 'm'}, {"slow", 1, 0, 'w'}, {"hash", 0, 0, 'd'}, {"states", 0, 0, 't'},
	    {"verbose", 0, 0, 'v'}, {"help", 0, 0, 'h'}, {0}};
	struct plan plan = {.from = 1, .n = 100, .faults = -1};
	struct shared *sh;
	uint64_t seed = 0, all;
	unsigned jobs = 1;
	double took;
	bool one = false, states = false;
	int c;

	/* The large tables of engines come from the kernel, zeroed page by page as they are used, and not
	 * from free memory, which would have to be cleared: there is never so much of it in a row. */
	mallopt(M_MMAP_THRESHOLD, 2 << 20);
	mallopt(M_TRIM_THRESHOLD, 2 << 20);
	setvbuf(stdout, NULL, _IOLBF, 0); /* jobs share it */
	while ((c = getopt_long(argc, argv, "vh", opts, NULL)) != -1)
		switch (c) {
		case 's':
			seed = strtoull(optarg, NULL, 0);
			one = true;
			break;
		case 'n':
			plan.n = strtoull(optarg, NULL, 0);
			break;
		case 'S':
			plan.seconds = atof(optarg);
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
		case 'm':
			plan.with = (unsigned)strtoul(optarg, NULL, 0);
			break;
		case 'v':
			plan.how.verbose = true;
			break;
		case 'd':
			plan.how.hash = true;
			break;
		case 't':
			states = true;
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
	clock_gettime(CLOCK_MONOTONIC, &plan.start);
	sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (sh == MAP_FAILED)
		abort();
	sim_states_into(&sh->states);
	if (jobs > 1)
		in_parallel(&plan, sh, jobs < JOBS_MAX ? jobs : JOBS_MAX);
	else
		run_job(&plan, sh, 0);
	all = sh->passed + sh->failed;
	took = elapsed(&plan.start);
	sim_states_print(&sh->states, states);
	printf("%llu passed, %llu failed\n", (unsigned long long)sh->passed, (unsigned long long)sh->failed);
	printf("%llu seeds, %.1f seeds a second, %llu violations\n", (unsigned long long)all,
	    (double)all / (took > 0 ? took : 1), (unsigned long long)sh->failed);
	return sh->failed ? 1 : 0;
}
