/* SPDX-License-Identifier: Apache-2.0 */
/* What a run measured, the same for Roceway and for the reference models, and how it is shown. */
#ifndef SIM_WAN_STAT_H
#define SIM_WAN_STAT_H

#include <stdio.h>

#include "tests/sim/wan/change.h"
#include "tests/sim/wan/share.h"

struct result {
	/* completion times of the messages, ns */
	double *ct;
	uint64_t ct_n, ct_cap;
	/* since the warm-up ended */
	uint64_t first_bytes, extra_bytes; /* on the wire: data for the first time; data again and parity */
	uint64_t parity_bytes;             /* of extra_bytes */
	uint64_t packets, again, needless; /* data sent first, again, again although a copy arrives */
	uint64_t payload;                  /* bytes handed to the far host */
	rwy_dur span;                      /* they took so long */
	uint64_t duplicates;               /* handed over twice: never */
	/* whole run */
	uint64_t datagrams, events, hash;
	uint64_t held_max, custody_max; /* bytes at the receiver, packets of memory */
	uint64_t congest_begins;        /* the path became congested for good; for how long in all */
	rwy_dur congested;
	double wall;
	uint64_t violations;
	struct share share;
	struct change_result change[CHANGES_MAX];
	unsigned changes;
};

struct figures {
	double mean, p50, p99, p999, max; /* over the lossless mean when there is one, else us */
	double extra, goodput, goodput_share, needless;
};

void result_ct(struct result *r, rwy_dur ct);
void result_fini(struct result *r);
struct figures result_figures(const struct scen *s, const struct result *r, double lossless);
double result_mean(const struct result *r);
/* Share of the wire that is RoCE payload when every packet is full. */
double payload_share(const struct scen *s);

void show_table(FILE *f, const struct scen *s, const struct result *r, double lossless);
void show_json(FILE *f, const struct scen *s, const struct result *r, double lossless);
void show_csv(FILE *f, const struct scen *s, const struct result *r, double lossless, bool head);

#endif
