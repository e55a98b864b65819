/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of a responder side that it seldom needs. It is malloced when a connection begins, and
 * when its host READs or is behind; a quiet connection gives it back. A packet that needs it and
 * finds no memory is dropped before it is accepted (request.c), so that its host sends it again.
 */
#include "engine/responder.h"

const struct eng_rare eng_rare_none;

struct eng_rare *eng_rare_take(struct eng_responder *rs)
{
	struct eng_rare *r = eng_rare_of(rs);

	if (r)
		return r;
	r = calloc(1, sizeof(*r));
	if (r)
		rs->rare = r;
	return r;
}

void eng_rare_free(struct eng_responder *rs)
{
	free(eng_rare_of(rs));
	rs->rare = &eng_rare_none;
}

void eng_rare_rest(struct eng_responder *rs)
{
	const struct eng_rare *r = rs->rare;

	if (r == &eng_rare_none || rs->resp.rd_n || r->reads.cap || r->atomics.cap || r->kept_next ||
	    r->parked.n || r->ahead.n || rs->dreq_waits || rs->causal || rs->taken_over || rs->ack_blocked ||
	    eng_unpaired(&rs->side))
		return;
	eng_rare_free(rs);
}
