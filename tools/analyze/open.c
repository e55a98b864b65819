/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A flow is in the cells of its outstanding PSNs and, until something is acknowledged, of those
 * before its first one: the capture may have begun behind requests, or lost them. Cells are of 2^10
 * PSNs or, for a flow that has more than 16 of them, of 2^14, 2^18 or 2^22: so it is in 17 at most,
 * and a response looks in 4.
 */
#include "tools/analyze/open.h"

#include <stdlib.h>

#include "rwy/hash.h"
#include "tools/analyze/requester.h"

#define BUCKETS    (1u << 15)
#define PLACES     17u
#define SHIFT_LOW  10u
#define SHIFT_STEP 4u
#define SHIFT_HIGH 22u

struct place {
	struct an_flow *flow;
	struct place *next, **at; /* at NULL: it is in no list */
};

struct an_open {
	unsigned shift;
	uint64_t low, high; /* cells [low, high), counted on where PSNs wrap */
	struct place place[PLACES];
};

struct an_openings {
	struct place *bucket[BUCKETS];
};

struct an_openings *an_openings_new(void)
{
	return calloc(1, sizeof(struct an_openings));
}

void an_openings_free(struct an_openings *o)
{
	free(o);
}

static uint32_t bucket_of(
    uint32_t vni, const struct rwy_ip *src, const struct rwy_ip *dst, unsigned shift, uint64_t cell)
{
	const uint64_t c = cell & (ROCE_PSN_MASK >> shift);

	return rwy_hash(rwy_hash_ip(rwy_hash_ip(rwy_hash(vni, shift), src), dst), c) % BUCKETS;
}

static void leave(struct an_open *m, uint64_t cell)
{
	struct place *p = &m->place[cell % PLACES];

	*p->at = p->next;
	if (p->next)
		p->next->at = p->at;
	p->at = NULL;
}

static void enter(struct an_openings *o, struct an_flow *f, uint64_t cell)
{
	struct place *p = &f->open->place[cell % PLACES];
	struct place **list =
	    &o->bucket[bucket_of(f->key.vni, &f->key.src, &f->key.dst, f->open->shift, cell)];

	*p = (struct place){f, *list, list};
	if (*list)
		(*list)->at = &p->next;
	*list = p;
}

static void leave_all(struct an_open *m)
{
	for (; m->low < m->high; m->low++)
		leave(m, m->low);
}

/* The cells of what is outstanding, at least one. */
static uint64_t cells_of(const struct an_requester *q, unsigned shift, uint64_t *high)
{
	/* One turn of PSNs more, so that nothing is below 0. */
	const uint64_t origin = (uint64_t)q->origin + ROCE_PSN_MASK + 1;
	const uint64_t low = (origin + q->una - (q->una ? 0 : ROCE_OUTSTANDING_MAX)) >> shift;
	const uint64_t end = an_known_end(q) > q->una ? an_known_end(q) : q->una + 1;

	*high = ((origin + end - 1) >> shift) + 1;
	if (*high - low > PLACES) /* all that there are, with shift SHIFT_HIGH */
		*high = low + PLACES;
	return low;
}

int an_open_follow(struct an_openings *o, struct an_flow *f)
{
	const struct an_requester *q = f->rq;
	struct an_open *m = f->open;
	uint64_t low, high;
	unsigned shift;

	if (!m && !(m = f->open = calloc(1, sizeof(*m))))
		return RWY_ENOMEM;
	shift = m->shift ? m->shift : SHIFT_LOW;
	while (low = cells_of(q, shift, &high), high - low == PLACES && shift < SHIFT_HIGH)
		shift += SHIFT_STEP;
	if (shift != m->shift || low < m->low || low > m->high) {
		leave_all(m);
		m->shift = shift;
		m->low = m->high = low;
	}
	for (; m->low < low; m->low++)
		leave(m, m->low);
	for (; m->high < high; m->high++)
		enter(o, f, m->high);
	return 0;
}

void an_open_remove(struct an_flow *f)
{
	if (!f->open)
		return;
	leave_all(f->open);
	free(f->open);
	f->open = NULL;
}

struct an_flow *an_open_find(const struct an_openings *o, const struct an_flow *f, roce_psn psn)
{
	const struct an_key *k = &f->key;
	struct an_flow *found = NULL;
	bool outstanding = false;

	for (unsigned shift = SHIFT_LOW; shift <= SHIFT_HIGH; shift += SHIFT_STEP) {
		const uint32_t b = bucket_of(k->vni, &k->dst, &k->src, shift, psn >> shift);

		for (const struct place *p = o->bucket[b]; p; p = p->next) {
			struct an_flow *x = p->flow;

			if (x == f || x == found || x->key.vni != k->vni ||
			    !rwy_ip_eq(&x->key.src, &k->dst) || !rwy_ip_eq(&x->key.dst, &k->src) ||
			    !(an_answers(x, psn) || an_asked_before(x, psn)))
				continue;
			if (found)
				return NULL;
			found = x;
			outstanding = an_answers(x, psn);
		}
	}
	return outstanding ? found : NULL;
}
