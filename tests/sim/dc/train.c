/* SPDX-License-Identifier: Apache-2.0 */
/* A training step's messages; see train.h. The schedule is pipe.c's. */
#include "tests/sim/dc/train.h"

#include <stdlib.h>
#include <string.h>

#include "tests/sim/dc/gw.h"
#include "tests/sim/dc/nic.h"

#define QUIET_START (250 * RWY_MS) /* a gateway's quiet time, before connections are learned */
#define WARM_LIMIT  (60 * RWY_SEC)

static rwy_dur rtt(const struct train *t)
{
	return (rwy_dur)dc_rtt(t->dc, 0, t->dc->sites - 1);
}

/* --- the places of GPUs ----------------------------------------------------------------------- */

static unsigned site_of(const struct train *t, unsigned stage)
{
	return (stage >= (unsigned)t->cfg.split) + (t->cfg.third > 0 && stage >= (unsigned)t->cfg.third);
}

static unsigned local_stage(const struct train *t, unsigned stage)
{
	const unsigned first[DC_SITES_MAX] = {0, (unsigned)t->cfg.split, (unsigned)t->cfg.third};

	return stage - first[site_of(t, stage)];
}

static unsigned host_of(const struct train *t, unsigned stage, unsigned gpu)
{
	return site_of(t, stage) * t->dc->per_site + local_stage(t, stage) * (unsigned)t->cfg.tp + gpu;
}

static bool same_server(const struct train *t, unsigned a, unsigned b)
{
	unsigned n = (unsigned)t->cfg.server;

	return site_of(t, a) == site_of(t, b) && local_stage(t, a) / n == local_stage(t, b) / n;
}

/* --- messages between stages ---------------------------------------------------------------------------- */

static unsigned least(const struct train *t, const unsigned *of)
{
	unsigned n = of[0];

	for (unsigned i = 1; i < (unsigned)t->cfg.tp; i++)
		n = of[i] < n ? of[i] : n;
	return n;
}

static void note(double *sum, double *max, rwy_dur d)
{
	*sum += (double)d;
	if ((double)d > *max)
		*max = (double)d;
}

static unsigned gpu_of(const struct train_link *l, const struct qp *qp)
{
	unsigned i = 0;

	while (l->qp[i] != qp)
		i++;
	return i;
}

static void on_there(struct dc_msg *m, rwy_time now)
{
	struct train_link *l = m->ctx;
	struct train *t = l->t;

	l->there_of[gpu_of(l, m->qp)]++;
	if (least(t, l->there_of) == l->there)
		return;
	if (l->wan) {
		t->wan.n++;
		note(&t->wan.there_sum, &t->wan.there_max, now - l->posted[l->there]);
	}
	l->there++;
	if (l->wan && t->cfg.ahead > 0)
		t->near--;
	pipe_arrived(&t->pipe, l->to, l->kind, now);
}

static void on_complete(struct dc_msg *m, bool failed, rwy_time now)
{
	struct train_link *l = m->ctx;
	struct train *t = l->t;

	if (failed) {
		t->broken = true;
		return;
	}
	l->complete_of[gpu_of(l, m->qp)]++;
	if (least(t, l->complete_of) == l->complete)
		return;
	if (l->wan)
		note(&t->wan.complete_sum, &t->wan.complete_max, now - l->posted[l->complete]);
	l->complete++;
	pipe_sent(&t->pipe, l->from, now);
}

/* A message within a server: it takes a time but no packets. */
static void on_due(struct ev *ev, rwy_time now)
{
	struct train_link *l = EV_OWNER(ev, struct train_link, ev);
	struct train *t = l->t;

	l->there++;
	l->complete++;
	if (l->there < l->sent)
		ev_set(&t->dc->evq, ev, l->due[l->there]);
	pipe_arrived(&t->pipe, l->to, l->kind, now);
	pipe_sent(&t->pipe, l->from, now);
}

static void send(void *ctx, unsigned stage, enum pipe_kind kind, rwy_time now)
{
	struct train *t = ctx;
	struct train_link *l = &t->link[kind][stage];
	uint64_t bytes = (uint64_t)(t->cfg.act / t->cfg.tp);

	l->posted[l->sent] = now;
	if (!t->cfg.net) {
		pipe_arrived(&t->pipe, l->to, kind, now);
		pipe_sent(&t->pipe, stage, now);
		return;
	}
	if (l->qp[0]) {
		l->sent++;
		for (unsigned i = 0; i < (unsigned)t->cfg.tp; i++)
			if (!dc_post(l->qp[i], bytes, on_there, on_complete, l, now))
				t->broken = true;
		return;
	}
	l->due[l->sent] = rwy_time_max(now, l->sent ? l->due[l->sent - 1] : 0) +
	                  (rwy_dur)((double)bytes * 8e9 / t->cfg.nvlink);
	if (l->sent++ == l->there)
		ev_set(&t->dc->evq, &l->ev, l->due[l->there]);
}

