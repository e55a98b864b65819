/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of the engines' tenants: lists made beforehand and applied on the worker's thread in
 * steps. tenants.c makes the next set and publishes it.
 *
 * An engine refuses a VNI that another tenant has. So when a VNI moves from one tenant to another,
 * or two tenants swap theirs, the present owner is first parked under an unused VNI.
 */
#include <stdlib.h>
#include <string.h>

#include "gateway/control/tenants_int.h"

#define SLICE               (50 * RWY_US) /* packets wait at most this long */
#define ACK_MODE_SAME(t, e) static_assert((int)(t) == (int)(e), "the two enums agree")
ACK_MODE_SAME(TENANT_ACK_NEAR, ENG_ACK_NEAR);
ACK_MODE_SAME(TENANT_ACK_FAR, ENG_ACK_FAR);
ACK_MODE_SAME(TENANT_ACK_END, ENG_ACK_END);
static_assert((int)TENANT_ADMISSION_OPEN == (int)ENG_ADMIT_OPEN &&
                  (int)TENANT_ADMISSION_CM == (int)ENG_ADMIT_CM &&
                  (int)TENANT_ADMISSION_CONTROLLER == (int)ENG_ADMIT_CONTROLLER,
    "the two enums agree");
ACK_MODE_SAME(TENANT_ACK_CAUSAL, ENG_ACK_CAUSAL);
ACK_MODE_SAME(TENANT_ACK_SITE, ENG_ACK_SITE);
ACK_MODE_SAME(TENANT_MODES_MAX, ENG_MODES_MAX);
static_assert(TENANT_TUNNELS_MAX <= ENG_TUNNELS_MAX, "a tenant's tunnel is the engine's");
static_assert(TENANT_WEIGHT_MAX <= WAN_WEIGHT_MAX && TENANT_RATE_MIN >= WAN_RATE_MIN, "shares fit");

/* --- lists ----------------------------------------------------------------------------------- */

static void delta_free(struct gw_delta *f)
{
	free(f->op);
	free(f->prefix);
	*f = (struct gw_delta){0};
}

static int delta_new(struct gw_delta *f, unsigned ops, size_t prefixes)
{
	*f = (struct gw_delta){.max = ops, .prefixes_max = prefixes};
	f->op = malloc((ops ? ops : 1) * sizeof(*f->op));
	f->prefix = malloc((prefixes ? prefixes : 1) * sizeof(*f->prefix));
	if (f->op && f->prefix)
		return 0;
	delta_free(f);
	return RWY_ENOMEM;
}

static struct gw_delta_op *delta_last(struct gw_delta *f)
{
	return &f->op[f->n - 1];
}

/* Returns a worker's share of a rate: the workers share every tunnel. At least the smallest allowed
 * rate. */
static uint64_t worker_share(uint64_t rate_Bps, unsigned workers)
{
	uint64_t s = rate_Bps / workers;

	return !rate_Bps || s >= WAN_RATE_MIN ? s : WAN_RATE_MIN;
}

/* No tenant takes more than half of the connection table, so that others always find room. */
static void delta_set(struct gw_delta *f, const struct gw_app *app, const struct tenant *t)
{
	const struct tenant_cfg *c = &t->cfg;
	uint32_t conns = app->conf->conns_max / app->workers + 1,
	         half_open = app->conf->half_open_max / app->workers + 1;
	struct eng_prefix *to = f->prefix + f->prefixes;
	unsigned n = 0;

	for (unsigned i = 0; i < c->prefixes; i++)
		if (c->prefix[i].at.side == TENANT_TUNNEL)
			to[n++] = (struct eng_prefix){.addr = c->prefix[i].p.addr,
			    .len = c->prefix[i].p.len,
			    .tunnel = c->prefix[i].at.tunnel};
	f->prefixes += n;
	f->op[f->n++] = (struct gw_delta_op){.index = t->index,
	    .memory_ppm = c->memory_ppm,
	    .cfg = {.vni = c->vni,
	        .ack_mode = (enum eng_ack_mode)c->ack_mode,
	        .admission = (enum eng_admission)c->admission,
	        .timers = {.timeout_min = c->timers.ack_min,
	            .timeout_max = c->timers.ack_max,
	            .retry = c->timers.retry,
	            .rnr_retry = c->timers.rnr_retry},
	        .flows_max = conns / 2 + 1,
	        .half_open_max = half_open / 2 + 1,
	        .custody = UINT64_MAX,
	        .share = {.guarantee_Bps = worker_share(c->guarantee_Bps, app->workers),
	            .limit_Bps = worker_share(c->limit_Bps, app->workers),
	            .weight = c->weight,
	            .priority = c->priority},
	        .prefix = to,
	        .prefixes = n,
	        .modes = c->modes}};
	struct gw_delta_op *op = delta_last(f);

	for (unsigned i = 0; i < c->modes; i++)
		op->mode[i] = (struct eng_mode){.from = c->mode[i].from.addr,
		    .from_len = c->mode[i].from.len,
		    .to = c->mode[i].to.addr,
		    .to_len = c->mode[i].to.len,
		    .mode = (uint8_t)c->mode[i].mode};
	op->cfg.mode = op->mode;
}

