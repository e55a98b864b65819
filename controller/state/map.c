/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/state/map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define SLOTS_MIN 64

/* FNV-1a with a seed of this process and a final mix, since names come from outside. */
static uint64_t hash_of(const char *s)
{
	static uint64_t seed;
	uint64_t h;

	while (!seed)
		if (getrandom(&seed, sizeof(seed), 0) < 0)
			seed = 1;
	h = 0xcbf29ce484222325u ^ seed;
	for (; *s; s++)
		h = (h ^ (uint8_t)*s) * 0x100000001b3u;
	h ^= h >> 32;
	h *= 0xd6e8feb86659fd93u;
	return h ^ h >> 32;
}

void *ctlr_map_find(const struct ctlr_map *m, const char *key)
{
	const uint64_t hash = m->slots ? hash_of(key) : 0;
	struct ctlr_map_node *n = m->slots ? m->slot[hash & (m->slots - 1)] : NULL;

	while (n && (n->hash != hash || strcmp(n->key, key) != 0))
		n = n->next;
	return n;
}

static int map_grow(struct ctlr_map *m)
{
	const size_t slots = m->slots ? m->slots * 2 : SLOTS_MIN;
	struct ctlr_map_node **slot = calloc(slots, sizeof(struct ctlr_map_node *));

	if (!slot)
		return RWY_ENOMEM;
	for (size_t i = 0; i < m->slots; i++)
		for (struct ctlr_map_node *n = m->slot[i], *next; n; n = next) {
			next = n->next;
			n->next = slot[n->hash & (slots - 1)];
			slot[n->hash & (slots - 1)] = n;
		}
	free(m->slot);
	m->slot = slot;
	m->slots = slots;
	return 0;
}

int ctlr_map_add(struct ctlr_map *m, struct ctlr_map_node *node, const char *key)
{
	if (m->n >= m->slots && map_grow(m) && !m->slots)
		return RWY_ENOMEM;
	node->key = key;
	node->hash = hash_of(key);
	node->next = m->slot[node->hash & (m->slots - 1)];
	m->slot[node->hash & (m->slots - 1)] = node;
	m->n++;
	return 0;
}

void *ctlr_map_need(struct ctlr_map *m, const char *key, size_t size, size_t key_at, size_t key_size)
{
	struct ctlr_map_node *n = ctlr_map_find(m, key);
	char *copy;

	if (n)
		return n;
	n = calloc(1, size);
	if (!n)
		return NULL;
	copy = (char *)n + key_at;
	snprintf(copy, key_size, "%s", key);
	if (ctlr_map_add(m, n, copy)) {
		free(n);
		return NULL;
	}
	return n;
}

void ctlr_map_del(struct ctlr_map *m, struct ctlr_map_node *node)
{
	struct ctlr_map_node **p = m->slots ? &m->slot[node->hash & (m->slots - 1)] : NULL;

	while (p && *p && *p != node)
		p = &(*p)->next;
	if (!p || !*p)
		return;
	*p = node->next;
	m->n--;
}

void ctlr_map_free(struct ctlr_map *m)
{
	free(m->slot);
	memset(m, 0, sizeof(*m));
}

void *ctlr_map_next(const struct ctlr_map *m, const void *it)
{
	const struct ctlr_map_node *n = it;
	size_t i = 0;

	if (n && n->next)
		return n->next;
	if (n)
		i = (n->hash & (m->slots - 1)) + 1;
	for (; i < m->slots; i++)
		if (m->slot[i])
			return m->slot[i];
	return NULL;
}

/* --- pages: a heap of the smallest keys so far, the largest of them on top -------------------- */

static bool key_less(const void *a, const void *b)
{
	return strcmp(((const struct ctlr_map_node *)a)->key, ((const struct ctlr_map_node *)b)->key) < 0;
}

static void sift_down(void **heap, size_t n, size_t i)
{
	for (;;) {
		size_t big = i;
		void *swap;

		for (size_t c = 2 * i + 1; c <= 2 * i + 2 && c < n; c++)
			if (key_less(heap[big], heap[c]))
				big = c;
		if (big == i)
			return;
		swap = heap[i];
		heap[i] = heap[big];
		heap[big] = swap;
		i = big;
	}
}

static void sift_up(void **heap, size_t i)
{
	while (i && key_less(heap[(i - 1) / 2], heap[i])) {
		void *swap = heap[i];

		heap[i] = heap[(i - 1) / 2];
		heap[(i - 1) / 2] = swap;
		i = (i - 1) / 2;
	}
}

static int order(const void *a, const void *b)
{
	const struct ctlr_map_node *const *x = a, *const *y = b;

	return strcmp((*x)->key, (*y)->key);
}

size_t ctlr_map_page(const struct ctlr_map *m, const char *after, void **out, size_t max)
{
	struct ctlr_map_node *it;
	size_t n = 0;

	if (!max)
		return 0;
	CTLR_MAP_EACH(m, it)
	{
		if (after && strcmp(it->key, after) <= 0)
			continue;
		if (n < max) {
			out[n] = it;
			sift_up(out, n++);
		} else if (key_less(it, out[0])) {
			out[0] = it;
			sift_down(out, n, 0);
		}
	}
	qsort(out, n, sizeof(*out), order);
	return n;
}
