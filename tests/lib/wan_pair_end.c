/* SPDX-License-Identifier: Apache-2.0 */
/* Questions of a test to a pair, and the pair's end. */
#include <stdio.h>

#include "tests/lib/wan_pair.h"

bool wan_pair_finish(struct wan_pair *p)
{
	uint64_t overrun = p->pipe[0].overrun + p->pipe[1].overrun;

	wan_pair_fini(p);
	if (p->errors || overrun || p->pool.live)
		fprintf(stderr, "%llu errors, %llu datagrams too many on a carrier, %lld buffers leaked\n",
		    (unsigned long long)p->errors, (unsigned long long)overrun, (long long)p->pool.live);
	return !p->errors && !overrun && !p->pool.live;
}

struct wan_stats wan_pair_stats(const struct wan_pair *p, int end)
{
	struct wan_stats s;

	wan_get_stats(p->end[end].t, &s);
	return s;
}

void wan_pair_settle(struct wan_pair *p, rwy_dur t)
{
	rwy_time until = p->now + t;

	while (wan_pair_step(p, until))
		;
}
