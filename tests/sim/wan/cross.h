/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cross traffic over the same bottleneck: classes of flows ("cubic:4,bbr:2"), what each got, and
 * the fair share: an equal part for every flow, where one of our tunnels counts as one flow.
 */
#ifndef SIM_WAN_CROSS_H
#define SIM_WAN_CROSS_H

#include "tests/sim/wan/scen.h"
#include "tests/sim/wan/tcp.h"

#define CROSS_CLASSES 4
#define CROSS_FLOWS   256

struct cross_class {
	const struct cc_ops *ops;
	unsigned n;
};

/* Reads "cubic:4,bbr" into v and returns the number of classes; 0: the word is empty or wrong, at
 * *bad. */
unsigned cross_parse(const char *word, struct cross_class *v, const char **bad);

struct cross {
	unsigned n;
	struct tcp *flow;
	rwy_time next;
	unsigned next_of;
};

/* False: no memory. `start`: time 0 of the scenario. */
bool cross_init(struct cross *c, const struct scen *s, struct line *line, rwy_time start, uint64_t seed);
void cross_fini(struct cross *c);
void cross_run(struct cross *c); /* executes the next event */
uint64_t cross_passed(const struct cross *c);

#endif
