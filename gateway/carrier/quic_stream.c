/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of one stream of ours: appended, sent, kept until acknowledged. */
#include <stdlib.h>
#include <string.h>

#include "gateway/carrier/quic_impl.h"

#define SPARES 256 /* most chunks kept for later */

static struct quic_chunk *chunk_new(struct gw_quic_end *e)
{
	struct quic_chunk *k = e->spare;

	if (k) {
		e->spare = k->next;
		e->spares--;
	} else {
		k = malloc(sizeof(*k));
	}
	if (k) {
		k->next = NULL;
		k->n = 0;
	}
	return k;
}

static void chunk_free(struct gw_quic_end *e, struct quic_chunk *k)
{
	if (e->spares >= SPARES) {
		free(k);
		return;
	}
	k->next = e->spare;
	e->spare = k;
	e->spares++;
}

/* Links so many chunks that `more` bytes fit after the last one in use. */
static bool room_make(struct gw_quic_end *e, struct quic_tx *t, uint64_t more)
{
	uint64_t room = t->tail ? QUIC_CHUNK - t->tail->n : 0;
	struct quic_chunk *first = NULL, **last = &first, *k;

	for (; room < more; room += QUIC_CHUNK) {
		if (!(k = chunk_new(e))) {
			while ((k = first)) {
				first = k->next;
				chunk_free(e, k);
			}
			return false;
		}
		*last = k;
		last = &k->next;
	}
	if (t->tail)
		t->tail->next = first;
	else
		t->head = t->tail = t->at = first;
	return true;
}

int quic_tx_append(struct gw_quic_end *e, struct quic_tx *t, const struct iovec *v, unsigned n)
{
	uint64_t more = 0;

	for (unsigned i = 0; i < n; i++)
		more += v[i].iov_len;
	if (!more)
		return 0;
	if (!room_make(e, t, more))
		return RWY_ENOMEM;
	for (unsigned i = 0; i < n; i++) {
		const uint8_t *p = v[i].iov_base;
		size_t left = v[i].iov_len;

		while (left && t->tail) {
			struct quic_chunk *k = t->tail;
			size_t here = QUIC_CHUNK - k->n < left ? QUIC_CHUNK - k->n : left;

			memcpy(k->b + k->n, p, here);
			k->n += (uint32_t)here;
			p += here;
			left -= here;
			if (left || (k->n == QUIC_CHUNK && k->next))
				t->tail = k->next;
		}
	}
	t->end += more;
	return 0;
}

unsigned quic_tx_unsent(const struct quic_tx *t, ngtcp2_vec *v, unsigned max)
{
	uint32_t off = t->at_off;
	unsigned n = 0;

	for (struct quic_chunk *k = t->at; k && n < max; k = k->next, off = 0)
		if (k->n > off) {
			v[n].base = k->b + off;
			v[n++].len = k->n - off;
		}
	return n;
}

void quic_tx_sent(struct quic_tx *t, uint64_t n)
{
	t->sent += n;
	while (n) {
		uint64_t here = t->at->n - t->at_off;

		if (n < here || !t->at->next) {
			t->at_off += (uint32_t)n;
			return;
		}
		n -= here;
		t->at = t->at->next;
		t->at_off = 0;
	}
}

uint64_t quic_tx_acked(struct gw_quic_end *e, struct quic_tx *t, uint64_t to)
{
	uint64_t n = to > t->acked ? to - t->acked : 0;
	struct quic_chunk *k;

	t->acked += n;
	/* The one that is sent from stays, even if all of it is acknowledged. */
	while ((k = t->head) && k != t->at && t->base + k->n <= t->acked) {
		t->base += k->n;
		t->head = k->next;
		chunk_free(e, k);
	}
	return n;
}

void quic_tx_free(struct gw_quic_end *e, struct quic_tx *t)
{
	struct quic_chunk *k;

	while ((k = t->head)) {
		t->head = k->next;
		chunk_free(e, k);
	}
	memset(t, 0, sizeof(*t));
}
