/* SPDX-License-Identifier: Apache-2.0 */
/* What a local host answers to the requests that it was given, and its silence. */
#include "engine/requester.h"
#include "engine/emit.h"

static enum eng_end end_of(enum roce_reqr_end end)
{
	switch (end) {
	case ROCE_REQR_REFUSED:
		return ENG_END_REFUSED;
	case ROCE_REQR_SILENT:
		return ENG_END_SILENT;
	case ROCE_REQR_NOT_READY:
		return ENG_END_NOT_READY;
	}
	rwy_unreachable();
}

/* The requests the host has acknowledged, and what else its answer meant. */
static void carry_out(struct eng_far *f, struct roce_reqr_act *act, rwy_time now)
{
	struct eng *e = f->h.e;
	uint64_t before = f->bytes;
	struct rwy_buf *b;

	while ((b = rwy_bufq_pop(&act->done))) {
		const struct roce_opinfo *info = roce_op(b->opcode);

		if (b->seq != ENG_NO_SEQ) {
			if (info->op == ROCE_OP_READ_REQ || roce_op_is_atomic(info))
				eng_far_wait_responses(f, b->seq);
			f->done_seq = b->seq + 1;
		}
		f->packets++;
		f->bytes += b->len;
		rwy_buf_free(&e->bufs, b);
	}
	if (e->rps && f->bytes != before)
		eng_rp_taken(f, f->bytes - before);
	/* A doomed host's own NAK may be lost on the LAN, and it sends it once: what it means is known. */
	if (f->h.state == ENG_Q_ENDING && (act->failed || !f->reqr.q.n))
		eng_far_fail(
		    f, f->reqr.una, roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_ACCESS), ENG_END_LOST, now);
	else if (act->failed)
		eng_far_fail(f, act->fail_psn, act->fail_syndrome, end_of(act->end), now);
	eng_far_report(f, now);
	eng_dirty(&f->h);
}

/* Tells the near gateway where the host stands, after its first answer in this incarnation. */
static void started(struct eng_far *f, const struct roce_pkt *pkt, rwy_time now)
{
	bool aeth = pkt->info->flags & ROCE_F_AETH;
	uint8_t syn = aeth ? roce_aeth_syndrome(pkt) : 0;
	const struct rwy_buf *first = f->reqr.q.head;
	roce_msn msn = aeth ? roce_aeth_msn(pkt) : 0;

	roce_reqr_go(&f->reqr);
	if (aeth && roce_aeth_type(syn) == ROCE_AETH_NAK && roce_aeth_value(syn) == ROCE_NAK_PSN_SEQ &&
	    pkt->psn != f->reqr.una) {
		/* Packets before our first were lost on the way to the near gateway: its host must send from
		 * there. */
		eng_far_tell_sync(f, ENG_CTRL_REWIND, pkt->psn, msn, now);
		eng_far_begin(f, pkt->psn, f->reqr.pmtu, false);
		f->flow = ENG_FLOW_DISCARD;
		return;
	}
	if (first && roce_aeth_type(syn) == ROCE_AETH_ACK && roce_op_ends(roce_op(first->opcode)))
		msn = (msn - 1) & ROCE_PSN_MASK;
	eng_far_tell_start(f, 0, msn, first ? first->seq : ENG_NO_SEQ, now);
}

void eng_far_answered_again(struct eng_far *f, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now)
{
	struct eng *e = f->h.e;
	struct roce_reqr_act act = {0};
	uint64_t resent = f->reqr.resent, seq = f->reqr.seq_naks, rnr = f->reqr.rnr_naks,
	         impl = f->reqr.implied_naks;

	roce_reqr_recv(&f->reqr, pkt, &act, now);
	e->c.packet_seq_err += f->reqr.seq_naks - seq;
	e->c.rnr_nak_received += f->reqr.rnr_naks - rnr;
	e->c.implied_nak_seq_err += f->reqr.implied_naks - impl;
	e->c.host_resent += f->reqr.resent - resent;
	if (act.forward && eng_far_need_responses(f, now)) {
		b->len = pkt->len;
		b->kind = RWY_BUF_PACKET;
		b->psn = pkt->psn;
		b->psn_cnt = 1;
		f->rsp_sent++;
		wan_tx_send(f->rsp, b, now);
	} else if (act.drop) {
		eng_drop(e, b, pkt->info->op == ROCE_OP_ACK ? &e->c.drop_ghost_ack : &e->c.drop_old_response);
	} else {
		rwy_buf_free(&e->bufs, b);
	}
	carry_out(f, &act, now);
}

void eng_far_answered_first(struct eng_far *f, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now)
{
	eng_far_enter(f, ENG_Q_RUNNING);
	started(f, pkt, now);
	if (f->flow == ENG_FLOW_DISCARD)
		rwy_buf_free(&f->h.e->bufs, b);
	else
		eng_far_answered_again(f, pkt, b, now);
}

void eng_far_located(struct eng_far *f, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now)
{
	struct eng *e = f->h.e;

	if (!eng_far_answers(pkt)) {
		eng_drop(e, b, &e->c.drop_old_response);
		return;
	}
	eng_far_resumed(f, pkt, now);
	rwy_buf_free(&e->bufs, b);
}

void eng_far_answered_end(struct eng_far *f, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now)
{
	if (eng_far_doom_again(f, pkt, now))
		rwy_buf_free(&f->h.e->bufs, b);
	else
		eng_far_answered_again(f, pkt, b, now);
}

void eng_far_ghost(struct eng_far *f, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now)
{
	eng_drop(f->h.e, b, &f->h.e->c.drop_ghost_ack);
}

static void tick(struct eng_far *f, struct roce_reqr_act *act, rwy_time now)
{
	uint64_t timeouts = f->reqr.timeouts;

	roce_reqr_tick(&f->reqr, act, now);
	f->h.e->c.local_ack_timeout_err += f->reqr.timeouts - timeouts;
}

void eng_far_silent(struct eng_far *f, rwy_time now)
{
	struct roce_reqr_act act;

	tick(f, &act, now);
	carry_out(f, &act, now);
}

void eng_far_not_located(struct eng_far *f, rwy_time now)
{
	struct roce_reqr_act act;

	tick(f, &act, now);
	if (f->questions == 1 && !act.failed && f->reqr.timeouts)
		eng_far_ask_back(f, now);
	else
		carry_out(f, &act, now);
}
