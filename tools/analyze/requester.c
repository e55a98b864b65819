/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows one requester. PSNs are unwrapped to 64 bits from the first one seen. Packets from una to
 * nxt are outstanding (outstanding.c). A packet below nxt that was seen before is a repeat; one
 * that was not is late, or lost before the place of the capture and repeated.
 */
#include "tools/analyze/requester.h"

#include <string.h>

#define LATE_ROW      4             /* packets: who sends so many again repeats them */
#define LATE_PAUSE    (50 * RWY_US) /* before a repeat there is a longer one */
#define PMTU_MIN      256
#define HEADERS       96 /* bytes on the wire besides the payload, about */
#define LATE_IS_ORDER 3  /* PSNs: a packet not more late than that was reordered */

/* Below 0: before the capture began. */
static int64_t unwrap(const struct an_requester *q, roce_psn psn)
{
	return (int64_t)q->nxt + roce_psn_diff(psn, roce_psn_add(q->origin, q->nxt & ROCE_PSN_MASK));
}

static void count_begin(struct an_flow *f, const struct roce_pkt *pkt)
{
	switch (pkt->info->op) {
	case ROCE_OP_SEND:
		f->c.sends++;
		break;
	case ROCE_OP_WRITE:
		f->c.writes++;
		break;
	case ROCE_OP_READ_REQ:
		f->c.reads++;
		break;
	default:
		f->c.atomics++;
	}
}

/* The PSNs that a READ takes, or at most takes. */
static uint32_t read_packets(const struct an_flow *f, uint32_t bytes)
{
	return roce_read_packets(bytes, f->rq->pmtu_known ? f->pmtu : PMTU_MIN);
}

static int message_begin(struct an_flow *f, const struct roce_pkt *pkt, uint64_t psn, rwy_time now)
{
	struct an_requester *q = f->rq;
	struct an_message m = {.begin = psn, .first = now, .op = pkt->info->op};

	if (m.op == ROCE_OP_READ_REQ) {
		m.read_bytes = roce_reth_len(pkt);
		q->read_open = psn + read_packets(f, m.read_bytes);
		if (q->read_longest < q->read_open - psn)
			q->read_longest = (uint32_t)(q->read_open - psn);
		if (q->pmtu_known || m.read_bytes <= PMTU_MIN)
			an_message_end(q, &m, q->read_open);
		q->reads_out++;
		q->bytes_out += m.read_bytes;
	} else if (roce_op_ends(pkt->info) || roce_op_is_atomic(pkt->info)) {
		m.end = psn + 1;
		q->atomics_out += roce_op_is_atomic(pkt->info);
	}
	if (q->may_begin && q->may_begin != UINT32_MAX)
		q->may_begin--;
	count_begin(f, pkt);
	return an_message_push(q, &m);
}

/* A last packet has this PSN. It is none of m's if m is complete, or a READ. */
static void message_ends(struct an_message *m, uint64_t psn)
{
	if (m && !m->end && m->op != ROCE_OP_READ_REQ)
		m->end = psn + 1;
}

/* A packet that was lost before this place begins or ends a message after all. */
static int message_mend(struct an_flow *f, const struct roce_pkt *pkt, uint64_t psn, rwy_time now)
{
	struct an_requester *q = f->rq;
	int rc;

	if (roce_op_starts(pkt->info) || roce_op_is_atomic(pkt->info)) {
		if ((rc = message_begin(f, pkt, psn, now)) != 0)
			return rc;
		for (uint32_t i = q->message_tail - 1; i != q->message_head; i--) {
			struct an_message *a = &q->message[(i - 1) & q->message_mask],
			                  *b = &q->message[i & q->message_mask], t = *b;

			if (a->begin < b->begin)
				break;
			*b = *a;
			*a = t;
		}
	}
	if (roce_op_ends(pkt->info))
		message_ends(an_message_of(q, psn), psn);
	return 0;
}

/* A packet with a PSN that was not sent before. */
static int take_new(struct an_flow *f, const struct roce_pkt *pkt, uint64_t psn, rwy_time now)
{
	struct an_requester *q = f->rq;
	struct an_message *m = an_message_newest(q);
	uint64_t span = 1;
	uint32_t n;
	int rc;

	/* A READ whose path MTU was not known ends where the next request begins. */
	if (m && m->op == ROCE_OP_READ_REQ && !m->end && psn <= q->read_open)
		an_message_end(q, m, psn);
	if (roce_op_starts(pkt->info) || pkt->info->op == ROCE_OP_READ_REQ || roce_op_is_atomic(pkt->info)) {
		if ((rc = message_begin(f, pkt, psn, now)) != 0)
			return rc;
		m = an_message_newest(q);
		if (m->op == ROCE_OP_READ_REQ && m->end)
			span = m->end - m->begin;
	} else if (roce_op_ends(pkt->info)) {
		message_ends(m, psn);
	}
	if ((rc = an_sent_room(q, psn + span)) != 0)
		return rc;
	an_sent_put(q, psn, pkt->payload_len, now);
	q->nxt = psn + span;
	f->c.packets++;
	f->c.bytes += pkt->payload_len;
	an_bins_add(f, pkt->payload_len, false, now);
	q->bytes_out += pkt->payload_len;
	n = q->message_tail - q->message_head;
	if (n > f->most_messages)
		f->most_messages = n;
	if (q->reads_out + q->atomics_out > f->most_reads)
		f->most_reads = q->reads_out + q->atomics_out;
	if (q->bytes_out > f->most_bytes)
		f->most_bytes = q->bytes_out;
	an_point_add(f, psn, AN_MARK_SENT, now);
	return 0;
}

