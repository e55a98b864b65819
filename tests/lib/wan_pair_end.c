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

void wan_pair_path(struct wan_pair *p, const struct wan_link_cfg *ab, const struct wan_link_cfg *ba)
{
	p->more++;
	wan_link_init(&p->path_link[0][p->more], ab, wan_rng_next(&p->rng));
	wan_link_init(&p->path_link[1][p->more], ba, wan_rng_next(&p->rng));
}

void wan_pair_dgram(struct wan_pair *p, int end, uint32_t len)
{
	struct rwy_buf *b = wan_pool_get(&p->pool, len);

	for (uint32_t i = 0; i < len; i++)
		b->data[i] = (uint8_t)(len + i);
	wan_dgram_send(p->end[end].t, b, p->now);
}
