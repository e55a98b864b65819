/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gives each gap between two packets of a requester its phase. A gap that ends right behind an ACK
 * was a wait for that ACK: of the window when the round trip is as short as ever, of a queue when
 * it is twice as long. A gap that ends with a repeat is the repair of a loss. The rest is the
 * program's.
 */
#include "tools/analyze/requester.h"

#define REACTION_MIN (50 * RWY_US) /* a host needs so long from an ACK to the next packet */
#define CNP_ECHO     RWY_MS        /* a CNP slows a requester down for so long, at least */
#define CLOCK_MIN    (10 * RWY_US) /* below that an ACK and the next packet meet by chance */
#define NAK_ANSWER   (5 * RWY_MS)  /* a requester goes back within that after a NAK */
#define MID_SHIFT    4
#define LOW_UP       8 /* a pace above the low one pushes it up by 1/256, */
#define LOW_DOWN     4 /* one below down by 1/16: about one of 16 is below */

/* A median that follows: a larger gap pushes it up, a smaller one down. */
static void mid_add(struct an_requester *q, rwy_dur gap)
{
	if (!q->gap_mid)
		q->gap_mid = gap;
	else if (gap > q->gap_mid)
		q->gap_mid += (q->gap_mid >> MID_SHIFT) + 1;
	else if (gap < q->gap_mid)
		q->gap_mid -= q->gap_mid >> MID_SHIFT;
}

/*
 * How fast the packet before was followed. True: slower than this requester can, by a half. While
 * CNPs come it is not allowed what it can.
 */
static bool pace_add(struct an_requester *q, rwy_dur gap, bool cnp)
{
	rwy_dur pace = q->last_len ? gap * 1000 / q->last_len : 0;

	if (!q->pace_low)
		q->pace_low = pace;
	else if (pace < q->pace_low)
		q->pace_low -= q->pace_low >> LOW_DOWN;
	else if (!cnp && pace > q->pace_low)
		q->pace_low += (q->pace_low >> LOW_UP) + 1;
	return pace > q->pace_low + q->pace_low / 2;
}

/*
 * The shortest round trip is looked for among ACKs of the same kind. A gateway may acknowledge
 * the middle of a message at once, and its end when the far host has it (docs/completion.md).
 */
static enum an_phase waited_for(struct an_flow *f, const struct roce_opinfo *info)
{
	const struct an_requester *q = f->rq;
	rwy_dur least = q->wait_least[q->wait_end];
	bool receive = info->op == ROCE_OP_SEND || info->flags & ROCE_F_IMMDT;

	if (receive && (!q->may_begin || q->granted))
		return AN_CREDITS;
	if (q->wait > 2 * least + REACTION_MIN)
		return AN_QUEUE;
	if ((info->op == ROCE_OP_READ_REQ || roce_op_is_atomic(info)) && q->read_done)
		return AN_READS;
	an_hist_add(&f->waited, q->wait);
	return AN_WINDOW;
}

/* When the NAK came that a repeat from psn on answers, or else the latest one; 0: there is none. */
static rwy_time nak_of(const struct an_requester *q, uint64_t psn)
{
	for (uint32_t i = 1; i <= AN_NAKS; i++) {
		uint32_t at = (q->nak_i - i) % AN_NAKS;

		if (q->nak[at].at && q->nak[at].psn == psn)
			return q->nak[at].at;
	}
	return q->nak_at;
}

void an_nak_answered(struct an_requester *q, uint64_t psn, rwy_time now)
{
	rwy_time nak = nak_of(q, psn);
	rwy_dur after = rwy_since(nak, now);

	if (nak && (!q->nak_answer || after < q->nak_answer))
		q->nak_answer = after;
	for (uint32_t i = 0; i < AN_NAKS; i++)
		if (q->nak[i].at <= nak)
			q->nak[i].at = 0;
	if (q->nak_at <= nak)
		q->nak_at = 0;
}

/*
 * Seen from here a NAK is answered as soon as the shortest such time says: at the responder's end
 * that is a round trip.
 */
enum an_cause an_cause_of(const struct an_requester *q, uint64_t psn, rwy_time now)
{
	rwy_dur soon = rwy_time_max(NAK_ANSWER, q->rtt), known = q->nak_answer + q->nak_answer / 2;
	rwy_time nak = nak_of(q, psn);

	if (q->rnr_at)
		return AN_BY_RNR;
	if (nak && (!q->nak_answer || rwy_since(nak, now) <= rwy_time_max(soon, known)))
		return AN_BY_NAK;
	return AN_BY_TIMER;
}

static enum an_phase phase_of(enum an_cause c)
{
	static const enum an_phase phase[] = {
	    [AN_BY_TIMER] = AN_TIMEOUT, [AN_BY_NAK] = AN_LOSS, [AN_BY_RNR] = AN_RNR};

	return phase[c];
}

enum an_phase an_repair(const struct an_requester *q)
{
	return phase_of(q->cause);
}

void an_gap(struct an_flow *f, bool repeat, bool goes_back, uint64_t psn, const struct roce_opinfo *info,
    rwy_time now)
{
	struct an_requester *q = f->rq;
	rwy_dur gap = rwy_since(q->last_sent, now), wait, reaction;
	bool empty = q->una == q->nxt, clocked, cnp, slow;

	if (!q->last_sent)
		return;
	if (repeat) {
		f->phase[phase_of(goes_back ? an_cause_of(q, psn, now) : q->cause)] += gap;
		return;
	}
	cnp = q->last_cnp && rwy_since(q->last_cnp, now) < gap + CNP_ECHO;
	slow = pace_add(q, gap, cnp);
	reaction = rwy_since(q->last_progress, now);
	/* Sent packet by packet as ACKs come: each packet follows its ACK closely. */
	clocked = q->progress && q->was_full && gap > CLOCK_MIN && reaction <= gap / 4;
	if (gap <= 4 * q->gap_mid && !clocked && !(q->progress && empty)) {
		f->phase[cnp && slow ? AN_CNP : AN_SENDING] += gap;
		mid_add(q, gap);
		return;
	}
	/* The median stays what it is without CNPs. */
	if (!cnp)
		mid_add(q, gap);
	if (!q->progress) {
		f->phase[cnp ? AN_CNP : AN_PACED] += gap;
		return;
	}
	wait = gap - (reaction < gap ? reaction : gap);
	if (cnp && !empty) {
		f->phase[AN_CNP] += gap;
	} else if (reaction <= rwy_time_max(REACTION_MIN, gap / 4)) {
		an_hist_add(&f->reaction, reaction);
		f->phase[waited_for(f, info)] += gap;
	} else if (empty) {
		f->phase[waited_for(f, info)] += wait;
		f->phase[AN_IDLE] += reaction;
	} else {
		f->phase[AN_PACED] += gap;
	}
}
