/* SPDX-License-Identifier: Apache-2.0 */
/* A bottleneck in virtual time; see cc_bottleneck.h. */
#include <stdlib.h>
#include <string.h>

#include "cc/limits.h"
#include "tests/lib/cc_bottleneck.h"
#include "tests/lib/wan_link.h"

#define MTU            1500u
#define BURST          (100 * RWY_US) /* how far a flow may lag behind its pacing */
#define BURST_LATE     (4 * RWY_MS)   /* the same with data waiting, as in wan/ */
#define CNP_GAP        (50 * RWY_US)
#define MIN_RTT_WINDOW (10 * RWY_SEC) /* as in wan/ */

void cc_bn_default(struct cc_bn_cfg *cfg)
{
	*cfg = (struct cc_bn_cfg){.rate_Bps = 125000000,
	    .rtt = 20 * RWY_MS,
	    .queue_bytes = 2500000,
	    .step = 10 * RWY_US,
	    .ack_gap = 2 * RWY_MS,
	    .ack_pkts = 64,
	    .seed = 1};
}

void cc_bn_init(struct cc_bn *b, const struct cc_bn_cfg *cfg)
{
	memset(b, 0, sizeof(*b));
	b->cfg = *cfg;
	b->rng = cfg->seed;
	b->now = b->from = b->busy_until = RWY_SEC;
}

void cc_bn_fini(struct cc_bn *b)
{
	for (unsigned i = 0; i < b->flows; i++)
		free(b->flow[i].ring);
}

static void ask(struct cc_bn_flow *f)
{
	f->nonsense += cc_guard_ask(f->ops, f->state, &f->cfg, &f->answer);
	f->next = cc_guard_next(f->ops, f->state, f->ticked);
}

unsigned cc_bn_add(struct cc_bn *b, const struct cc_ops *ops, uint64_t max_Bps)
{
	struct cc_bn_flow *f = &b->flow[b->flows];

	f->ops = ops;
	f->cfg = (struct cc_cfg){
	    .rate_Bps = max_Bps, .min_rate_Bps = 125000, .mtu = MTU, .initial_rtt = 100 * RWY_MS};
	f->start = f->pace_at = f->ticked = f->last_ack = b->now;
	f->cap = 1024;
	f->ring = calloc(f->cap, sizeof(*f->ring));
	ops->init(f->state, &f->cfg, b->now);
	ask(f);
	return b->flows++;
}

/* --- sending ------------------------------------------------------------------------------------ */
static struct cc_bn_pkt *push(struct cc_bn_flow *f)
{
	if (f->n == f->cap) {
		struct cc_bn_pkt *v = calloc((size_t)f->cap * 2, sizeof(*v));

		for (uint32_t i = 0; i < f->n; i++)
			v[i] = f->ring[(f->head + i) & (f->cap - 1)];
		free(f->ring);
		f->ring = v;
		f->head = 0;
		f->cap *= 2;
	}
	return &f->ring[(f->head + f->n++) & (f->cap - 1)];
}

static uint64_t queue_bytes(const struct cc_bn *b)
{
	return cc_bytes_in(b->cfg.rate_Bps, rwy_since(b->now, b->busy_until));
}

static bool red(struct cc_bn *b, uint64_t queue)
{
	const struct cc_bn_cfg *c = &b->cfg;

	if (!c->mark_max || queue <= c->mark_min)
		return false;
	if (queue >= c->mark_max)
		return true;
	return wan_rng_ppm(
	    &b->rng, (uint32_t)((queue - c->mark_min) * c->mark_ppm / (c->mark_max - c->mark_min)));
}

/* Puts a packet into the queue, or loses it. Its ACK comes at the time that it would have in either
 * case, which keeps the order. */
static void enqueue(struct cc_bn *b, struct cc_bn_pkt *p)
{
	uint64_t queue = queue_bytes(b);

	p->marked = red(b, queue);
	if (queue + MTU > b->cfg.queue_bytes) {
		p->lost = true;
		b->drops++;
	} else {
		b->busy_until = rwy_time_max(b->busy_until, b->now) + MTU * RWY_SEC / b->cfg.rate_Bps;
		p->lost = wan_rng_ppm(&b->rng, b->cfg.loss_ppm);
	}
	p->way_back = b->cfg.way_back;
	p->back = rwy_time_max(b->busy_until, b->now) + b->cfg.rtt + p->way_back;
}

