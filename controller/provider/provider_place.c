/* SPDX-License-Identifier: Apache-2.0 */
/* Asking, placing and making in one: what changes between question and request is looked at again. */
#include <stddef.h>

#include "controller/provider/provider.h"

#define TRIES 3

int provider_place(struct provider *p, const char *name, const char *first, const char *second,
    const struct plan_want *want, struct plan_route *routes, unsigned *n_routes, struct plan_placement *out,
    struct provider_err *err)
{
	unsigned i;
	int n, rc = PROVIDER_EREFUSED;

	*n_routes = 0;
	err->text[0] = '\0';
	for (i = 0; i < TRIES && rc == PROVIDER_EREFUSED; i++) {
		n = p->ops->routes(p, first, second, routes, PLAN_ROUTES_MAX, err);
		if (n < 0)
			return n;
		*n_routes = (unsigned)n;
		rc = plan_place(out, want, routes, *n_routes);
		if (rc)
			return rc;
		if (out->fail != PLAN_PLACED)
			return RWY_EAGAIN;
		rc = p->ops->make(p, name, first, second, routes, out, err);
	}
	return rc;
}
