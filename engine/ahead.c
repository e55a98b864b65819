/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Responses that come ahead of their requests. The gateway that was taken over from sent the
 * requests to the far one and died, and their copies died with it. The far host has executed them,
 * and the local host repeats them, for it has no answer yet. Until then the responses wait here:
 * the far gateway has nothing else to answer the repeated requests with, as they are duplicates.
 */
#include "engine/memory.h"
#include "engine/responder.h"

/* The response is to a request that this gateway does not have. */
static bool is_ahead(const struct eng_responder *rs, const struct rwy_buf *b)
{
	struct roce_pkt pkt;

	return b->kind == RWY_BUF_PACKET && roce_parse(b->data, b->len, &pkt) == ROCE_PARSE_OK &&
	       roce_op_is_response(pkt.info) && roce_resp_lacks(&rs->resp, pkt.psn);
}

bool eng_ahead_holds(struct eng_responder *rs, struct rwy_buf *b)
{
	struct eng_rare *r;

	if (!rs->rare->ahead.n &&
	    (rs->side.state != ENG_R_RUNNING || !eng_taken_over(rs) || !is_ahead(rs, b)))
		return false;
	r = eng_rare_of(rs); /* one that was taken over keeps its own */
	eng_mem_charge(&rs->side, ENG_MEM_COPIES, eng_buf_cost(rs->side.e, b));
	rwy_bufq_push(&r->ahead, b);
	rs->has_ahead = true;
	return true;
}

static struct rwy_buf *pop(struct eng_responder *rs)
{
	struct eng_rare *r = eng_rare_of(rs);
	struct rwy_buf *b;

	if (!r)
		return NULL; /* then has_ahead is false */
	b = rwy_bufq_pop(&r->ahead);
	if (b)
		eng_mem_release(&rs->side, ENG_MEM_COPIES, eng_buf_cost(rs->side.e, b), 1);
	rs->has_ahead = r->ahead.n;
	return b;
}

struct rwy_buf *eng_ahead_next(struct eng_responder *rs)
{
	return rs->rare->ahead.n && !is_ahead(rs, rs->rare->ahead.head) ? pop(rs) : NULL;
}

void eng_ahead_drop(struct eng_responder *rs)
{
	struct rwy_buf *b;

	while ((b = pop(rs)))
		rwy_buf_free(&rs->side.e->bufs, b);
}
