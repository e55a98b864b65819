/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Near source (docs/congestion-control.md): towards the host that sends we are DCQCN's notification point. A
 * CNP goes out for a packet that a switch of the LAN has marked, and for one that finds the flow's queue in
 * front of the WAN long, with RED's probability, while that queue grows: DCQCN halves at each CNP, and one
 * for every 50 us that a queue takes to go away would leave the path idle afterwards.
 */
#include "engine/responder.h"
#include "engine/emit.h"
#include "rwy/endian.h"
#include "roce/build.h"

#define CNP_INTERVAL (50 * RWY_US) /* DCQCN NP: at most one CNP a flow in this time */

void eng_cnp_send(struct eng_near *n, rwy_time now)
{
	uint8_t out[ROCE_BUILD_MAX];
	struct roce_addr a;

	if (now < n->cnp_at || !n->lqpn)
		return;
	n->cnp_at = now + CNP_INTERVAL;
	eng_near_address(n, &a);
	eng_lan_made(n->h.e, n->h.key.tenant, out, roce_build_cnp(out, &a), &a.dst, &n->nh);
	n->h.e->c.np_cnp_sent++;
}

#define ECN_CE     3
#define GROWTH     ((uint64_t)128 << 10) /* bytes since the queue was shortest: it grows */
#define RATE_SPAN  (100 * RWY_US)        /* a flow's own rate is measured over this */
#define RATE_STALE (400 * RWY_US)

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

/*
 * How short memory is, the tenant's or everybody's: 0; 2 above a half; 4 above three quarters. So many binary
 * orders earlier CNPs begin: many flows fill the memory long before the queue of one is long, and a host that
 * is held for lack of it sends a window again when its timer runs out.
 */
static unsigned tightness(uint64_t held, uint64_t most)
{
	return held <= most >> 1 ? 0 : held <= (most >> 1) + (most >> 2) ? 2 : 4;
}

static unsigned tight(const struct eng_near *n)
{
	const struct eng *e = n->h.e;
	const struct eng_ten *t = n->h.ten;
	unsigned own = tightness(t->custody, t->cfg.custody),
	         all = tightness(e->common + e->reserved, e->cfg.custody_total);

	if (all && t->custody < t->cfg.reserve) /* it lives from what is its own */
		all = tightness(t->custody, t->cfg.reserve);
	else if (!all && t->cfg.reserve && t->custody > t->cfg.reserve) /* from what may be others' soon */
		all = 2;
	return all > own ? all : own;
}

/* RED on the bytes that wait for the WAN (Floyd and Jacobson 1993; DCQCN's Kmin, Kmax, Pmax). */
static bool red(struct eng *e, uint64_t queue, uint64_t min, uint64_t max)
{
	if (queue <= min)
		return false;
	if (queue >= max)
		return true;
	return (eng_random(e) >> 44) * (max - min) < (((queue - min) * e->cfg.np_percent) << 20) / 100;
}

/*
 * The far host takes so much, and no more is let onto the WAN (RATE): what waits here is the backlog of a
 * round trip and goes away by itself. Its host is only asked for less while it sends more than that.
 */
static bool above_drain(struct eng_near *n, uint64_t drain_Bps, rwy_time now)
{
	rwy_dur span = now - n->np_at;
	uint64_t came = n->bytes - n->np_bytes;

	if (span < RATE_SPAN)
		return false;
	n->np_at = now;
	n->np_bytes = n->bytes;
	return span <= RATE_STALE &&
	       came * (RWY_SEC / RATE_SPAN) / (span / (RATE_SPAN / 100)) * 100 > drain_Bps + drain_Bps / 16;
}

bool eng_np_congested(struct eng_near *n, const struct roce_pkt *pkt, struct rwy_buf *b)
{
	struct eng *e = n->h.e;
	uint64_t queue, drain, min, max;
	unsigned earlier;

	if (pkt->ecn == ECN_CE) {
		clear_ce(b, pkt->is6);
		e->c.np_ecn_marked++;
		return true;
	}
	queue = (uint64_t)wan_tx_unsent(n->req) * b->len;
	if (queue < n->np_low)
		n->np_low = queue;
	earlier = tight(n);
	min = e->cfg.np_min >> earlier;
	max = e->cfg.np_max >> earlier;
	if (queue <= min || !e->cfg.np_max || e->now < n->cnp_at)
		return false;
	if (wan_tx_window(n->req, &drain) && drain)
		return above_drain(n, drain, e->now);
	if (queue < max && queue < n->np_low + (GROWTH >> earlier))
		return false;
	if (!red(e, queue, min, max))
		return false;
	n->np_low = queue;
	return true;
}