static void delta_remove(struct gw_delta *f, uint32_t index)
{
	f->op[f->n++] = (struct gw_delta_op){.index = index, .remove = true};
}

/* --- from one set to another ----------------------------------------------------------------- */

/* Whether this tenant gives up its VNI and another one may want it. */
static bool vni_moves(const struct tenant_set *next, const struct tenant *was)
{
	const struct tenant *is = tenant_by_index(next, was->index);

	return is ? is->cfg.vni != was->cfg.vni : tenant_by_vni(next, was->cfg.vni) != NULL;
}

/* Parks all tenants whose VNI moves, under VNIs that neither set has. */
static void vni_park(
    struct gw_delta *f, const struct gw_app *app, const struct tenant_set *old, const struct tenant_set *next)
{
	uint32_t vni = TENANT_VNI_MAX;

	for (uint32_t i = 1; i < old->top; i++) {
		const struct tenant *was = tenant_by_index(old, i);

		if (!was || !vni_moves(next, was))
			continue;
		while (tenant_by_vni(old, vni) || tenant_by_vni(next, vni))
			vni--;
		delta_set(f, app, was);
		delta_last(f)->cfg.vni = vni--;
	}
}

static void plan_fill(
    struct gw_plan *p, const struct gw_app *app, const struct tenant_set *old, const struct tenant_set *next)
{
	uint32_t top = old->top > next->top ? old->top : next->top;

	vni_park(&p->forth, app, old, next);
	vni_park(&p->back, app, old, next);
	for (uint32_t i = 1; i < top; i++)
		if (!tenant_by_index(old, i) && tenant_by_index(next, i))
			delta_remove(&p->back, i);
	for (uint32_t i = 1; i < top; i++) {
		const struct tenant *was = tenant_by_index(old, i), *is = tenant_by_index(next, i);

		if (is && is != was)
			delta_set(&p->forth, app, is);
		if (was && ((is && is != was) || vni_moves(next, was)))
			delta_set(&p->back, app, was);
	}
}

int gw_plan_new(
    struct gw_plan *p, const struct gw_app *app, const struct tenant_set *old, const struct tenant_set *next)
{
	uint32_t top = old->top > next->top ? old->top : next->top;
	size_t prefixes = 0;
	unsigned ops = 0;
	int rc;

	*p = (struct gw_plan){0};
	for (uint32_t i = 1; i < top; i++) {
		const struct tenant *was = tenant_by_index(old, i), *is = tenant_by_index(next, i);

		p->added += !was && is;
		p->removed += was && !is;
		p->same += was && was == is;
		p->changed += was && is && was != is;
		if (was == is)
			continue;
		ops += 2; /* park and set */
		prefixes += (was ? 2 * was->cfg.prefixes : 0) + (is ? is->cfg.prefixes : 0);
	}
	rc = delta_new(&p->forth, ops, prefixes);
	if (!rc)
		rc = delta_new(&p->back, ops, prefixes);
	if (rc) {
		gw_plan_free(p);
		return rc;
	}
	plan_fill(p, app, old, next);
	return 0;
}

void gw_plan_free(struct gw_plan *p)
{
	delta_free(&p->forth);
	delta_free(&p->back);
}

/* --- on the worker's thread ------------------------------------------------------------------ */

static int tenant_set(
    struct eng *e, const struct gw_delta_op *op, const struct eng_tenant_cfg *cfg, rwy_time now)
{
	int rc = eng_tenant_set(e, op->index, cfg, now);

	/* A withdrawn change may have left the tenant there: its last connections may have ended by
	 * now. */
	if (rc == RWY_EAGAIN && eng_tenant_remove(e, op->index))
		rc = eng_tenant_set(e, op->index, cfg, now);
	return rc;
}

static int op_apply(struct eng *e, const struct gw_delta_op *op, rwy_time now)
{
	struct eng_tenant_cfg cfg = op->cfg;
	int rc;

	if (op->remove) {
		(void)eng_tenant_remove(e, op->index);
		return 0;
	}
	if (op->memory_ppm)
		cfg.reserve = (uint64_t)((unsigned __int128)eng_custody_max(e) * op->memory_ppm / TENANT_PPM);
	rc = tenant_set(e, op, &cfg, now);
	if (rc == RWY_EINVAL && op->park_vni) {
		cfg.vni = op->park_vni;
		rc = tenant_set(e, op, &cfg, now);
	}
	return rc;
}

