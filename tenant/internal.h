/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to tenant.c and set.c: one tenant's check and compiled form, apart from the set of them. */
#ifndef TENANT_INTERNAL_H
#define TENANT_INTERNAL_H

#include "tenant/tenant.h"

/* Checks what one configuration can say wrong, copies it and compiles it. index and changed are the caller's
 * to set. On failure *err is filled and nothing is left allocated. */
int tenant_make(struct tenant **out, const struct tenant_cfg *cfg, const struct tenant_limits *lim,
    struct tenant_err *err);
void tenant_unmake(const struct tenant *t);
/* Nothing to compile again: same configuration. */
bool tenant_same(const struct tenant *t, const struct tenant_cfg *cfg);

static inline uint32_t tenant_name_hash(const char *name)
{
	uint32_t h = 2166136261u;

	for (unsigned i = 0; i < TENANT_NAME_MAX && name[i]; i++)
		h = (h ^ (uint8_t)name[i]) * 16777619u;
	return h ^ h >> 15;
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
