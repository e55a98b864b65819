/* SPDX-License-Identifier: Apache-2.0 */
/* Copies for the standby gateway, at the active one. */
#include "engine/copy.h"

#include <stdlib.h>

#include "engine/emit.h"
#include "engine/memory.h"
#include "engine/responder.h"

/*
 * A response that was sent a moment ago may still be in the NIC of a gateway that dies. So RELEASE
 * tells what happened a beat ago.
 */
#define BEAT RWY_MS

static struct wan_tunnel *pair_tunnel(const struct eng *e)
{
	return e->tunnel[e->cfg.standby.tunnel].wan;
}

static roce_psn later(roce_psn a, roce_psn b)
{
	return roce_psn_after(b, a) ? b : a;
}

/* --- buffers ---------------------------------------------------------------------------------- */

static void charge(struct eng_responder *rs, const struct rwy_buf *b)
{
	uint64_t cost = eng_buf_cost(rs->side.e, b);

	rs->copy->bytes += cost;
	rs->copy->bufs++;
	eng_mem_charge(&rs->side, ENG_MEM_COPIES, cost);
}

static void give_up(struct eng_responder *rs)
{
	rs->side.e->sb.stuck = true;
	rs->side.e->c.copy_failed++;
}

/* A standby that has b also has copies of all requests before sent_psn. */
static void send_to_standby(struct eng_responder *rs, struct rwy_buf *b, rwy_time now)
{
	b->psn = rs->copy->sent_psn;
	b->msn = rs->copy->sent_msn;
	charge(rs, b);
	wan_tx_send(rs->copy->flow, b, now);
}

/* msn: after the request. */
static bool send_copy(struct eng_responder *rs, const struct rwy_buf *b, roce_msn msn, rwy_time now)
{
	struct eng *e = rs->side.e;
	struct rwy_buf *c = rwy_buf_alloc(&e->bufs, WAN_HDR_MAX, b->len);

	if (!c)
		return false;
	memcpy(c->data, b->data, b->len);
	c->len = b->len;
	c->kind = RWY_BUF_PACKET;
	c->pcp = b->pcp;
	c->opcode = b->opcode;
	/* A READ that is not counted yet counts as one. */
	rs->copy->sent_psn = roce_psn_add(b->psn, b->psn_cnt ? b->psn_cnt : 1);
	rs->copy->sent_msn = msn;
	e->c.copies_sent++;
	send_to_standby(rs, c, now);
	return true;
}

static bool send_message(
    struct eng_responder *rs, enum eng_copy_type type, roce_psn psn, roce_msn msn, rwy_time now)
{
	struct eng_copy_msg m = {.type = (uint8_t)type,
	    .rewound = type == ENG_COPY_BASE && rs->rewound,
	    .pmtu = (uint16_t)rs->resp.pmtu,
	    .psn = psn,
	    .msn = msn};
	struct rwy_buf *b = rwy_buf_alloc(&rs->side.e->bufs, WAN_HDR_MAX, ENG_COPY_LEN);

	if (!b)
		return false;
	b->len = (uint32_t)eng_copy_encode(b->data, &m);
	b->kind = RWY_BUF_CTRL;
	rs->copy->pmtu = m.pmtu;
	send_to_standby(rs, b, now);
	if (type == ENG_COPY_RELEASE)
		rs->copy->said_seq = b->seq;
	return true;
}

/* --- begin and end ---------------------------------------------------------------------------- */

size_t eng_copy_open_info(const struct eng_responder *rs, uint8_t *out)
{
	return eng_responder_open_info(rs, ENG_OPEN_COPY, out);
}

static bool open_flow(struct eng_responder *rs, rwy_time now)
{
	uint8_t info[WAN_OPEN_MAX];

	return wan_tx_open(pair_tunnel(rs->side.e), &rs->copy->flow, info, eng_copy_open_info(rs, info), rs,
	           now) == 0;
}

