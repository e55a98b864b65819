/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/analyze/hist.h"

/* The octave is the highest bit, the step the four bits behind it. */
static unsigned bucket_of(uint64_t v)
{
	unsigned octave, i;

	if (v < AN_HIST_STEPS)
		return (unsigned)v;
	octave = 63u - (unsigned)__builtin_clzll(v);
	i = (octave - 3) * AN_HIST_STEPS + (unsigned)(v >> (octave - 4) & (AN_HIST_STEPS - 1));
	return i < AN_HIST_OCTAVES * AN_HIST_STEPS ? i : AN_HIST_OCTAVES * AN_HIST_STEPS - 1;
}

/* The middle of a bucket. */
static rwy_dur value_of(unsigned i)
{
	unsigned octave = i / AN_HIST_STEPS + 3;

	if (i < AN_HIST_STEPS)
		return i;
	return (rwy_dur)(((uint64_t)(AN_HIST_STEPS + i % AN_HIST_STEPS) << (octave - 4)) +
	                 ((1ull << (octave - 4)) >> 1));
}

void an_hist_add(struct an_hist *h, rwy_dur d)
{
	if (!h->n || d < h->min)
		h->min = d;
	if (!h->n || d > h->max)
		h->max = d;
	h->n++;
	h->sum += (double)d;
	h->bucket[bucket_of((uint64_t)d)]++;
}

rwy_dur an_hist_quantile(const struct an_hist *h, double q)
{
	uint64_t rank, seen = 0;

	if (!h->n)
		return 0;
	rank = (uint64_t)(q * (double)h->n);
	if (rank >= h->n)
		return h->max;
	for (unsigned i = 0; i < AN_HIST_OCTAVES * AN_HIST_STEPS; i++) {
		seen += h->bucket[i];
		if (seen > rank) {
			rwy_dur v = value_of(i);

			return v < h->min ? h->min : v > h->max ? h->max : v;
		}
	}
	return h->max;
}

rwy_dur an_hist_mean(const struct an_hist *h)
{
	return h->n ? (rwy_dur)(h->sum / (double)h->n) : 0;
}
