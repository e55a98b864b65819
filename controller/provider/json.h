/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON of networks' paths and tunnels, for the providers: the `static` file, and what `http` sends and
 * gets. Strict: a field that is unknown, missing, twice, of a wrong type or out of range is an error that
 * names it.
 */
#ifndef CONTROLLER_PROVIDER_JSON_H
#define CONTROLLER_PROVIDER_JSON_H

#include <jansson.h>

#include "controller/provider/provider.h"

/* A path with its sites, as files have it. */
struct provider_path {
	char first[PLAN_NAME_MAX], second[PLAN_NAME_MAX]; /* in plan_first_site's order */
	struct plan_route route;
	char interface[PLAN_NAME_MAX]; /* linux: where it leaves; "": not said */
	char remote[PLAN_NAME_MAX];    /* linux: which destination, ADDRESS[/LENGTH] */
};

#define PROVIDER_PATHS_MAX 4096

/* Parts that a document may have. */
#define PROVIDER_JSON_SITES 1u /* paths name their sites, and have bandwidth_bps */
#define PROVIDER_JSON_LINUX 2u /* ... interface and remote, too */

/*
 * {"paths": [...]}. Without PROVIDER_JSON_SITES paths have free_bps and no sites. Returns how many (*out is
 * the caller's to free), RWY_EINVAL (err says where: `where` is the file or address that the message begins
 * with), RWY_ENOMEM.
 */
int provider_json_paths(struct provider_path **out, const char *text, size_t len, unsigned have,
    const char *where, struct provider_err *err);

/* A file of them. RWY_ENOENT: cannot be read. */
int provider_json_file(struct provider_path **out, const char *file, unsigned have, struct provider_err *err);

/* The body of a tunnel's PUT; NULL: no memory. The caller frees it. */
char *provider_json_tunnel(
    const char *first, const char *second, const struct plan_route *routes, const struct plan_placement *pl);

/* The "error" of an answer, cut; `other` where there is none. */
void provider_json_error(char *out, size_t out_len, const char *text, size_t len, const char *other);

#endif
