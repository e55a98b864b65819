/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much longer than the fixed delay a datagram takes, one draw each: uniform, normal or Pareto around the
 * delay as Linux netem has them, or the next value of a recorded trace. A draw knows nothing of the one
 * before. Order is the link's business (link.h).
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
	double *trace; /* ns, `trace_n` of them; NULL: none */
	size_t trace_n, at;
};

/* Reads a trace: one delay in microseconds a line, `#` begins a comment. Returns how many, 0 with one line in
 * err. `out` may be NULL: only checks. */
size_t jitter_read(const char *path, double *out, char *err, size_t size);
/* False: no memory, or the trace is gone. */
bool jitter_init(struct jitter *j, const struct scen *s, uint64_t *rng);
void jitter_fini(struct jitter *j);
/* The delay of the next datagram: `delay` with its jitter, never negative. */
rwy_dur jitter_next(struct jitter *j, rwy_dur delay, uint64_t *rng);
/* ns above the fixed delay that hardly any datagram exceeds. */
double jitter_most(const struct scen *s);

#endif
