/* SPDX-License-Identifier: Apache-2.0 */
/* The list of providers. */
#include <stddef.h>
#include <string.h>

#include "controller/provider/internal.h"

static const struct provider_ops *const all[] = {
#define X(word) &provider_##word,
    PROVIDERS(X)
#undef X
};

const struct provider_ops *provider_at(unsigned i)
{
	return i < sizeof(all) / sizeof(all[0]) ? all[i] : NULL;
}

int provider_check(
    const struct provider_ops *ops, const struct provider_option *o, unsigned n, struct provider_err *err)
{
	struct provider *p;
	int rc;

	if (ops->check)
		return ops->check(o, n, err);
	rc = ops->open(&p, o, n, err);
	if (!rc)
		ops->close(p);
	return rc;
}

const struct provider_ops *provider_find(const char *name)
{
	const struct provider_ops *o;
	unsigned i;

	for (i = 0; (o = provider_at(i)) != NULL; i++)
		if (strcmp(o->name, name) == 0)
			return o;
	return NULL;
}
