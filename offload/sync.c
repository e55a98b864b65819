/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps rules in step with the set. Each tenant has a part, and part 0 has common rules; parts of
 * unchanged tenants are not touched. The order of operations matters here: sync.h says why.
 */
#include "offload/sync.h"

#include <stdlib.h>
#include <string.h>

#include "offload/sync_int.h"

static const char *const why_waits = "a rule that must come before it is not installed";
static const char *const why_memory = "out of memory";

const char *offload_where_name(enum offload_where w)
{
	static const char *const names[] = {"software", "kernel", "hardware"};

	return (unsigned)w <= OFFLOAD_HARDWARE ? names[w] : "?";
}

/* A device repeats few reasons, so each is stored once. */
static const char *why_keep(struct offload_sync *s, const char *text)
{
	unsigned i = 0;

	while (i < s->whys && strcmp(s->why[i], text) != 0)
		i++;
	if (i < s->whys)
		return s->why[i];
	if (s->whys == OFFLOAD_WHYS || !(s->why[i] = strdup(text)))
		return "refused";
	s->whys++;
	return s->why[i];
}

static bool acts(const struct offload_entry *e)
{
	return e->rule.act != OFFLOAD_PASS && e->rule.act != OFFLOAD_NOTHING;
}

static void uninstalled(struct offload_entry *e, const char *why, bool again)
{
	e->where = OFFLOAD_SOFTWARE;
	e->why = why;
	e->again = again;
}

/* --- single operations ------------------------------------------------------------------------ */

static void all_software(struct offload_sync *s, const char *why)
{
	for (uint32_t h = 1; h < s->handles; h++)
		if (s->by_handle[h] && offload_installed(s->by_handle[h]))
			uninstalled(s->by_handle[h], why, true);
}

static int flush(struct offload_sync *s, const char *why)
{
	if (s->ops->flush(s->ctx) != 0)
		return RWY_EAGAIN;
	all_software(s, why);
	return 0;
}

/* Removes a rule. Returns 0: it is gone, perhaps because everything was flushed. */
static int entry_out(struct offload_sync *s, struct offload_entry *e, const char *why)
{
	int rc = s->ops->del(s->ctx, &e->rule, e->handle);

	if (rc && rc != RWY_ENOENT)
		return flush(s, "the device had to be cleared");
	uninstalled(e, why, false);
	return 0;
}

static void entry_in(struct offload_sync *s, struct offload_entry *e, enum offload_where where)
{
	char why[OFFLOAD_WHY] = "refused";
	int rc = s->ops->add(s->ctx, &e->rule, e->handle, &where, why);

	if (rc) {
		why[sizeof(why) - 1] = 0;
		uninstalled(e, why_keep(s, why), rc == RWY_ENOMEM || rc == RWY_EAGAIN);
		return;
	}
	e->where = where;
	e->why = NULL;
	e->again = false;
	e->packets = e->bytes = 0;
	e->counted = false;
}

/* --- dependencies ----------------------------------------------------------------------------- */

static enum offload_where part_limit(const struct offload_part *p, const struct offload_rule *r)
{
	enum offload_where limit = OFFLOAD_HARDWARE;

	for (unsigned i = 0; i < p->n; i++)
		if (!p->e[i]->stale && p->e[i]->where < limit && offload_needs(r, &p->e[i]->rule))
			limit = p->e[i]->where;
	return limit;
}

/* Returns how far a rule may be installed: as far as the passes that it needs are, since a hardware
 * drop would hide a packet from a pass in the kernel. The passes of an ACL or VTEP rule are in its
 * own part. */
static enum offload_where limit_of(const struct offload_sync *s, uint32_t at, const struct offload_rule *r)
{
	enum offload_where limit = OFFLOAD_HARDWARE;

	if (r->what == OFFLOAD_FORWARD)
		return part_limit(&s->part[0], r);
	if (r->what != OFFLOAD_VNI)
		return part_limit(&s->part[at], r);
	for (uint32_t i = 0; i < s->parts && limit; i++) {
		enum offload_where here = part_limit(&s->part[i], r);

		limit = here < limit ? here : limit;
	}
	return limit;
}

/* Whether all passes are in hardware, so that no rule is limited. */
static bool part_whole(const struct offload_part *p)
{
	for (unsigned i = 0; i < p->n; i++)
		if (!p->e[i]->stale && p->e[i]->rule.act == OFFLOAD_PASS &&
		    p->e[i]->where != OFFLOAD_HARDWARE)
			return false;
	return true;
}

