/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A path that changes during a run: at given times its round trip, rate, loss or jitter change. For
 * each change it measures the time until the goodput reaches nine tenths of the new path, and the
 * share of the new path from then on.
 */
#ifndef SIM_WAN_CHANGE_H
#define SIM_WAN_CHANGE_H

#include <stdio.h>

#include "rwy/time.h"
#include "tests/sim/wan/link.h"
#include "tests/sim/wan/scen.h"

#define CHANGES_MAX 8
#define CHANGE_BIN  (50 * RWY_MS)

struct change {
	double at;     /* ns since the beginning */
	unsigned path; /* which of the paths */
	struct scen s; /* its scenario from then on; only keys of the path differ */
	double carry;  /* what all paths carry together from then on, bit/s */
};

struct changes {
	struct change c[CHANGES_MAX];
	unsigned n, done;
	uint64_t *bin; /* payload bytes that reached the far host in each CHANGE_BIN */
	/* bytes that the hosts would have given; NULL: as much as the path carries */
	uint64_t *want;
	size_t bins;
};

/* Reads "3s:rtt=60ms,loss=1%/6s:path=1,rtt=30ms", each change relative to the state before it.
 * False: err has one line. */
bool change_parse(const struct scen *s, struct change *out, unsigned *n, char *err, size_t size);
/* The largest rate of all paths together in any state, bit/s, and the longest round trip, ns. */
void change_largest(const struct scen *s, double *rate, double *rtt);

/* False: no memory. */
bool changes_init(struct changes *c, const struct scen *s, rwy_dur all);
void changes_fini(struct changes *c);
/* The time of the next change since the beginning; RWY_NEVER: none. */
rwy_dur changes_next(const struct changes *c);
/* Makes the next change on both links of its path. */
void changes_make(struct changes *c, struct link (*path)[2]);
void changes_count(struct changes *c, uint64_t bytes, rwy_dur at);
void changes_wanted(struct changes *c, uint64_t bytes, rwy_dur at);

/* The outcome of a change. back_s < 0: the goodput did not recover before the next change or the
 * end. */
struct change_result {
	double at_s, back_s, share;
	double rtt_ms, rate_bps, loss;
};
/* Fills the results and returns how many. `end`: duration of the run. */
unsigned changes_results(const struct changes *c, rwy_dur end, struct change_result *out);

#endif
