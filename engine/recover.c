/* SPDX-License-Identifier: Apache-2.0 */
/*
 * After a restart of the near gateway: is anything missing that its host was acknowledged? The near gateway
 * tells up to where it had promised (journal.h). If we have that, or the host has, the connection goes on. If
 * not, both hosts must hear of it, also when neither has anything outstanding and both only wait: the local
 * host is sent a request that no responder accepts, which ends its QP with an error; the other host's next
 * request is refused.
 */
#include "engine/requester.h"
#include "engine/emit.h"
#include "engine/pair.h"
#include "roce/build.h"

#define IMPOSSIBLE_LEN 0x80000000u /* the largest DMA length there is (IBA 9.7.4.1.6), and no payload */

/* A request of our own in the remote host's name. */
static bool push_write(struct eng_far *f, roce_psn psn, uint32_t len)
{
	struct roce_addr a = {
	    .src = f->h.key.src,
	    .dst = f->h.key.dst,
	    .dqpn = f->h.key.qpn,
	    .sport = 0xc000,
	    .pkey = 0xffff,
	    .ttl = 64,
	};
	struct rwy_buf *b = rwy_buf_alloc(&f->h.e->bufs, WAN_HDR_MAX, ROCE_BUILD_MAX);

	if (!b) {
		f->h.e->c.drop_no_buffer++;
		return false;
	}
	b->len = roce_build_write_only(b->data, &a, psn, len);
	b->kind = RWY_BUF_PACKET;
	b->opcode = ROCE_RC_WRITE_ONLY;
	b->psn = psn;
	b->psn_cnt = 1;
	b->seq = ENG_NO_SEQ;
	if (roce_reqr_push(&f->reqr, b) == ROCE_REQR_PUSHED)
		return true;
	rwy_buf_free(&f->h.e->bufs, b);
	return false;
}

/* The host, which PSN it expects: its answer to a request without effect tells. */
static bool ask(struct eng_far *f, roce_psn psn, bool resumed)
{
	eng_far_begin(f, psn, f->open_pmtu, true);
	f->reqr.resumed = resumed;
	if (!push_write(f, psn, 0))
		return false;
	f->questions++;
	eng_far_enter(f, ENG_Q_LOCATING);
	return true;
}

void eng_far_ask_back(struct eng_far *f, rwy_time now)
{
	bool lost = f->h.state == ENG_Q_LOCATING_LOST;

	if (!ask(f, roce_psn_add(f->reqr.una, ROCE_PSN_MASK + 1 - ROCE_OUTSTANDING_MAX), f->reqr.resumed)) {
		eng_far_fail(
		    f, f->promised, roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_OP), ENG_END_NO_MEMORY, now);
		return;
	}
	f->questions = 2;
	if (lost)
		eng_far_enter(f, ENG_Q_LOCATING_LOST);
	eng_dirty(&f->h);
}

static void push_doom(struct eng_far *f, roce_psn psn, rwy_time now)
{
	if (push_write(f, psn, IMPOSSIBLE_LEN))
		eng_far_enter(f, ENG_Q_ENDING);
	else
		eng_far_fail(f, psn, roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_OP), ENG_END_LOST, now);
	eng_dirty(&f->h);
}

/* Everything before `psn` reached the local host, and what comes next is gone. */
static void doom(struct eng_far *f, roce_psn psn, rwy_time now)
{
	eng_log_half(f->h.e, 1, &f->h, eng_end_text(ENG_END_LOST, 0, true));
	f->h.e->c.conns_lost++;
	push_doom(f, psn, now);
}

/* Nothing is lost: the near gateway may go on. */
static void resumed(struct eng_far *f, rwy_time now)
{
	f->done_seq = f->resume_seq + 1;
	eng_far_tell_start(f, f->promised, f->reqr.host_msn, f->resume_seq, now);
	eng_far_report(f, now);
}

