/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The responder's answers to a requester: ACKs and NAKs move una; READ responses move it packet by
 * packet and acknowledge what is before the READ (IBA 9.7.5.1.6).
 */
#include "tools/analyze/requester.h"

static uint64_t unwrap_answer(const struct an_requester *q, roce_psn psn)
{
	int32_t d = roce_psn_diff(psn, roce_psn_add(q->origin, (uint32_t)(q->una & ROCE_PSN_MASK)));

	return d < 0 && (uint64_t)-d > q->una ? UINT64_MAX : q->una + (uint64_t)(int64_t)d;
}

bool an_answers(const struct an_flow *f, roce_psn psn)
{
	const struct an_requester *q = f->rq;
	uint64_t p;

	if (!q || !q->started)
		return false;
	p = unwrap_answer(q, psn);
	return p != UINT64_MAX && p >= q->una && p < an_known_end(q);
}

bool an_asked(const struct an_flow *f, roce_psn psn)
{
	const struct an_requester *q = f->rq;
	int64_t at;

	if (!q || !q->started)
		return false;
	at = (int64_t)q->una + roce_psn_diff(psn, roce_psn_add(q->origin, q->una & ROCE_PSN_MASK));
	return at < (int64_t)an_known_end(q) && at >= an_lowest(f);
}

bool an_asked_before(const struct an_flow *f, roce_psn psn)
{
	const struct an_requester *q = f->rq;
	const int32_t d = q && q->started && !q->una ? roce_psn_diff(q->origin, psn) : 0;

	return d > 0 && d <= (int32_t)ROCE_OUTSTANDING_MAX;
}

static void complete(struct an_flow *f, const struct an_message *m, rwy_time now)
{
	struct an_requester *q = f->rq;

	f->c.messages++;
	an_hist_add(&f->completion, rwy_since(m->first, now));
	q->read_done |= m->op == ROCE_OP_READ_REQ || m->op == ROCE_OP_CMP_SWAP || m->op == ROCE_OP_FETCH_ADD;
}

/* The first transmission of a packet that was seen once; 0: it is not known. */
static rwy_time sent_once(const struct an_requester *q, uint64_t psn)
{
	const struct an_sent *s = an_sent_find(q, psn);

	return s && s->copies == 1 ? s->first : 0;
}

/*
 * When the wait for an ACK began that ends a message: with the last packet of the newest one that
 * it ends; of a READ, with the request. 0: it ends none, or that is not known.
 */
static rwy_time message_since(const struct an_requester *q, uint64_t end)
{
	rwy_time since = 0;

	for (uint32_t i = q->message_head; i != q->message_tail; i++) {
		const struct an_message *m = &q->message[i & q->message_mask];

		if (!m->end || m->end > end)
			break;
		since = m->op == ROCE_OP_READ_REQ ? m->first : sent_once(q, m->end - 1);
	}
	return since;
}

/* How long this ACK was waited for. */
static void sample(struct an_flow *f, uint64_t end, rwy_time now)
{
	struct an_requester *q = f->rq;
	rwy_time packet = sent_once(q, end - 1), message = message_since(q, end);

	if (packet) {
		q->rtt = rwy_since(packet, now);
		an_hist_add(&f->rtt, q->rtt);
	}
	if (!packet && !message)
		return;
	q->wait_end = message != 0;
	q->wait = rwy_since(message ? message : packet, now);
	if (!q->wait_least[q->wait_end] || q->wait < q->wait_least[q->wait_end])
		q->wait_least[q->wait_end] = q->wait;
}

/* Everything before `end` is acknowledged. */
static void advance(struct an_flow *f, uint64_t end, rwy_time now)
{
	struct an_requester *q = f->rq;
	uint32_t reads = q->reads_out + q->atomics_out, i = q->message_head;
	const struct an_message *m;

	if (end <= q->una)
		return;
	sample(f, end, now);
	q->was_full = q->bytes_out * 10 >= f->most_bytes * 9 || (reads && reads == f->most_reads);
	for (uint64_t p = q->una; p < end && p < q->nxt; p = an_sent_next(q, p, &i)) {
		struct an_sent *e = an_sent_find(q, p);

		/* PSNs inside a READ have no packet; the message says so. */
		if (!e && !q->reads_out)
			f->c.not_captured++;
		if (e && e->len > q->acked_len)
			q->acked_len = e->len;
		if (e)
			an_sent_drop(q, e);
	}
	q->una = end;
	while ((m = an_message_before(q, end)) != NULL) {
		complete(f, m, now);
		an_message_pop(q);
	}
	if (q->nxt < end)
		q->nxt = end;
	if (q->una == q->nxt)
		q->emptied = now;
	q->progress = true;
	q->last_progress = now;
	f->stalled_resends = 0;
	if (q->back && q->una >= q->back_end)
		q->back = false;
	an_point_add(f, end, AN_MARK_ACK, now);
}

/*
 * A repeat after the timer was needless when the answer to the first transmission comes after it:
 * too soon for an answer to the repeat, or followed by a second answer to the last packet that was
 * outstanding. The two are about as far apart as the transmissions; one repeat may bring two
 * answers, too, one right behind the other.
 */
