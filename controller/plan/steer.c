/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of a tunnel in granted legs; see steer.h. */
#include "controller/plan/steer.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((format(printf, 2, 3))) static bool fail(struct plan_paths *out, const char *fmt, ...)
{
	va_list ap;

	out->n = 0;
	va_start(ap, fmt);
	(void)vsnprintf(out->why, sizeof(out->why), fmt, ap);
	va_end(ap);
	return false;
}

static bool same_path(const struct plan_steered *p, const struct plan_granted *leg)
{
	return strcmp(p->edge, leg->edge) == 0 && strcmp(p->name, leg->name) == 0;
}

/* --- numbers ---------------------------------------------------------------------------------- */

static struct plan_steered *find(struct plan_paths *p, const struct plan_granted *leg)
{
	for (unsigned i = 0; i < p->n; i++)
		if (same_path(&p->path[i], leg))
			return &p->path[i];
	return NULL;
}

/* A number that nobody has, or one of a path that is granted no more; NULL: all are in use. */
static struct plan_steered *take(struct plan_paths *p)
{
	for (unsigned i = 0; i < p->n; i++)
		if (!p->path[i].bps)
			return &p->path[i];
	return p->n < PLAN_PATHS_MAX ? &p->path[p->n++] : NULL;
}

static void name_path(struct plan_steered *p, const struct plan_granted *leg)
{
	memset(p, 0, sizeof(*p));
	memcpy(p->edge, leg->edge, sizeof(p->edge));
	memcpy(p->name, leg->name, sizeof(p->name));
}

/* Legs that have a number keep it, before the others get theirs. */
static bool number_legs(struct plan_paths *out, const struct plan_granted *leg, unsigned n)
{
	struct plan_steered *p;

	for (unsigned i = 0; i < out->n; i++)
		out->path[i].bps = 0;
	for (unsigned i = 0; i < n; i++)
		if ((p = find(out, &leg[i])) != NULL)
			p->bps += leg[i].bps;
	for (unsigned i = 0; i < n; i++) {
		p = find(out, &leg[i]);
		if (p && p->bps)
			continue;
		p = take(out);
		if (!p)
			return fail(out, "the network granted more than %d paths", PLAN_PATHS_MAX);
		name_path(p, &leg[i]);
		for (unsigned k = i; k < n; k++)
			p->bps += same_path(p, &leg[k]) ? leg[k].bps : 0;
	}
	while (out->n && !out->path[out->n - 1].bps)
		out->n--;
	return true;
}

/* --- addresses -------------------------------------------------------------------------------- */

struct net {
	int family;
	uint8_t b[16];
	unsigned len;
};

static bool parse(struct net *out, const char *text)
{
	char addr[PLAN_NAME_MAX], *slash;

	(void)snprintf(addr, sizeof(addr), "%s", text);
	slash = strchr(addr, '/');
	if (slash)
		*slash++ = '\0';
	out->family = strchr(addr, ':') ? AF_INET6 : AF_INET;
	out->len = out->family == AF_INET ? 32 : 128;
	if (slash)
		out->len = (unsigned)strtoul(slash, NULL, 10);
	return inet_pton(out->family, addr, out->b) == 1;
}

static bool inside(const struct net *a, const struct net *net)
{
	const unsigned bytes = net->len / 8, bits = net->len % 8;

	return a->family == net->family && memcmp(a->b, net->b, bytes) == 0 &&
	       (!bits || (a->b[bytes] ^ net->b[bytes]) >> (8 - bits) == 0);
}

/* The first address of the gateway in the network; NULL: it has none. */
static const char *address_in(const struct plan_underlay *g, const char *net)
{
	struct net want, has;

	if (!parse(&want, net))
		return NULL;
	for (unsigned i = 0; i < g->n; i++)
		if (parse(&has, g->addr[i]) && inside(&has, &want))
			return g->addr[i];
	return NULL;
}

static bool set_addresses(struct plan_paths *out, struct plan_steered *p, const struct plan_steer *s,
    const struct plan_underlay end[2], bool six)
{
	for (unsigned i = 0; i < 2; i++) {
		const char *a = *s->net[i] ? address_in(&end[i], s->net[i]) : "";

		if (!a)
			return fail(out, "path %.63s at %.63s: gateway %.40s has no address in %.63s",
			    p->name, p->edge, end[i].name, s->net[i]);
		/* What is not said is the tunnel's own, which must be of one family with it. */
		if (*a && !*s->net[!i] && (strchr(a, ':') != NULL) != six)
			return fail(out, "path %.63s at %.63s: %.63s is not of the tunnel's family", p->name,
			    p->edge, a);
		(void)snprintf(p->addr[i], sizeof(p->addr[i]), "%s", a);
	}
	return true;
}

void plan_steer_paths(struct plan_paths *out, const struct plan_paths *was, const struct plan_granted *leg,
    unsigned n, const struct plan_underlay end[2], bool six)
{
	*out = *was;
	out->why[0] = '\0';
	for (unsigned i = 0; i < n; i++)
		if (!plan_steers(&leg[i].steer)) {
			(void)fail(out, "path %.63s at %.63s: the network does not say how to get into it",
			    leg[i].name, leg[i].edge);
			return;
		}
	if (!number_legs(out, leg, n))
		return;
	for (unsigned i = 0; i < n; i++) {
		struct plan_steered *p = find(out, &leg[i]);

		if (!p || !p->bps)
			continue;
		p->dscp = leg[i].steer.dscp;
		p->source_port = leg[i].steer.source_port;
		if (!set_addresses(out, p, &leg[i].steer, end, six))
			return;
	}
}
