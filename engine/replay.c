/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host that lost a response on the LAN repeats its request. A READ gets its kept responses again
 * (IBA C9-106); an ATOMIC is answered from memory and never executed twice (IBA C9-110). This path
 * is rare and copies.
 */
#include "engine/responder.h"
#include "engine/emit.h"
#include "roce/icrc.h"
#include "rwy/checksum.h"
#include "rwy/endian.h"

#define ON_ITS_WAY RWY_SEC /* time that responses may wait in the receive queue of a slow host */

/*
 * Sets the IP and UDP lengths of a packet, and recomputes the IPv4 header checksum. There is no UDP
 * checksum: that of the host was for other bytes, and the ICRC covers these.
 */
static void set_packet_length(uint8_t *ip, uint32_t len)
{
	const bool is6 = ip[0] >> 4 == 6;
	uint32_t hlen = is6 ? 40 : (ip[0] & 15u) * 4;

	rwy_put16(ip + hlen + 4, (uint16_t)(len - hlen));
	rwy_put16(ip + hlen + 6, 0);
	if (is6) {
		rwy_put16(ip + 4, (uint16_t)(len - 40));
		return;
	}
	rwy_ip4_set16(ip, 2, (uint16_t)len);
}

/*
 * For a repeated READ, or the rest of one. A series of responses begins with FIRST or ONLY, which
 * carry an AETH, also where the far host's series had a MIDDLE (IBA 9.7.5.2.7, table 38).
 */
bool eng_responder_resend(struct eng_responder *rs, const struct rwy_buf *b, uint8_t op)
{
	struct eng *e = rs->side.e;
	struct roce_pkt old, pkt;
	struct rwy_buf *c;
	uint32_t grow, head;

	/* Its ICRC is the far host's. Without this check a new one would make wrong bytes right. */
	if (roce_parse(b->data, b->len, &old) != ROCE_PARSE_OK || !roce_icrc_ok(&old)) {
		e->c.drop_wan_icrc++;
		return false;
	}
	grow = (uint32_t)(roce_op(op)->ext_len - old.info->ext_len); /* 0, 4 or (wrapping) -4 */
	c = rwy_buf_alloc(&e->bufs, 64, old.len + grow);
	if (!c) {
		e->c.drop_no_buffer++;
		return true;
	}
	c->pcp = b->pcp;
	head = (uint32_t)(old.ext - old.ip);
	memcpy(c->data, old.ip, head);
	if (old.info->ext_len && roce_op(op)->ext_len)
		memcpy(c->data + head, old.ext, old.info->ext_len);
	else if (roce_op(op)->ext_len) {
		c->data[head] = roce_aeth_make(ROCE_AETH_ACK, ROCE_AETH_CREDIT_INVALID);
		rwy_put24(c->data + head + 1, rs->resp.allow_msn);
	}
	memcpy(c->data + head + roce_op(op)->ext_len, old.payload, old.payload_len + old.pad);
	c->data[head - ROCE_BTH_LEN] = op;
	set_packet_length(c->data, old.len + grow);
	if (roce_parse(c->data, c->len, &pkt) != ROCE_PARSE_OK) {
		eng_drop(e, c, &e->c.drop_tunnel_msg);
		return true;
	}
	roce_icrc_store(&pkt);
	eng_lan_send(e, rs->side.key.tenant, c, true, &rs->side.key.src, &rs->nh);
	return true;
}

/* The far host's response to this PSN has not come yet. */
static bool response_pending(const struct eng_responder *rs, roce_psn psn)
{
	const struct roce_resp *r = &rs->resp;

	if (!r->rd_n)
		return false;
	const struct roce_resp_rd *head = &r->rd[r->rd_head];

	return !roce_psn_before(psn, roce_psn_add(head->psn, head->served));
}

bool eng_responder_has_answer(const struct eng_responder *rs, roce_psn psn)
{
	return eng_responder_kept(rs, &rs->rare->reads, psn) || response_pending(rs, psn);
}

/* The response is not kept and cannot arrive later: the host gets an error, never silence. */
static void fail_not_kept(struct eng_responder *rs, roce_psn psn, enum eng_cause why, rwy_time now)
{
	eng_responder_fail(rs, psn, roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_OP), why, now);
	roce_resp_lost(&rs->resp, psn);
}

void eng_responder_replay(struct eng_responder *rs, roce_psn psn, uint32_t cnt, rwy_time now)
{
	const struct eng_kept *k = eng_responder_kept(rs, &rs->rare->reads, psn);
	uint64_t first = k ? k->serial : 0;
	bool found = k;

	/* Responses missing at the end of the series have not come from the far host yet. */
	for (uint32_t i = 0; i < cnt && k && k->serial == first + i;
	     i++, k = eng_responder_kept_next(&rs->rare->reads, k))
		if (!eng_responder_resend(rs, k->buf, roce_resp_read_opcode(i, cnt))) {
			fail_not_kept(rs, roce_psn_add(psn, i), ENG_CAUSE_READ_DAMAGED, now);
			return;
		}
	if (found || !cnt || response_pending(rs, psn))
		return;
	/* A slow host's timer runs while responses wait in its queue. It repeats a lost one. */
	if (rwy_since(rs->rare->served_at, now) < ON_ITS_WAY)
		rs->side.e->c.drop_read_on_its_way++;
	else
		fail_not_kept(rs, psn, ENG_CAUSE_READ_GONE, now);
}

void eng_responder_replay_atomic(struct eng_responder *rs, roce_psn psn, rwy_time now)
{
	const struct eng_kept *k = eng_responder_kept(rs, &rs->rare->atomics, psn);
	uint8_t out[ROCE_BUILD_MAX];
	struct roce_addr a;

	if (k) {
		eng_responder_address(rs, &a);
		eng_lan_made(rs->side.e, rs->side.key.tenant, out,
		    roce_build_atomic_ack(out, &a, psn,
		        roce_aeth_make(ROCE_AETH_ACK, ROCE_AETH_CREDIT_INVALID), rs->resp.allow_msn,
		        k->original),
		    &a.dst, &rs->nh);
	} else if (!response_pending(rs, psn)) {
		fail_not_kept(rs, psn, ENG_CAUSE_ATOMIC_GONE, now);
	}
}