static void link_copy(struct eng *e, struct eng_responder *rs)
{
	struct eng_copy *c = rs->copy;

	c->all_next = e->sb.copies;
	if (c->all_next)
		c->all_next->copy->at = &c->all_next;
	c->at = &e->sb.copies;
	e->sb.copies = rs;
}

static void unlink_copy(struct eng_copy *c)
{
	*c->at = c->all_next;
	if (c->all_next)
		c->all_next->copy->at = c->at;
}

static bool ends_message(const struct rwy_buf *b)
{
	return roce_op_ends(roce_op(b->opcode));
}

uint32_t eng_custody_executed(const struct eng_responder *rs)
{
	const struct roce_resp *r = &rs->resp;
	roce_psn unanswered = r->rd_n ? r->rd[r->rd_head].psn : r->epsn;
	const struct rwy_buf *b;
	uint32_t n = 0;

	for (uint32_t i = 0; rs->requests && (b = wan_tx_peek(rs->requests, i)); i++)
		if (b->kind == RWY_BUF_PACKET && roce_psn_before(b->psn, unanswered) &&
		    (b->opcode == ROCE_RC_READ_REQ || roce_op_is_atomic(roce_op(b->opcode))))
			n = i + 1;
	return n;
}

/* Copies the requests in custody. The MSN before them follows from the present one. */
static bool copy_custody(struct eng_responder *rs, rwy_time now)
{
	struct eng_copy *c = rs->copy;
	const struct rwy_buf *b;
	roce_psn first = rs->resp.epsn;
	uint32_t ends = 0, packets = 0, begin = eng_custody_executed(rs);

	for (uint32_t i = begin; rs->requests && (b = wan_tx_peek(rs->requests, i)); i++)
		if (b->kind == RWY_BUF_PACKET) {
			if (!packets++)
				first = b->psn;
			ends += ends_message(b);
		}
	c->psn = c->sent_psn = c->released = c->answered = first;
	c->done.psn = c->due.psn = c->said.psn = first;
	c->msn = c->sent_msn = roce_psn_add(rs->resp.msn, ROCE_PSN_MASK + 1 - ends);
	if (rs->resp.rd_n && rs->resp.rd[rs->resp.rd_head].served) {
		const struct roce_resp_rd *d = &rs->resp.rd[rs->resp.rd_head];

		eng_copy_answered(rs, roce_psn_add(d->psn, d->served - 1));
		c->answered = c->done.psn;
	}
	if (!send_message(rs, ENG_COPY_BASE, first, c->msn, now))
		return false;
	for (uint32_t i = begin; rs->requests && (b = wan_tx_peek(rs->requests, i)); i++) {
		if (b->kind != RWY_BUF_PACKET)
			continue;
		if (!send_copy(rs, b, roce_psn_add(c->sent_msn, ends_message(b)), now))
			return false;
	}
	return true;
}

void eng_copy_begin(struct eng_responder *rs, rwy_time now)
{
	struct eng *e = rs->side.e;

	if (rs->copy || !eng_sb_copies(e) || rs->side.state != ENG_R_RUNNING || !rs->local_qpn ||
	    !roce_resp_started(&rs->resp) || eng_ack_mode(rs) != ENG_ACK_SITE)
		return;
	rs->copy = rwy_slab_get(&e->copy_slab);
	if (!rs->copy) {
		give_up(rs);
		return;
	}
	link_copy(e, rs);
	if (!open_flow(rs, now) || !copy_custody(rs, now))
		give_up(rs); /* the standby's end frees it */
}

static void drop_answers(struct eng_responder *rs)
{
	struct rwy_buf *b;

	while ((b = rwy_bufq_pop(&rs->copy->answers))) {
		eng_mem_release(&rs->side, ENG_MEM_COPIES, eng_buf_cost(rs->side.e, b), 1);
		rwy_buf_free(&rs->side.e->bufs, b);
	}
}

