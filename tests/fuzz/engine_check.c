/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold in an engine after each step of its fuzzer. See engine_world.h. */
#include "tests/fuzz/engine_world.h"

static void check_near(const struct eng_near *n, uint64_t *custody, uint32_t *half_open)
{
	*half_open += eng_unpaired(&n->h);
	*custody += n->custody;
	CHECK(n->custody == (n->req ? wan_tx_bytes(n->req) : 0)); /* buf_cost is 0 here */
	CHECK(!n->far || (n->far->near == n && n->far->h.e));
	CHECK(!n->far || !n->lqpn || n->far->h.key.qpn == n->lqpn);
	CHECK(n->parked.n <= ENG_PARKED_MAX);
	CHECK(n->h.state != ENG_R_NEW || (!n->req && !n->reads.n && !n->atomics.n && !n->parked.n));
	CHECK(!n->reads.n || n->kept_next);
}

static void check_far(const struct eng_far *f, uint32_t *learning)
{
	*learning += f->turn != ENG_TURN_NONE;
	CHECK(!f->near || f->near->far == f);
	CHECK(!f->near || !f->pair);
	CHECK(f->wait_n <= f->wait_cap);
	CHECK(f->told_seq <= f->done_seq || !f->req);
	CHECK(!eng_far_active(f) || f->reqr.inflight <= f->reqr.q.n);
}

void fz_check(struct site *s)
{
	const struct eng *e = s->e;
	uint32_t halves = 0, half_open = 0, learning = 0;
	uint32_t keepers = 0;
	uint64_t custody = 0, kept = 0;

	for (uint32_t i = 0; i <= e->table_mask; i++)
		for (const struct eng_half *h = e->table[i]; h; h = h->chain) {
			halves++;
			CHECK(h->e == e);
			const struct eng_near *n = (const struct eng_near *)h;

			if (h->is_far) {
				check_far((const struct eng_far *)h, &learning);
				continue;
			}
			check_near(n, &custody, &half_open);
			kept += n->kept;
			keepers += n->kept_next != NULL;
		}
	CHECK(halves == e->halves && halves <= CONNS_MAX);
	CHECK(half_open == e->half_open);
	CHECK(learning == e->learning);
	CHECK(custody == eng_custody_bytes(e));
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
