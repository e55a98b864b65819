/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting repairs of the receiver, by block and by group, and the outcome of earlier blocks. */
#include <stdlib.h>

#include "wan/fec/fec.h"

static void free_all(struct wan_fec *t, struct rwy_buf **rep, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		rwy_buf_free(t->bufs, rep[i]);
		rep[i] = NULL;
	}
	t->rx->held -= n;
}

void wan_fec_unused(struct wan_fec *t, uint8_t path, unsigned n)
{
	t->c.unused += n;
	t->path[path]->stats.unused += n;
}

void wan_fec_block_end(struct wan_fec *t, struct wan_fec_wait *w)
{
	free_all(t, w->rep, w->n);
	w->n = 0;
	if (w->used && !w->done)
		t->rx->live--;
	w->done = true;
}

void wan_fec_block_give_up(struct wan_fec *t, struct wan_fec_wait *w)
{
	wan_fec_unused(t, w->r.path, w->n);
	wan_fec_block_end(t, w);
}

struct wan_fec_wait *wan_fec_block_find(struct wan_fec_rx *x, const struct wan_f_repair *r, uint64_t first)
{
	for (unsigned i = 0; i < WAN_FEC_BLOCKS; i++)
		if (x->w[i].used && x->w[i].first == first && x->w[i].r.path == r->path)
			return &x->w[i];
	return NULL;
}

struct wan_fec_wait *wan_fec_block_new(
    struct wan_fec *t, const struct wan_f_repair *r, uint64_t first, uint8_t flags, uint32_t len)
{
	struct wan_fec_rx *x = t->rx;
	struct wan_fec_wait *w = &x->w[x->age % WAN_FEC_BLOCKS];
	uint64_t last = first + (uint64_t)wan_fec_last_place(r) * r->depth;

	if (w->used)
		wan_fec_block_give_up(t, w);
	*w = (struct wan_fec_wait){
	    .used = true, .flags = flags, .r = *r, .first = first, .len = len, .age = ++x->age};
	x->live++;
	if (last > x->last)
		x->last = last;
	return w;
}

void wan_fec_share_end(struct wan_fec *t, struct wan_fec_share *s)
{
	free_all(t, s->rep, s->n);
	s->n = 0;
	s->used = false;
}

void wan_fec_share_give_up(struct wan_fec *t, struct wan_fec_share *s)
{
	wan_fec_unused(t, s->r.path, s->n);
	wan_fec_share_end(t, s);
}

void wan_fec_make_room(struct wan_fec *t)
{
	struct wan_fec_rx *x = t->rx;
	struct wan_fec_wait *w = NULL;
	struct wan_fec_share *s = NULL;

	for (unsigned i = 0; i < WAN_FEC_BLOCKS; i++)
		if (x->w[i].n && (!w || x->w[i].age < w->age))
			w = &x->w[i];
	for (unsigned i = 0; i < WAN_FEC_SHARES; i++)
		if (x->s[i].n && (!s || x->s[i].age < s->age))
			s = &x->s[i];
	if (w && (!s || w->age < s->age))
		wan_fec_block_give_up(t, w);
	else if (s)
		wan_fec_share_give_up(t, s);
}
