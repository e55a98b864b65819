/* SPDX-License-Identifier: Apache-2.0 */
/* The scenario's work; see work.h. */
#include "tests/sim/dc/work.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/dc/gw.h"
#include "tests/sim/dc/nic.h"

#define WARM_LIMIT (30 * RWY_SEC)
/* For this time a gateway that has just started asks no host (probe_timeout): a late answer must
 * not name the wrong flow. */
#define QUIET_START (250 * RWY_MS)

static const struct scen *scen(const struct work *w)
{
	return &w->dc->s;
}

static rwy_time at(const struct work *w, double t)
{
	return w->dc->zero + (rwy_dur)t;
}

/* --- times of messages -------------------------------------------------------------------------------- */

static void fct_add(struct work *w, struct fct *f, const struct dc_msg *m, rwy_time from, rwy_time now)
{
	double us = (double)(now - from) / 1e3;

	if (from < at(w, scen(w)->skip))
		return;
	if (f->n == f->cap) {
		f->cap = f->cap ? f->cap * 2 : 4096;
		f->us = realloc(f->us, f->cap * sizeof(*f->us));
		if (!f->us)
			abort();
	}
	f->us[f->n++] = (float)us;
	f->sum += us;
	if (m->bytes < 100000) {
		f->small_sum += us;
		f->small_n++;
	} else if (m->bytes >= 1000000) {
		f->large_sum += us;
		f->large_n++;
	}
}

/* --- long-lived flows ------------------------------------------------------------------------------------
 */

static void flow_post(struct flow *f, rwy_time now);

static void flow_delivered(struct dc_msg *m, rwy_time now)
{
	struct flow *f = m->ctx;
	const struct scen *s = scen(f->w);

	fct_add(f->w, &f->w->flow_fct[0], m, m->posted, now);
	if (s->fsize > 0 && m->first + m->pkts == f->qp->end && (double)f->posted >= s->fsize)
		f->done = now;
}

static void flow_complete(struct dc_msg *m, bool failed, rwy_time now)
{
	struct flow *f = m->ctx;

	f->outstanding--;
	if (failed)
		return;
	fct_add(f->w, &f->w->flow_fct[1], m, m->posted, now);
	flow_post(f, now);
}

static void flow_post(struct flow *f, rwy_time now)
{
	const struct scen *s = scen(f->w);

	while (f->outstanding < (unsigned)s->depth && now < at(f->w, s->stop) &&
	       (s->fsize <= 0 || (double)f->posted < s->fsize)) {
		double left = s->fsize > 0 ? s->fsize - (double)f->posted : s->msg;
		uint64_t bytes = (uint64_t)(left < s->msg ? left : s->msg);

		if (!dc_post(f->qp, bytes, flow_delivered, flow_complete, f, now))
			return;
		f->outstanding++;
		f->posted += bytes;
	}
}

static void flow_start(struct ev *ev, rwy_time now)
{
	struct flow *f = EV_OWNER(ev, struct flow, ev);

	f->began = now;
	flow_post(f, now);
}

static unsigned host_at(const struct dc *dc, unsigned n)
{
	return (n % dc->leaves) * dc->per_leaf + n / dc->leaves % dc->per_leaf;
}

/* pairs: host i to host i of the other site, all hosts in turn; incast: to the first host; onesrc:
 * from the first; all: from each to each, the first n flows as with pairs, then each to the next. */
static void flow_place(struct flow *f, unsigned i)
{
	const struct dc *dc = f->w->dc;
	const struct scen *s = scen(f->w);
	unsigned back = (s->bidir > 0) && (i & 1), n = s->bidir > 0 ? i / 2 : i;
	/* Consecutive flows use different leaves (host_at), so that they do not share one
	 * needlessly. */
	const unsigned hosts = s->fhosts > 0 ? (unsigned)s->fhosts : dc->per_site;
	unsigned host = host_at(dc, n % hosts);

	f->src = s->place == PLACE_ONESRC ? 0 : host;
	f->dst = s->place == PLACE_INCAST ? 0
	         : s->place == PLACE_ALL  ? host_at(dc, (n + n / hosts) % hosts)
	                                  : host;
	f->src += back ? dc->per_site : 0;
	f->dst += back ? 0 : dc->per_site;
}

