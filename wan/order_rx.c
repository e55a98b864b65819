/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order between flows, at the receiver. A flow waits for at most one other flow. It is in that
 * flow's list, in `strangers` (it waits for a flow that is not open yet), or in `woken` (it waits
 * no more). `wait_at` points to what points to it there; NULL: it is in none.
 */
#include "wan/order.h"

static void list_add(struct wan_rxflow **head, struct wan_rxflow *f)
{
	f->wait_next = *head;
	if (*head)
		(*head)->wait_at = &f->wait_next;
	*head = f;
	f->wait_at = head;
}

static void list_remove(struct wan_rxflow *f)
{
	if (!f->wait_at)
		return;
	*f->wait_at = f->wait_next;
	if (f->wait_next)
		f->wait_next->wait_at = f->wait_at;
	f->wait_at = NULL;
}

static bool has_delivered(const struct wan_rxflow *f, uint32_t count)
{
	return (int32_t)(count - (uint32_t)f->delivered) <= 0;
}

/* True: nothing must be waited for. *of: the flow, while it lives; NULL: it is not open yet. */
static bool reached(const struct wan_tunnel *t, const struct rwy_after *a, struct wan_rxflow **of)
{
	const struct wan_rxslot *s;

	*of = NULL;
	if (WAN_SLOT(a->flow) >= t->rx_cap)
		return false;
	s = &t->rx[WAN_SLOT(a->flow)];
	if (s->f && s->f->id == a->flow) {
		*of = s->f;
		return has_delivered(s->f, a->count);
	}
	if (s->f) /* the place is used again, so that flow has ended */
		return wan_use_later(WAN_USE(s->f->id), WAN_USE(a->flow));
	return s->state == WAN_SLOT_ENDED && !wan_use_later(WAN_USE(a->flow), s->use);
}

bool wan_order_holds(struct wan_rxflow *f, const struct rwy_after *a)
{
	struct wan_rxflow *of;

	if (a->flow == RWY_NO_FLOW || reached(f->t, a, &of))
		return false;
	f->wait_count = a->count;
	f->t->c.rx_held_back++;
	list_add(of ? &of->waiters : &f->t->strangers, f);
	return true;
}

bool wan_order_follow(struct wan_rxflow *f, const struct rwy_buf *b)
{
	if (b->kind != RWY_BUF_ORDER || b->len % WAN_ORDER_ENTRY) {
		f->t->c.drop_bad_frame++;
		return true;
	}
	for (; f->order_at < b->len; f->order_at += WAN_ORDER_ENTRY) {
		struct rwy_after a = {rwy_get32(b->data + f->order_at), rwy_get32(b->data + f->order_at + 4)};

		if (wan_order_holds(f, &a))
			return false;
	}
	f->order_at = 0;
	return true;
}

static void wake(struct wan_rxflow *f)
{
	list_remove(f);
	list_add(&f->t->woken, f);
}

void wan_order_delivered(struct wan_rxflow *f)
{
	for (struct wan_rxflow *w = f->waiters, *next; w; w = next) {
		next = w->wait_next;
		if (has_delivered(f, w->wait_count))
			wake(w);
	}
}

void wan_order_ended(struct wan_rxflow *f)
{
	list_remove(f);
	while (f->waiters)
		wake(f->waiters);
}

void wan_order_news(struct wan_tunnel *t)
{
	while (t->strangers)
		wake(t->strangers);
}

struct wan_rxflow *wan_order_woken(struct wan_tunnel *t)
{
	struct wan_rxflow *f = t->woken;

	if (f)
		list_remove(f);
	return f;
}
