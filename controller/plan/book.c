/* SPDX-License-Identifier: Apache-2.0 */
/* The book: an open-addressed hash table from names to claimed rates. An entry whose rate fell to 0
 * stays for reuse. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/plan/book.h"

struct entry {
	char name[sizeof(((struct plan_claim *)0)->name)]; /* "": free */
	uint64_t bps;
};

struct plan_book {
	struct entry *e;
	uint32_t size, used; /* size is a power of two, at least twice `used` */
};

#define BOOK_START 64u

int plan_book_new(struct plan_book **out)
{
	struct plan_book *b = calloc(1, sizeof(*b));

	*out = NULL;
	if (!b)
		return RWY_ENOMEM;
	b->e = calloc(BOOK_START, sizeof(*b->e));
	if (!b->e) {
		free(b);
		return RWY_ENOMEM;
	}
	b->size = BOOK_START;
	*out = b;
	return 0;
}

void plan_book_free(struct plan_book *b)
{
	if (b)
		free(b->e);
	free(b);
}

/* The entry of a name, or the free one where it belongs. */
static struct entry *entry_slot(struct entry *e, uint32_t size, const char *name)
{
	uint32_t i = (uint32_t)plan_id(name) & (size - 1);

	while (e[i].name[0] && strcmp(e[i].name, name) != 0)
		i = (i + 1) & (size - 1);
	return &e[i];
}

/* Makes room for n more names. Entries without a claim are not copied to the new table. */
static int reserve(struct plan_book *b, unsigned n)
{
	uint64_t live = 0, size = BOOK_START;
	struct entry *e;
	uint32_t i;

	if (((uint64_t)b->used + n) * 2 <= b->size)
		return 0;
	for (i = 0; i < b->size; i++)
		live += b->e[i].bps != 0;
	while (size < (live + n) * 4)
		size *= 2;
	e = size <= UINT32_C(1) << 30 ? calloc(size, sizeof(*e)) : NULL;
	if (!e)
		return RWY_ENOMEM;
	for (i = 0; i < b->size; i++)
		if (b->e[i].bps)
			*entry_slot(e, (uint32_t)size, b->e[i].name) = b->e[i];
	free(b->e);
	b->e = e;
	b->size = (uint32_t)size;
	b->used = (uint32_t)live;
	return 0;
}

int plan_book_claim(struct plan_book *b, const struct plan_claim *t, unsigned n)
{
	struct entry *e;
	unsigned i;

	if (reserve(b, n))
		return RWY_ENOMEM;
	for (i = 0; i < n; i++) {
		if (!t[i].name[0])
			continue;
		e = entry_slot(b->e, b->size, t[i].name);
		if (!e->name[0]) {
			memcpy(e->name, t[i].name, sizeof(e->name));
			b->used++;
		}
		e->bps = e->bps + t[i].bps < e->bps ? UINT64_MAX : e->bps + t[i].bps;
	}
	return 0;
}

void plan_book_release(struct plan_book *b, const struct plan_claim *t, unsigned n)
{
	struct entry *e;
	unsigned i;

	for (i = 0; i < n; i++) {
		if (!t[i].name[0])
			continue;
		e = entry_slot(b->e, b->size, t[i].name);
		e->bps = e->bps > t[i].bps ? e->bps - t[i].bps : 0;
	}
}

uint64_t plan_book_claimed(const struct plan_book *b, const char *name)
{
	return name[0] ? entry_slot(b->e, b->size, name)->bps : 0;
}

void plan_book_gateway(char *out, size_t len, const char *gateway)
{
	snprintf(out, len, "gw/%s", gateway);
}

void plan_book_path(char *out, size_t len, const char *first, const char *second)
{
	snprintf(out, len, "path/%s/%s", first, second);
}

void plan_book_route(
    char *out, size_t len, const char *first, const char *second, const char *edge, const char *path)
{
	snprintf(out, len, "net/%s/%s/%s/%s", first, second, edge, path);
}