static void unlist(struct eng_responder *rs)
{
	struct eng_responder **at = &rs->side.e->sb.releases;

	while (*at != rs)
		at = &(*at)->copy->next;
	*at = rs->copy->next;
	rs->copy->listed = false;
}

void eng_copy_end(struct eng_responder *rs, rwy_time now)
{
	struct eng_copy *c = rs->copy;

	if (!c)
		return;
	drop_answers(rs);
	if (c->bufs)
		eng_mem_release(&rs->side, ENG_MEM_COPIES, c->bytes, c->bufs);
	if (c->flow)
		wan_tx_abort(c->flow, now);
	if (c->listed)
		unlist(rs);
	if (rs->responses && c->done.responses)
		wan_rx_delivered(rs->responses, c->done.responses - 1, now);
	unlink_copy(c);
	rs->copy = NULL;
	rwy_slab_put(&rs->side.e->copy_slab, c);
}

void eng_copy_refused(struct eng_responder *rs, rwy_time now)
{
	struct eng_copy *c = rs->copy;

	eng_mem_release(&rs->side, ENG_MEM_COPIES, c->bytes, c->bufs);
	c->bytes = c->bufs = 0;
	c->flow = NULL;
	give_up(rs);
}

/* --- requests and ACKs ------------------------------------------------------------------------ */

void eng_copy_request(struct eng_responder *rs, const struct rwy_buf *b, rwy_time now)
{
	struct eng_copy *c = rs->copy;

	if (!c) {
		eng_copy_begin(rs, now); /* with b */
		return;
	}
	if (!c->flow)
		return;
	if ((rs->resp.pmtu != c->pmtu && !send_message(rs, ENG_COPY_PMTU, 0, 0, now)) ||
	    !send_copy(rs, b, b->msn, now))
		give_up(rs);
}

void eng_copy_allow(struct eng_responder *rs)
{
	if (rs->copy)
		roce_resp_allow(&rs->resp, rs->copy->psn, rs->copy->msn);
}

bool eng_copy_covers(const struct eng_responder *rs, roce_psn psn)
{
	return rs->copy && roce_psn_after(rs->copy->psn, psn);
}

bool eng_copy_complete(const struct eng_responder *rs)
{
	const struct eng_copy *c = rs->copy;

	return c && !roce_psn_before(c->psn, rs->resp.allow_psn) &&
	       !roce_psn_before(c->released, c->answered);
}

/* --- messages of the far gateway -------------------------------------------------------------- */

/*
 * A gateway that may not speak would pass it to no host, and the standby would hear that the host
 * has it.
 */
static bool answer_waits(const struct eng_responder *rs)
{
	return !eng_sb_speaks(rs->side.e) ||
	       (rs->resp.rd_n && !eng_copy_covers(rs, rs->resp.rd[rs->resp.rd_head].psn));
}

bool eng_copy_holds(struct eng_responder *rs, struct rwy_buf *b)
{
	if (!rs->copy || !eng_copy_gates(rs) || (!rs->copy->answers.n && !answer_waits(rs)))
		return false;
	eng_mem_charge(&rs->side, ENG_MEM_COPIES, eng_buf_cost(rs->side.e, b));
	rwy_bufq_push(&rs->copy->answers, b);
	return true;
}

struct rwy_buf *eng_copy_next_answer(struct eng_responder *rs)
{
	struct rwy_buf *b;

	if (!rs->copy || !rs->copy->answers.n || (eng_copy_gates(rs) && answer_waits(rs)))
		return NULL;
	b = rwy_bufq_pop(&rs->copy->answers);
	eng_mem_release(&rs->side, ENG_MEM_COPIES, eng_buf_cost(rs->side.e, b), 1);
	return b;
}

/* --- what the standby need not keep ----------------------------------------------------------- */

static bool differ(const struct eng_copy_mark *a, const struct eng_copy_mark *b)
{
	return a->psn != b->psn || a->responses != b->responses;
}

