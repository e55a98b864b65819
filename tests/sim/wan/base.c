/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the reference models: the wire, the messages, the counts. */
#include <math.h>

#include "tests/sim/wan/base.h"
#include "tests/sim/wan/loss.h"
#include "tests/sim/wan/wire.h"

void base_wait(struct wire *w, double until)
{
	if (until <= w->at)
		return;
	loss_idle(w->loss, (until - w->at) / w->per);
	w->at = until;
}

void base_run(const struct scen *s, struct result *r, base_message *one)
{
	uint64_t seed = s->seed, have = 0, n = scen_packets(s);
	struct loss loss;
	struct wire w = {
	    .rtt = s->rtt, .loss = &loss, .packet = s->pmtu + INNER_HEAD + WAN_DATA_HEAD + s->overhead};

	w.per = w.packet * 8e9 / s->rate;
	/* as link_init() does for this link */
	uint64_t link_seed = rng_next(&seed);

	loss_init(&loss, s->loss, s->burst, rng_next(&link_seed));
	if (s->rtts > 0) {
		double until = s->rtts * s->rtt;

		one(&w, s, r, UINT64_MAX / 2, until, &have);
		r->payload = have * (uint64_t)s->pmtu;
		r->span = (rwy_dur)(until - s->rtt / 2);
	}
	for (uint64_t i = 0; s->rtts <= 0 && i < (uint64_t)s->messages; i++) {
		double begin = w.at, end = one(&w, s, r, n, HUGE_VAL, &have);

		result_ct(r, (rwy_dur)(end - begin));
		base_wait(&w, end + s->rtt / 2); /* the sender learns of it */
		r->payload += (uint64_t)s->size;
		r->span = (rwy_dur)w.at;
	}
	r->events = r->datagrams;
}
