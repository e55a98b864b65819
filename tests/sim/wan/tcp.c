/* SPDX-License-Identifier: Apache-2.0 */
/* A TCP connection; see tcp.h. */
#include <stdlib.h>
#include <string.h>

#include "cc/cubic.h"
#include "cc/limits.h"
#include "tests/sim/wan/tcp.h"

#define FIRST_SEGS     10           /* RFC 6928 */
#define BURST_MAX      65536u       /* bytes of a segmentation-offload burst */
#define BURST_SHIFT    10           /* about a millisecond at the rate */
#define ACK_SEGS       16           /* receive offload: one ACK for so many segments, */
#define ACK_GAP        (RWY_MS / 2) /* or after this time */
#define MIN_RTT_WINDOW (10 * RWY_SEC)
#define HYSTART_MIN    (4 * RWY_MS) /* RFC 9406 section 4.3 */
#define HYSTART_MAX    (16 * RWY_MS)

static void ask(struct tcp *f)
{
	uint64_t burst;

	cc_guard_ask(f->cfg.ops, f->state, &f->cc_cfg, &f->answer);
	f->tick_at = cc_guard_next(f->cfg.ops, f->state, f->ticked);
	burst = f->answer.rate_Bps >> BURST_SHIFT;
	burst = (burst < BURST_MAX ? burst : BURST_MAX) / f->cfg.mtu;
	f->burst = burst < 2 ? 2 : (uint32_t)burst;
}

static rwy_time ack_at(const struct tcp *f)
{
	if (!f->n)
		return RWY_NEVER;
	rwy_time late = f->ring[f->head].back + ACK_GAP;

	if (f->n < ACK_SEGS)
		return late;
	return rwy_time_min(late, f->ring[(f->head + ACK_SEGS - 1) & (f->cap - 1)].back);
}

static bool may_send(const struct tcp *f)
{
	return f->now < f->cfg.stop && f->inflight + f->cfg.mtu <= f->answer.window;
}

static void plan(struct tcp *f)
{
	f->next = rwy_time_min(ack_at(f), f->tick_at);
	if (may_send(f))
		f->next = rwy_time_min(f->next, rwy_time_max(f->pace_at, f->now));
	if (f->now >= f->cfg.stop && !f->n)
		f->next = RWY_NEVER;
}

bool tcp_init(struct tcp *f, const struct tcp_cfg *cfg)
{
	memset(f, 0, sizeof(*f));
	f->cfg = *cfg;
	f->cc_cfg = (struct cc_cfg){.min_rate_Bps = 12500, .mtu = cfg->mtu, .initial_rtt = cfg->rtt};
	f->now = f->pace_at = f->ticked = cfg->start;
	f->cap = 1024;
	f->ring = malloc(f->cap * sizeof(*f->ring));
	f->start = true;
	f->round_min = f->last_min = RWY_NEVER;
	loss_init(&f->loss, cfg->loss, cfg->burst, cfg->seed);
	cfg->ops->init(f->state, &f->cc_cfg, cfg->start);
	if (cfg->ops == &cc_cubic)
		cc_cubic_window_set(f->state, FIRST_SEGS * (uint64_t)cfg->mtu, true);
	ask(f);
	f->next = cfg->start;
	return f->ring;
}

void tcp_fini(struct tcp *f)
{
	free(f->ring);
}

/* --- sending ------------------------------------------------------------------------------------ */
static struct tcp_seg *push(struct tcp *f)
{
	if (f->n == f->cap) {
		struct tcp_seg *v = malloc((size_t)f->cap * 2 * sizeof(*v));

		if (!v)
			abort();
		for (uint32_t i = 0; i < f->n; i++)
			v[i] = f->ring[(f->head + i) & (f->cap - 1)];
		free(f->ring);
		f->ring = v;
		f->head = 0;
		f->cap *= 2;
	}
	return &f->ring[(f->head + f->n++) & (f->cap - 1)];
}