/* --- Poisson messages --------------------------------------------------------------------------------------
 */

static void poisson_delivered(struct dc_msg *m, rwy_time now)
{
	struct poisson *p = m->ctx;

	fct_add(p->w, &p->w->fct[p->inter], m, m->posted, now);
}

static void ip_there(void *ctx, uint32_t bytes, rwy_time posted, rwy_time now)
{
	struct work *w = ctx;
	struct dc_msg m = {.bytes = bytes};

	fct_add(w, &w->fct[1], &m, posted, now);
}

static void poisson_fire(struct ev *ev, rwy_time now)
{
	struct poisson *p = EV_OWNER(ev, struct poisson, ev);
	struct work *w = p->w;
	const struct scen *s = scen(w);
	unsigned n = w->dc->per_site;
	uint64_t bytes;

	if (now >= at(w, s->stop))
		return;
	if (p->inter) {
		struct qp *qp = w->xqp[p->site * w->xqps + rng_next(&p->rng) % w->xqps];

		bytes = size_draw(
		    s->xsize > 0 ? SIZES_FIXED : s->sizes, s->xsize > 0 ? s->xsize : s->isize, &p->rng);
		if (s->xop == XOP_IP)
			dc_ip_send(w->dc, qp->src, qp->dst, (uint32_t)bytes, now);
		else
			dc_post(qp, bytes, poisson_delivered, NULL, p, now);
	} else {
		unsigned src = (unsigned)(rng_next(&p->rng) % n),
		         dst = (unsigned)(rng_next(&p->rng) % (n - 1));
		struct qp *qp;

		dst += dst >= src;
		bytes = size_draw(s->sizes, s->isize, &p->rng);
		qp = dc_qp_new(w->dc, p->site * n + src, p->site * n + dst);
		dc_post(qp, bytes, poisson_delivered, NULL, p, now);
		dc_qp_free(qp);
	}
	ev_set(&w->dc->evq, ev, now + 1 + (rwy_dur)(-log(rng_unit(&p->rng)) * p->every));
}

static void poisson_init(struct work *w, struct poisson *p, unsigned site, bool inter)
{
	const struct scen *s = scen(w);
	double bits = inter ? s->xload * s->wan : s->load * s->rate * w->dc->per_site;

	*p = (struct poisson){.w = w, .ev = {.fn = poisson_fire}, .site = site, .inter = inter};
	/* Random numbers of its own: the messages do not depend on other work. */
	p->rng = w->dc->rng_work * 4 + site * 2 + inter;
	rng_next(&p->rng);
	if (bits <= 0 || (inter && site && !s->bidir))
		return;
	p->every = (inter && s->xsize > 0 ? s->xsize : size_mean(s->sizes, s->isize)) * 8e9 / bits;
	ev_set(&w->dc->evq, &p->ev, at(w, s->start) + (rwy_dur)(-log(rng_unit(&p->rng)) * p->every));
}

/* --- making the connections between the sites ------------------------------------------------- */

static void warm_complete(struct dc_msg *m, bool failed, rwy_time now)
{
	struct work *w = m->ctx;

	w->warming--;
}

static bool warm_over(void *ctx)
{
	const struct work *w = ctx;

	return !w->warming && !w->dc->msgs_live;
}

static struct qp *connect(struct work *w, unsigned src, unsigned dst, unsigned tenant)
{
	struct qp *qp = dc_qp_new(w->dc, src, dst);

	qp->tenant = (uint16_t)tenant;
	w->warming++;
	dc_post(qp, (uint64_t)scen(w)->pmtu, NULL, warm_complete, w, w->dc->evq.now);
	return qp;
}

static bool all_up(void *ctx)
{
	return dc_gws_up(ctx);
}

