/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/datapath/edge_pair.h"

#include <stdlib.h>
#include <string.h>

#include "gateway/datapath/edge.h"
#include "gateway/port/mbuf.h"

static bool note_send(void *ctx, const uint8_t *bytes, uint32_t len)
{
	struct gw_worker *w = ctx;

	return eng_standby_note(w->eng, ENG_STANDBY_LINKS, bytes, len, w->now) == 0;
}

struct gw_edge_pair *gw_edge_pair_new(struct gw_worker *w, struct proxy_edge *e, struct proxy_map_cfg *cfg)
{
	struct gw_edge_pair *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	proxy_mirror_init(&p->mirror, e, cfg);
	p->mirror.send = note_send;
	p->mirror.ctx = w;
	return p;
}

static void drop_all(struct gw_worker *w, struct gw_edge_pair *p)
{
	while (p->waits)
		gw_buf_ops.free(w->pools, p->wait[--p->waits].b);
}

void gw_edge_pair_free(struct gw_worker *w, struct gw_edge_pair *p)
{
	if (p)
		drop_all(w, p);
	free(p);
}

bool gw_edge_pair_waits(
    struct gw_worker *w, const struct proxy_link *l, const uint8_t *ip, uint32_t n, bool lan)
{
	struct gw_edge *g = w->edge;
	struct gw_edge_pair *p = g->pair;
	struct rwy_buf *b = NULL;

	if (!p || !l || !eng_standby_gates(w->eng) || proxy_mirror_has(&p->mirror, l))
		return false;
	if (p->waits < GW_EDGE_WAITS)
		b = gw_buf_ops.alloc(w->pools, GW_EDGE_HEADROOM, n);
	if (!b) {
		g->core.c.drop_relay_wait++;
		return true;
	}
	memcpy(b->data, ip, n);
	b->len = n;
	b->pcp = 0;
	p->wait[p->waits++] = (struct gw_edge_wait){b, (uint32_t)(l - g->core.view.links), l->id, lan};
	g->core.c.relay_waited++;
	return true;
}

void gw_edge_pair_note(struct gw_worker *w, const uint8_t *bytes, uint32_t len)
{
	if (w->edge && w->edge->pair)
		proxy_mirror_hear(&w->edge->pair->mirror, bytes, len, w->gate == GW_PAIR_SERVES, w->now);
}

bool gw_edge_pair_whole(void *ctx, uint32_t round)
{
	const struct gw_worker *w = ctx;

	return !w->edge->pair || proxy_mirror_whole(&w->edge->pair->mirror, round);
}

void gw_edge_pair_serves(struct gw_worker *w, bool serves, rwy_time now)
{
	if (serves)
		proxy_map_wake(w->edge->core.map, now);
	else if (w->edge->pair)
		drop_all(w, w->edge->pair);
}