/* --- cross traffic ---------------------------------------------------------------------------- */

static void cross_complete(struct dc_msg *m, bool failed, rwy_time now);

static void cross_post(struct train_cross *c, rwy_time now)
{
	const struct scen *s = &c->t->dc->s;

	while (c->outstanding < (unsigned)s->depth && !c->t->end && (c->t->near || !c->t->cfg.ahead) &&
	       dc_post(c->qp, (uint64_t)s->msg, NULL, cross_complete, c, now))
		c->outstanding++;
}

static void cross_complete(struct dc_msg *m, bool failed, rwy_time now)
{
	struct train_cross *c = m->ctx;

	c->outstanding--;
	if (!failed)
		cross_post(c, now);
}

static void on_near(struct ev *ev, rwy_time now)
{
	struct train *t = EV_OWNER(ev, struct train_link, near_ev)->t;

	t->near++;
	for (unsigned i = 0; i < t->crosses; i++)
		cross_post(&t->cross[i], now);
}

/* --- passes --------------------------------------------------------------------------------------------- */

static void on_computed(struct ev *ev, rwy_time now)
{
	struct train_gpu *g = EV_OWNER(ev, struct train_gpu, ev);

	pipe_computed(&g->t->pipe, (unsigned)(g - g->t->gpu), now);
}

static void compute(void *ctx, unsigned stage, rwy_dur time, rwy_time now)
{
	struct train *t = ctx;
	unsigned micro;
	struct train_link *l = &t->link[pipe_op(&t->pipe.cfg, stage, t->pipe.stage[stage].op, &micro)][stage];
	rwy_dur ahead = (rwy_dur)t->cfg.ahead;

	ev_set(&t->dc->evq, &t->gpu[stage].ev, now + time);
	if (l->wan && ahead)
		ev_set(&t->dc->evq, &l->near_ev, now + (time > ahead ? time - ahead : 0));
}

static void on_span(
    void *ctx, unsigned stage, enum pipe_span span, unsigned micro, rwy_time from, rwy_time to)
{
	static const char *const names[] = {"forward", "backward", "send", "wait"};
	struct train *t = ctx;

	if (t->spans)
		fprintf(t->spans, "%u,%s,%u,%.6f,%.6f\n", stage, names[span], micro,
		    (double)(from - t->dc->zero) / 1e9, (double)(to - t->dc->zero) / 1e9);
}

/* --- connections ---------------------------------------------------------------------------------------- */

static void warm_complete(struct dc_msg *m, bool failed, rwy_time now)
{
	struct train *t = m->ctx;

	t->warming--;
}

static bool warm_over(void *ctx)
{
	const struct train *t = ctx;

	return !t->warming && !t->dc->msgs_live;
}

static bool all_up(void *ctx)
{
	return dc_gws_up(ctx);
}

static struct qp *connect(struct train *t, unsigned src, unsigned dst)
{
	struct qp *qp = dc_qp_new(t->dc, src, dst);

	t->warming++;
	dc_post(qp, (uint64_t)t->dc->s.pmtu, NULL, warm_complete, t, t->dc->evq.now);
	return qp;
}

static void connect_link(struct train *t, struct train_link *l)
{
	if (same_server(t, l->from, l->to) || !t->cfg.net)
		return;
	l->wan = site_of(t, l->from) != site_of(t, l->to);
	for (unsigned i = 0; i < (unsigned)t->cfg.tp; i++)
		l->qp[i] = connect(t, host_of(t, l->from, i), host_of(t, l->to, i));
}

/* The hosts of the cross traffic are on the last leaf of each site. */
static void connect_cross(struct train *t)
{
	struct dc *dc = t->dc;

	for (unsigned i = 0; i < t->crosses; i++) {
		unsigned host = dc->per_site - dc->per_leaf + i / 2 % dc->per_leaf, back = i % 2;

		t->cross[i].t = t;
		t->cross[i].qp =
		    connect(t, host + (back ? dc->per_site : 0), host + (back ? 0 : dc->per_site));
	}
}

static void connect_all(struct train *t)
{
	struct dc *dc = t->dc;

	dc->warm = true;
	if (dc->gw[0]) {
		dc_run(dc, dc->evq.now + WARM_LIMIT, all_up, dc);
		dc_run(dc, dc->zero + QUIET_START, NULL, NULL);
	}
	for (unsigned s = 0; s + 1 < (unsigned)t->cfg.stages; s++) {
		connect_link(t, &t->link[PIPE_FWD][s]);
		connect_link(t, &t->link[PIPE_BWD][s + 1]);
	}
	connect_cross(t);
	dc_run(dc, dc->evq.now + WARM_LIMIT, warm_over, t);
	dc_run(dc, dc->evq.now + 2 * rtt(t) + 10 * RWY_MS, NULL, NULL);
	dc->warm = false;
	dc->zero = dc->evq.now;
	dc->c = (struct dc_counts){
	    .resent_warm = dc->c.resent_warm, .violations = dc->c.violations, .qp_errors = dc->c.qp_errors};
	if (dc->gw[0] && t->cfg.guarantee > 0)
		train_class(t);
}

