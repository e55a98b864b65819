/* SPDX-License-Identifier: Apache-2.0 */
/* Shared parts of the providers: messages, options, and the memory of what was made where. */
#ifndef CONTROLLER_PROVIDER_INTERNAL_H
#define CONTROLLER_PROVIDER_INTERNAL_H

#include "controller/provider/provider.h"
#include "controller/provider/json.h"

#define X(word) extern const struct provider_ops provider_##word;
PROVIDERS(X)
#undef X

/* Sets the message and returns `code`. */
__attribute__((format(printf, 3, 4))) int provider_fail(
    struct provider_err *err, int code, const char *fmt, ...);
/* The value of an option; NULL: not there. */
const char *provider_option(const struct provider_option *o, unsigned n, const char *name);
/* All options are among `known` ("name: ..."), and none is twice. RWY_EINVAL with a message. */
int provider_options_check(
    const struct provider_option *o, unsigned n, const char *const *known, struct provider_err *err);

/* Tunnels that were made, by a provider that has to know by itself what is left of each path. */
struct provider_leg {
	unsigned path; /* index into the paths */
	uint64_t bps;
};

struct provider_tunnel {
	char name[PROVIDER_TUNNEL_MAX];
	unsigned n;
	struct provider_leg *leg;
	struct provider_tunnel *next;
};

struct provider_made {
	struct provider_path *path;
	uint64_t *taken; /* one for each path */
	unsigned n;
	struct provider_tunnel *tunnels;
};

/* Takes `path` over. RWY_ENOMEM: it is freed. */
int provider_made_init(struct provider_made *m, struct provider_path *path, unsigned n);
void provider_made_fini(struct provider_made *m);
/* A tunnel's share of a path, bits a second; t may be NULL: 0. */
uint64_t provider_tunnel_bps(const struct provider_tunnel *t, unsigned path);
/* As ops->routes. */
int provider_made_routes(const struct provider_made *m, const char *first, const char *second,
    struct plan_route *out, unsigned max);
/* The tunnel as it would be; checked against what is left without the one of that name. NULL with *code. */
struct provider_tunnel *provider_made_new(const struct provider_made *m, const char *name, const char *first,
    const char *second, const struct plan_route *routes, const struct plan_placement *pl, int *code,
    struct provider_err *err);
struct provider_tunnel *provider_made_find(const struct provider_made *m, const char *name);
/* In place of what has its name. Takes it over. */
void provider_made_put(struct provider_made *m, struct provider_tunnel *t);
void provider_made_drop(struct provider_made *m, const char *name);
void provider_tunnel_free(struct provider_tunnel *t);

#endif
