/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that go to a local host now. */
#include "engine/requester.h"
#include "engine/emit.h"
#include "engine/memory.h"
#include "roce/icrc.h"

/* Requests the rest of a READ, from response `skip` on (partial retry, IBA 9.7.5). */
static void send_partial(struct eng_requester *rq, const struct roce_pkt *pkt, uint32_t skip)
{
	uint8_t out[ROCE_BUILD_MAX];
	struct roce_addr a = {
	    .src = pkt->src,
	    .dst = pkt->dst,
	    .dqpn = pkt->dqpn,
	    .sport = pkt->sport,
	    .pkey = pkt->pkey,
	    .tos = pkt->is6 ? (uint8_t)(pkt->ip[0] << 4 | pkt->ip[1] >> 4) : pkt->ip[1],
	    .ttl = 64,
	    .migreq = pkt->migreq,
	};
	uint32_t off = skip * rq->reqr.pmtu;

	eng_lan_made(rq->side.e, rq->side.key.tenant, out,
	    roce_build_read_req(out, &a, roce_psn_add(pkt->psn, skip), roce_reth_va(pkt) + off,
	        roce_reth_rkey(pkt), roce_reth_len(pkt) - off),
	    &rq->side.key.dst, &rq->nh);
}

/* Records how many of the n packets that go now are sent again. */
static void note_resent(struct eng_requester *rq, const struct roce_reqr_tx *tx, unsigned n, rwy_time now)
{
	unsigned again = 0;
	roce_psn first = 0;

	for (unsigned i = 0; i < n; i++)
		if (tx[i].again && !again++)
			first = tx[i].b->psn;
	rq->side.e->c.host_resent += again;
	eng_record_side(&rq->side,
	    &(struct eng_record){.kind = ENG_REC_RESENT, .psn = first & ROCE_PSN_MASK, .value = again}, now);
}

uint32_t eng_requester_send(struct eng_requester *rq, unsigned max, rwy_time now)
{
	struct eng *e = rq->side.e;
	struct roce_reqr_tx tx[ENG_REQUESTER_BURST];
	uint32_t bytes = 0;
	uint32_t resent;
	unsigned n;

	if (!eng_requester_active(rq))
		return 0;
	if (rq->reads) {
		rq->reqr.owed_max = eng_mem_read_room(rq);
		rq->reqr.one_read = !rq->answering;
	}
	resent = rq->reqr.resent;
	n = roce_reqr_send(&rq->reqr, tx, max < ENG_REQUESTER_BURST ? max : ENG_REQUESTER_BURST, now);
	if (n)
		rq->last_tx = now;
	if (rq->reqr.resent != resent)
		note_resent(rq, tx, n, now);
	for (unsigned i = 0; i < n; i++) {
		struct rwy_buf *b = tx[i].b;
		struct roce_pkt pkt;

		bytes += b->len;
		e->c.host_asked += tx[i].asks;
		if (tx[i].skip) {
			rq->nh.pcp = b->pcp;
			if (roce_parse(b->data, b->len, &pkt) == ROCE_PARSE_OK)
				send_partial(rq, &pkt, tx[i].skip);
			continue;
		}
		if (tx[i].ack_req || tx[i].ack_less) {
			/* It parsed when it came, and has not changed since. */
			roce_parse_offsets(b->data, &pkt);
			roce_icrc_set_ackreq(&pkt, tx[i].ack_req);
		}
		eng_lan_send(e, rq->side.key.tenant, b, false, &rq->side.key.dst, &rq->nh);
	}
	if (n)
		eng_wheel_arm(rq, roce_reqr_next(&rq->reqr));
	return bytes;
}
