/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A provider talks to a network's own controller: it lists the paths between two sites, makes
 * tunnels on them and removes them. Implementations: static (a file), http
 * (docs/controller-planning.md has the contract), linux (htb on the underlay's interface). A new
 * one is one file and one line below.
 *
 * Thread: calls may block up to the provider's timeout. So each object has a thread of its own,
 * which makes one call at a time.
 */
#ifndef PROVIDER_H
#define PROVIDER_H

#include "controller/plan/place.h"

/* X(word): provider_WORD in WORD.c */
#define PROVIDERS(X)                                                                                         \
	X(static)                                                                                            \
	X(http)                                                                                              \
	X(linux)

#define PROVIDER_ETIMEDOUT (-110) /* the network's controller did not answer in time */
#define PROVIDER_EREFUSED  (-111) /* it refused; err says why */
#define PROVIDER_EIO       (-5)   /* it cannot be reached */
#define PROVIDER_EBAD      (-71)  /* its answer is invalid or says that it failed */

#define PROVIDER_WHOLE 1000000 /* legs: all of a tunnel's */

#define PROVIDER_TUNNEL_MAX 128 /* bytes of a tunnel's name with its 0 */

struct provider_err {
	char text[256];
};

/* One option of the configuration, NAME=VALUE. */
struct provider_option {
	const char *name, *value;
};

struct provider; /* the implementation's object; it begins with `const struct provider_ops *ops` */

struct provider_ops {
	const char *name, *help;
	const char *const *options; /* "name: meaning", NULL-terminated */
	/* Only this object knows its tunnels, and closing it loses them: after opening, the caller
	 * makes its tunnels again, and so does every replica of the controller. If false, the
	 * network's controller keeps them. */
	bool forgets;
	/* RWY_EINVAL with a message that names the option or file and line; RWY_ENOMEM. */
	int (*open)(
	    struct provider **out, const struct provider_option *o, unsigned n, struct provider_err *err);
	/* Checks the options as `open` does, but opens and changes nothing. NULL: the caller opens
	 * and closes instead. */
	int (*check)(const struct provider_option *o, unsigned n, struct provider_err *err);
	void (*close)(struct provider *p); /* frees the object; tunnels stay */
	/* The paths between two sites, at most max; free_bps is what is left. Returns how many, or
	 * an error. */
	int (*routes)(struct provider *p, const char *first, const char *second, struct plan_route *out,
	    unsigned max, struct provider_err *err);
	/* Makes the tunnel `name` as it is placed, completely or not at all. If the name exists,
	 * changes it. */
	int (*make)(struct provider *p, const char *name, const char *first, const char *second,
	    const struct plan_route *routes, const struct plan_placement *pl, struct provider_err *err);
	/* Removes a tunnel. A name that does not exist is no error. */
	int (*drop)(struct provider *p, const char *name, struct provider_err *err);
	/* Which legs of the tunnel are there: fills edge and name of at most max. Returns how many,
	 * 0: it is not there; PROVIDER_WHOLE: all of it; or an error. NULL: nobody but this process
	 * can lose it. */
	int (*has)(struct provider *p, const char *name, struct plan_route *out, unsigned max,
	    struct provider_err *err);
};

struct provider {
	const struct provider_ops *ops;
};

/* Checks the options as opening does; nothing in the network changes. Errors as `open`. */
RWY_MUST_CHECK int provider_check(
    const struct provider_ops *ops, const struct provider_option *o, unsigned n, struct provider_err *err);
/* The provider with this name; NULL: there is none. */
const struct provider_ops *provider_find(const char *name);
/* The i-th provider, NULL after the last: for help texts and messages. */
const struct provider_ops *provider_at(unsigned i);

#endif
