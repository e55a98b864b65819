/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The congestion loops of the two local segments (docs/congestion-control.md).
 *
 * Near source: towards the host that sends we are DCQCN's notification point. A CNP goes out for a packet
 * that a switch of the LAN has marked, and for one that finds the flow's queue in front of the WAN long, with
 * RED's probability. Near destination: towards the host that receives we are DCQCN's reaction point. Its CNPs
 * set the rate at which a flow is put on the LAN; they never cross the WAN. Far from congestion a flow has no
 * state here.
 */
#include <stdlib.h>

#include "cc/cc_guard.h"
#include "gateway/engine/eng.h"
#include "rwy/endian.h"

#define ECN_CE   3
#define MIN_RATE 1250000      /* 10 Mbit/s */
#define QUIET    (5 * RWY_MS) /* without a CNP for so long, and back at its rate: over */
#define BASE_RTT (20 * RWY_US)

struct eng_rp {
	struct cc_cfg cfg;
	const struct cc_ops *ops;
	rwy_time ticked, last_cnp;
	uint64_t rate_Bps;
	_Alignas(64) uint8_t state[CC_STATE_SIZE];
};

/* The mark is consumed: CE becomes ECT(0). It is not in the ICRC; IPv4's checksum follows (RFC 1624). */
static void clear_ce(struct rwy_buf *b, bool is6)
{
	uint8_t *ip = b->data;
	uint32_t sum;

	if (is6) {
		ip[1] = (uint8_t)(ip[1] & ~0x10u);
		return;
	}
	ip[1] = (uint8_t)(ip[1] & ~1u);
	sum = rwy_get16(ip + 10) + 1u;
	rwy_put16(ip + 10, (uint16_t)(sum + (sum >> 16)));
}

/* RED on the bytes that wait for the WAN (Floyd and Jacobson 1993; DCQCN's Kmin, Kmax, Pmax). */
static bool red(struct eng *e, uint64_t queue)
{
	const struct eng_cfg *c = &e->cfg;
	uint64_t span = c->np_max - c->np_min;

	if (queue <= c->np_min || !c->np_max)
		return false;
	if (queue >= c->np_max)
		return true;
	return (eng_random(e) >> 44) * span < (((queue - c->np_min) * c->np_percent) << 20) / 100;
}

bool eng_np_congested(struct eng_near *n, const struct roce_pkt *pkt, struct rwy_buf *b)
{
	struct eng *e = n->h.e;

	if (pkt->ecn == ECN_CE) {
		clear_ce(b, pkt->is6);
		e->c.np_ecn_marked++;
		return true;
	}
	return red(e, (uint64_t)wan_tx_unsent(n->req) * b->len);
}

/* --- end to end -------------------------------------------------------------------------------------- */

#define DRAIN_FLOOR ((uint64_t)128 << 10) /* so little waiting is nobody's congestion */

void eng_drain(struct eng_far *f, rwy_time now)
{
	const struct roce_reqr *r = &f->reqr;
	uint64_t waits = 0;

	if (!f->req || !f->h.e->cfg.e2e || (!f->drain.on && r->q.bytes < DRAIN_FLOOR))
		return;
	if (r->q.n > r->inflight)
		waits = r->q.bytes / r->q.n * (r->q.n - r->inflight);
	if (cc_drain_update(&f->drain, waits, f->bytes, f->h.e->tun[f->h.tunnel].min_rtt + RWY_MS / 8, now))
		wan_rx_window(f->req, cc_drain_window(&f->drain), f->drain.rate_Bps);
}

/* --- reaction point --------------------------------------------------------------------------------- */

static void apply(struct eng_far *f, rwy_time now)
{
	struct eng_rp *rp = f->rp;
	struct cc_answer a;

	cc_guard_ask(rp->ops, rp->state, &rp->cfg, &a);
	if (a.rate_Bps >= rp->cfg.rate_Bps - rp->cfg.rate_Bps / 64 && now - rp->last_cnp > QUIET) {
		eng_rp_free(f);
		return;
	}
	if (a.rate_Bps == rp->rate_Bps)
		return;
	rp->rate_Bps = a.rate_Bps;
	roce_reqr_pace(&f->reqr, a.rate_Bps);
}

/* What the flow gets now: its window a round trip. The upper bound of what it may have until congestion is
 * over. */
static uint64_t rate_now(const struct eng_far *f)
{
	const struct roce_reqr *r = &f->reqr;
	rwy_dur rtt = r->srtt > BASE_RTT ? r->srtt : BASE_RTT;
	uint64_t rate = (uint64_t)(r->inflight + 1) * (r->pmtu ? r->pmtu : 1024) * RWY_SEC / rtt;

	return rate > 2 * MIN_RATE ? rate : 2 * MIN_RATE;
}

static bool start(struct eng_far *f, rwy_time now)
{
	struct eng_rp *rp = aligned_alloc(64, (sizeof(*rp) + 63) & ~(size_t)63);

	if (!rp)
		return false;
	memset(rp, 0, sizeof(*rp));
	rp->ops = &cc_dcqcn;
	rp->cfg = (struct cc_cfg){.rate_Bps = rate_now(f),
	    .min_rate_Bps = MIN_RATE,
	    .mtu = f->reqr.pmtu ? f->reqr.pmtu : 1024,
	    .initial_rtt = f->reqr.srtt ? f->reqr.srtt : BASE_RTT};
	rp->ops->init(rp->state, &rp->cfg, now);
	rp->ticked = now;
	f->rp = rp;
	return true;
}

void eng_rp_cnp(struct eng_far *f, rwy_time now)
{
	if (!f->active || !f->h.e->cfg.rp || (!f->rp && !start(f, now)))
		return;
	f->rp->last_cnp = now;
	f->rp->ops->on_cnp(f->rp->state, now);
	apply(f, now);
}

void eng_rp_sent(struct eng_far *f, uint32_t bytes, rwy_time now)
{
	f->rp->ops->on_sent(f->rp->state, bytes, 0, now);
	apply(f, now);
}

rwy_time eng_rp_next(const struct eng_far *f)
{
	return f->rp ? cc_guard_next(f->rp->ops, f->rp->state, f->rp->ticked) : RWY_NEVER;
}

void eng_rp_tick(struct eng_far *f, rwy_time now)
{
	if (!f->rp || eng_rp_next(f) > now)
		return;
	f->rp->ticked = now;
	f->rp->ops->on_tick(f->rp->state, now);
	apply(f, now);
}

uint64_t eng_rp_rate(const struct eng_far *f)
{
	return f->rp ? f->rp->rate_Bps : 0;
}

void eng_rp_free(struct eng_far *f)
{
	free(f->rp);
	f->rp = NULL;
	roce_reqr_pace(&f->reqr, 0);
}
