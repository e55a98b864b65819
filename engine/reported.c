/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports of the requester side: which requests the local host has acknowledged, in the order of
 * their flow. A READ or ATOMIC counts when the near gateway has its responses.
 */
#include <stdlib.h>

#include "engine/emit.h"
#include "engine/memory.h"
#include "engine/requester.h"

void eng_requester_forget_numbers(struct eng_requester *rq)
{
	for (struct rwy_buf *b = eng_requester_active(rq) ? rq->reqr.q.head : NULL; b; b = b->next)
		b->seq = ENG_NO_SEQ;
	rq->acked_seq = rq->reported_seq = 0;
	/* Responses in custody are still on their way: the flow of responses is the same. */
	if (!rq->responses)
		rq->wait_head = rq->wait_n = 0;
	for (uint32_t i = 0; i < rq->wait_n; i++)
		rq->wait[(rq->wait_head + i) & (rq->wait_cap - 1)].seq = ENG_NO_SEQ;
}

static void pop_wait(struct eng_requester *rq)
{
	rq->wait_head = (rq->wait_head + 1) & (rq->wait_cap - 1);
	rq->wait_n--;
}

void eng_requester_passed(struct eng_requester *rq, roce_psn psn)
{
	const struct eng_response_wait *w;

	while (rq->wait_n && (w = &rq->wait[rq->wait_head])->seq == ENG_NO_SEQ &&
	       (w->psn == ENG_NO_PSN || roce_psn_before(w->psn, psn)))
		pop_wait(rq);
}

bool eng_requester_waits_for(struct eng_requester *rq, roce_psn psn, uint64_t seq)
{
	for (uint32_t i = 0; i < rq->wait_n; i++) {
		struct eng_response_wait *w = &rq->wait[(rq->wait_head + i) & (rq->wait_cap - 1)];

		if (w->psn == psn) {
			w->seq = seq;
			return true;
		}
	}
	return false;
}

void eng_requester_report(struct eng_requester *rq, rwy_time now)
{
	uint64_t upto = rq->acked_seq;

	if (rq->owes_control)
		return; /* first the near gateway must have that */
	while (rq->wait_n && rq->wait[rq->wait_head].idx <= rq->responses_taken &&
	       rq->wait[rq->wait_head].seq != ENG_NO_SEQ)
		pop_wait(rq);
	for (uint32_t i = 0; i < rq->wait_n; i++) { /* the first one, except after a restart */
		const struct eng_response_wait *w = &rq->wait[(rq->wait_head + i) & (rq->wait_cap - 1)];

		if (w->seq == ENG_NO_SEQ || w->idx <= rq->responses_taken)
			continue;
		if (w->seq < upto)
			upto = w->seq;
		break;
	}
	if (upto > rq->reported_seq && rq->requests) {
		rq->reported_seq = upto;
		wan_rx_delivered(rq->requests, upto - 1, now);
	}
}

void eng_requester_response_delivered(struct eng_requester *rq, const struct rwy_buf *b, rwy_time now)
{
	rq->responses_taken++;
	eng_mem_release_responses(rq, eng_buf_cost(rq->side.e, b), 1);
	if (rq->reqr.read_waits || rq->reqr.held_back)
		eng_dirty(&rq->side);
	eng_requester_report(rq, now);
}

void eng_requester_responses_refused(struct eng_requester *rq)
{
	/* The near gateway has forgotten this connection and waits for no response. */
	eng_mem_release_responses(rq, rq->answering, rq->answering_bufs);
	rq->responses = NULL;
	rq->responses_sent = rq->responses_taken = 0;
	rq->wait_n = 0;
}

static bool wait_grow(struct eng_requester *rq)
{
	const uint32_t cap = rq->wait_cap > 8 ? rq->wait_cap * 2 : 16;
	struct eng_response_wait *w;

	if (!rq->wait_cap) {
		rq->wait = &rq->wait_one;
		rq->wait_cap = 1;
		return true;
	}
	w = calloc(cap, sizeof(*w));
	if (!w)
		return false;
	for (uint32_t i = 0; i < rq->wait_n; i++)
		w[i] = rq->wait[(rq->wait_head + i) & (rq->wait_cap - 1)];
	if (rq->wait != &rq->wait_one)
		free(rq->wait);
	rq->wait = w;
	rq->wait_head = 0;
	rq->wait_cap = cap;
	return true;
}

void eng_requester_wait_responses(struct eng_requester *rq, uint64_t seq, roce_psn psn)
{
	const uint64_t idx = rq->responses_sent + rq->owes_control;
	struct eng_response_wait *last;

	if (rq->wait_n == rq->wait_cap && !wait_grow(rq)) {
		/* The last entry waits for the responses of this one, too. */
		last = &rq->wait[(rq->wait_head + rq->wait_n - 1) & (rq->wait_cap - 1)];
		last->idx = idx;
		if (last->seq == ENG_NO_SEQ)
			last->seq = seq;
		return;
	}
	rq->wait[(rq->wait_head + rq->wait_n++) & (rq->wait_cap - 1)] =
	    (struct eng_response_wait){seq, idx, psn};
}
