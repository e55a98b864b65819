/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the providers: messages, options and made tunnels; see internal.h. */
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/provider/internal.h"

int provider_fail(struct provider_err *err, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return code;
}

const char *provider_option(const struct provider_option *o, unsigned n, const char *name)
{
	unsigned i;

	for (i = 0; i < n; i++)
		if (strcmp(o[i].name, name) == 0)
			return o[i].value;
	return NULL;
}

int provider_options_check(
    const struct provider_option *o, unsigned n, const char *const *known, struct provider_err *err)
{
	size_t len;
	unsigned i, j;

	for (i = 0; i < n; i++) {
		len = strlen(o[i].name);
		for (j = 0; known[j] && (strncmp(known[j], o[i].name, len) != 0 || known[j][len] != ':'); j++)
			;
		if (!known[j])
			return provider_fail(err, RWY_EINVAL, "%.60s: no such option", o[i].name);
		for (j = 0; j < i; j++)
			if (strcmp(o[i].name, o[j].name) == 0)
				return provider_fail(err, RWY_EINVAL, "%.60s: is there twice", o[i].name);
	}
	return 0;
}

int provider_made_init(struct provider_made *m, struct provider_path *path, unsigned n)
{
	*m = (struct provider_made){path, calloc(n ? n : 1, sizeof(*m->taken)), n, NULL};
	if (m->taken)
		return 0;
	free(path);
	m->path = NULL;
	return RWY_ENOMEM;
}

void provider_made_fini(struct provider_made *m)
{
	struct provider_tunnel *t;

	while ((t = m->tunnels) != NULL) {
		m->tunnels = t->next;
		provider_tunnel_free(t);
	}
	free(m->path);
	free(m->taken);
}

static uint64_t left_of(const struct provider_made *m, unsigned i)
{
	uint64_t has = m->path[i].route.free_bps;

	return has > m->taken[i] ? has - m->taken[i] : 0;
}

static bool path_joins(const struct provider_path *p, const char *first, const char *second)
{
	return strcmp(p->first, first) == 0 && strcmp(p->second, second) == 0;
}

int provider_made_routes(const struct provider_made *m, const char *first, const char *second,
    struct plan_route *out, unsigned max)
{
	unsigned i, n = 0;

	for (i = 0; i < m->n && n < max; i++) {
		if (!path_joins(&m->path[i], first, second))
			continue;
		out[n] = m->path[i].route;
		out[n++].free_bps = left_of(m, i);
	}
	return (int)n;
}

struct provider_tunnel *provider_made_find(const struct provider_made *m, const char *name)
{
	struct provider_tunnel *t = m->tunnels;

	while (t && strcmp(t->name, name) != 0)
		t = t->next;
	return t;
}

uint64_t provider_tunnel_bps(const struct provider_tunnel *t, unsigned path)
{
	uint64_t sum = 0;
	unsigned i;

	for (i = 0; t && i < t->n; i++)
		if (t->leg[i].path == path)
			sum += t->leg[i].bps;
	return sum;
}

static int fill_tunnel(struct provider_tunnel *t, const struct provider_made *m, const char *first,
    const char *second, const struct plan_route *routes, const struct plan_placement *pl,
    struct provider_err *err)
{
	const struct provider_tunnel *old = provider_made_find(m, t->name);
	const struct plan_route *r;
	unsigned i, k;

	for (i = 0; i < pl->n; i++) {
		r = &routes[pl->leg[i].route];
		for (k = 0; k < m->n; k++)
			if (path_joins(&m->path[k], first, second) &&
			    strcmp(m->path[k].route.edge, r->edge) == 0 &&
			    strcmp(m->path[k].route.name, r->name) == 0)
				break;
		if (k == m->n)
			return provider_fail(
			    err, PROVIDER_EREFUSED, "no path %.63s at edge %.63s", r->name, r->edge);
		if (provider_tunnel_bps(t, k) + pl->leg[i].bps > left_of(m, k) + provider_tunnel_bps(old, k))
			return provider_fail(err, PROVIDER_EREFUSED,
			    "path %.63s at edge %.63s lacks the bandwidth", r->name, r->edge);
		t->leg[t->n++] = (struct provider_leg){k, pl->leg[i].bps};
	}
	return 0;
}

struct provider_tunnel *provider_made_new(const struct provider_made *m, const char *name, const char *first,
    const char *second, const struct plan_route *routes, const struct plan_placement *pl, int *code,
    struct provider_err *err)
{
	struct provider_tunnel *t = calloc(1, sizeof(*t));

	if (t)
		t->leg = calloc(pl->n ? pl->n : 1, sizeof(*t->leg));
	*code = RWY_ENOMEM;
	if (!t || !t->leg) {
		free(t);
		return NULL;
	}
	if (strlen(name) >= sizeof(t->name)) {
		*code = provider_fail(err, RWY_EINVAL, "%.63s...: the name is too long", name);
	} else {
		memcpy(t->name, name, strlen(name) + 1);
		*code = fill_tunnel(t, m, first, second, routes, pl, err);
	}
	if (*code == 0)
		return t;
	provider_tunnel_free(t);
	return NULL;
}

static void count(struct provider_made *m, const struct provider_tunnel *t, bool add)
{
	unsigned i;

	for (i = 0; i < t->n; i++) {
		if (add)
			m->taken[t->leg[i].path] += t->leg[i].bps;
		else
			m->taken[t->leg[i].path] -= t->leg[i].bps;
	}
}

void provider_made_put(struct provider_made *m, struct provider_tunnel *t)
{
	provider_made_drop(m, t->name);
	count(m, t, true);
	t->next = m->tunnels;
	m->tunnels = t;
}

void provider_made_drop(struct provider_made *m, const char *name)
{
	struct provider_tunnel **at = &m->tunnels, *t;

	while (*at && strcmp((*at)->name, name) != 0)
		at = &(*at)->next;
	t = *at;
	if (!t)
		return;
	*at = t->next;
	count(m, t, false);
	provider_tunnel_free(t);
}

void provider_tunnel_free(struct provider_tunnel *t)
{
	if (t)
		free(t->leg);
	free(t);
}
