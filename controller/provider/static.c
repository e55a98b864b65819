/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Provider `static`: a network without a controller. A file lists the paths and their bandwidth.
 * The provider counts in memory what tunnels use; nothing enforces it.
 */
#include <stddef.h>
#include <stdlib.h>

#include "controller/provider/internal.h"

struct static_net {
	struct provider p;
	struct provider_made made;
};

static int net_open(
    struct provider **out, const struct provider_option *o, unsigned n, struct provider_err *err)
{
	const char *file = provider_option(o, n, "file");
	struct provider_path *path = NULL;
	struct static_net *s;
	int rc;

	*out = NULL;
	rc = provider_options_check(o, n, provider_static.options, err);
	if (rc)
		return rc;
	if (!file)
		return provider_fail(err, RWY_EINVAL, "file: is missing");
	rc = provider_json_file(&path, file, PROVIDER_JSON_SITES, err);
	if (rc < 0)
		return rc;
	s = calloc(1, sizeof(*s));
	if (!s || provider_made_init(&s->made, path, (unsigned)rc)) {
		if (!s)
			free(path);
		free(s);
		return provider_fail(err, RWY_ENOMEM, "out of memory");
	}
	s->p.ops = &provider_static;
	*out = &s->p;
	return 0;
}

static void net_close(struct provider *p)
{
	struct static_net *s = (struct static_net *)p;

	if (!s)
		return;
	provider_made_fini(&s->made);
	free(s);
}

static int net_routes(struct provider *p, const char *first, const char *second, struct plan_route *out,
    unsigned max, struct provider_err *err)
{
	return provider_made_routes(&((struct static_net *)p)->made, first, second, out, max);
}

static int net_make(struct provider *p, const char *name, const char *first, const char *second,
    const struct plan_route *routes, const struct plan_placement *pl, struct provider_err *err)
{
	struct static_net *s = (struct static_net *)p;
	struct provider_tunnel *t;
	int rc;

	t = provider_made_new(&s->made, name, first, second, routes, pl, &rc, err);
	if (t)
		provider_made_put(&s->made, t);
	return rc;
}

static int net_drop(struct provider *p, const char *name, struct provider_err *err)
{
	provider_made_drop(&((struct static_net *)p)->made, name);
	return 0;
}

static const char *const options[] = {"file: paths between the sites (docs/controller-planning.md)", NULL};

const struct provider_ops provider_static = {
    .name = "static",
    .help = "paths from a file; no network is asked",
    .options = options,
    .forgets = true,
    .open = net_open,
    .close = net_close,
    .routes = net_routes,
    .make = net_make,
    .drop = net_drop,
};
