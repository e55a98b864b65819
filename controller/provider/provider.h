/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A provider is the way to a network's own controller: it says which paths there are between two sites, makes
 * tunnels on them and takes them away. Implementations: static (a file), http (docs/controller-planning.md
 * has the contract), linux (htb on the interface of the underlay). A new one is one file and one line below.
 *
 * Thread: calls may block up to the provider's timeout: a thread of its own, one call at a time per object.
 */
#ifndef PROVIDER_H
#define PROVIDER_H

#include "controller/plan/place.h"

/* X(word): provider_WORD in provider_WORD.c */
#define PROVIDERS(X)                                                                                         \
	X(static)                                                                                            \
	X(http)                                                                                              \
	X(linux)

#define PROVIDER_ETIMEDOUT (-110) /* the network's controller did not answer in time */
#define PROVIDER_EREFUSED  (-111) /* it answered, and refused: err says why */
#define PROVIDER_EIO       (-5)   /* it cannot be reached */
#define PROVIDER_EBAD      (-71)  /* it answered nonsense, or that it failed */

#define PROVIDER_TUNNEL_MAX 128 /* bytes of a tunnel's name, with its end */

struct provider_err {
	char text[256];
};

/* One option, NAME=VALUE, of the configuration. */
struct provider_option {
	const char *name, *value;
};

struct provider; /* the implementation's own, begins with `const struct provider_ops *ops` */

struct provider_ops {
	const char *name, *help;
	const char *const *options; /* "name: what it is", NULL-ended */
	/* This object alone knows its tunnels, and they are forgotten with it: whoever opens it anew makes
	 * its tunnels again, and so does every replica of the controller. Else a controller of the network
	 * keeps them. */
	bool forgets;
	/* RWY_EINVAL with a message naming option or file and line; RWY_ENOMEM. */
	int (*open)(
	    struct provider **out, const struct provider_option *o, unsigned n, struct provider_err *err);
	/* The same looks at the options, and nothing is opened or changed. NULL: open and close
	 * do no more. */
	int (*check)(const struct provider_option *o, unsigned n, struct provider_err *err);
	void (*close)(struct provider *p); /* tunnels stay */
	/* Paths between two sites, at most max; free_bps is what is left. Returns how many, or an error. */
	int (*routes)(struct provider *p, const char *first, const char *second, struct plan_route *out,
	    unsigned max, struct provider_err *err);
	/* Makes the tunnel `name` as it is placed: all of it or nothing. A name that exists is changed to
	 * this. */
	int (*make)(struct provider *p, const char *name, const char *first, const char *second,
	    const struct plan_route *routes, const struct plan_placement *pl, struct provider_err *err);
	/* Takes it away; one that does not exist is fine. */
	int (*drop)(struct provider *p, const char *name, struct provider_err *err);
};

struct provider {
	const struct provider_ops *ops;
};

/* As open, and closed again; nothing in the network changes. */
RWY_MUST_CHECK int provider_check(
    const struct provider_ops *ops, const struct provider_option *o, unsigned n, struct provider_err *err);
/* NULL: no such. */
const struct provider_ops *provider_find(const char *name);
const struct provider_ops *provider_at(unsigned i);

#endif
