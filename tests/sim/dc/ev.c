/* SPDX-License-Identifier: Apache-2.0 */
/* The event queue, a heap with four children per node; see ev.h. It has about as many events as
 * there are ports and busy queue pairs, far fewer than packets. */
#include "tests/sim/dc/ev.h"

#include <stdlib.h>

static bool before(const struct ev_slot *a, const struct ev_slot *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void put(struct evq *q, uint32_t i, struct ev_slot s)
{
	q->heap[i] = s;
	s.ev->pos = i;
}

static void up(struct evq *q, uint32_t i, struct ev_slot s)
{
	for (; i > 1 && before(&s, &q->heap[(i + 2) / 4]); i = (i + 2) / 4)
		put(q, i, q->heap[(i + 2) / 4]);
	put(q, i, s);
}

static void down(struct evq *q, uint32_t i, struct ev_slot s)
{
	for (;;) {
		uint32_t c = 4 * i - 2, least = c, end = c + 4;

		if (c > q->n)
			break;
		if (end > q->n + 1)
			end = q->n + 1;
		for (uint32_t k = c + 1; k < end; k++)
			if (before(&q->heap[k], &q->heap[least]))
				least = k;
		if (!before(&q->heap[least], &s))
			break;
		put(q, i, q->heap[least]);
		i = least;
	}
	put(q, i, s);
}

void ev_set(struct evq *q, struct ev *ev, rwy_time at)
{
	struct ev_slot s = {at < q->now ? q->now : at, q->order++, ev};
	uint32_t i = ev->pos;

	if (i) {
		bool sooner = s.at < q->heap[i].at;

		if (sooner)
			up(q, i, s);
		else
			down(q, i, s);
		return;
	}
	if (q->n + 2 > q->cap) {
		q->cap = q->cap ? q->cap * 2 : 1024;
		q->heap = realloc(q->heap, q->cap * sizeof(*q->heap));
		if (!q->heap)
			abort();
	}
	up(q, ++q->n, s);
}

void ev_cancel(struct evq *q, struct ev *ev)
{
	uint32_t i = ev->pos;
	struct ev_slot last;

	if (!i)
		return;
	ev->pos = 0;
	last = q->heap[q->n--];
	if (last.ev == ev)
		return;
	if (i > 1 && before(&last, &q->heap[(i + 2) / 4]))
		up(q, i, last);
	else
		down(q, i, last);
}

rwy_time ev_at(const struct evq *q, const struct ev *ev)
{
	return ev->pos ? q->heap[ev->pos].at : RWY_NEVER;
}

bool ev_step(struct evq *q, rwy_time until)
{
	struct ev *ev;

	if (!q->n || q->heap[1].at >= until) {
		q->now = until;
		return false;
	}
	ev = q->heap[1].ev;
	q->now = q->heap[1].at;
	q->fired++;
	ev_cancel(q, ev);
	ev->fn(ev, q->now);
	return true;
}

void evq_fini(struct evq *q)
{
	free(q->heap);
}
