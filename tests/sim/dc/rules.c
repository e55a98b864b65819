/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Baselines at the border switches for mode=native, from their abstracts, repositories and notes;
 * where those are silent, as described here.
 *
 * themis (ICNP 2025). PNP: the exit switch takes over the marking of packets that leave for the
 * WAN, its own marks included, and sends the CNPs itself, at most one in 5 us per flow. TRP: when a
 * CNP of a local receiver passes on its way out, the switch holds that flow's packets in order, for
 * 500 us from the CNP that began it; then they continue (recirculation).
 *
 * grc (ICNP 2026): the exit switch samples the round trip to the other site by AckReq and ACK. Each
 * epoch of 2 ms moves a reference rate. It goes up by 1/50 of the WAN, to at most 1.2 times the
 * rate really sent, if the mean was below the least + 1 ms; else down by the share that the mean is
 * above it, by at most a half; never below 1/100 of the WAN. A packet that takes the bytes sent
 * beyond the reference line by more than K = 1 MB causes a CNP for its flow, one in 50 us. Of the
 * excess 2 K carry over to the next epoch (with all of it no flow would recover from its start at
 * line rate).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/dc/dc.h"

#define THEMIS_CNP  (5 * RWY_US)
#define THEMIS_HOLD (500 * RWY_US)
#define GRC_CNP     (50 * RWY_US)
#define GRC_EPOCH   (2 * RWY_MS)
#define GRC_SLACK   1e6 /* ns */
#define GRC_EXCESS  1e6 /* bytes */

struct flow_rule {
	rwy_time cnp_at, hold_until;
	uint32_t high; /* grc: end of the PSNs seen; retransmissions give no round trip */
	struct dc_pktq held;
	struct ev ev;
	struct border *b;
};

struct border {
	struct dc *dc;
	struct sw *sw;
	struct flow_rule **flow; /* index: connection */
	uint32_t flows;
	/* For grc. */
	struct ev epoch_ev;
	double rate, line, sent, sent_mark; /* bytes per ns; bytes */
	rwy_time line_at, sample_at;
	uint32_t sample_qpn, sample_psn;
	double rtt_sum, rtt_n, rtt_least;
};

static struct port *wan_port(const struct dc *dc, struct sw *s)
{
	return &s->n.port[dc->spines];
}

static void release(struct ev *ev, rwy_time now)
{
	struct flow_rule *f = EV_OWNER(ev, struct flow_rule, ev);
	struct border *b = f->b;
	struct dc_pkt *p;

	while ((p = dc_pktq_pop(&f->held)))
		dc_sw_enqueue(b->sw, p, now);
}

static struct flow_rule *rule_of(struct border *b, const struct dc_pkt *p)
{
	uint32_t id = dc_qp_id(p->dqpn);

	if (id >= b->flows) {
		uint32_t n = id + 256;

		b->flow = realloc(b->flow, n * sizeof(*b->flow)); /* NOLINT(bugprone-sizeof-expression) */
		if (!b->flow)
			abort();
		memset(b->flow + b->flows, 0,
		    (n - b->flows) * sizeof(*b->flow)); /* NOLINT(bugprone-sizeof-expression) */
		b->flows = n;
	}
	if (!b->flow[id]) {
		b->flow[id] = dc_alloc(b->dc, sizeof(**b->flow));
		b->flow[id]->ev.fn = release;
		b->flow[id]->b = b;
	}
	return b->flow[id];
}

static void send_cnp(
    struct border *b, struct flow_rule *f, const struct dc_pkt *data, rwy_dur least, rwy_time now)
{
	struct dc_pkt *p;

	if (now < f->cnp_at)
		return;
	f->cnp_at = now + least;
	p = dc_pkt_get(b->dc);
	p->kind = DC_CNP;
	p->src = data->dst;
	p->dst = data->src;
	p->hash = data->hash;
	p->gen = data->gen;
	p->dqpn = data->dqpn & ~1u;
	p->wire = DC_ACK_WIRE;
	b->dc->c.cnps++;
	dc_sw_enqueue(b->sw, p, now);
}

