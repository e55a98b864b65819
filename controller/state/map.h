/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table from strings to objects that have a struct ctlr_map_node as their first member. No locks: its
 * owner's. */
#ifndef CONTROLLER_STATE_MAP_H
#define CONTROLLER_STATE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rwy/err.h"

struct ctlr_map_node {
	struct ctlr_map_node *next;
	uint64_t hash;
	const char *key; /* the object's own; lives as long as it is in */
};

struct ctlr_map {
	struct ctlr_map_node **slot;
	size_t slots, n; /* a power of two, or 0 */
};

void *ctlr_map_find(const struct ctlr_map *m, const char *key); /* NULL: none */
/* The key is not in it yet. RWY_ENOMEM. */
RWY_MUST_CHECK int ctlr_map_add(struct ctlr_map *m, struct ctlr_map_node *node, const char *key);
void ctlr_map_del(struct ctlr_map *m, struct ctlr_map_node *node); /* nothing when it is not in */
void ctlr_map_free(struct ctlr_map *m);                            /* the objects are their owner's */
/* All objects, in no order: it NULL gives the first; the one given may have been deleted only if `next` was
 * taken before. */
void *ctlr_map_next(const struct ctlr_map *m, const void *it);
#define CTLR_MAP_EACH(m, it) for ((it) = ctlr_map_next(m, NULL); (it); (it) = ctlr_map_next(m, it))
/* Up to max objects whose keys are above `after` (NULL: all), the smallest, in order. Returns how many. */
size_t ctlr_map_page(const struct ctlr_map *m, const char *after, void **out, size_t max);

#endif
