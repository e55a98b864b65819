/* SPDX-License-Identifier: Apache-2.0 */
/* Reference: selective repeat with one round trip from a loss to its repair, the tail included. */
#include <math.h>
#include <stdlib.h>

#include "tests/sim/wan/base.h"
#include "tests/sim/wan/loss.h"

/* Times at which repairs may go, oldest first. Repairs of repairs come later. */
struct fifo {
	double *v;
	uint64_t head, tail, mask;
};

static void push(struct fifo *f, double at)
{
	if (f->tail - f->head > f->mask) {
		uint64_t cap = (f->mask + 1) * 2;
		double *v = malloc(cap * sizeof(*v));

		if (!v)
			abort();
		for (uint64_t i = f->head; i != f->tail; i++)
			v[i & (cap - 1)] = f->v[i & f->mask];
		free(f->v);
		f->v = v;
		f->mask = cap - 1;
	}
	f->v[f->tail++ & f->mask] = at;
}

static double message(
    struct wire *w, const struct scen *s, struct result *r, uint64_t n, double until, uint64_t *have)
{
	struct fifo again = {.v = malloc(64 * sizeof(double)), .mask = 63};
	double done = 0;

	if (!again.v)
		abort();
	while ((n || again.head != again.tail) && w->at + w->rtt / 2 < until) {
		bool ready = again.head != again.tail && again.v[again.head & again.mask] <= w->at;

		if (!ready && !n) {
			base_wait(w, again.v[again.head & again.mask]);
			continue;
		}
		w->at += w->per;
		r->datagrams++;
		if (ready) {
			again.head++;
			r->again++;
			r->extra_bytes += (uint64_t)w->packet;
		} else {
			n--;
			r->packets++;
			r->first_bytes += (uint64_t)w->packet;
		}
		if (loss_next(w->loss)) {
			push(&again, w->at + w->rtt);
		} else {
			++*have;
			done = w->at + w->rtt / 2;
		}
	}
	free(again.v);
	return done;
}

void run_sr(const struct scen *s, struct result *r)
{
	base_run(s, r, message);
}
