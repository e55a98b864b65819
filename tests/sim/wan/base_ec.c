/* SPDX-License-Identifier: Apache-2.0 */
/* Reference: fixed EC(32,8) over consecutive packets, with selective repeat for the rest. */
#include <math.h>

#include "tests/sim/wan/base.h"
#include "tests/sim/wan/loss.h"

#define K 32
#define M 8

/* A block of k packets and its parity. Returns when the receiver has all of it; < 0: *missing
 * packets are lost. */
static double block(struct wire *w, struct result *r, uint64_t k, uint64_t *missing)
{
	uint64_t m = (k * M + K - 1) / K, got = 0, data = 0;
	double whole = -1;

	for (uint64_t i = 0; i < k + m; i++) {
		bool lost = loss_next(w->loss);

		w->at += w->per;
		r->datagrams++;
		got += !lost;
		data += !lost && i < k;
		if (got == k && whole < 0)
			whole = w->at + w->rtt / 2;
	}
	r->packets += k;
	r->first_bytes += (uint64_t)((double)k * w->packet);
	r->extra_bytes += (uint64_t)((double)m * w->packet);
	r->parity_bytes += (uint64_t)((double)m * w->packet);
	*missing = k - data;
	return whole;
}

/* Repeats in rounds of one round trip until all have arrived. */
static double repeat(struct wire *w, struct result *r, uint64_t missing)
{
	double done = 0;

	while (missing) {
		uint64_t left = 0;

		base_wait(w, w->at + w->rtt);
		for (; missing; missing--) {
			w->at += w->per;
			r->datagrams++;
			r->again++;
			r->extra_bytes += (uint64_t)w->packet;
			if (loss_next(w->loss))
				left++;
			else
				done = w->at + w->rtt / 2;
		}
		missing = left;
	}
	return done;
}

static double message(
    struct wire *w, const struct scen *s, struct result *r, uint64_t n, double until, uint64_t *have)
{
	uint64_t bad = 0;
	double done = 0;

	while (n && w->at + w->rtt / 2 < until) {
		uint64_t k = n < K ? n : K, missing;
		double whole = block(w, r, k, &missing);

		if (whole < 0)
			bad += missing;
		else
			done = whole;
		*have += whole < 0 ? k - missing : k;
		n -= k;
	}
	if (bad && until == HUGE_VAL) {
		*have += bad;
		done = repeat(w, r, bad);
	}
	return done;
}

void run_ec(const struct scen *s, struct result *r)
{
	base_run(s, r, message);
}
