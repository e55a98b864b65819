/* SPDX-License-Identifier: Apache-2.0 */
/* A library's notes on the program's objects: values by pointer. Any thread. */
#ifndef SHIM_TABLE_H
#define SHIM_TABLE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#define SHIM_TABLE_BUCKETS 256

struct shim_table {
	size_t size; /* of a value */
	struct shim_entry *bucket[SHIM_TABLE_BUCKETS];
	pthread_mutex_t lock;
};

#define SHIM_TABLE(type)                                                                                     \
	{                                                                                                    \
		.size = sizeof(type), .lock = PTHREAD_MUTEX_INITIALIZER                                      \
	}

/* Keeps a copy of *value, in place of one of before. False: no memory. */
bool shim_table_put(struct shim_table *t, const void *key, const void *value);
/* Copies the value. False: there is none. */
bool shim_table_get(struct shim_table *t, const void *key, void *value);
/* The same, and forgets it. value may be NULL. */
bool shim_table_take(struct shim_table *t, const void *key, void *value);

#endif
