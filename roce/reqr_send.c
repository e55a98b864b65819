/* SPDX-License-Identifier: Apache-2.0 */
/* RC requester: chooses the packets that go to the host now, and which of them have AckReq. */
#include "roce/reqr_int.h"

#define ACKREQ_MOST 16u         /* most packets from one AckReq to the next */
#define SMALL_READS (64u << 10) /* bytes that a queue pair may always ask for */

static bool credits_matter(const struct roce_reqr *r)
{
	return r->credits == ROCE_CREDITS_UNKNOWN && r->cfg.rnr_retry < 7;
}

/* Counts packets, not PSNs: a READ of a million PSNs must go. A host that was not ready gets one
 * packet. */
static uint32_t window(const struct roce_reqr *r)
{
	return r->probe || r->rnr_count || credits_matter(r) ? 1 : r->window;
}

/* More of its message follows. */
static bool is_before_end(const struct rwy_buf *b)
{
	const uint8_t pos = roce_op(b->opcode)->pos;

	return pos == ROCE_POS_FIRST || pos == ROCE_POS_MIDDLE;
}

/*
 * Packets come so quickly that the rest of a message will not be long, and the host answers so
 * quickly that the response timer does not run out before an ACK of all.
 */
static bool is_quick(const struct roce_reqr *r, rwy_time now)
{
	return rwy_since(r->sent_at, now) < ROCE_REQR_REST_WAIT / 2 && r->srtt &&
	       r->srtt + 4 * r->rttvar < ROCE_REQR_REST_WAIT;
}

/*
 * The last request here asks for an ACK, unless the rest of its message is about to come: where
 * many queue pairs send in turn, each packet would ask. If the rest does not come, ask_late() asks.
 */
static bool want_ack(const struct roce_reqr *r, const struct rwy_buf *b, uint32_t win, rwy_time now)
{
	uint32_t every = r->window >> 2 < ACKREQ_MOST ? r->window >> 2 : ACKREQ_MOST;

	if (roce_reqr_needs_response(b)) /* it gets a response anyway */
		return false;
	return (!b->next && !(is_before_end(b) && is_quick(r, now))) || r->inflight + 1 >= win ||
	       r->since_ackreq + 1u >= every || roce_reqr_end(b) == r->high;
}

static void send_one(struct roce_reqr *r, struct roce_reqr_tx *tx, uint32_t win, rwy_time now)
{
	struct rwy_buf *b = r->next;
	roce_psn end = roce_reqr_end(b);

	*tx = (struct roce_reqr_tx){.b = b,
	    .ack_req = want_ack(r, b, win, now),
	    .again = roce_psn_before(b->psn, r->high) && !r->asking,
	    .asks = r->asking};
	if (b == r->q.head && roce_reqr_is_read(b))
		tx->skip = (r->una - b->psn) & ROCE_PSN_MASK;
	if (roce_reqr_is_read(b)) {
		uint32_t bytes = roce_reqr_read_len(b) - tx->skip * r->pmtu;

		r->owed += bytes;
		roce_reqr_host_asked(r->host, bytes, now);
	}
	if (tx->ack_req && !tx->again && !r->asking && !r->sample_at) {
		r->sample_at = now;
		r->sample_psn = b->psn;
	}
	r->since_ackreq = tx->ack_req || roce_reqr_needs_response(b) ? 0 : (uint8_t)(r->since_ackreq + 1);
	r->resent += tx->again;
	r->asking = false;
	b->stamp = now;
	r->inflight++;
	r->next = b->next;
	r->nxt = end;
	if (roce_psn_after(end, r->high))
		r->high = end;
}

/*
 * A READ waits while the host owes so much that its responses would not all find memory, or that
 * the host has enough to do. Each queue pair may have one READ at the host, or several small ones,
 * so that the host decides who is next; its responses make it ask for more.
 */
static bool may_ask(struct roce_reqr *r)
{
	uint64_t owed;

	if (!roce_reqr_is_read(r->next) || (!r->owed && r->one_read))
		return true;
	owed = r->owed + roce_reqr_read_len(r->next);
	r->read_waits = owed > r->owed_max;
	return !r->read_waits && (!r->owed || owed <= SMALL_READS || !roce_reqr_host_has_enough(r->host));
}

/*
 * An ACK is for all before it, so where a later packet of the same burst asks, nobody else needs
 * to. The last request of a burst keeps the remote host's AckReq: nothing may follow it for long.
 */
static void need_not_ask(struct roce_reqr_tx *tx, unsigned n)
{
	bool asked = false;

	while (n--) {
		tx[n].ack_less = asked && !tx[n].ack_req && !roce_reqr_needs_response(tx[n].b);
		asked |= tx[n].ack_req;
	}
}

unsigned roce_reqr_send(struct roce_reqr *r, struct roce_reqr_tx *out, unsigned max, rwy_time now)
{
	uint32_t win = window(r);
	unsigned n = 0;

	if (r->failed || r->held_back || (r->rnr_until && now < r->rnr_until))
		return 0;
	r->rnr_until = 0;
	r->read_waits = false;
	while (n < max && r->next && r->inflight < win && may_ask(r))
		send_one(r, &out[n++], win, now);
	if (n) {
		r->sent_at = now;
		roce_reqr_sent(r, now);
	}
	if (n > 1)
		need_not_ask(out, n);
	return n;
}
