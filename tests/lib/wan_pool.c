/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers of wan_pair.h, counted. */
#include <stdlib.h>
#include <string.h>

#include "tests/lib/wan_pair.h"

#define HEADROOM 160

static struct rwy_buf *pool_alloc(void *ctx, uint32_t headroom, uint32_t len)
{
	struct wan_pool *p = ctx;

	if (wan_rng_ppm(&p->rng, p->fail_ppm))
		return NULL;
	struct rwy_buf *b = malloc(sizeof(*b) + headroom + len);

	memset(b, 0, sizeof(*b));
	b->data = (uint8_t *)(b + 1) + headroom;
	b->headroom = (uint16_t)headroom;
	b->len = len;
	if (++p->live > p->peak)
		p->peak = p->live;
	return b;
}

static void pool_free(void *ctx, struct rwy_buf *b)
{
	((struct wan_pool *)ctx)->live--;
	free(b);
}

void wan_pool_init(struct wan_pool *p)
{
	static const struct rwy_buf_ops ops = {pool_alloc, pool_free};

	memset(p, 0, sizeof(*p));
	p->rng = 1;
	p->bufs = (struct rwy_bufs){&ops, p};
}

struct rwy_buf *wan_pool_get(struct wan_pool *p, uint32_t len)
{
	uint32_t ppm = p->fail_ppm;

	p->fail_ppm = 0;
	struct rwy_buf *b = pool_alloc(p, HEADROOM, len);

	p->fail_ppm = ppm;
	return b;
}
