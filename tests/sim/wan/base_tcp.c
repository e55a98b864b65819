/* SPDX-License-Identifier: Apache-2.0 */
/* Reference: one TCP connection. Its payload is counted like ours: what full RoCE packets would
 * carry. */
#include <stdlib.h>

#include "tests/sim/wan/base.h"
#include "tests/sim/wan/tcp.h"

#define TCP_WIRE 38 /* preamble 8, Ethernet 14, FCS 4, gap 12 */

void run_tcp(const struct scen *s, struct result *r, const struct cc_ops *ops)
{
	static struct tcp f;
	uint64_t seed = s->seed, before = 0, sent = 0;
	struct line line = {.ns_byte = 8e9 / s->rate, .queue = s->queue, .mark = s->mark, .rng = ~seed};
	struct tcp_cfg c = {.ops = ops,
	    .line = &line,
	    .rtt = (rwy_dur)s->rtt,
	    .loss = s->loss,
	    .burst = s->burst,
	    .mtu = (uint32_t)s->cross_mtu,
	    .overhead = TCP_WIRE,
	    .start = RWY_SEC,
	    .stop = RWY_NEVER,
	    .seed = rng_next(&seed)};
	rwy_time from = c.start + (rwy_dur)(s->skip * s->rtt), to = c.start + (rwy_dur)(s->rtts * s->rtt);

	if (!tcp_init(&f, &c))
		abort();
	while (f.next < from)
		tcp_run(&f);
	before = f.passed;
	sent = f.sent;
	r->again = f.lost;
	while (f.next < to)
		tcp_run(&f);
	r->span = to - from;
	r->payload = (uint64_t)((double)(f.passed - before) * payload_share(s));
	r->datagrams = r->events = f.sent;
	r->again = f.lost - r->again;
	r->packets = f.sent - sent - r->again;
	r->first_bytes = r->packets * (c.mtu + TCP_WIRE);
	r->extra_bytes = r->again * (c.mtu + TCP_WIRE);
	tcp_fini(&f);
}