/* --- making and freeing ----------------------------------------------------------------------- */

static void link_init(struct train *t, enum pipe_kind kind, unsigned stage)
{
	struct train_link *l = &t->link[kind][stage];
	size_t n = (size_t)t->cfg.micro;

	l->t = t;
	l->kind = kind;
	l->from = stage;
	l->to = kind == PIPE_FWD ? stage + 1 : stage - 1;
	l->ev.fn = on_due;
	l->near_ev.fn = on_near;
	l->due = calloc(n, sizeof(*l->due));
	l->posted = calloc(n, sizeof(*l->posted));
	if (!l->due || !l->posted)
		abort();
}

void train_init(struct train *t, struct dc *dc, const struct train_cfg *cfg, FILE *spans)
{
	memset(t, 0, sizeof(*t));
	t->dc = dc;
	t->cfg = *cfg;
	t->spans = spans;
	t->crosses = 2 * (unsigned)cfg->cross;
	t->cross = calloc(t->crosses + 1, sizeof(*t->cross));
	if (!t->cross)
		abort();
	for (unsigned s = 0; s < (unsigned)cfg->stages; s++) {
		t->gpu[s].t = t;
		t->gpu[s].ev.fn = on_computed;
		link_init(t, PIPE_FWD, s);
		link_init(t, PIPE_BWD, s);
	}
}

static bool step_over(void *ctx)
{
	const struct train *t = ctx;

	return t->pipe.done || t->broken;
}

static bool drained(void *ctx)
{
	const struct train *t = ctx;

	return !t->dc->msgs_live && dc_quiet(t->dc);
}

static void check(struct train *t)
{
	struct dc *dc = t->dc;

	if (dc->msgs_live)
		dc_violation(dc, "messages that never ended", dc->msgs_live, dc->c.posted);
	else if (dc->c.posted != dc->c.completed + dc->c.failed)
		dc_violation(dc, "messages completed", dc->c.completed, dc->c.posted);
	if (!dc->c.qp_errors && dc->c.posted != dc->c.delivered)
		dc_violation(dc, "messages delivered", dc->c.delivered, dc->c.posted);
	if (!dc->c.qp_errors && !dc_quiet(dc))
		dc_violation(dc, "not quiet at the end: packets", dc->pkts_live, 0);
}

void train_run(struct train *t)
{
	static const struct pipe_ops ops = {compute, send, on_span};
	const struct train_cfg *c = &t->cfg;
	rwy_dur fwd = (rwy_dur)(c->slot / 3), fwd2 = (rwy_dur)(c->slot2 / 3);
	struct pipe_cfg p = {.stages = (unsigned)c->stages,
	    .micro = (unsigned)c->micro,
	    .early = (unsigned)c->early,
	    .boundary = (unsigned)c->split,
	    .boundary2 = (unsigned)c->third,
	    .overlap = c->overlap,
	    .fwd = fwd,
	    .bwd = (rwy_dur)c->slot - fwd,
	    .fwd2 = fwd2,
	    .bwd2 = (rwy_dur)c->slot2 - fwd2};
	struct dc *dc = t->dc;
	uint64_t cross = 0;

	connect_all(t);
	if (t->spans)
		fprintf(t->spans, "stage,what,micro,from_s,to_s\n");
	t->fired = dc->evq.fired;
	for (unsigned i = 0; i < t->crosses; i++) {
		t->cross[i].rx_before = t->cross[i].qp->rx_bytes;
		cross_post(&t->cross[i], dc->evq.now);
	}
	pipe_start(&t->pipe, &p, &ops, t, dc->evq.now);
	dc_run(dc, dc->zero + (rwy_dur)c->limit, step_over, t);
	t->broken |= !t->pipe.done;
	t->end = dc->evq.now;
	t->fired = dc->evq.fired - t->fired;
	for (unsigned i = 0; i < t->crosses; i++)
		cross += t->cross[i].qp->rx_bytes - t->cross[i].rx_before;
	t->cross_gbps = (double)cross * 8 / (double)(t->end - dc->zero);
	dc_run(dc, t->end + (rwy_dur)dc->s.drain, drained, t);
	if (!t->broken)
		check(t);
}

void train_fini(struct train *t)
{
	for (unsigned k = 0; k < 2; k++)
		for (unsigned s = 0; s < (unsigned)t->cfg.stages; s++) {
			free(t->link[k][s].due);
			free(t->link[k][s].posted);
		}
	free(t->cross);
}