/* The requester goes back to psn. quiet: the last sign of life before. */
static void go_back(struct an_flow *f, uint64_t psn, rwy_time quiet, rwy_time now)
{
	struct an_requester *q = f->rq;
	const struct an_sent *s = an_sent_find(q, psn);
	bool mixed = f->c.reordered && f->c.naks_sequence && rwy_since(quiet, now) <= LATE_PAUSE;

	/*
	 * If packets come out of order, late ones of one repeat come among those of the next.
	 * Timers fire after a pause.
	 */
	q->cause = mixed ? AN_BY_NAK : an_cause_of(q, psn, now);
	q->back = true;
	q->back_end = q->nxt;
	q->back_since = now;
	f->c.resends++;
	if (q->cause == AN_BY_RNR) {
		f->c.resends_rnr++;
	} else if (q->cause == AN_BY_NAK) {
		f->c.resends_nak++;
	} else {
		f->c.resends_timeout++;
		an_hist_add(&f->timer, rwy_since(quiet, now));
		an_point_add(f, psn, AN_MARK_TIMEOUT, now);
	}
	if (!mixed)
		an_nak_answered(q, psn, now);
	q->by_timer = q->cause == AN_BY_TIMER;
	if (psn < q->una) {
		f->c.resends_needless++;
		q->timer_needless += q->by_timer;
		q->by_timer = false;
	} else if (q->by_timer && s && s->copies == 1) {
		q->timer_psn = psn;
		q->timer_first = s->first;
	}
	f->stalled_resends++;
	q->rnr_at = 0;
}

/* A repeat that does not go on where the last one was. */
static bool goes_back(const struct an_requester *q, uint64_t psn)
{
	return !q->back || psn < q->back_at;
}

/*
 * The present series, first transmission or repeat, left this packet out; or did so perhaps, where
 * it was acknowledged and there is no record any more, and comes without a pause. A row of such is
 * a repeat.
 */
static bool left_out(const struct an_requester *q, uint64_t psn, const struct roce_pkt *pkt, rwy_time now)
{
	uint64_t end = q->back ? q->back_at : q->nxt;
	const struct an_sent *s = an_sent_find(q, psn);

	/* PSNs inside a READ have no packet. */
	if (psn >= end || pkt->info->op == ROCE_OP_READ_REQ ||
	    (q->late_n && (psn < q->late_end || q->late_row == LATE_ROW)))
		return false;
	if (psn < q->una)
		return rwy_since(q->last_sent, now) <= LATE_PAUSE;
	return !s || (q->back && s->last < q->back_since);
}

static int count_old(struct an_flow *f, const struct roce_pkt *pkt, uint64_t psn, rwy_time now)
{
	struct an_requester *q = f->rq;
	struct an_sent *s = an_sent_find(q, psn);

	if (!s && psn >= q->una && pkt->info->op != ROCE_OP_READ_REQ) {
		an_sent_put(q, psn, pkt->payload_len, now);
		f->c.packets++;
		f->c.bytes += pkt->payload_len;
		return message_mend(f, pkt, psn, now);
	}
	if (s) {
		s->last = now;
		s->copies++;
	}
	f->c.resent_packets++;
	f->c.resent_bytes += pkt->payload_len;
	an_bins_add(f, pkt->payload_len, true, now);
	an_point_add(f, psn, AN_MARK_RESENT, now);
	return 0;
}

/* A packet comes behind others that was left out: late, or the first one of a repeat. */
static int take_late(struct an_flow *f, const struct roce_pkt *pkt, uint64_t psn, rwy_time now)
{
	struct an_requester *q = f->rq;

	if (!q->late_n++) {
		q->late_psn = psn;
		q->late_at = now;
		q->late_quiet = rwy_time_max(q->last_progress, q->last_sent);
		q->late_gap = q->last_sent ? rwy_since(q->last_sent, now) : 0;
	} else {
		f->phase[AN_SENDING] += rwy_since(q->last_sent, now);
	}
	q->late_row = q->late_n > 1 && psn == q->late_end ? q->late_row + 1 : 1;
	q->late_end = psn + 1;
	q->late_lost += psn >= q->una && !an_sent_find(q, psn);
	return count_old(f, pkt, psn, now);
}

