/* SPDX-License-Identifier: Apache-2.0 */
/* rwyperf: queue pairs of Soft-RoCE hosts as perftest drives them, over two gateways or none. */
#ifndef TESTS_SIM_PERF_PERF_H
#define TESTS_SIM_PERF_PERF_H

#include "tests/lib/rc_host.h"
#include "tests/sim/world_int.h"

#define PERF_QPS_MAX 256
#define PERF_MTU     1024u /* Soft-RoCE's over Ethernet frames of 1500 bytes */
/* of a packet on a host's link besides its payload: Ethernet with preamble and gap, IPv4, UDP, BTH,
 * ICRC */
#define PERF_HEADERS 90u

enum perf_mode { PERF_NATIVE, PERF_ROCEWAY };
enum perf_op { PERF_READ, PERF_WRITE, PERF_SEND };

/* What the command line says: numbers as tests/sim/dc/words.h stores them; times in ns. */
struct perf_scen {
	double seed, rtt, loss, jitter, qps, size, messages, rate, wan, window, rd_max, timeout, queue;
	double time, skip;          /* 0: until all messages are done; what is not measured before */
	double stalls, stall;       /* how often a second a gateway stands still, and how long at most */
	double pauses, pause;       /* the same of host A */
	double change, rtt2, loss2; /* another path from then on; 0: none */
	unsigned op, mode;          /* enum perf_op, enum perf_mode */
	char cc[16];
};

struct perf {
	struct perf_scen s;
	struct world *w; /* mode native: its links, clock and random numbers alone are used */
	struct rc_host h[PERF_QPS_MAX][2];
	uint8_t *mem[PERF_QPS_MAX][2];
	uint64_t left;    /* operations not completed */
	unsigned failed;  /* operations that ended with an error */
	bool whole;       /* all are done; with `time` also when it is over */
	uint64_t packets; /* of payload that arrived in the measured time */
	rwy_time began, ended;
	struct sim_rng rng; /* of stalls and pauses */
	rwy_time stall_at;  /* the next one of a gateway; RWY_NEVER: there are none */
	rwy_time pause_at;  /* the same of host A */
	rwy_time away;      /* end of its latest pause */
};

/* Runs the scenario p->s. False: a message failed, was not done, or its bytes are wrong. */
bool perf_run(struct perf *p);
void perf_free(struct perf *p);
/* The time that the hosts' link needs for what was measured, and one round trip. */
double perf_line_seconds(const struct perf *p);
/* Requests of host A that it sent again. */
unsigned perf_resent(const struct perf *p);

#endif