static void connect_all(struct work *w)
{
	struct dc *dc = w->dc;
	const struct scen *s = scen(w);
	unsigned n = dc->per_site;
	uint64_t rng = dc->rng_work ^ 0x5eed;

	dc->warm = true;
	if (dc->gw[0] && w->flows + w->xqps) {
		dc_run(dc, dc->evq.now + WARM_LIMIT, all_up, dc);
		dc_run(dc, dc->zero + QUIET_START, NULL, NULL);
	}
	for (unsigned i = 0; i < w->flows; i++) {
		flow_place(&w->flow[i], i);
		w->flow[i].qp = connect(w, w->flow[i].src, w->flow[i].dst, w->flow[i].tenant);
	}
	for (unsigned i = 0; i < 2 * w->xqps; i++) {
		unsigned from = (unsigned)s->fhosts, a = from + (unsigned)(rng_next(&rng) % (n - from)),
		         b = from + (unsigned)(rng_next(&rng) % (n - from)), back = i >= w->xqps;

		if (from) {
			a = host_at(dc, a);
			b = host_at(dc, b);
		}
		if (!back || s->bidir > 0)
			w->xqp[i] = connect(w, a + (back ? n : 0), b + (back ? 0 : n), (unsigned)s->xtenant);
	}
	dc_run(dc, dc->evq.now + WARM_LIMIT, warm_over, w);
	/* Lets late acknowledgements arrive. */
	dc_run(dc, dc->evq.now + (rwy_dur)(2 * s->rtt) + 10 * RWY_MS, NULL, NULL);
	dc->warm = false;
	dc->zero = dc->evq.now;
	dc->c = (struct dc_counts){
	    .resent_warm = dc->c.resent_warm, .violations = dc->c.violations, .qp_errors = dc->c.qp_errors};
	for (unsigned i = 0; dc->gw[0] && i < 2; i++)
		dc_gw_peaks_reset(dc->gw[i]);
}

/* --- time ------------------------------------------------------------------------------------- */

static void on_sample(struct ev *ev, rwy_time now)
{
	struct work *w = EV_OWNER(ev, struct work, sample_ev);

	for (unsigned i = 0; w->dc->gw[0] && i < 2; i++)
		dc_gw_sample(w->dc->gw[i]);
	if (w->trace)
		trace_row(w, now);
	w->sampled = now;
	ev_set(&w->dc->evq, ev, now + (rwy_dur)scen(w)->sample);
}

static void on_slow(struct ev *ev, rwy_time now)
{
	struct work *w = EV_OWNER(ev, struct work, slow_ev);
	struct dc *dc = w->dc;
	const struct scen *s = scen(w);
	unsigned host = w->flows ? w->flow[0].dst : dc->per_site;

	w->slowed = !w->slowed;
	if (s->slow == SLOW_NIC)
		dc_host_slow(dc, host, w->slowed ? s->slow_rate : 0);
	else
		dc_port_rate(dc_host_port(dc, host)->peer, w->slowed ? s->slow_rate : s->rate);
	if (w->slowed && s->slow_len > 0)
		ev_set(&dc->evq, ev, now + (rwy_dur)s->slow_len);
}

/* One call per gateway. */
static void on_set(struct ev *ev, rwy_time now)
{
	struct work *w = EV_OWNER(ev, struct work, set_ev);
	const struct scen *s = scen(w);
	unsigned i = (unsigned)s->set_tenant;
	struct dc_tenant *t = &w->tenant[i];

	t->guarantee = s->set_guarantee;
	t->limit = s->set_limit;
	t->weight = s->set_weight > 0 ? s->set_weight : t->weight;
	for (unsigned k = 0; k < 2; k++)
		dc_gw_tenant(w->dc->gw[k], i, t);
}

static void on_skip(struct ev *ev, rwy_time now)
{
	struct work *w = EV_OWNER(ev, struct work, skip_ev);

	for (unsigned i = 0; i < w->flows; i++)
		w->flow[i].skip_rx = w->flow[i].qp->rx_bytes;
}

static bool drained(void *ctx)
{
	const struct work *w = ctx;

	return !w->dc->msgs_live && w->dc->ip.there == w->dc->ip.n && dc_quiet(w->dc);
}