static void send_one(struct cc_bn *b, struct cc_bn_flow *f)
{
	struct cc_bn_pkt *p = push(f);

	if (!f->inflight)
		f->first_sent = f->delivered_at = b->now;
	*p = (struct cc_bn_pkt){.sent = b->now,
	    .first_sent = f->first_sent,
	    .delivered_at = f->delivered_at,
	    .delivered = f->delivered,
	    .app = f->app_limited != 0};
	enqueue(b, p);
	f->inflight += MTU;
	f->ops->on_sent(f->state, MTU, f->inflight, b->now);
}

#define HOST_WINDOW 131072u /* most bytes of a host that wait for the path */

/* A host that gives its data in bursts, and stops while its window is full. */
static void send_bursts(struct cc_bn *b, struct cc_bn_flow *f)
{
	rwy_dur lag = f->backlog ? BURST_LATE : BURST;

	if (f->pace_at + lag < b->now)
		f->pace_at = b->now - lag;
	for (; f->burst_at <= b->now; f->burst_at += f->burst_bytes * RWY_SEC / f->demand_Bps)
		if (f->backlog < HOST_WINDOW)
			f->backlog += f->burst_bytes;
	while (f->backlog && f->pace_at <= b->now && f->inflight < f->answer.window) {
		send_one(b, f);
		f->backlog -= f->backlog < MTU ? f->backlog : MTU;
		f->pace_at += MTU * RWY_SEC / f->answer.rate_Bps;
	}
	if (!f->backlog && f->inflight < f->answer.window)
		f->app_limited = f->delivered + f->inflight ? f->delivered + f->inflight : 1;
}

static void send(struct cc_bn *b, struct cc_bn_flow *f)
{
	bool app = f->demand_Bps && f->demand_Bps < f->answer.rate_Bps;
	uint64_t rate = app ? f->demand_Bps : f->answer.rate_Bps;

	if (f->pace_at + BURST < b->now)
		f->pace_at = b->now - BURST;
	while (f->pace_at <= b->now && f->inflight < f->answer.window) {
		send_one(b, f);
		f->pace_at += MTU * RWY_SEC / rate;
	}
	if (app && f->inflight < f->answer.window)
		f->app_limited = f->delivered + f->inflight ? f->delivered + f->inflight : 1;
}

/* --- acknowledgements --------------------------------------------------------------------------- */
static uint64_t rate_sample(const struct cc_bn_flow *f, const struct cc_bn_pkt *newest)
{
	rwy_dur sent = newest->sent - newest->first_sent, acked = f->delivered_at - newest->delivered_at;
	rwy_dur t = rwy_time_max(sent, acked);

	return t && t >= f->min_rtt ? (f->delivered - newest->delivered) * RWY_SEC / t : 0;
}

static void rtt_sample(struct cc_bn *b, struct cc_bn_flow *f, rwy_dur rtt)
{
	f->rtt = rtt;
	if (!f->min_rtt || rtt <= f->min_rtt || rwy_since(f->min_rtt_at, b->now) > MIN_RTT_WINDOW) {
		f->min_rtt = rtt;
		f->min_rtt_at = b->now;
	}
}

static void cnp(struct cc_bn *b, struct cc_bn_flow *f)
{
	if (!f->ops->on_cnp || rwy_since(f->last_cnp, b->now) < CNP_GAP)
		return;
	f->last_cnp = b->now;
	f->ops->on_cnp(f->state, b->now);
}

static void take(struct cc_bn *b, struct cc_bn_flow *f, const struct cc_bn_pkt *p, struct cc_ack *a)
{
	f->inflight -= MTU;
	if (p->lost) {
		a->lost_bytes += MTU;
		a->lost_sent = p->sent;
		f->lost += MTU;
		return;
	}
	f->delivered += MTU;
	f->delivered_at = b->now;
	f->first_sent = p->sent;
	a->acked_bytes += MTU;
	f->marked += p->marked;
	if (p->marked && b->cfg.cnp)
		cnp(b, f);
	else
		a->ce_count += p->marked;
}

