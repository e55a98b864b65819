/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that go to a local host now. */
#include "engine/requester.h"
#include "engine/emit.h"
#include "roce/icrc.h"

/* Ask only for what is missing of a READ: a new request that starts `skip` packets later (partial retry,
 * IBA 9.7.5). */
static void send_partial(struct eng_far *f, const struct roce_pkt *pkt, uint32_t skip)
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
	uint32_t off = skip * f->reqr.pmtu;

	eng_lan_made(f->h.e, f->h.key.tenant, out,
	    roce_build_read_req(out, &a, roce_psn_add(pkt->psn, skip), roce_reth_va(pkt) + off,
	        roce_reth_rkey(pkt), roce_reth_len(pkt) - off),
	    &f->h.key.dst, &f->nh);
}

uint32_t eng_far_send(struct eng_far *f, unsigned max, rwy_time now)
{
	struct eng *e = f->h.e;
	struct roce_reqr_tx tx[ENG_FAR_BURST];
	uint32_t bytes = 0;
	unsigned n = eng_far_active(f)
	                 ? roce_reqr_send(&f->reqr, tx, max < ENG_FAR_BURST ? max : ENG_FAR_BURST, now)
	                 : 0;

	if (n)
		f->last_tx = now;
	for (unsigned i = 0; i < n; i++) {
		struct rwy_buf *b = tx[i].b;
		uint8_t *bth = b->data + (rwy_buf_is6(b) ? 40 : (b->data[0] & 15) * 4) + 8;
		struct roce_pkt pkt;

		e->c.host_resent += tx[i].again;
		bytes += b->len;
		if (tx[i].skip || (tx[i].ack_req && !(bth[8] & 0x80))) {
			/* Parsed when it came; it has not changed since. */
			if (roce_parse(b->data, b->len, &pkt) != ROCE_PARSE_OK)
				continue;
			if (tx[i].skip) {
				send_partial(f, &pkt, tx[i].skip);
				continue;
			}
			roce_icrc_set_ackreq(&pkt, true);
		}
		eng_lan_send(e, f->h.key.tenant, b, false, &f->h.key.dst, &f->nh);
	}
	if (n)
		eng_wheel_arm(f, roce_reqr_next(&f->reqr));
	return bytes;
}