void work_init(struct work *w, struct dc *dc, FILE *trace)
{
	const struct scen *s = &dc->s;
	char err[200];

	memset(w, 0, sizeof(*w));
	w->dc = dc;
	w->trace = trace;
	w->flows = (unsigned)s->flows;
	w->xqps = s->xload > 0 ? (unsigned)s->xqps : 0;
	w->flow = calloc(w->flows + 1, sizeof(*w->flow));
	w->xqp = calloc(2 * w->xqps + 1, sizeof(*w->xqp)); /* NOLINT(bugprone-sizeof-expression) */
	if (!w->flow || !w->xqp)
		abort();
	dc_ip_init(dc, ip_there, w);
	w->sample_ev.fn = on_sample;
	w->slow_ev.fn = on_slow;
	w->skip_ev.fn = on_skip;
	w->set_ev.fn = on_set;
	if (!dc_tenants_read(s, w->tenant, err, sizeof(err)))
		abort(); /* scen_check() has checked it */
	for (unsigned i = 0, t = 1, n = 0; i < w->flows; i++, n++) {
		while (t <= (unsigned)s->tenants && n >= (unsigned)w->tenant[t].flows) {
			n = 0;
			t++;
		}
		w->flow[i].w = w;
		w->flow[i].ev.fn = flow_start;
		w->flow[i].tenant = t <= (unsigned)s->tenants ? t : 0;
	}
}

/* The hosts of the hostile tenant's flows stop hearing, or hear again. */
static void set_deaf(struct work *w, bool deaf)
{
	const struct scen *s = scen(w);

	for (unsigned i = 0; i < w->flows && s->hostile == HOSTILE_DEAF; i++)
		if (w->flow[i].tenant == (unsigned)s->htenant)
			w->flow[i].qp->deaf = deaf;
}

void work_run(struct work *w)
{
	struct dc *dc = w->dc;
	const struct scen *s = scen(w);

	connect_all(w);
	set_deaf(w, true);
	dc_hostile_begin(&w->hostile, dc);
	for (unsigned i = 0; i < w->flows; i++) {
		w->flow[i].sample_rx = w->flow[i].qp->rx_bytes;
		w->flow[i].sample_tx = w->flow[i].qp->tx_bytes;
		ev_set(&dc->evq, &w->flow[i].ev,
		    at(w, s->start + i * s->stagger + w->tenant[w->flow[i].tenant].start));
	}
	for (unsigned i = 0; i < 2; i++) {
		poisson_init(w, &w->intra[i], i, false);
		poisson_init(w, &w->inter[i], i, true);
	}
	ev_set(&dc->evq, &w->skip_ev, at(w, s->skip));
	if (s->slow_at > 0)
		ev_set(&dc->evq, &w->slow_ev, at(w, s->slow_at));
	if (s->set_at > 0)
		ev_set(&dc->evq, &w->set_ev, at(w, s->set_at));
	if (w->trace)
		trace_head(w);
	w->sampled = dc->zero;
	ev_set(&dc->evq, &w->sample_ev, at(w, s->sample));
	dc_run(dc, at(w, s->time), NULL, NULL);
	for (unsigned i = 0; i < w->flows; i++)
		w->flow[i].sample_rx = w->flow[i].qp->rx_bytes; /* the figures begin here */
	ev_cancel(&dc->evq, &w->sample_ev);
	set_deaf(w, false);
	dc_run(dc, at(w, s->time + s->drain), drained, w);
	if (dc->msgs_live)
		dc_violation(dc, "messages that never ended", dc->msgs_live, dc->c.posted);
	else if (dc->c.posted != dc->c.completed + dc->c.failed)
		dc_violation(dc, "messages completed", dc->c.completed, dc->c.posted);
	if (!dc->c.qp_errors && dc->c.posted != dc->c.delivered)
		dc_violation(dc, "messages delivered", dc->c.delivered, dc->c.posted);
	if (!dc->c.qp_errors && !dc_quiet(dc))
		dc_violation(dc, "not quiet at the end: packets", dc->pkts_live, 0);
}

void work_fini(struct work *w)
{
	for (unsigned i = 0; i < 2; i++)
		free(w->fct[i].us);
	for (unsigned i = 0; i < 2; i++)
		free(w->flow_fct[i].us);
	free(w->flow);
	free(w->xqp);
}