static void judge_repeat(struct an_flow *f, uint64_t end, rwy_time now)
{
	struct an_requester *q = f->rq;
	bool again = end <= q->una, soon;

	if (!q->by_timer || end <= q->timer_psn)
		return;
	soon = f->rtt.n && rwy_since(q->back_since, now) * 2 < f->rtt.min;
	if (!again) {
		q->maybe_rtt = rwy_since(q->timer_first, now);
		q->maybe_at = now;
	}
	again = again && end >= q->back_end &&
	        2 * rwy_since(q->maybe_at, now) >= rwy_since(q->timer_first, q->back_since);
	if (!again && !soon)
		return;
	f->c.resends_needless++;
	q->timer_needless++;
	an_hist_add(&f->rtt, q->maybe_rtt);
	q->by_timer = false; /* judged once */
}

static void take_nak(struct an_flow *f, uint64_t psn, uint8_t value, rwy_time now)
{
	struct an_requester *q = f->rq;

	advance(f, psn, now);
	if (value == ROCE_NAK_PSN_SEQ) {
		f->c.naks_sequence++;
		q->nak_at = now;
		q->nak[q->nak_i % AN_NAKS].psn = psn;
		q->nak[q->nak_i++ % AN_NAKS].at = now;
		an_point_add(f, psn, AN_MARK_NAK, now);
		return;
	}
	f->c.naks_other++;
	f->fatal = roce_aeth_make(ROCE_AETH_NAK, value);
}

/* IBA table 48: powers of two and the values half way between them. */
static uint32_t messages_of(uint8_t credits)
{
	if (credits < 2)
		return credits;
	return credits & 1 ? 3u << (credits / 2 - 1) : 1u << credits / 2;
}

/*
 * A responder that counts its receives names in each ACK how many messages may follow (IBA
 * 9.7.7.2). Who was allowed none, and now is, goes on with this packet.
 */
static void take_credits(struct an_requester *q, uint8_t value, rwy_time now)
{
	uint32_t granted = messages_of(value), out = q->message_tail - q->message_head;

	if (value == ROCE_AETH_CREDIT_INVALID)
		granted = UINT32_MAX;
	else
		granted -= granted < out ? granted : out;
	if (!q->may_begin && granted) {
		q->granted = q->progress = true;
		q->last_progress = now;
	}
	q->may_begin = granted;
}

static void take_aeth(struct an_flow *f, const struct roce_pkt *pkt, uint64_t psn, rwy_time now)
{
	struct an_requester *q = f->rq;
	uint8_t syndrome = roce_aeth_syndrome(pkt), value = roce_aeth_value(syndrome);

	switch (roce_aeth_type(syndrome)) {
	case ROCE_AETH_ACK:
		f->c.acks++;
		judge_repeat(f, psn + 1, now);
		advance(f, psn + 1, now);
		take_credits(q, value, now);
		break;
	case ROCE_AETH_RNR:
		f->c.naks_rnr++;
		advance(f, psn, now);
		q->rnr_at = now;
		an_point_add(f, psn, AN_MARK_RNR, now);
		break;
	case ROCE_AETH_NAK:
		take_nak(f, psn, value, now);
		break;
	default:
		break;
	}
}

/* How many responses this one shows to be missing that none before it did. */
static uint64_t missing(const struct an_requester *q, uint64_t psn)
{
	const struct an_message *m = psn > q->read_seen ? an_message_of(q, psn) : NULL;

	if (psn <= q->read_seen)
		return 0;
	/* What is between two READs has no responses. */
	return psn - (m && m->begin > q->read_seen ? m->begin : q->read_seen);
}

static void take_read(struct an_flow *f, const struct roce_pkt *pkt, uint64_t psn, rwy_time now)
{
	struct an_requester *q = f->rq;
	uint64_t lost;

	an_see_payload(f, pkt);
	if (psn < q->una) {
		f->c.responses_repeated++;
		return;
	}
	if (roce_op_starts(pkt->info))
		q->read_expect = q->read_seen = psn;
	lost = missing(q, psn);
	if (psn >= q->read_seen)
		q->read_seen = psn + 1;
	if (psn > q->read_expect) {
		/* The rest waits for the requester, who asks again for what is missing. */
		f->c.responses_lost += lost;
		q->nak_at = now;
		return;
	}
	q->read_expect = psn + 1;
	f->c.bytes += pkt->payload_len;
	an_bins_add(f, pkt->payload_len, false, now);
	judge_repeat(f, psn + 1, now);
	if (roce_op_ends(pkt->info) && q->message_head != q->message_tail) {
		struct an_message *m = &q->message[q->message_head & q->message_mask];

		if (m->op == ROCE_OP_READ_REQ && !m->end)
			an_message_end(q, m, psn + 1);
	}
	advance(f, psn + 1, now);
}

void an_response(struct an_flow *f, const struct roce_pkt *pkt, rwy_time now)
{
	struct an_requester *q = f->rq;
	uint64_t psn;

	if (!q || !q->started)
		return;
	psn = unwrap_answer(q, pkt->psn);
	if (psn == UINT64_MAX || psn >= an_known_end(q)) {
		f->c.unasked++;
		return;
	}
	f->last = now;
	if (pkt->ecn == 3)
		f->c.ce_marked++;
	if (pkt->info->op == ROCE_OP_READ_RESP)
		take_read(f, pkt, psn, now);
	else if (pkt->info->op == ROCE_OP_ATOMIC_ACK)
		advance(f, psn + 1, now);
	else if (pkt->info->flags & ROCE_F_AETH)
		take_aeth(f, pkt, psn, now);
}

void an_cnp(struct an_flow *f, rwy_time now)
{
	f->c.cnps++;
	f->rq->last_cnp = now;
	an_point_add(f, f->rq->nxt, AN_MARK_CNP, now);
}
