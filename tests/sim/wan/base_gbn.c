/* SPDX-License-Identifier: Apache-2.0 */
/* Reference: go-back-N end to end, as RoCE NICs do without a gateway. */
#include <math.h>

#include "tests/sim/wan/base.h"
#include "tests/sim/wan/loss.h"

static double message(
    struct wire *w, const struct scen *s, struct result *r, uint64_t n, double until, uint64_t *have)
{
	/* next: packet that the receiver expects; sent: end of those ever sent */
	uint64_t next = 0, sent = 0;
	double done = 0;

	while (next < n && w->at + w->rtt / 2 < until) {
		bool gap = false;
		double back = HUGE_VAL; /* when the NAK arrives */
		uint64_t i = next;

		for (; i < n && w->at < back && w->at + w->rtt / 2 < until; i++) {
			bool lost = loss_next(w->loss);

			w->at += w->per;
			r->datagrams++;
			if (i < sent) {
				r->again++;
				r->extra_bytes += (uint64_t)w->packet;
			} else {
				sent = i + 1;
				r->packets++;
				r->first_bytes += (uint64_t)w->packet;
			}
			if (lost) {
				gap = true;
			} else if (!gap) {
				next = i + 1;
				++*have;
				done = w->at + w->rtt / 2;
			} else {
				r->needless++;
				if (back == HUGE_VAL)
					back = w->at + w->rtt;
			}
		}
		if (next < n)
			base_wait(w, back != HUGE_VAL ? back : w->at + s->timeout);
	}
	return done;
}

void run_gbn(const struct scen *s, struct result *r)
{
	base_run(s, r, message);
}
