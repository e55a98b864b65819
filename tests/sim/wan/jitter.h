/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jitter: how much longer than the fixed delay a datagram takes, one independent draw each. It is
 * uniform, normal or Pareto around the delay, as in Linux netem, or the next value of a recorded
 * trace. link.h decides about order.
 */
#ifndef SIM_WAN_JITTER_H
#define SIM_WAN_JITTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rwy/time.h"
#include "tests/sim/wan/scen.h"

#define JITTER_TRACE_MAX 65536

struct jitter {
	enum scen_jitter dist;
	double size;   /* ns */
	double *trace; /* ns, `trace_n` values; NULL: none */
	size_t trace_n, at;
};

/* Reads a trace: one delay in microseconds per line; `#` begins a comment. Returns how many; 0: err
 * has one line. `out` may be NULL, to check the file only. */
size_t jitter_read(const char *path, double *out, char *err, size_t size);
/* False: no memory, or the trace cannot be read. */
bool jitter_init(struct jitter *j, const struct scen *s, uint64_t *rng);
void jitter_fini(struct jitter *j);
/* The delay of the next datagram: `delay` with jitter, never negative. */
rwy_dur jitter_next(struct jitter *j, rwy_dur delay, uint64_t *rng);
/* Ns above the fixed delay that hardly any datagram exceeds. */
double jitter_most(const struct scen *s);

#endif
