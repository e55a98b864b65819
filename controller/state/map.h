/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table from strings to objects that have a struct map_node as their first member. No locks: its
 * owner's. */
#ifndef CONTROLLER_STATE_MAP_H
#define CONTROLLER_STATE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rwy/err.h"

struct map_node {
	struct map_node *next;
	uint64_t hash;
	const char *key; /* the object's own; lives as long as it is in */
};

struct map {
	struct map_node **slot;
	size_t slots, n; /* a power of two, or 0 */
};

void *map_find(const struct map *m, const char *key); /* NULL: none */
/* The key is not in it yet. RWY_ENOMEM. */
RWY_MUST_CHECK int map_add(struct map *m, struct map_node *node, const char *key);
void map_del(struct map *m, struct map_node *node); /* nothing when it is not in */
void map_free(struct map *m);                       /* the objects are their owner's */
/* All objects, in no order: it NULL gives the first; the one given may have been deleted only if `next` was
 * taken before. */
void *map_next(const struct map *m, const void *it);
#define MAP_EACH(m, it) for ((it) = map_next(m, NULL); (it); (it) = map_next(m, it))
/* Up to max objects whose keys are above `after` (NULL: all), the smallest, in order. Returns how many. */
size_t map_page(const struct map *m, const char *after, void **out, size_t max);

#endif
