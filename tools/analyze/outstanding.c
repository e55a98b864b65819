/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a requester has outstanding: packets and messages, in a ring each. PSNs inside a READ have
 * no packet, so a slot may belong to packets far apart: the lap tells. An entry stays until una has
 * passed it, or another packet needs its slot. Not what packets mean: requester.c, response.c.
 */
#include <assert.h>
#include <stdlib.h>

#include "tools/analyze/requester.h"

#define SENT_MIN     64u
#define MESSAGES_MIN 16u
#define PSNS_MAX     (1u << 23) /* outstanding: answers behind that cannot be told apart */

struct an_requester *an_requester_new(size_t points)
{
	struct an_requester *q = calloc(1, sizeof(*q));

	if (!q)
		return NULL;
	q->message = calloc(MESSAGES_MIN, sizeof(*q->message));
	q->message_mask = MESSAGES_MIN - 1;
	q->points_max = points;
	q->point_stride = 1;
	q->may_begin = UINT32_MAX;
	if (q->message && an_outstanding_clear(q) == 0)
		return q;
	an_requester_free(q);
	return NULL;
}

void an_requester_free(struct an_requester *q)
{
	if (!q)
		return;
	free(q->sent);
	free(q->message);
	free(q);
}

int an_outstanding_clear(struct an_requester *q)
{
	struct an_sent *s = calloc(SENT_MIN, sizeof(*s));

	if (!s)
		return RWY_ENOMEM;
	free(q->sent);
	q->sent = s;
	q->sent_mask = SENT_MIN - 1;
	q->una = q->nxt = 0;
	q->message_head = q->message_tail = q->reads_out = q->atomics_out = 0;
	q->read_inside = q->bytes_out = 0;
	return 0;
}

/* --- messages --------------------------------------------------------------------------------- */

int an_message_push(struct an_requester *q, const struct an_message *m)
{
	uint32_t size = q->message_mask + 1, n = q->message_tail - q->message_head;

	assert(q->message);
	if (n == size) {
		struct an_message *ring = calloc((size_t)size * 2, sizeof(*ring));

		if (!ring)
			return RWY_ENOMEM;
		for (uint32_t i = 0; i < n; i++)
			ring[i] = q->message[(q->message_head + i) & q->message_mask];
		free(q->message);
		q->message = ring;
		q->message_mask = size * 2 - 1;
		q->message_head = 0;
		q->message_tail = n;
	}
	q->message[q->message_tail++ & q->message_mask] = *m;
	return 0;
}

struct an_message *an_message_of(const struct an_requester *q, uint64_t psn)
{
	for (uint32_t i = q->message_tail; i != q->message_head; i--) {
		struct an_message *m = &q->message[(i - 1) & q->message_mask];

		if (m->begin <= psn)
			return m;
	}
	return NULL;
}

struct an_message *an_message_newest(const struct an_requester *q)
{
	return q->message_head == q->message_tail ? NULL
	                                          : &q->message[(q->message_tail - 1) & q->message_mask];
}

static struct an_message *oldest(const struct an_requester *q)
{
	return q->message_head == q->message_tail ? NULL : &q->message[q->message_head & q->message_mask];
}

static uint64_t inside_of(const struct an_message *m)
{
	return m->op == ROCE_OP_READ_REQ && m->end > m->begin ? m->end - m->begin - 1 : 0;
}

void an_message_end(struct an_requester *q, struct an_message *m, uint64_t end)
{
	m->end = end;
	q->read_inside += inside_of(m);
}

struct an_message *an_message_before(struct an_requester *q, uint64_t psn)
{
	struct an_message *m = oldest(q);

	if (!m)
		return NULL;
	/* Its last packet is not in the capture: it ends where the next one begins. */
	if (!m->end && q->message_tail - q->message_head > 1)
		an_message_end(q, m, q->message[(q->message_head + 1) & q->message_mask].begin);
	return m->end && m->end <= psn ? m : NULL;
}

static void bytes_less(struct an_requester *q, uint32_t n)
{
	q->bytes_out -= n < q->bytes_out ? n : q->bytes_out;
}

void an_message_pop(struct an_requester *q)
{
	const struct an_message *m = oldest(q);

	assert(m);
	q->message_head++;
	q->read_inside -= inside_of(m);
	if (m->op == ROCE_OP_CMP_SWAP || m->op == ROCE_OP_FETCH_ADD) {
		q->atomics_out--;
	} else if (m->op == ROCE_OP_READ_REQ) {
		q->reads_out--;
		bytes_less(q, m->read_bytes);
	}
}

/* --- packets ---------------------------------------------------------------------------------- */

void an_sent_drop(struct an_requester *q, struct an_sent *s)
{
	bytes_less(q, s->len);
	*s = (struct an_sent){0};
}

void an_sent_put(struct an_requester *q, uint64_t psn, uint32_t len, rwy_time now)
{
	struct an_sent *s = &q->sent[psn & q->sent_mask];

	an_sent_drop(q, s);
	*s = (struct an_sent){now, now, len, 1, (uint16_t)(psn / AN_SENT_MAX)};
}

uint64_t an_sent_next(const struct an_requester *q, uint64_t psn, uint32_t *i)
{
	/* In a smaller ring each slot of an outstanding PSN must be seen: no lap tells. */
	for (; q->sent_mask + 1 == AN_SENT_MAX && *i != q->message_tail; ++*i) {
		const struct an_message *m = &q->message[*i & q->message_mask];

		if (m->begin > psn)
			break;
		if (inside_of(m) && m->end > psn)
			return m->end;
	}
	return psn + 1;
}

/* Moves una behind the oldest packet, which with a READ is behind all its PSNs. */
static void forget_oldest(struct an_requester *q)
{
	struct an_sent *s = an_sent_find(q, q->una);
	const struct an_message *m = oldest(q);

	if (s)
		an_sent_drop(q, s);
	q->una = m && m->begin <= q->una && inside_of(m) && m->end > q->una ? m->end : q->una + 1;
	while (an_message_before(q, q->una))
		an_message_pop(q);
}

int an_sent_room(struct an_requester *q, uint64_t end)
{
	uint64_t size = q->sent_mask + 1;
	struct an_sent *s;

	if (end - q->una <= size)
		return 0;
	while (end - q->una > size && size < AN_SENT_MAX)
		size *= 2;
	if (size > q->sent_mask + 1) {
		s = calloc(size, sizeof(*s));
		if (!s)
			return RWY_ENOMEM;
		for (uint64_t p = q->una; p < q->nxt; p++)
			s[p & (size - 1)] = q->sent[p & q->sent_mask];
		free(q->sent);
		q->sent = s;
		q->sent_mask = size - 1;
	}
	while (q->una < q->nxt && (end - q->una > PSNS_MAX || end - q->una > AN_SENT_MAX + q->read_inside))
		forget_oldest(q);
	return 0;
}