static void list(struct eng_responder *rs)
{
	struct eng *e = rs->side.e;

	if (rs->copy->listed)
		return;
	rs->copy->listed = true;
	rs->copy->next = e->sb.releases;
	e->sb.releases = rs;
	if (e->sb.beat_at == RWY_NEVER)
		e->sb.beat_at = e->now + BEAT;
}

void eng_copy_answered(struct eng_responder *rs, roce_psn psn)
{
	if (!rs->copy)
		return;
	rs->copy->done.psn = later(rs->copy->done.psn, roce_psn_add(psn, 1));
	list(rs);
}

void eng_copy_delivered(struct eng_responder *rs, const struct rwy_buf *b)
{
	const struct roce_opinfo *op = roce_op(b->opcode);

	/* A READ or ATOMIC counts when its responses have been sent. */
	if (!rs->copy || b->kind != RWY_BUF_PACKET || op->op == ROCE_OP_READ_REQ || roce_op_is_atomic(op))
		return;
	rs->copy->done.psn = later(rs->copy->done.psn, roce_psn_add(b->psn, b->psn_cnt));
	list(rs);
}

void eng_copy_taken(struct eng_responder *rs, uint64_t seq, rwy_time now)
{
	if (!rs->responses || seq == ENG_NO_SEQ)
		return;
	if (!rs->copy) {
		wan_rx_delivered(rs->responses, seq, now);
		return;
	}
	rs->copy->done.responses = seq + 1;
	list(rs);
}

void eng_copy_other_responses(struct eng_responder *rs)
{
	if (!rs->copy)
		return;
	rs->copy->done.responses = rs->copy->due.responses = rs->copy->said.responses = 0;
	for (struct rwy_buf *b = rs->copy->answers.head; b; b = b->next)
		b->seq = ENG_NO_SEQ; /* its number is of the flow before */
}

static void report_responses(struct eng_responder *rs, rwy_time now)
{
	if (rs->responses && rs->copy->said.responses)
		wan_rx_delivered(rs->responses, rs->copy->said.responses - 1, now);
}

/* One RELEASE is under way at a time. */
static void say_due(struct eng_responder *rs, rwy_time now)
{
	struct eng_copy *c = rs->copy;

	if (c->saying || !c->flow || !differ(&c->due, &c->said))
		return;
	if (c->due.psn == c->said.psn) {
		c->said = c->due;
		report_responses(rs, now);
	} else if (send_message(rs, ENG_COPY_RELEASE, c->due.psn, 0, now)) {
		c->said = c->due;
		c->saying = true;
	}
}

void eng_copy_tick(struct eng *e, rwy_time now)
{
	struct eng_responder **at = &e->sb.releases, *rs;

	if (now < e->sb.beat_at)
		return;
	while ((rs = *at)) {
		struct eng_copy *c = rs->copy;

		say_due(rs, now);
		c->due = c->done;
		if (c->flow && differ(&c->due, &c->said)) {
			at = &c->next;
			continue;
		}
		*at = c->next;
		c->listed = false;
	}
	e->sb.beat_at = e->sb.releases ? now + BEAT : RWY_NEVER;
}

void eng_copy_received(struct eng_responder *rs, const struct rwy_buf *b, rwy_time now)
{
	struct eng_copy *c = rs->copy;

	if (!eng_sb_copies(rs->side.e)) /* it may have just started, and lack what came before */
		return;
	if (roce_psn_after(b->psn, c->psn)) {
		c->psn = b->psn;
		c->msn = b->msn;
	}
	if (!c->saying || b->seq < c->said_seq)
		return;
	c->saying = false;
	c->released = c->said.psn;
	report_responses(rs, now);
}

void eng_copy_freed(struct eng_responder *rs, const struct rwy_buf *b)
{
	uint64_t cost = eng_buf_cost(rs->side.e, b);

	rs->copy->bytes -= cost;
	rs->copy->bufs--;
	eng_mem_release(&rs->side, ENG_MEM_COPIES, cost, 1);
}
