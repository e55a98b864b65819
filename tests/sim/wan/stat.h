/* SPDX-License-Identifier: Apache-2.0 */
/* The measurements of a run, the same for Roceway and for the reference models, and their
 * output. */
#ifndef SIM_WAN_STAT_H
#define SIM_WAN_STAT_H

#include <stdio.h>

#include "tests/sim/wan/change.h"
#include "tests/sim/wan/share.h"
#include "wan/wan.h"

struct result {
	/* Completion times of the messages, ns. */
	double *ct;
	uint64_t ct_n, ct_cap;
	/* Since the end of the warm-up. */
	/* on the wire: data sent first; data sent again, and parity */
	uint64_t first_bytes, extra_bytes;
	uint64_t parity_bytes; /* part of extra_bytes */
	/* data sent first; sent again; sent again although a copy arrives */
	uint64_t packets, again, needless;
	uint64_t payload;    /* bytes delivered to the far host */
	rwy_dur span;        /* the time that this took */
	rwy_dur stall;       /* longest time in which the far host got nothing */
	uint64_t duplicates; /* delivered twice, which must not happen */
	/* The complete run: */
	uint64_t datagrams, events, hash;
	uint64_t held_max, custody_max; /* bytes at the receiver; packets of memory */
	uint64_t congest_begins;        /* times that the path became congested; how long in all */
	rwy_dur congested;
	struct wan_path_stats path[PATHS_MAX]; /* end 0's, when all had arrived */
	uint64_t detoured;                     /* datagrams that carried data by the reliable carrier */
	double wall;
	uint64_t violations;
	struct share share;
	struct change_result change[CHANGES_MAX];
	unsigned changes;
};

struct figures {
	/* relative to the lossless mean if there is one, else us */
	double mean, p50, p99, p999, max;
	double extra, goodput, goodput_share, needless;
};

void result_ct(struct result *r, rwy_dur ct);
void result_fini(struct result *r);
struct figures result_figures(const struct scen *s, const struct result *r, double lossless);
double result_mean(const struct result *r);
/* The share of the wire that is RoCE payload if every packet is full. */
double payload_share(const struct scen *s);

void show_table(FILE *f, const struct scen *s, const struct result *r, double lossless);
void show_json(FILE *f, const struct scen *s, const struct result *r, double lossless);
void show_csv(FILE *f, const struct scen *s, const struct result *r, double lossless, bool head);

#endif
