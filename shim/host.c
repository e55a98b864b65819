/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/host.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct shim_policy policy;
static bool good;

static void load(void)
{
	char err[400];

	good = shim_policy_load(&policy, err, sizeof(err)) == 0;
	if (!good)
		shim_say("%s", err);
}

struct shim_policy *shim_host_policy(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load);
	return good ? &policy : NULL;
}

void shim_say(const char *fmt, ...)
{
	int was = errno;
	char line[600];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line) - 1, fmt, ap);
	va_end(ap);
	if (n >= (int)sizeof(line) - 1)
		n = sizeof(line) - 2;
	/* One write: lines of several threads stay whole. */
	dprintf(STDERR_FILENO, "roceway: %.*s\n", n, line);
	errno = was;
}

const char *shim_ip_text(const struct rwy_ip *a)
{
	static _Thread_local char text[8][INET6_ADDRSTRLEN];
	static _Thread_local unsigned turn;
	char *out = text[turn++ % 8];
	bool is4 = rwy_ip_is4(a);

	inet_ntop(is4 ? AF_INET : AF_INET6, a->b + (is4 ? 12 : 0), out, INET6_ADDRSTRLEN);
	return out;
}

void *shim_next(const char *library, const char *name, const char *version)
{
	void *lib = dlopen(library, RTLD_NOW), *f = lib ? dlvsym(lib, name, version) : NULL;

	if (!f) {
		shim_say("%s has no %s of version %s: %s", library, name, version, dlerror());
		abort();
	}
	return f;
}
