/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Near source (docs/congestion-control.md): DCQCN's notification point towards the host that sends.
 * A CNP goes out for a request or READ response that a switch of the LAN has marked. It also goes
 * out, with RED's probability, for a request that finds its flow's queue for the WAN long and
 * growing. DCQCN halves the rate at each CNP; one every 50 us while a queue drains would leave the
 * path idle afterwards.
 */
#include "engine/responder.h"
#include "engine/emit.h"
#include "rwy/checksum.h"
#include "rwy/endian.h"
#include "roce/build.h"

#define CNP_INTERVAL (50 * RWY_US) /* DCQCN: at most one CNP for a flow in this time */

void eng_cnp_send(struct eng_responder *rs, rwy_time now)
{
	uint8_t out[ROCE_BUILD_MAX];
	struct roce_addr a;

	if (now < rs->cnp_at || !rs->local_qpn)
		return;
	rs->cnp_at = now + CNP_INTERVAL;
	eng_responder_address(rs, &a);
	eng_lan_made(rs->side.e, rs->side.key.tenant, out, roce_build_cnp(out, &a), &a.dst, &rs->nh);
	rs->side.e->c.np_cnp_sent++;
}

#define ECN_CE     3
#define GROWTH     ((uint64_t)128 << 10) /* bytes above the shortest queue: it grows */
#define RATE_SPAN  (100 * RWY_US)        /* a flow's own rate is measured over this */
#define RATE_STALE (400 * RWY_US)

/*
 * CE becomes ECT(0), so that the mark is answered once. ECN bits are not in the ICRC; the IPv4
 * checksum is updated.
 */
static void clear_ce(struct rwy_buf *b, bool is6)
{
	uint8_t *ip = b->data;

	if (is6)
		ip[1] = (uint8_t)(ip[1] & ~0x10u);
	else
		rwy_ip4_set16(ip, 0, rwy_get16(ip) & 0xfffe);
}

/*
 * By how many powers of two CNPs begin earlier because memory is short: 0; 2 above a half; 4 above
 * three quarters. Many flows fill the memory long before the queue of one is long, and a host whose
 * ACKs are withheld resends a window when its timer runs out.
 */
static unsigned memory_pressure_of(uint64_t held, uint64_t most)
{
	return held <= most >> 1 ? 0 : held <= (most >> 1) + (most >> 2) ? 2 : 4;
}

static unsigned memory_pressure(const struct eng_responder *rs)
{
	const struct eng *e = rs->side.e;
	const struct eng_tenant *t = rs->side.tenant;
	unsigned own = memory_pressure_of(t->mem.held, t->cfg.custody),
	         all = memory_pressure_of(e->common + e->reserved, e->cfg.custody_total);

	if (all && t->mem.held < t->cfg.reserve) /* it uses its own reservation */
		all = memory_pressure_of(t->mem.held, t->cfg.reserve);
	else if (!all && t->cfg.reserve && t->mem.held > t->cfg.reserve) /* it uses common memory */
		all = 2;
	return all > own ? all : own;
}

/* RED over the bytes that wait for the WAN (Floyd and Jacobson 1993; DCQCN's Kmin, Kmax, Pmax). */
static bool red_marks(struct eng *e, uint64_t queue, uint64_t min, uint64_t max)
{
	if (queue <= min)
		return false;
	if (queue >= max)
		return true;
	return (eng_random(e) >> 44) * (max - min) < (((queue - min) * e->cfg.np_percent) << 20) / 100;
}

/*
 * The far host takes drain_Bps, and the WAN flow carries no more (RATE frame): the queue here is
 * the backlog of a round trip and drains by itself. The host gets CNPs only while it sends more.
 */
static bool above_drain(struct eng_responder *rs, uint64_t drain_Bps, rwy_time now)
{
	struct eng_rare *r = eng_rare_take(rs);
	rwy_dur span = now - rs->rare->np_at;
	uint64_t came = rs->bytes - rs->rare->np_bytes;

	if (!r || span < RATE_SPAN)
		return false;
	r->np_at = now;
	r->np_bytes = rs->bytes;
	return span <= RATE_STALE &&
	       came * (RWY_SEC / RATE_SPAN) / (span / (RATE_SPAN / 100)) * 100 > drain_Bps + drain_Bps / 16;
}

bool eng_np_congested(struct eng_responder *rs, const struct roce_pkt *pkt, struct rwy_buf *b)
{
	struct eng *e = rs->side.e;
	uint64_t queue, drain, min, max;
	unsigned earlier;

	if (pkt->ecn == ECN_CE) {
		clear_ce(b, pkt->is6);
		e->c.np_ecn_marked++;
		return true;
	}
	queue = (uint64_t)wan_tx_unsent(rs->requests) * b->len;
	if (queue < rs->np_low)
		rs->np_low = queue;
	earlier = memory_pressure(rs);
	min = e->cfg.np_min >> earlier;
	max = e->cfg.np_max >> earlier;
	if (queue <= min || !e->cfg.np_max || e->now < rs->cnp_at)
		return false;
	if (wan_tx_window(rs->requests, &drain) && drain)
		return above_drain(rs, drain, e->now);
	if (queue < max && queue < rs->np_low + (GROWTH >> earlier))
		return false;
	if (!red_marks(e, queue, min, max))
		return false;
	rs->np_low = queue;
	return true;
}

void eng_np_response(struct eng_requester *rq, const struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now)
{
	struct eng_responder *rs = rq->responder;

	if (pkt->ecn != ECN_CE || pkt->info->op != ROCE_OP_READ_RESP)
		return;
	clear_ce(b, pkt->is6);
	rq->side.e->c.np_ecn_marked++;
	if (!rs)
		return;
	if (rs->side.state == ENG_R_NEW) /* the host has sent responses only */
		eng_responder_learn_header(rs, pkt, b);
	eng_cnp_send(rs, now);
}