/* Removes rules that lack a pass, in all parts: a flush may have removed passes of any part. */
static int unsatisfied_out(struct offload_sync *s)
{
	for (uint32_t i = 0; i < s->parts; i++) {
		struct offload_part *p = &s->part[i];
		const bool whole = i && part_whole(p);

		for (unsigned k = 0; k < p->n; k++) {
			struct offload_entry *e = p->e[k];

			if (!acts(e) || !offload_installed(e) || e->stale)
				continue;
			if ((whole && e->rule.what != OFFLOAD_FORWARD) ||
			    limit_of(s, i, &e->rule) >= e->where)
				continue;
			if (entry_out(s, e, why_waits) != 0)
				return RWY_EAGAIN;
		}
	}
	return 0;
}

/* --- the next set ----------------------------------------------------------------------------- */

static int parts_make(struct offload_sync *s, const struct tenant_set *next)
{
	struct offload_list l = {0};
	int rc = offload_parts_room(s, next->top);

	if (!rc)
		rc = offload_common(&l, &s->cfg, next);
	if (!rc)
		rc = offload_part_make(s, &s->part[0], &l);
	for (uint32_t i = 1; i < s->parts && !rc; i++) {
		const struct tenant *t = tenant_by_index(next, i);
		struct offload_part *p = &s->part[i];

		l.n = 0;
		if ((t ? t->changed : 0) == p->changed)
			continue;
		if (t)
			rc = offload_tenant(&l, &s->cfg, t);
		if (!rc)
			rc = offload_part_make(s, p, &l);
		if (!rc)
			p->changed = t ? t->changed : 0;
	}
	offload_list_fini(&l);
	return rc;
}

/* Removes rules that the next set does not have, and rules that lack a pass. */
static int contradicting_out(struct offload_sync *s)
{
	for (uint32_t i = 0; i < s->parts; i++) {
		struct offload_part *p = &s->part[i];

		for (unsigned k = 0; k < p->n && p->due; k++)
			if (p->e[k]->stale && acts(p->e[k]) && offload_installed(p->e[k]) &&
			    entry_out(s, p->e[k], offload_why_next) != 0)
				return RWY_EAGAIN;
	}
	return unsatisfied_out(s);
}

int offload_sync_prepare(struct offload_sync *s, const struct tenant_set *next)
{
	int rc = parts_make(s, next);

	s->off = rc != 0;
	if (rc) { /* better no rules than half of the old ones */
		for (uint32_t i = 0; i < s->parts; i++)
			s->part[i].changed = UINT64_MAX;
		return flush(s, why_memory);
	}
	for (uint32_t i = 0; i < s->parts; i++) {
		struct offload_part *p = &s->part[i];

		for (unsigned k = 0; k < p->n && p->due; k++)
			if (!p->e[k]->stale && p->e[k]->rule.act == OFFLOAD_PASS &&
			    !offload_installed(p->e[k]))
				entry_in(s, p->e[k], OFFLOAD_HARDWARE);
	}
	return contradicting_out(s);
}

/* --- after publication ------------------------------------------------------------------------ */

static void stale_out(struct offload_sync *s, struct offload_part *p)
{
	unsigned n = 0;

	for (unsigned k = 0; k < p->n; k++) {
		struct offload_entry *e = p->e[k];

		/* a pass that cannot be removed is harmless: it only sends packets to software */
		if (e->stale && offload_installed(e) && entry_out(s, e, offload_why_next) != 0)
			e->why = "it cannot be removed";
		if (e->stale && !offload_installed(e))
			offload_entry_free(s, e);
		else
			p->e[n++] = e;
	}
	p->n = n;
}

static unsigned part_in(struct offload_sync *s, uint32_t at, bool pass, unsigned budget)
{
	struct offload_part *p = &s->part[at];
	enum offload_where limit;
	unsigned n = 0;

	for (unsigned k = 0; k < p->n && n < budget && !s->off; k++) {
		struct offload_entry *e = p->e[k];

		if (offload_installed(e) || e->stale || e->rule.act == OFFLOAD_NOTHING ||
		    (e->rule.act == OFFLOAD_PASS) != pass ||
		    !(e->again || e->why == offload_why_next || e->why == why_waits))
			continue;
		limit = pass ? OFFLOAD_HARDWARE : limit_of(s, at, &e->rule);
		if (limit == OFFLOAD_SOFTWARE) {
			e->why = why_waits;
			continue;
		}
		entry_in(s, e, limit);
		n++;
	}
	return n;
}