struct delta_slice {
	const struct gw_delta *f;
	unsigned at;
	int rc;
};

static void delta_slice(struct eng *e, void *arg)
{
	struct delta_slice *s = arg;
	rwy_time now = gw_now(), end = now + SLICE;

	while (s->at < s->f->n && !s->rc && now < end) {
		s->rc = op_apply(e, &s->f->op[s->at++], now);
		now = gw_now();
	}
}

int gw_delta_send(struct gw_app *app, unsigned worker, const struct gw_delta *f)
{
	struct delta_slice s = {.f = f};
	int rc = 0;

	if (!app->worker[worker])
		return 0;
	while (!rc && !s.rc && s.at < f->n)
		rc = gw_call(app, worker, delta_slice, &s);
	return rc ? rc : s.rc;
}

static size_t prefixes_of(const struct tenant_set *s)
{
	size_t n = 0;

	for (uint32_t i = 1; i < s->top; i++)
		n += tenant_by_index(s, i) ? tenant_by_index(s, i)->cfg.prefixes : 0;
	return n;
}

/* Makes the list of every tenant of a set. */
static int delta_of_set(struct gw_delta *f, const struct gw_app *app, const struct tenant_set *s)
{
	int rc = delta_new(f, s->n, prefixes_of(s));

	for (uint32_t i = 1; i < s->top && !rc; i++)
		if (tenant_by_index(s, i))
			delta_set(f, app, tenant_by_index(s, i));
	return rc;
}

int gw_delta_apply_all(const struct gw_app *app, struct eng *e, const struct tenant_set *s, rwy_time now)
{
	struct gw_delta f;
	int rc = delta_of_set(&f, app, s);

	if (rc)
		return rc;
	for (unsigned i = 0; i < f.n && !rc; i++)
		rc = op_apply(e, &f.op[i], now);
	delta_free(&f);
	return rc;
}

int gw_delta_send_all(struct gw_app *app, unsigned worker, const struct tenant_set *s)
{
	struct gw_delta f;
	int rc = delta_of_set(&f, app, s);

	if (rc)
		return rc;
	rc = gw_delta_send(app, worker, &f);
	delta_free(&f);
	return rc;
}

int gw_delta_resync(struct gw_app *app, unsigned worker, const struct tenant_set *s)
{
	uint32_t vni = TENANT_VNI_MAX;
	struct gw_delta f;
	int rc = delta_new(&f, GW_TENANT_COUNTS + 2 * s->n, 2 * prefixes_of(s));

	if (rc)
		return rc;
	for (uint32_t i = 1; i < GW_TENANT_COUNTS; i++)
		if (!tenant_by_index(s, i))
			delta_remove(&f, i);
	/* A tenant that holds the VNI of another is in the list, too: after one round of parking
	 * all VNIs are free. */
	for (unsigned round = 0; round < 2; round++)
		for (uint32_t i = 1; i < s->top; i++) {
			if (!tenant_by_index(s, i))
				continue;
			delta_set(&f, app, tenant_by_index(s, i));
			if (round)
				continue;
			while (tenant_by_vni(s, vni))
				vni--;
			delta_last(&f)->park_vni = vni--;
		}
	rc = gw_delta_send(app, worker, &f);
	delta_free(&f);
	return rc;
}

/* --- removed tenants ------------------------------------------------------------------------- */

struct retired_slice {
	struct gw_app *app;
	const uint32_t *index;
	unsigned worker, n, at;
};

static void retired_slice(struct eng *e, void *arg)
{
	struct retired_slice *c = arg;
	rwy_time end = gw_now() + SLICE;
	uint64_t me = (uint64_t)1 << c->worker, *done = c->app->tenants->clean;

	do {
		uint32_t i = c->index[c->at++];
		bool hosts, conns;

		if (done[i] & me)
			continue;
		conns = eng_tenant_remove(e, i);
		hosts = gw_tenants_worker_clear(c->app, c->worker, i);
		if (conns && hosts)
			done[i] |= me;
	} while (c->at < c->n && gw_now() < end);
}

int gw_retired_clean(struct gw_app *app, unsigned worker, const uint32_t *index, unsigned n, rwy_time end)
{
	struct retired_slice c = {.app = app, .index = index, .worker = worker, .n = n};
	int rc = 0;

	if (!app->worker[worker]) {
		for (unsigned i = 0; i < n; i++)
			app->tenants->clean[index[i]] |= (uint64_t)1 << worker;
		return 0;
	}
	while (!rc && c.at < n && gw_now() < end)
		rc = gw_call(app, worker, retired_slice, &c);
	return rc;
}
