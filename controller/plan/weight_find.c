/* SPDX-License-Identifier: Apache-2.0 */
/* The list of weight algorithms. */
#include <stddef.h>
#include <string.h>

#include "controller/plan/weight.h"

static const struct plan_weight_ops *const all[] = {
#define X(word) &plan_weight_##word,
    PLAN_WEIGHTS(X)
#undef X
};

const struct plan_weight_ops *plan_weight_at(unsigned i)
{
	return i < sizeof(all) / sizeof(all[0]) ? all[i] : NULL;
}

const struct plan_weight_ops *plan_weight_find(const char *name)
{
	const struct plan_weight_ops *o;
	unsigned i;

	for (i = 0; (o = plan_weight_at(i)) != NULL; i++)
		if (strcmp(o->name, name) == 0)
			return o;
	return NULL;
}