static void send_one(struct tcp *f)
{
	struct tcp_seg *p = push(f);
	uint32_t wire = f->cfg.mtu + f->cfg.overhead;

	if (!f->inflight)
		f->first_sent = f->delivered_at = f->now;
	*p = (struct tcp_seg){.sent = f->now,
	    .first_sent = f->first_sent,
	    .delivered_at = f->delivered_at,
	    .delivered = f->delivered};
	rwy_time out = line_send(f->cfg.line, wire, &p->ce, f->now);

	p->lost = loss_next(&f->loss) || out == RWY_NEVER;
	if (out == RWY_NEVER) /* later packets reveal the loss */
		out = rwy_time_max((rwy_time)f->cfg.line->busy, f->now);
	p->back = out + f->cfg.rtt;
	f->sent++;
	f->lost += p->lost;
	f->passed += p->lost ? 0 : wire;
	f->inflight += f->cfg.mtu;
	f->cfg.ops->on_sent(f->state, f->cfg.mtu, f->inflight, f->now);
}

static void send_burst(struct tcp *f)
{
	uint32_t n = 0;

	for (; n < f->burst && may_send(f); n++)
		send_one(f);
	f->pace_at = f->now + cc_mul_div((uint64_t)n * f->cfg.mtu, RWY_SEC, f->answer.rate_Bps);
}

/* --- acknowledgements --------------------------------------------------------------------------- */
static void hystart(struct tcp *f, const struct cc_ack *a)
{
	if (!f->start || f->cfg.ops != &cc_cubic)
		return;
	if (a->lost_bytes || a->ce_count) {
		f->start = false;
		return;
	}
	if (a->prior_delivered >= f->round_ends) {
		f->round_ends = a->delivered;
		f->last_min = f->round_min;
		f->round_min = RWY_NEVER;
	}
	f->round_min = rwy_time_min(f->round_min, a->rtt);
	if (f->last_min == RWY_NEVER)
		return;
	rwy_dur more = rwy_time_max(HYSTART_MIN, rwy_time_min(f->last_min / 8, HYSTART_MAX));

	if (f->round_min < f->last_min + more)
		return;
	f->start = false;
	cc_cubic_window_set(f->state, f->cfg.ops->window(f->state), false);
}

static uint64_t rate_sample(const struct tcp *f, const struct tcp_seg *newest)
{
	rwy_dur sent = newest->sent - newest->first_sent, acked = f->delivered_at - newest->delivered_at;
	rwy_dur t = rwy_time_max(sent, acked);

	return t && t >= f->min_rtt ? cc_mul_div(f->delivered - newest->delivered, RWY_SEC, t) : 0;
}

static void take(struct tcp *f, const struct tcp_seg *p, struct cc_ack *a)
{
	f->inflight -= f->cfg.mtu;
	if (p->lost) {
		a->lost_bytes += f->cfg.mtu;
		a->lost_sent = p->sent;
		return;
	}
	f->delivered += f->cfg.mtu;
	f->delivered_at = f->now;
	f->first_sent = p->sent;
	a->acked_bytes += f->cfg.mtu;
	a->ce_count += p->ce;
}

static void rtt_sample(struct tcp *f, rwy_dur rtt, struct cc_ack *a)
{
	if (!f->min_rtt || rtt <= f->min_rtt || rwy_since(f->min_rtt_at, f->now) > MIN_RTT_WINDOW) {
		f->min_rtt = rtt;
		f->min_rtt_at = f->now;
	}
	a->rtt = rtt;
	a->min_rtt = f->min_rtt;
}

static void acknowledge(struct tcp *f)
{
	struct tcp_seg newest = {0};
	struct cc_ack a = {0};

	while (f->n && f->ring[f->head].back <= f->now) {
		const struct tcp_seg *p = &f->ring[f->head];

		f->head = (f->head + 1) & (f->cap - 1);
		f->n--;
		take(f, p, &a);
		if (!p->lost)
			newest = *p;
	}
	a.inflight = f->inflight;
	if (!a.acked_bytes) {
		f->cfg.ops->on_lost(f->state, a.lost_bytes, a.lost_sent, f->inflight, f->now);
		return;
	}
	rtt_sample(f, newest.back - newest.sent, &a);
	a.delivered = f->delivered;
	a.rate_Bps = rate_sample(f, &newest);
	a.prior_delivered = newest.delivered;
	hystart(f, &a);
	f->cfg.ops->on_ack(f->state, &a, f->now);
}

void tcp_run(struct tcp *f)
{
	bool told = false;

	f->now = f->next;
	if (ack_at(f) <= f->now) {
		acknowledge(f);
		told = true;
	}
	if (f->tick_at <= f->now) {
		f->ticked = f->now;
		f->cfg.ops->on_tick(f->state, f->now);
		told = true;
	}
	if (told)
		ask(f);
	if (may_send(f) && f->pace_at <= f->now)
		send_burst(f);
	plan(f);
}
