/* SPDX-License-Identifier: Apache-2.0 */
/* Invariants of an engine after each step of its fuzzer; see engine_world.h. */
#include "tests/fuzz/engine_world.h"

static void check_responder(const struct eng_responder *rs, uint64_t *custody, uint32_t *half_open)
{
	*half_open += eng_unpaired(&rs->side);
	*custody += rs->custody;
	CHECK(rs->custody == (rs->requests ? wan_tx_bytes(rs->requests) : 0)); /* buf_cost is 0 here */
	CHECK(!rs->requester || (rs->requester->responder == rs && rs->requester->side.e));
	CHECK(!rs->requester || !rs->local_qpn || rs->requester->side.key.qpn == rs->local_qpn);
	CHECK(rs->custody_bufs == (rs->requests ? wan_tx_queued(rs->requests) : 0));
	CHECK(rs->custody <= rs->side.e->cfg.memory_conn);
	CHECK(rs->rare->parked.n <= ENG_PARKED_MAX);
	CHECK(rs->side.state != ENG_R_NEW ||
	      (!rs->requests && !rs->rare->reads.n && !rs->rare->atomics.n && !rs->rare->parked.n));
	CHECK(!rs->rare->reads.n || rs->rare->kept_next);
}

static void check_requester(const struct eng_requester *rq, uint32_t *learning)
{
	*learning += rq->turn > ENG_TURN_UNQUEUED;
	CHECK(!rq->responder || rq->responder->requester == rq);
	CHECK(!rq->responder || !rq->pair);
	CHECK(rq->wait_n <= rq->wait_cap);
	CHECK(rq->reported_seq <= rq->acked_seq || !rq->requests);
	CHECK(!eng_requester_active(rq) || rq->reqr.inflight <= rq->reqr.q.n);
	CHECK(rq->received == (eng_requester_active(rq) ? rq->reqr.q.bytes : 0));
	CHECK(rq->answering_bufs == (rq->responses ? wan_tx_queued(rq->responses) : 0));
}

void fz_check(struct site *s)
{
	const struct eng *e = s->e;
	uint32_t sides = 0, half_open = 0, learning = 0;
	uint32_t keepers = 0;
	uint64_t custody = 0, kept = 0;

	for (uint32_t i = 0; i <= e->table_mask; i++)
		for (const struct eng_side *side = e->table[i]; side; side = side->chain) {
			sides++;
			CHECK(side->e == e);
			const struct eng_responder *rs = (const struct eng_responder *)side;

			if (side->is_requester) {
				check_requester((const struct eng_requester *)side, &learning);
				continue;
			}
			check_responder(rs, &custody, &half_open);
			kept += rs->rare->kept;
			keepers += rs->rare->kept_next != NULL;
		}
	CHECK(sides == e->sides && sides <= CONNS_MAX);
	CHECK(half_open == e->half_open);
	CHECK(learning == e->learning);
	CHECK(custody == eng_custody_bytes(e));
	CHECK(e->mem.kind[ENG_MEM_UNPAIRED] <= e->cfg.unpaired_total);
	CHECK(kept == eng_kept_bytes(e) && kept <= e->cfg.read_cache_total);
	CHECK(keepers == e->keepers && !keepers == !e->kept_hand);
	CHECK(custody <= s->bufs * (uint64_t)RC_PKT_MAX);
}

void fz_look(struct site *s)
{
	struct eng_flow_info info[4];
	struct wan_stats st;
	uint32_t cursor = 0, calls = 0;

	do {
		unsigned n = eng_flows(s->e, &cursor, info, 4);

		CHECK(n <= 4);
		for (unsigned i = 0; i < n; i++)
			CHECK(info[i].state && info[i].learned && info[i].error);
	} while (cursor && ++calls < 100);
	CHECK(calls < 100);
	eng_tunnel_stats(s->e, 0, &st);
	CHECK(st.tx_queued_bytes <= s->bufs * (uint64_t)RC_PKT_MAX);
}
