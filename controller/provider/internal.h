/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the providers: messages, options, and the record of the tunnels that a provider
 * made. */
#ifndef CONTROLLER_PROVIDER_INTERNAL_H
#define CONTROLLER_PROVIDER_INTERNAL_H

#include "controller/provider/provider.h"
#include "controller/provider/json.h"

#define X(word) extern const struct provider_ops provider_##word;
PROVIDERS(X)
#undef X

/* Fills the message and returns `code`. */
__attribute__((format(printf, 3, 4))) int provider_fail(
    struct provider_err *err, int code, const char *fmt, ...);
/* The value of an option; NULL: it is not set. */
const char *provider_option(const struct provider_option *o, unsigned n, const char *name);
/* Checks that all options are among `known` ("name: ...") and that none is repeated. RWY_EINVAL
 * with a message. */
int provider_options_check(
    const struct provider_option *o, unsigned n, const char *const *known, struct provider_err *err);

/* The tunnels that a provider made, and what each takes of the paths: for a provider whose network
 * does not keep account. */
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
	uint64_t *taken; /* bit/s, one for each path */
	unsigned n;
	struct provider_tunnel *tunnels;
};

/* Takes over `path`, also on failure. RWY_ENOMEM: it is freed. */
int provider_made_init(struct provider_made *m, struct provider_path *path, unsigned n);
/* Frees the paths and tunnels. */
void provider_made_fini(struct provider_made *m);
/* A tunnel's share of a path in bit/s; 0 if t is NULL. */
uint64_t provider_tunnel_bps(const struct provider_tunnel *t, unsigned path);
/* As ops->routes. */
int provider_made_routes(const struct provider_made *m, const char *first, const char *second,
    struct plan_route *out, unsigned max);
/* A new tunnel by that name, checked against what is left without the existing one of that name.
 * The caller owns it until provider_made_put(). NULL with *code on an error. */
struct provider_tunnel *provider_made_new(const struct provider_made *m, const char *name, const char *first,
    const char *second, const struct plan_route *routes, const struct plan_placement *pl, int *code,
    struct provider_err *err);
/* The tunnel with this name; NULL: there is none. */
struct provider_tunnel *provider_made_find(const struct provider_made *m, const char *name);
/* Stores the tunnel in place of the one with its name. Takes it over. */
void provider_made_put(struct provider_made *m, struct provider_tunnel *t);
/* Removes and frees the tunnel with this name, if there is one. */
void provider_made_drop(struct provider_made *m, const char *name);
void provider_tunnel_free(struct provider_tunnel *t);

#endif
