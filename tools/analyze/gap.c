/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which phase a gap between two packets of a requester belongs to. A gap that ends right behind an
 * ACK was a wait for that ACK: of the window when the round trip is as short as ever, of a queue
 * when it is twice as long. A gap that ends with a repeat is the repair of a loss. The rest is the
 * program's.
 */
#include "tools/analyze/requester.h"

#define REACTION_MIN (50 * RWY_US) /* a host needs so long from an ACK to the next packet */
#define CNP_ECHO     RWY_MS        /* a CNP slows a requester down for so long, at least */
#define CLOCK_MIN    (10 * RWY_US) /* below that an ACK and the next packet meet by chance */
#define NAK_ANSWER   (5 * RWY_MS)  /* a requester goes back within that after a NAK */
#define MID_SHIFT    4

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

static enum an_phase waited_for(const struct an_flow *f, bool read)
{
	const struct an_requester *q = f->rq;

	if (q->credits == 0)
		return AN_CREDITS;
	if (f->rtt.n && q->rtt > 2 * f->rtt.min + REACTION_MIN)
		return AN_QUEUE;
	return read && q->read_done ? AN_READS : AN_WINDOW;
}

enum an_cause an_cause_of(const struct an_requester *q, rwy_time now)
{
	if (q->rnr_at)
		return AN_BY_RNR;
	if (q->nak_at && rwy_since(q->nak_at, now) <= rwy_time_max(NAK_ANSWER, q->rtt))
		return AN_BY_NAK;
	return AN_BY_TIMER;
}

static enum an_phase repair_of(const struct an_requester *q, bool goes_back, rwy_time now)
{
	static const enum an_phase phase[] = {
	    [AN_BY_TIMER] = AN_TIMEOUT, [AN_BY_NAK] = AN_LOSS, [AN_BY_RNR] = AN_RNR};

	return phase[goes_back ? an_cause_of(q, now) : q->cause];
}

void an_gap(struct an_flow *f, bool repeat, bool goes_back, bool read, rwy_time now)
{
	struct an_requester *q = f->rq;
	rwy_dur gap = rwy_since(q->last_sent, now), wait, reaction;
	bool empty = q->una == q->nxt, clocked, cnp;

	if (!q->last_sent)
		return;
	if (repeat) {
		f->phase[repair_of(q, goes_back, now)] += gap;
		return;
	}
	cnp = q->last_cnp && rwy_since(q->last_cnp, now) < gap + CNP_ECHO;
	reaction = rwy_since(q->last_progress, now);
	/* Sent packet by packet as ACKs come: each packet follows its ACK closely. */
	clocked = q->progress && q->was_full && gap > CLOCK_MIN && reaction <= gap / 4;
	if (gap <= 4 * q->gap_mid && !clocked && !(q->progress && empty)) {
		f->phase[AN_SENDING] += gap;
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
		f->phase[waited_for(f, read)] += gap;
	} else if (empty) {
		f->phase[waited_for(f, read)] += wait;
		f->phase[AN_IDLE] += reaction;
	} else {
		f->phase[AN_PACED] += gap;
	}
}