/* False: the rule took over the packet. */
static bool themis(struct border *b, bool leaves, bool comes, struct dc_pkt *p, rwy_time now)
{
	struct flow_rule *f = rule_of(b, p);

	if (leaves && p->kind == DC_DATA && p->ecn == DC_CE) {
		p->ecn = DC_ECT;
		send_cnp(b, f, p, THEMIS_CNP, now);
	}
	if (leaves && p->kind == DC_CNP && now >= f->hold_until) {
		f->hold_until = now + THEMIS_HOLD;
		ev_set(&b->dc->evq, &f->ev, f->hold_until);
	}
	if (!comes || p->kind != DC_DATA || (now >= f->hold_until && !f->held.n))
		return true;
	dc_pktq_push(&f->held, p);
	return false;
}

static void on_epoch(struct ev *ev, rwy_time now)
{
	struct border *b = EV_OWNER(ev, struct border, epoch_ev);
	double wan = b->dc->s.wan / 8e9, real = (b->sent - b->sent_mark) / (double)GRC_EPOCH, mean;

	b->line += b->rate * (double)(now - b->line_at);
	b->line_at = now;
	if (b->rtt_n > 0) {
		mean = b->rtt_sum / b->rtt_n;
		if (mean < b->rtt_least + GRC_SLACK)
			b->rate = fmax(b->rate, fmin(b->rate + wan / 50, 1.2 * real));
		else
			b->rate *= 1 - fmin(.5, (mean - b->rtt_least - GRC_SLACK) / mean);
	}
	b->rate = fmax(b->rate, wan / 100);
	if (b->line > b->sent) /* unused rate does not accumulate */
		b->line = b->sent;
	if (b->line < b->sent - 2 * GRC_EXCESS)
		b->line = b->sent - 2 * GRC_EXCESS;
	b->sent_mark = b->sent;
	b->rtt_sum = b->rtt_n = 0;
	ev_set(&b->dc->evq, ev, now + GRC_EPOCH);
}

static void grc(struct border *b, bool leaves, bool comes, struct dc_pkt *p, rwy_time now)
{
	if (leaves && p->kind == DC_DATA) {
		struct flow_rule *f = rule_of(b, p);
		bool fresh = ((p->psn - f->high) & 0xffffff) < 1 << 23;

		if (fresh)
			f->high = (p->psn + 1) & 0xffffff;
		b->sent += p->wire;
		if (p->ackreq && fresh && !b->sample_at) {
			b->sample_at = now;
			b->sample_qpn = p->dqpn & ~1u;
			b->sample_psn = p->psn;
		}
		if (b->sent > b->line + b->rate * (double)(now - b->line_at) + GRC_EXCESS)
			send_cnp(b, f, p, GRC_CNP, now);
	} else if (comes && (p->kind == DC_ACK || p->kind == DC_NAK) && b->sample_at &&
	           p->dqpn == b->sample_qpn && ((p->psn - b->sample_psn) & 0xffffff) < 1 << 23) {
		double rtt = (double)(now - b->sample_at);

		b->rtt_sum += rtt;
		b->rtt_n++;
		b->rtt_least = b->rtt_least > 0 ? fmin(b->rtt_least, rtt) : rtt;
		b->sample_at = 0;
	}
	if (b->sample_at && now - b->sample_at > 4 * (rwy_dur)b->dc->s.rtt)
		b->sample_at = 0; /* the sample is lost */
}

static bool rule(
    struct dc *dc, struct sw *s, struct port *in, struct port *out, struct dc_pkt *p, rwy_time now)
{
	struct border *b = dc->rules[s->n.site];
	bool leaves = out == wan_port(dc, s), comes = in == wan_port(dc, s);

	if (leaves && p->kind == DC_DATA)
		dc_sw_mark(out, p);
	if (dc->s.rule == RULE_THEMIS)
		return themis(b, leaves, comes, p, now);
	grc(b, leaves, comes, p, now);
	return true;
}

void dc_rules_init(struct dc *dc)
{
	if (dc->s.rule == RULE_NONE)
		return;
	dc->border_rule = rule;
	for (unsigned i = 0; i < 2; i++) {
		struct border *b = dc->rules[i] = dc_alloc(dc, sizeof(*b));

		b->dc = dc;
		b->sw = &dc->border[i];
		b->rate = dc->s.wan / 8e9;
		b->line_at = dc->evq.now;
		b->epoch_ev.fn = on_epoch;
		if (dc->s.rule == RULE_GRC)
			ev_set(&dc->evq, &b->epoch_ev, dc->evq.now + GRC_EPOCH);
	}
}

void dc_rules_fini(struct dc *dc)
{
	for (unsigned i = 0; i < 2; i++)
		if (dc->rules[i])
			free(dc->rules[i]->flow);
}