/* Passes all ACKs that are back by now as one. */
static void acknowledge(struct cc_bn *b, struct cc_bn_flow *f)
{
	struct cc_bn_pkt newest = {0};
	struct cc_ack a = {0};

	while (f->n && f->ring[f->head].back <= b->now) {
		struct cc_bn_pkt p = f->ring[f->head];

		f->head = (f->head + 1) & (f->cap - 1);
		f->n--;
		take(b, f, &p, &a);
		if (!p.lost)
			newest = p;
	}
	f->last_ack = b->now;
	if (f->delivered > f->app_limited)
		f->app_limited = 0;
	if (!a.acked_bytes) {
		f->ops->on_lost(f->state, a.lost_bytes, a.lost_sent, f->inflight, b->now);
		return;
	}
	rtt_sample(b, f, rwy_time_max(newest.back, f->stalled) - newest.sent);
	a.delivered = f->delivered;
	a.inflight = f->inflight;
	a.rate_Bps = rate_sample(f, &newest);
	a.rtt = f->rtt;
	a.reverse = rwy_time_min(newest.way_back, f->rtt - f->min_rtt);
	a.min_rtt = f->min_rtt;
	a.prior_delivered = newest.delivered;
	a.app_limited = newest.app;
	f->ops->on_ack(f->state, &a, b->now);
}

static bool ack_due(const struct cc_bn *b, const struct cc_bn_flow *f)
{
	uint32_t last = b->cfg.ack_pkts - 1;

	if (!f->n || f->ring[f->head].back > b->now)
		return false;
	if (rwy_since(f->ring[f->head].back, b->now) >= b->cfg.ack_gap)
		return true;
	return f->n > last && f->ring[(f->head + last) & (f->cap - 1)].back <= b->now;
}

/* True while other processes run instead of this one: some times a second, for at most the given
 * time. */
static bool stalled(struct cc_bn *b, struct cc_bn_flow *f)
{
	if (!b->cfg.stalls)
		return false;
	if (f->stalled <= b->now && wan_rng_ppm(&b->rng, (uint32_t)(b->cfg.stalls * b->cfg.step / 1000)))
		f->stalled = b->now + wan_rng_next(&b->rng) % b->cfg.stall_most;
	return f->stalled > b->now;
}

static void flow_step(struct cc_bn *b, struct cc_bn_flow *f)
{
	bool told = false;

	if (stalled(b, f))
		return;
	if (ack_due(b, f)) {
		acknowledge(b, f);
		told = true;
	}
	if (b->now >= f->next) {
		f->ticked = b->now;
		f->ops->on_tick(f->state, b->now);
		told = true;
	}
	if (told)
		ask(f);
	if (f->burst_bytes)
		send_bursts(b, f);
	else
		send(b, f);
}

void cc_bn_run(struct cc_bn *b, rwy_dur t)
{
	rwy_time until = b->now + t;

	for (unsigned turn = 0; b->now < until; turn++) {
		uint64_t queue;

		b->now += b->cfg.step;
		for (unsigned i = 0; i < b->flows; i++)
			flow_step(b, &b->flow[(i + turn) % b->flows]);
		queue = queue_bytes(b);
		b->queue_max = queue > b->queue_max ? queue : b->queue_max;
		b->queue_sum += (double)queue;
		b->steps++;
	}
}

/* --- measurement -------------------------------------------------------------------------------- */
void cc_bn_measure(struct cc_bn *b)
{
	b->from = b->now;
	b->queue_max = b->drops = b->steps = 0;
	b->queue_sum = 0;
	for (unsigned i = 0; i < b->flows; i++)
		b->flow[i].from = b->flow[i].delivered;
}

double cc_bn_share(const struct cc_bn *b, unsigned flow)
{
	const struct cc_bn_flow *f = &b->flow[flow];

	return (double)(f->delivered - f->from) / (double)cc_bytes_in(b->cfg.rate_Bps, b->now - b->from);
}

double cc_bn_total(const struct cc_bn *b)
{
	double sum = 0;

	for (unsigned i = 0; i < b->flows; i++)
		sum += cc_bn_share(b, i);
	return sum;
}

double cc_bn_jain(const struct cc_bn *b)
{
	double sum = 0, squares = 0;

	for (unsigned i = 0; i < b->flows; i++) {
		sum += cc_bn_share(b, i);
		squares += cc_bn_share(b, i) * cc_bn_share(b, i);
	}
	return sum * sum / (b->flows * squares);
}

static rwy_dur as_time(const struct cc_bn *b, double bytes)
{
	return (rwy_dur)(bytes * 1e9 / (double)b->cfg.rate_Bps);
}

rwy_dur cc_bn_queue_mean(const struct cc_bn *b)
{
	return as_time(b, b->queue_sum / (double)b->steps);
}

rwy_dur cc_bn_queue_most(const struct cc_bn *b)
{
	return as_time(b, (double)b->queue_max);
}
