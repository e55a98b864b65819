/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/host.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The source of the policy: a file as it was when it was read, or none. */
struct source {
	const char *path; /* NULL: of SHIM_ENV_VIA, or nowhere */
	struct stat st;
};

/* A policy with its users. The last one frees it: a relay may be asked while a new one is read. */
struct held {
	struct shim_policy p;
	unsigned users; /* the process is one */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all below */
static struct held *held;                                /* NULL: it is wrong, or not read yet */
static struct source seen;
static bool read_once;

static struct source source_find(void)
{
	static const char *const files[] = {SHIM_AGENT_FILE, SHIM_FILE};
	const char *file = getenv(SHIM_ENV_FILE);
	struct source s = {0};

	if (getenv(SHIM_ENV_VIA))
		return s;
	if (file) {
		s.path = file;
		if (stat(file, &s.st) != 0)
			memset(&s.st, 0, sizeof(s.st));
		return s;
	}
	for (unsigned i = 0; i < sizeof(files) / sizeof(*files); i++)
		if (stat(files[i], &s.st) == 0) {
			s.path = files[i];
			return s;
		}
	return (struct source){0};
}

static bool source_same(const struct source *a, const struct source *b)
{
	return (a->path == b->path || (a->path && b->path && !strcmp(a->path, b->path))) &&
	       a->st.st_dev == b->st.st_dev && a->st.st_ino == b->st.st_ino &&
	       a->st.st_size == b->st.st_size && a->st.st_mtim.tv_sec == b->st.st_mtim.tv_sec &&
	       a->st.st_mtim.tv_nsec == b->st.st_mtim.tv_nsec;
}

static int policy_read(struct shim_policy *p, const struct source *s, char *err, size_t size)
{
	const char *via = getenv(SHIM_ENV_VIA);

	memset(p, 0, sizeof(*p));
	if (via)
		return shim_policy_via(p, via, err, size);
	return s->path ? shim_policy_file(p, s->path, err, size) : 0;
}

static void end_locked(struct held *h)
{
	if (h && --h->users == 0)
		free(h);
}

/* Relays that did not answer are left out as long as before. */
static void down_keep(struct shim_policy *p, const struct shim_policy *was)
{
	for (unsigned i = 0; i < p->relays; i++)
		for (unsigned k = 0; k < was->relays; k++)
			if (p->relay[i].port == was->relay[k].port &&
			    rwy_ip_eq(&p->relay[i].addr, &was->relay[k].addr))
				p->relay[i].down_until =
				    __atomic_load_n(&was->relay[k].down_until, __ATOMIC_RELAXED);
}

static void policy_load(const struct source *s)
{
	struct held *h = malloc(sizeof(*h));
	char err[400];

	if (!h) {
		shim_say("no memory for the policy");
		return;
	}
	h->users = 1;
	if (policy_read(&h->p, s, err, sizeof(err)) != 0) {
		shim_say("%s%s", err, held ? ": the policy before it counts" : "");
		free(h);
	} else {
		if (held)
			down_keep(&h->p, &held->p);
		end_locked(held);
		held = h;
	}
	seen = *s;
	read_once = true;
}

struct shim_policy *shim_host_policy(void)
{
	struct source s = source_find();
	struct held *h;

	pthread_mutex_lock(&lock);
	if (!read_once || !source_same(&s, &seen))
		policy_load(&s);
	h = held;
	if (h)
		h->users++;
	pthread_mutex_unlock(&lock);
	return h ? &h->p : NULL;
}

void shim_host_policy_end(struct shim_policy *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&lock);
	end_locked((struct held *)((char *)p - offsetof(struct held, p)));
	pthread_mutex_unlock(&lock);
}

const char *shim_host_file(void)
{
	return source_find().path;
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
