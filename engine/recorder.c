/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring of decisions: written by the engine's thread, read by any.
 *
 * A slot is a sequence lock. The writer makes its first word, which has the number, 0; writes the
 * other words; and sets the first word last. All stores but the first are releases and a reader's
 * loads acquires, so that who sees a new word sees the number change, too (Boehm, "Can seqlocks get
 * along with programming language memory models?", 2012). On x86 they are plain moves.
 */
#include "engine/recorder.h"

#include <stdlib.h>
#include <string.h>

#include "engine/eng.h"

/*
 * The ring keeps so many entries of ENG_RECORD_OFTEN of one connection, and of all that have none,
 * in 2^WINDOW_SHIFT ns, 134 ms: one connection cannot push out what others did.
 */
#define WINDOW_SHIFT 27
#define WINDOW_MAX   16

#define WORDS (sizeof(struct eng_record) / sizeof(uint64_t))

static struct eng_record_slot *slot_of(const struct eng_recorder_ring *ring, uint32_t seq)
{
	return (struct eng_record_slot *)&ring->slot[seq & (ring->entries - 1)];
}

int eng_recorder_init(struct eng *e)
{
	const uint32_t n = e->cfg.recorder_n ? e->cfg.recorder_n : ENG_RECORDER_ENTRIES;

	if (n > ENG_RECORDER_MAX || n & (n - 1))
		return RWY_EINVAL;
	e->rec.ring = e->cfg.recorder ? e->cfg.recorder : calloc(1, ENG_RECORDER_SIZE(n));
	if (!e->rec.ring)
		return RWY_ENOMEM;
	e->rec.ring->entries = n;
	return 0;
}

void eng_recorder_fini(struct eng *e)
{
	if (!e->cfg.recorder)
		free(e->rec.ring);
	e->rec.ring = NULL;
}

const struct eng_recorder_ring *eng_recorder(const struct eng *e)
{
	return e->rec.ring;
}

static void put(struct eng *e, struct eng_record *r)
{
	struct eng_recorder_ring *ring = e->rec.ring;
	uint64_t word[WORDS];
	struct eng_record_slot *s;

	e->rec.newest += e->rec.newest == UINT32_MAX ? 2 : 1;
	r->seq = e->rec.newest;
	if (r->at < e->rec.at) /* calls of other threads may be ahead of the turn */
		r->at = e->rec.at;
	e->rec.at = r->at;
	memcpy(word, r, sizeof(word));
	s = slot_of(ring, r->seq);
	atomic_store_explicit(&s->word[0], 0, memory_order_relaxed);
	for (unsigned i = 1; i < WORDS; i++)
		atomic_store_explicit(&s->word[i], word[i], memory_order_release);
	atomic_store_explicit(&s->word[0], word[0], memory_order_release);
	atomic_store_explicit(&ring->newest, r->seq, memory_order_release);
}

/* True: this entry is one too many. `left` gets how many were left out in the window before. */
static bool too_often(struct eng_record_window *w, rwy_time now, unsigned *left)
{
	const uint8_t window = (uint8_t)(now >> WINDOW_SHIFT);

	*left = 0;
	if (w->window != window) {
		*left = w->n > WINDOW_MAX ? (unsigned)(w->n - WINDOW_MAX) : 0;
		w->window = window;
		w->n = 0;
	}
	w->n += w->n < UINT8_MAX;
	return w->n > WINDOW_MAX;
}

/*
 * Whether the decision is recorded. Asked before an entry is made: a host in trouble may cause
 * many.
 */
static bool wanted(const struct eng *e, const struct eng_record *what, struct eng_record_window *w,
    rwy_time now, unsigned *left)
{
	*left = 0;
	if (!e->rec.ring || e->closing)
		return false;
	return what->kind < ENG_REC_OFTEN || !too_often(w, now, left);
}

/* Fills in the fields of `what`, and writes the entry; `left` entries before it were left out. */
static void put_what(
    struct eng *e, struct eng_record *r, const struct eng_record *what, unsigned left, rwy_time now)
{
	r->at = now;
	if (left) {
		struct eng_record more = *r;

		more.kind = ENG_REC_LEFT_OUT;
		more.value = left;
		put(e, &more);
	}
	r->kind = what->kind;
	r->from = what->from;
	r->to = what->to;
	r->psn = what->psn;
	r->value = what->value;
	put(e, r);
}

void eng_record_side(struct eng_side *side, const struct eng_record *what, rwy_time now)
{
	const struct eng_key *k = &side->key;
	struct eng *e = side->e;
	unsigned left;

	if (!wanted(e, what, &eng_side_cold(side)->recorded, now, &left))
		return;
	struct eng_record r = {.vni = side->tenant->cfg.vni & 0xffffffu};

	if (side->is_requester) {
		r.local = k->dst;
		r.remote = k->src;
		r.side = ENG_OF_REQUESTER;
		r.local_qpn = k->qpn & 0xffffffu;
		r.remote_qpn = ((const struct eng_requester *)side)->remote_qpn & 0xffffffu;
	} else {
		r.local = k->src;
		r.remote = k->dst;
		r.side = ENG_OF_RESPONDER;
		r.local_qpn = ((const struct eng_responder *)side)->local_qpn & 0xffffffu;
		r.remote_qpn = k->qpn & 0xffffffu;
	}
	put_what(e, &r, what, left, now);
}

void eng_record_key(
    struct eng *e, const struct eng_key *k, bool requester, const struct eng_record *what, rwy_time now)
{
	const struct eng_tenant *t = k->tenant < e->tenant_slots ? e->tenant[k->tenant] : NULL;
	unsigned left;

	if (!wanted(e, what, &e->rec.strangers, now, &left))
		return;
	struct eng_record r = {.local = requester ? k->dst : k->src,
	    .remote = requester ? k->src : k->dst,
	    .side = requester ? ENG_OF_REQUESTER : ENG_OF_RESPONDER,
	    .local_qpn = requester ? k->qpn & 0xffffffu : 0,
	    .remote_qpn = requester ? 0 : k->qpn & 0xffffffu,
	    .vni = t ? t->cfg.vni & 0xffffffu : 0};

	put_what(e, &r, what, left, now);
}

void eng_record_engine(struct eng *e, const struct eng_record *what, const char *tunnel, rwy_time now)
{
	struct eng_record r = *what;

	if (!e->rec.ring || e->closing)
		return;
	for (size_t i = 0; tunnel && tunnel[i] && i < sizeof(r.name) - 1; i++)
		r.name[i] = tunnel[i];
	r.side = ENG_OF_ENGINE;
	r.at = now;
	put(e, &r);
}

bool eng_recorder_get(const struct eng_recorder_ring *ring, uint32_t seq, struct eng_record *out)
{
	const struct eng_record_slot *s = slot_of(ring, seq);
	uint64_t word[WORDS];

	if (!seq)
		return false;
	for (unsigned i = 0; i < WORDS; i++)
		word[i] = atomic_load_explicit(&s->word[i], memory_order_acquire);
	memcpy(out, word, sizeof(*out));
	return out->seq == seq && atomic_load_explicit(&s->word[0], memory_order_relaxed) == word[0];
}

bool eng_recorder_head_ok(const struct eng_recorder_head *h, uint64_t size)
{
	return size >= ENG_RECORDER_HEAD && h->magic == ENG_RECORDER_MAGIC && h->workers &&
	       h->workers <= 1024 && h->entries && h->entries <= ENG_RECORDER_MAX &&
	       !(h->entries & (h->entries - 1)) &&
	       size == ENG_RECORDER_HEAD + h->workers * ENG_RECORDER_SIZE(h->entries);
}

const struct eng_recorder_ring *eng_recorder_in(const struct eng_recorder_head *h, unsigned worker)
{
	const struct eng_recorder_ring *ring =
	    (const void *)((const uint8_t *)h + ENG_RECORDER_HEAD + worker * ENG_RECORDER_SIZE(h->entries));

	return worker < h->workers && ring->entries == h->entries ? ring : NULL;
}
