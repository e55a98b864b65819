/* SPDX-License-Identifier: Apache-2.0 */
/* What a report of delivered requests waits for: their responses, or SYNC. */
#include <stdlib.h>

#include "engine/requester.h"

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
		/* What the last one waits for comes with the responses of this one. */
		last = &rq->wait[(rq->wait_head + rq->wait_n - 1) & (rq->wait_cap - 1)];
		last->idx = idx;
		if (last->seq == ENG_NO_SEQ)
			last->seq = seq;
		return;
	}
	rq->wait[(rq->wait_head + rq->wait_n++) & (rq->wait_cap - 1)] =
	    (struct eng_response_wait){seq, idx, psn};
}