/* Decides what late packets were: repeats, or reordered. again: known packets follow them. */
static void judge_late(struct an_flow *f, bool again)
{
	struct an_requester *q = f->rq;

	if (!q->late_n)
		return;
	if (again) {
		f->c.lost_before += q->late_lost;
		go_back(f, q->late_psn, q->late_quiet, q->late_at);
		f->phase[an_repair(q)] += q->late_gap;
		q->back_at = q->late_end;
	} else {
		f->c.reordered += q->late_n;
		f->phase[AN_SENDING] += q->late_gap;
	}
	q->late_n = q->late_lost = 0;
}

void an_requester_end(struct an_flow *f)
{
	judge_late(f, false);
}

static int take_old(struct an_flow *f, const struct roce_pkt *pkt, uint64_t psn, rwy_time now)
{
	struct an_requester *q = f->rq;

	if (goes_back(q, psn))
		go_back(f, psn, rwy_time_max(q->last_progress, q->last_sent), now);
	else if (psn >= q->una && !an_sent_find(q, psn) && pkt->info->op != ROCE_OP_READ_REQ)
		f->c.lost_before++;
	q->back_at = psn + 1;
	return count_old(f, pkt, psn, now);
}

/* The path MTU is not less than any payload, and is that of a packet whose message goes on. */
void an_see_payload(struct an_flow *f, const struct roce_pkt *pkt)
{
	bool full = pkt->info->pos == ROCE_POS_FIRST || pkt->info->pos == ROCE_POS_MIDDLE;
	uint32_t mtu = PMTU_MIN;

	while (mtu < pkt->payload_len)
		mtu *= 2;
	full = full && pkt->payload_len == mtu;
	if (full || pkt->payload_len > f->pmtu)
		f->pmtu = mtu;
	f->rq->pmtu_known |= full;
}

/* The path MTU of the newest READ became known behind it: so did its end. */
static int read_mend(struct an_flow *f)
{
	struct an_requester *q = f->rq;
	struct an_message *m = an_message_newest(q);
	int rc;

	if (!m || m->op != ROCE_OP_READ_REQ || m->end || !q->pmtu_known)
		return 0;
	q->read_open = m->begin + read_packets(f, m->read_bytes);
	an_message_end(q, m, q->read_open);
	if (q->read_open <= q->nxt)
		return 0;
	if ((rc = an_sent_room(q, q->read_open)) != 0)
		return rc;
	q->nxt = q->read_open;
	return 0;
}

int64_t an_lowest(const struct an_flow *f)
{
	const int64_t reads = (int64_t)f->most_reads * f->rq->read_longest;

	return (int64_t)f->rq->una - 2 * (int64_t)ROCE_OUTSTANDING_MAX - reads;
}

/* No packet of the same connection has this PSN. */
static bool is_other(const struct an_flow *f, int64_t psn)
{
	return psn > (int64_t)(an_known_end(f->rq) + ROCE_OUTSTANDING_MAX) || psn < an_lowest(f);
}

/* The QPN is used again: another connection, of which nothing is known. */
static int begin_anew(struct an_requester *q, roce_psn first)
{
	q->origin = first;
	q->read_open = q->read_expect = q->read_seen = 0;
	q->read_longest = 0;
	q->back = q->by_timer = false;
	q->nak_at = q->rnr_at = 0;
	memset(q->nak, 0, sizeof(q->nak));
	q->last_sent = 0;
	q->may_begin = UINT32_MAX;
	q->late_n = q->late_lost = 0;
	return an_outstanding_clear(q);
}

int an_requester_again(struct an_flow *f)
{
	if (!f->rq->started)
		return 0;
	judge_late(f, false);
	f->again++;
	f->rq->started = false; /* its first request has the first PSN */
	return begin_anew(f->rq, 0);
}

int an_request(struct an_flow *f, const struct roce_pkt *pkt, rwy_time now)
{
	struct an_requester *q = f->rq;
	uint64_t psn;
	int64_t at;
	bool old, late;
	int rc = 0;

	if (!q->started) {
		q->started = true;
		q->origin = pkt->psn;
		if (!f->first)
			f->first = now;
	}
	if ((rc = read_mend(f)) != 0)
		return rc;
	an_see_payload(f, pkt);
	at = unwrap(q, pkt->psn);
	f->last = now;
	if (is_other(f, at)) {
		if ((rc = begin_anew(q, pkt->psn)) != 0)
			return rc;
		at = 0;
	}
	if (at < 0)
		return 0;
	psn = (uint64_t)at;
	late = left_out(q, psn, pkt, now);
	if (!late)
		judge_late(f, psn >= q->late_end && psn < (q->back ? q->back_at : q->nxt));
	old = psn < q->nxt;
	if (!late)
		an_gap(f, old, old && goes_back(q, psn), psn, pkt->info, now);
	if (late)
		rc = take_late(f, pkt, psn, now);
	else if (old)
		rc = take_old(f, pkt, psn, now);
	else
		rc = take_new(f, pkt, psn, now);
	q->last_sent = now;
	q->last_len = pkt->payload_len + HEADERS;
	q->progress = q->read_done = q->was_full = q->granted = false;
	return rc;
}