void offload_sync_commit(struct offload_sync *s)
{
	for (uint32_t i = 0; i < s->parts; i++)
		if (s->part[i].due)
			stale_out(s, &s->part[i]);
	for (uint32_t i = 0; i < s->parts; i++)
		if (s->part[i].due)
			part_in(s, i, true, UINT32_MAX);
	for (uint32_t i = s->parts; i-- > 0;) { /* part 0 last: it needs passes of the others */
		if (s->part[i].due || !i)
			part_in(s, i, false, UINT32_MAX);
		s->part[i].due = s->part[i].n && s->part[i].e[s->part[i].n - 1]->stale;
	}
}

/* --- events of the device --------------------------------------------------------------------- */

void offload_sync_lost(struct offload_sync *s, const char *why)
{
	all_software(s, why_keep(s, why));
}

unsigned offload_sync_retry(struct offload_sync *s, unsigned budget)
{
	unsigned tried = 0;

	if (contradicting_out(s) != 0)
		return 0;
	for (uint32_t i = 0; i < s->parts && tried < budget; i++)
		tried += part_in(s, i, true, budget - tried);
	for (uint32_t i = s->parts; i-- > 0 && tried < budget;)
		tried += part_in(s, i, false, budget - tried);
	return tried;
}

void offload_sync_seen(struct offload_sync *s, uint32_t handle, enum offload_where where, bool counted,
    uint64_t packets, uint64_t bytes)
{
	struct offload_entry *e = handle && handle < s->handles ? s->by_handle[handle] : NULL;

	if (!e || !offload_installed(e))
		return;
	e->seen = true;
	s->fell = s->fell || where < e->where; /* until rules that need it are removed */
	e->where = where;
	e->counted = counted;
	e->packets = packets;
	e->bytes = bytes;
}

int offload_sync_read(struct offload_sync *s)
{
	int gone = 0;

	for (uint32_t h = 1; h < s->handles; h++)
		if (s->by_handle[h])
			s->by_handle[h]->seen = false;
	if (s->ops->read(s->ctx, s) != 0)
		return RWY_EAGAIN;
	for (uint32_t h = 1; h < s->handles; h++) {
		struct offload_entry *e = s->by_handle[h];

		if (!e || !offload_installed(e) || e->seen)
			continue;
		uninstalled(e, "another process removed it", true);
		gone++;
	}
	s->fell = s->fell || gone;
	if (s->fell && unsatisfied_out(s) != 0)
		return RWY_EAGAIN;
	s->fell = false;
	return gone;
}

/* --- create, free, inspect -------------------------------------------------------------------- */

int offload_sync_new(
    struct offload_sync **out, const struct offload_cfg *cfg, const struct offload_ops *ops, void *ctx)
{
	struct offload_sync *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return RWY_ENOMEM;
	s->cfg = *cfg;
	s->ops = ops;
	s->ctx = ctx;
	rc = offload_parts_room(s, 1);
	if (!rc && ops->flush(ctx) != 0)
		rc = RWY_EAGAIN;
	if (rc) {
		free(s->part);
		free(s);
		return rc;
	}
	*out = s;
	return 0;
}

int offload_sync_free(struct offload_sync *s)
{
	int rc;

	if (!s)
		return 0;
	rc = s->ops->flush(s->ctx) != 0 ? RWY_EAGAIN : 0;
	for (uint32_t i = 0; i < s->parts; i++)
		offload_part_free(s, &s->part[i]);
	for (unsigned i = 0; i < s->whys; i++)
		free(s->why[i]);
	free(s->part);
	free(s->by_handle);
	free(s);
	return rc;
}

void offload_sync_count(const struct offload_sync *s, struct offload_counts *out)
{
	*out = (struct offload_counts){0};
	for (uint32_t h = 1; h < s->handles; h++) {
		const struct offload_entry *e = s->by_handle[h];

		if (!e)
			continue;
		out->hardware += e->where == OFFLOAD_HARDWARE;
		out->kernel += e->where == OFFLOAD_KERNEL;
		out->software += e->where == OFFLOAD_SOFTWARE;
	}
}

void offload_sync_each(
    const struct offload_sync *s, void (*fn)(void *arg, const struct offload_entry *e), void *arg)
{
	for (uint32_t i = 0; i < s->parts; i++)
		for (unsigned k = 0; k < s->part[i].n; k++)
			fn(arg, s->part[i].e[k]);
}
