/* SPDX-License-Identifier: Apache-2.0 */
/* Rules: their names, their identity, lists of them. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "offload/internal.h"
#include "rwy/hash.h"

#define NAME(e, n, s) n,
#define TEXT(e, s)    s,

const char *offload_what_name(enum offload_what w)
{
	static const char *const names[] = {OFFLOAD_WHATS(NAME)};

	return (unsigned)w < OFFLOAD_WHAT_COUNT ? names[w] : "?";
}

const char *offload_act_name(enum offload_act a)
{
	static const char *const names[] = {OFFLOAD_ACTS(NAME)};

	return (unsigned)a < OFFLOAD_ACT_COUNT ? names[a] : "?";
}

const char *offload_left_text(enum offload_left w)
{
	static const char *const texts[] = {OFFLOAD_LEFTS(TEXT)};

	return (unsigned)w < OFFLOAD_LEFT_COUNT ? texts[w] : "?";
}

void offload_cfg_default(struct offload_cfg *cfg)
{
	memset(cfg, 0, sizeof(*cfg));
	cfg->tenant_max = 1024;
	cfg->masks_max = 32;
}

/* The bytes that identify a rule; what follows is for the operator. Rules left to software are told
 * apart as well. */
#define IDENTITY offsetof(struct offload_rule, tenant)

bool offload_rule_same(const struct offload_rule *a, const struct offload_rule *b)
{
	return a->id == b->id && !memcmp(a, b, IDENTITY) &&
	       (a->act != OFFLOAD_NOTHING || (a->tenant == b->tenant && a->item == b->item));
}

static uint64_t identity_hash(const struct offload_rule *r)
{
	return rwy_hash_bytes(0, r, IDENTITY);
}

void offload_rule_init(struct offload_rule *r, enum offload_what what, enum offload_act act, unsigned prio)
{
	memset(r, 0, sizeof(*r));
	r->what = (uint8_t)what;
	r->act = (uint8_t)act;
	r->prio = (uint16_t)prio;
	r->item = -1;
}

int offload_list_add(struct offload_list *l, const struct offload_rule *r)
{
	if (l->n == l->room) {
		const unsigned room = l->room ? 2 * l->room : 16;
		struct offload_rule *more = realloc(l->rule, room * sizeof(*more));

		if (!more)
			return RWY_ENOMEM;
		l->rule = more;
		l->room = room;
	}
	l->rule[l->n] = *r;
	l->rule[l->n].id = identity_hash(r);
	l->n++;
	return 0;
}

int offload_list_left(
    struct offload_list *l, const struct tenant *t, enum offload_what what, int item, enum offload_left left)
{
	struct offload_rule r;

	offload_rule_init(&r, what, OFFLOAD_NOTHING, 0);
	r.tenant = t->index;
	r.item = item;
	r.left = (uint8_t)left;
	return offload_list_add(l, &r);
}

void offload_list_fini(struct offload_list *l)
{
	free(l->rule);
	*l = (struct offload_list){0};
}
