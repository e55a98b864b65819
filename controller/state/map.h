/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table from strings to objects whose first member is a struct ctlr_map_node. It does not
 * own the objects and has no lock: its owner's holds. */
#ifndef CONTROLLER_STATE_MAP_H
#define CONTROLLER_STATE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rwy/err.h"

struct ctlr_map_node {
	struct ctlr_map_node *next;
	uint64_t hash;
	const char *key; /* belongs to the object; must live while it is in the table */
};

struct ctlr_map {
	struct ctlr_map_node **slot;
	size_t slots, n; /* slots: a power of two, or 0 */
};

void *ctlr_map_find(const struct ctlr_map *m, const char *key); /* NULL: there is none */
/* Adds an object whose key is not in the table. RWY_ENOMEM. */
RWY_MUST_CHECK int ctlr_map_add(struct ctlr_map *m, struct ctlr_map_node *node, const char *key);
/* The object with this key. If there is none, adds one: `size` zeroed bytes, with a copy of the key
 * in the key_size bytes at key_at, cut if it is longer. free() it after ctlr_map_del(). NULL: no
 * memory. */
void *ctlr_map_need(struct ctlr_map *m, const char *key, size_t size, size_t key_at, size_t key_size);
#define CTLR_MAP_NEED(m, type, member, key)                                                                  \
	((type *)ctlr_map_need(m, key, sizeof(type), offsetof(type, member), sizeof(((type *)0)->member)))
/* No effect if it is not in the table. */
void ctlr_map_del(struct ctlr_map *m, struct ctlr_map_node *node);
void ctlr_map_free(struct ctlr_map *m); /* frees the table, not the objects */
/* Iterates over all objects in no order; it NULL: the first. Take the next one before deleting the
 * present one. */
void *ctlr_map_next(const struct ctlr_map *m, const void *it);
#define CTLR_MAP_EACH(m, it) for ((it) = ctlr_map_next(m, NULL); (it); (it) = ctlr_map_next(m, it))
/* The smallest keys above `after` (NULL: of all), in order: at most max objects. Returns how
 * many. */
size_t ctlr_map_page(const struct ctlr_map *m, const char *after, void **out, size_t max);

#endif
