/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/table.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct shim_entry {
	struct shim_entry *next;
	const void *key;
	unsigned char value[];
};

/* The pointer to the key's entry, or to the end of its chain. */
static struct shim_entry **find(struct shim_table *t, const void *key)
{
	struct shim_entry **p = &t->bucket[((uintptr_t)key >> 4) % SHIM_TABLE_BUCKETS];

	while (*p && (*p)->key != key)
		p = &(*p)->next;
	return p;
}

bool shim_table_put(struct shim_table *t, const void *key, const void *value)
{
	struct shim_entry **p, *e, *spare = malloc(sizeof(*spare) + t->size);

	if (!spare)
		return false;
	pthread_mutex_lock(&t->lock);
	p = find(t, key);
	e = *p;
	if (!e) {
		*p = e = spare;
		e->next = NULL;
		e->key = key;
		spare = NULL;
	}
	memcpy(e->value, value, t->size);
	pthread_mutex_unlock(&t->lock);
	free(spare);
	return true;
}

bool shim_table_get(struct shim_table *t, const void *key, void *value)
{
	struct shim_entry *e;

	pthread_mutex_lock(&t->lock);
	e = *find(t, key);
	if (e)
		memcpy(value, e->value, t->size);
	pthread_mutex_unlock(&t->lock);
	return e;
}

bool shim_table_take(struct shim_table *t, const void *key, void *value)
{
	struct shim_entry **p, *e;

	pthread_mutex_lock(&t->lock);
	p = find(t, key);
	e = *p;
	if (e)
		*p = e->next;
	pthread_mutex_unlock(&t->lock);
	if (e && value)
		memcpy(value, e->value, t->size);
	free(e);
	return e != NULL;
}
