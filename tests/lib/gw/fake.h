/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A gateway without DPDK, to test its control thread: workers with real engines and no ports.
 * Either no thread runs them (a call is executed at once, and a worker always runs the newest
 * generation), or each worker has a thread that takes turns (fake_run()).
 */
#ifndef TESTS_LIB_GW_FAKE_H
#define TESTS_LIB_GW_FAKE_H

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gateway/control/tenants.h"

#define FAKE_TUNNELS 2
#define FAKE_RATE    ((uint64_t)1000000000) /* bytes a second, tunnel 0; of tunnel 1 it is not known */
#define FAKE_CUSTODY ((uint64_t)40 << 20)   /* of one worker */

struct gw_worker {
	struct gw_app *app;
	unsigned idx;
	struct eng *eng;
	struct gw_tenant_count *tenants;
	const struct tenant_set *ts;
	_Atomic uint64_t ts_gen;
	_Atomic uint64_t turns;
	uint64_t bufs;
	/* Behaviour for tests. */
	bool hung;                         /* comes to nothing */
	bool late;                         /* executes calls, but keeps its set */
	unsigned hosts;                    /* number of times that hosts are left to forget */
	unsigned calls_ok;                 /* calls before it hangs; 0: it does not */
	void (*turn)(struct gw_worker *w); /* fake_run(): called in each turn; set before */
	/* Calls of fake_run(). */
	pthread_t thread;
	pthread_mutex_t lock;
	void (*fn)(struct eng *e, void *arg);
	void *arg;
	_Atomic int state;
};

struct fake {
	struct gw_app app;
	struct conf conf;
	bool running;
	_Atomic bool stop;
};
extern struct fake fake;
/* Called before a call is executed; may be NULL. */
extern void (*fake_on_call)(unsigned worker);
/* Called when a worker forgets hosts. */
extern void (*fake_on_clear)(unsigned worker, uint32_t index);

/* Makes a configured gateway without workers; then call gw_tenants_new() and fake_workers(). */
void fake_new(unsigned workers);
void fake_workers(unsigned tunnels_of_last, struct eng_journal_entry *journal, uint32_t journal_n);
void fake_run(void (*turn)(struct gw_worker *w));
void fake_end(void);

/* A tenant with 10.1.0.0/24 behind VTEPs at this site, 10.2.0.0/24 and 10.3.0.0/24 behind tunnels 0
 * and 1. Its arrays are constant. */
struct conf_tenant fake_tenant(const char *name, uint32_t vni);
/* A SEND of a host of this tenant, at this worker. */
void fake_send(struct gw_worker *w, uint16_t tenant, uint32_t qpn, uint32_t psn);

#endif
