/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A relay between two others: what comes out of one tunnel for a host behind another one. Nothing
 * is rewritten but the hop limit; both hosts are known by their real addresses there. The access
 * list decides, of a REQ by its port. A REQ that has been here goes in a circle and is answered.
 */
#include "proxy/cm_int.h"
#include "proxy/cm_reply.h"
#include "proxy/hops.h"
#include "rwy/checksum.h"

static void drop(struct proxy_act *act, uint64_t *counter)
{
	(*counter)++;
	act->verdict = PROXY_DROP;
}

static unsigned hop_limit(const struct roce_pkt *pkt)
{
	return pkt->ip[pkt->is6 ? 7 : 8];
}

static void hop_take(struct roce_pkt *pkt)
{
	if (pkt->is6)
		pkt->ip[7]--;
	else
		rwy_ip4_set16(pkt->ip, 8, (uint16_t)(rwy_get16(pkt->ip + 8) - 0x100));
}

static void refuse(struct proxy_edge *e, struct roce_pkt *pkt, struct proxy_act *act, uint64_t *counter)
{
	drop(act, counter);
	proxy_reply_rej(act, pkt, PROXY_REJ_SERVICE_ID);
	e->c.relay_rej_sent += act->reply_len != 0;
}

/* Whether the REQ may go on; else it has its answer. */
static bool req_passes(struct proxy_edge *e, struct roce_pkt *pkt, const struct roce_cm_msg *m, bool back,
    struct proxy_act *act, rwy_time now)
{
	const struct proxy_link l = {
	    .id = proxy_link_id(&pkt->src, &pkt->dst, m->local_comm_id, m->qpn, m->tid),
	    .local = pkt->dst,
	    .remote = pkt->src,
	    .port = (uint16_t)m->service_id,
	    .rqpn = m->qpn};
	enum proxy_hop hop;

	if (!proxy_allows(e->policy, &pkt->src, &pkt->dst, l.port)) {
		refuse(e, pkt, act, &e->c.refused_acl);
		return false;
	}
	hop = back ? PROXY_HOP_CIRCLE : proxy_hops_pass(&e->hops, l.id, hop_limit(pkt), now);
	if (hop == PROXY_HOP_CIRCLE) {
		refuse(e, pkt, act, &e->c.refused_relay_loop);
		return false;
	}
	if (hop == PROXY_HOP_NEW && e->news)
		e->news(e->ctx, PROXY_NEWS_ONWARD, &l, 0);
	return true;
}

/* Whether a CM message may go on; else it is counted. */
static bool message_passes(
    struct proxy_edge *e, struct roce_pkt *pkt, bool back, struct proxy_act *act, rwy_time now)
{
	struct roce_cm_msg m;
	int rc = roce_cm_parse(pkt, &m);

	if (rc == RWY_ENOENT) {
		drop(act, &e->c.drop_relay_not_cm);
		return false;
	}
	if (rc != 0 || !proxy_cm_is_carried(m.attr)) {
		drop(act, &e->c.drop_relay_cm_malformed);
		return false;
	}
	return m.attr != ROCE_CM_REQ || req_passes(e, pkt, &m, back, act, now);
}

void proxy_edge_onward(
    struct proxy_edge *e, uint8_t *ip, uint32_t len, bool back, struct proxy_act *act, rwy_time now)
{
	struct roce_pkt pkt;
	enum roce_parse_reason r = roce_parse(ip, len, &pkt);

	act->reply_len = 0;
	act->link = NULL;
	if (r != ROCE_PARSE_OK && r != ROCE_PARSE_UNKNOWN_OPCODE) {
		drop(act, &e->c.drop_onward_malformed);
		return;
	}
	if (hop_limit(&pkt) <= 1) {
		drop(act, &e->c.drop_onward_hops);
		return;
	}
	if (roce_is_gsi(&pkt)) {
		if (!message_passes(e, &pkt, back, act, now))
			return;
	} else if (pkt.info->transport == ROCE_UD) {
		drop(act, &e->c.drop_relay_not_cm);
		return;
	}
	if (back) {
		drop(act, &e->c.drop_onward_loop);
		return;
	}
	if (!proxy_allows_hosts(e->policy, &pkt.src, &pkt.dst)) {
		drop(act, &e->c.drop_onward_acl);
		return;
	}
	hop_take(&pkt);
	e->c.onward_packets++;
	e->c.onward_bytes += pkt.len;
	act->verdict = PROXY_PASS;
}

void proxy_edge_foreign(struct proxy_edge *e, uint8_t *ip, uint32_t len, struct proxy_act *act, rwy_time now)
{
	struct roce_pkt pkt;
	struct roce_cm_msg m;

	act->reply_len = 0;
	act->link = NULL;
	act->verdict = PROXY_DROP;
	if (roce_parse(ip, len, &pkt) != ROCE_PARSE_OK || !roce_is_gsi(&pkt) ||
	    roce_cm_parse(&pkt, &m) != 0 || m.attr != ROCE_CM_REQ)
		return;
	if (proxy_hops_know(&e->hops, proxy_link_id(&pkt.src, &pkt.dst, m.local_comm_id, m.qpn, m.tid),
	        hop_limit(&pkt), now))
		refuse(e, &pkt, act, &e->c.refused_relay_loop);
}
