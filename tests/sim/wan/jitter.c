/* SPDX-License-Identifier: Apache-2.0 */
/* Jitter of a link; see jitter.h. */
#include "tests/sim/wan/jitter.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/rng.h"

#define SIGMAS 4.0 /* where netem's tables end */
/* Mean and standard deviation of a Pareto distribution with alpha 3 and least value 1. */
#define PARETO_MEAN 1.5
#define PARETO_DEV  0.8660254037844386

/* --- a recorded trace ----------------------------------------------------------------------------- */
static bool value_of(char *line, double *v, bool *none)
{
	char *end;

	line[strcspn(line, "#\r\n")] = 0;
	while (isspace((unsigned char)*line))
		line++;
	*none = !*line;
	if (*none)
		return true;
	*v = strtod(line, &end) * 1e3;
	while (isspace((unsigned char)*end))
		end++;
	return end != line && !*end && isfinite(*v) && *v >= 0 && *v <= 10e9;
}

size_t jitter_read(const char *path, double *out, char *err, size_t size)
{
	FILE *f = fopen(path, "r");
	char line[256];
	size_t n = 0;
	bool none;
	double v;

	if (!f) {
		snprintf(err, size, "jitter_trace: %.100s: %s", path, strerror(errno));
		return 0;
	}
	for (unsigned at = 1; n < JITTER_TRACE_MAX && fgets(line, sizeof(line), f); at++) {
		if (!value_of(line, &v, &none)) {
			snprintf(err, size, "jitter_trace: %.100s:%u: not a delay in microseconds", path, at);
			fclose(f);
			return 0;
		}
		if (none)
			continue;
		if (out)
			out[n] = v;
		n++;
	}
	fclose(f);
	if (!n)
		snprintf(err, size, "jitter_trace: %.100s: no delay in it", path);
	return n;
}

bool jitter_init(struct jitter *j, const struct scen *s, uint64_t *rng)
{
	char err[160];

	*j = (struct jitter){.dist = s->jitter_dist, .size = s->jitter};
	if (!*s->jitter_trace)
		return true;
	j->trace = malloc(JITTER_TRACE_MAX * sizeof(*j->trace));
	j->trace_n = j->trace ? jitter_read(s->jitter_trace, j->trace, err, sizeof(err)) : 0;
	if (!j->trace_n)
		return false;
	/* so that the two directions do not have equal values at once */
	j->at = rng_next(rng) % j->trace_n;
	return true;
}

void jitter_fini(struct jitter *j)
{
	free(j->trace);
	j->trace = NULL;
}

/* --- draws ---------------------------------------------------------------------------------------- */
static double normal(uint64_t *rng)
{
	double r = sqrt(-2 * log(rng_unit(rng)));

	return r * cos(2 * 3.14159265358979323846 * rng_unit(rng));
}

static double pareto(uint64_t *rng)
{
	return (pow(rng_unit(rng), -1.0 / 3) - PARETO_MEAN) / PARETO_DEV;
}

static double within(double x)
{
	return x > SIGMAS ? SIGMAS : x < -SIGMAS ? -SIGMAS : x;
}

rwy_dur jitter_next(struct jitter *j, rwy_dur delay, uint64_t *rng)
{
	double at = (double)delay;

	if (j->trace) {
		at += j->trace[j->at];
		j->at = j->at + 1 < j->trace_n ? j->at + 1 : 0;
		return (rwy_dur)at;
	}
	if (j->size <= 0)
		return delay;
	if (j->dist == JITTER_UNIFORM)
		return delay + rng_next(rng) % (rwy_dur)j->size;
	at += j->size * within(j->dist == JITTER_NORMAL ? normal(rng) : pareto(rng));
	return at > 0 ? (rwy_dur)at : 0;
}

double jitter_most(const struct scen *s)
{
	double most = s->jitter_dist == JITTER_UNIFORM ? s->jitter : SIGMAS * s->jitter;
	double *v;
	char err[160];
	size_t n;

	if (!*s->jitter_trace || !(v = malloc(JITTER_TRACE_MAX * sizeof(*v))))
		return most;
	n = jitter_read(s->jitter_trace, v, err, sizeof(err));
	for (size_t i = 0; i < n; i++)
		most = v[i] > most ? v[i] : most;
	free(v);
	return most;
}
