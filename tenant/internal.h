/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by tenant.c (one tenant), set.c (one generation of all) and db.c (their changes). */
#ifndef TENANT_INTERNAL_H
#define TENANT_INTERNAL_H

#include <string.h>

#include "rwy/hash.h"
#include "tenant/tenant.h"

/* Checks what one configuration can say wrong, copies it and compiles it. index and changed are the caller's
 * to set. On failure *err is filled and nothing is left allocated. */
int tenant_make(struct tenant **out, const struct tenant_cfg *cfg, const struct tenant_limits *lim,
    struct tenant_err *err);
void tenant_unmake(const struct tenant *t);
/* Nothing to compile again: same configuration. */
bool tenant_same(const struct tenant *t, const struct tenant_cfg *cfg);

/* The index under a name, or 0. Slots of removed tenants name an index that is empty or another's: they are
 * skipped and do not end the search. */
uint32_t tenant_name_find(
    const uint16_t *slot, uint32_t mask, const struct tenant *const *by_index, const char *name);
/* The table has a free slot. */
void tenant_name_add(uint16_t *slot, uint32_t mask, const char *name, uint32_t index);
/* An empty set in one block of memory, for free(): room for n tenants with indices below top. NULL: no
 * memory. */
struct tenant_set *tenant_set_alloc(uint32_t n, uint32_t top);
/* Adds them all. Less than 0: they contradict each other or a limit; *err says which. */
int tenant_set_fill(struct tenant_set *s, const struct tenant *const *by_index,
    const struct tenant_limits *lim, struct tenant_err *err);

static inline uint32_t tenant_name_hash(const char *name)
{
	return (uint32_t)rwy_hash_bytes(0, name, strnlen(name, TENANT_NAME_MAX));
}

/* Returns `ret` with *err filled. */
static inline int tenant_fail(
    struct tenant_err *err, int ret, enum tenant_error why, const char *name, int item)
{
	*err = (struct tenant_err){.why = why, .item = item};
	for (unsigned i = 0; i < TENANT_NAME_MAX - 1 && name[i]; i++)
		err->name[i] = name[i];
	return ret;
}

#endif
