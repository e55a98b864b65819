/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The running emulator: two interfaces, two directions, and the loop that moves frames between them
 * on time.
 */
#ifndef WANEM_RUN_H
#define WANEM_RUN_H

#include "tools/wanem/hist.h"
#include "tools/wanem/line.h"
#include "tools/wanem/link.h"
#include "tools/wanem/netif.h"

#include <signal.h>
#include <stdio.h>

#define WANEM_COALESCE_AUTO UINT64_MAX

struct wanem_ctl;

struct wanem_dir {
	const char *name; /* "a-to-b" or "b-to-a" */
	struct wanem_netif *from, *to;
	struct wanem_link link;
	struct wanem_line line;
	struct wanem_hist late;                /* departure minus due time, ns */
	uint64_t last_in;                      /* arrival times do not go back */
	struct wanem_pkt pend[WANEM_TX_BATCH]; /* due, not yet accepted by the kernel */
	unsigned pend_head, pend_count;
	bool is_blocked; /* the kernel's send buffer is full */
};

struct wanem {
	struct wanem_netif nif[2];
	struct wanem_dir dir[2]; /* a-to-b, b-to-a */
	struct wanem_ctl *ctl;   /* NULL: no control socket */
	FILE *pcap;              /* NULL: no capture */
	bool pcap_failed;        /* it could not be written: it has ended */
	uint64_t seed;
	uint64_t coalesce;       /* ns that frames gather before a wake-up; or ..._AUTO */
	uint64_t stats_interval; /* ns, 0: none */
	uint64_t started;
};

/*
 * Runs until *stop is set by a signal handler; the signals are blocked but while waiting, when
 * `mask` is in force. 0, or -1 and a sentence if an interface is gone.
 */
int wanem_run(
    struct wanem *w, const volatile sig_atomic_t *stop, const sigset_t *mask, struct wanem_err *err);

#endif
