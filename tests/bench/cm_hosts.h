/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Model hosts that speak CM, at both sites of a lab of relays: four of them at A connect to those at
 * B through the listen map. Each connection is set up, carries one WRITE, and ends, or stays.
 */
#ifndef TESTS_BENCH_CM_HOSTS_H
#define TESTS_BENCH_CM_HOSTS_H

#include "tests/bench/fp_lab.h"

#define CMH_HOSTS 4       /* of a site */
#define CMH_PORT  7000    /* of relay A, for the first host of B; the others follow */
#define CMH_CONNS 131072u /* in the life of the program */

/* Milliseconds since their connection's REQ. */
struct cmh_series {
	double v[CMH_CONNS];
	unsigned n;
};

struct cmh_stats {
	unsigned began, up, written, ended, refused; /* connections */
	bool keep;                                   /* set by the caller: they stay after the WRITE */
	struct cmh_series setup, first;              /* until the REP is at A; until the WRITE is at B */
};

/* The lab is the caller's and outlives the hosts. What is returned is theirs. */
struct cmh_stats *cmh_begin(struct fp_lab *l);
/* The next connection begins: its REQ goes to relay A. */
void cmh_ask(void);
/* The hosts of a site read what their relay sent them, and answer. */
void cmh_read(enum fp_site s);

#endif
