/* SPDX-License-Identifier: Apache-2.0 */
/* Private to tenant.c (one tenant), set.c (one generation of all tenants) and db.c (changes). */
#ifndef TENANT_INTERNAL_H
#define TENANT_INTERNAL_H

#include <string.h>

#include "rwy/hash.h"
#include "tenant/tenant.h"

/* Checks one configuration by itself, copies and compiles it. The caller sets index and changed. On
 * failure *err is filled and nothing stays allocated. */
int tenant_make(struct tenant **out, const struct tenant_cfg *cfg, const struct tenant_limits *lim,
    struct tenant_err *err);
void tenant_unmake(const struct tenant *t);
/* Whether the configuration is the same, so that nothing has to be compiled again. */
bool tenant_same(const struct tenant *t, const struct tenant_cfg *cfg);

/* Returns the index of a name, or 0. Slots of removed tenants hold an index that is empty or
 * reused: the search skips them and goes on. */
uint32_t tenant_name_find(
    const uint16_t *slot, uint32_t mask, const struct tenant *const *by_index, const char *name);
/* Adds a name; the table must have a free slot. */
void tenant_name_add(uint16_t *slot, uint32_t mask, const char *name, uint32_t index);
/* Allocates an empty set in one block of memory, for free(): room for n tenants with indices below
 * top. NULL: memory is short. */
struct tenant_set *tenant_set_alloc(uint32_t n, uint32_t top);
/* Adds all tenants. Negative: they contradict each other or exceed a limit; *err says which. */
int tenant_set_fill(struct tenant_set *s, const struct tenant *const *by_index,
    const struct tenant_limits *lim, struct tenant_err *err);

static inline uint32_t tenant_name_hash(const char *name)
{
	return (uint32_t)rwy_hash_bytes(0, name, strnlen(name, TENANT_NAME_MAX));
}

/* Fills *err and returns `ret`. */
static inline int tenant_fail(
    struct tenant_err *err, int ret, enum tenant_error why, const char *name, int item)
{
	*err = (struct tenant_err){.why = why, .item = item};
	for (unsigned i = 0; i < TENANT_NAME_MAX - 1 && name[i]; i++)
		err->name[i] = name[i];
	return ret;
}

#endif
