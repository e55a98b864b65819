/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON of networks' paths and tunnels, for two providers: the file of `static` and `linux`, and
 * the messages of `http`. Strict: a field that is unknown, missing, repeated, of a wrong type or
 * out of range is an error that names it.
 */
#ifndef CONTROLLER_PROVIDER_JSON_H
#define CONTROLLER_PROVIDER_JSON_H

#include <jansson.h>

#include "controller/provider/provider.h"

/* A path with its sites, as the files of `static` and `linux` list it. */
struct provider_path {
	char first[PLAN_NAME_MAX], second[PLAN_NAME_MAX]; /* in the order of plan_first_site() */
	struct plan_route route;
	char interface[PLAN_NAME_MAX]; /* linux: the outgoing interface; "": not given */
	char remote[PLAN_NAME_MAX];    /* linux: the destination, ADDRESS[/LENGTH] */
};

#define PROVIDER_PATHS_MAX 4096

/* Optional parts of a document: flags of `have`. */
#define PROVIDER_JSON_SITES 1u /* paths name their sites and have bandwidth_bps */
#define PROVIDER_JSON_LINUX 2u /* paths also have interface and remote */

/*
 * Reads {"paths": [...]}. Without PROVIDER_JSON_SITES paths have free_bps and no sites. `where` is
 * the file or address that messages begin with. Returns how many; the caller frees *out. RWY_EINVAL
 * with a message, RWY_ENOMEM.
 */
int provider_json_paths(struct provider_path **out, const char *text, size_t len, unsigned have,
    const char *where, struct provider_err *err);

/* The same from a file. RWY_ENOENT: the file cannot be read. */
int provider_json_file(struct provider_path **out, const char *file, unsigned have, struct provider_err *err);

/* Reads "steer" of a path. False: *why says which field is wrong. */
bool provider_json_steer(struct plan_steer *out, const json_t *o, char *why, size_t size);
/* The same in JSON, without what is empty. */
json_t *provider_steer_json(const struct plan_steer *s);

/* The body of a PUT of a tunnel. The caller frees it. NULL: no memory. */
char *provider_json_tunnel(
    const char *first, const char *second, const struct plan_route *routes, const struct plan_placement *pl);

/* The legs of a tunnel that is there: reads edge and name of "legs", at most max. Returns how many;
 * PROVIDER_WHOLE: the text says nothing of legs. RWY_EINVAL with a message. */
int provider_json_legs(struct plan_route *out, unsigned max, const char *text, size_t len, const char *where,
    struct provider_err *err);

/* Copies the "error" of an answer, cut at out_len; `other` if there is none. */
void provider_json_error(char *out, size_t out_len, const char *text, size_t len, const char *other);

#endif