bool eng_far_resume(struct eng_far *f, const struct rwy_buf *b, rwy_time now)
{
	struct eng_ctrl c;
	roce_psn promised;

	if (!eng_ctrl_decode(&c, b->data, b->len) || c.type != ENG_CTRL_RESUME || c.qpn != f->rqpn)
		return false;
	promised = f->promised = c.psn;
	f->resume_seq = b->seq;
	f->flow = ENG_FLOW_OPEN;
	/* A host that may be ahead of us is asked before anything is said to be lost. */
	if (f->h.state == ENG_Q_RUNNING && !(f->reqr.resumed && roce_psn_after(promised, f->reqr.tail))) {
		if (roce_psn_after(promised, f->reqr.tail))
			doom(f, f->reqr.tail, now);
		else
			resumed(f, now);
		return true;
	}
	/*
	 * Both gateways are new. Only the host knows what it has: it is asked with a request that changes
	 * nothing, two PSNs before the promise. Has it everything, that is a duplicate, and its answer names
	 * the latest PSN it has executed (IBA 9.7.5.1.2). If it lacks the last packet only, that is a
	 * duplicate, too, or the very one it expects; then its answer names an earlier one.
	 */
	if (!ask(f, roce_psn_add(promised, ROCE_PSN_MASK - 1), true))
		eng_far_fail(
		    f, promised, roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_OP), ENG_END_NO_MEMORY, now);
	eng_dirty(&f->h);
	return true;
}

bool eng_far_doom_again(struct eng_far *f, const struct roce_pkt *pkt, rwy_time now)
{
	roce_psn last = roce_psn_add(f->reqr.tail, ROCE_PSN_MASK);

	if (pkt->info->op != ROCE_OP_ACK || roce_aeth_type(roce_aeth_syndrome(pkt)) != ROCE_AETH_ACK ||
	    roce_psn_before(pkt->psn, last))
		return false;
	eng_far_begin(f, roce_psn_add(pkt->psn, 1), f->open_pmtu, false);
	push_doom(f, f->reqr.tail, now);
	return true;
}

void eng_far_lost_reverse(struct eng_near *n, rwy_time now)
{
	struct eng *e = n->h.e;
	struct eng_key k = {n->h.key.dst, n->h.key.src, n->lqpn, n->h.key.tenant};
	struct eng_far *f = n->far;

	if (!f && n->lqpn && (f = eng_far_get(e, &k, now)))
		eng_pair_halves(n, f, ENG_BY_PEER);
	if (!f || f->h.state == ENG_Q_ENDING || f->h.state == ENG_Q_FAILED)
		return;
	if (f->h.state == ENG_Q_RUNNING && !f->reqr.resumed) {
		doom(f, f->reqr.tail, now);
		return;
	}
	/* Which PSN it expects is not known, or it may be ahead of us; any PSN makes it say so. Should it be
	 * the very one, a request without effect is executed on a queue pair that is at its end. */
	if (!eng_far_locating(f)) {
		if (f->flow == ENG_FLOW_FIRST)
			f->flow = ENG_FLOW_OPEN;
		if (!ask(f, n->resp.epsn, false)) {
			eng_far_fail(f, n->resp.epsn, roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_OP),
			    ENG_END_NO_MEMORY, now);
			return;
		}
	}
	if (f->h.state == ENG_Q_LOCATING)
		eng_far_enter(f, ENG_Q_LOCATING_LOST);
	eng_dirty(&f->h);
}

bool eng_far_answers(const struct roce_pkt *pkt)
{
	return pkt->info->op == ROCE_OP_ACK && roce_aeth_type(roce_aeth_syndrome(pkt)) != ROCE_AETH_RNR;
}

void eng_far_resumed(struct eng_far *f, const struct roce_pkt *pkt, rwy_time now)
{
	uint8_t syn = roce_aeth_syndrome(pkt);
	bool lost = f->h.state == ENG_Q_LOCATING_LOST;
	bool ack = roce_aeth_type(syn) == ROCE_AETH_ACK;
	roce_psn expects = ack ? roce_psn_add(pkt->psn, 1) : pkt->psn;

	if (!ack && syn != roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_PSN_SEQ)) {
		eng_far_fail(
		    f, f->promised, roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_OP), ENG_END_FORGOTTEN, now);
		return;
	}
	if (lost || roce_psn_before(expects, f->promised)) {
		eng_far_begin(f, expects, f->open_pmtu, false);
		doom(f, expects, now);
		return;
	}
	/* It may be ahead: then its peer sends again what it has not heard of, and is acknowledged. */
	eng_far_begin(f, f->promised, f->open_pmtu, false);
	f->reqr.resumed = true;
	f->reqr.host_msn = roce_aeth_msn(pkt);
	resumed(f, now);
}
