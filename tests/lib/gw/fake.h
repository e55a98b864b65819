/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A gateway without DPDK for tests of what its control thread does: workers with real engines and no ports.
 * Either nobody runs them - a call is done on the spot, and a worker is always at the newest generation - or
 * each has a thread that turns (fake_run).
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

#define FAKE_WORKERS 4
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
	/* what a test wants */
	bool hung;                         /* comes to nothing */
	bool late;                         /* does calls, but does not take up the newest set */
	unsigned hosts;                    /* so many times there are hosts left to forget */
	unsigned calls_ok;                 /* so many calls are done, then it hangs; 0: does not */
	void (*turn)(struct gw_worker *w); /* fake_run: what a turn does besides; set before */
	/* the calls of fake_run */
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
/* Looked at when a call is about to run, if set. */
extern void (*fake_on_call)(unsigned worker);
/* When a worker forgets hosts. */
extern void (*fake_on_clear)(unsigned worker, uint32_t index);

/* Configured and without workers: then gw_tenants_new, then fake_workers. */
void fake_new(unsigned workers);
void fake_workers(unsigned tunnels_of_last, struct eng_journal_entry *journal, uint32_t journal_n);
void fake_run(void (*turn)(struct gw_worker *w));
void fake_end(void);

/* A tenant: 10.1.0.0/24 behind VTEPs here, 10.2.0.0/24 and 10.3.0.0/24 behind tunnels 0 and 1. Its arrays are
 * constant. */
struct conf_tenant fake_tenant(const char *name, uint32_t vni);
/* A SEND of a host of this tenant, at this worker. */
void fake_send(struct gw_worker *w, uint16_t tenant, uint32_t qpn, uint32_t psn);

#endif
