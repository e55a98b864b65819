/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/accounts.h"

#include <string.h>

#include "engine/copy.h"
#include "engine/eng.h"
#include "engine/store.h"
#include "wan/tunnel.h"

/* Buffers that no connection holds: those of tunnels. */
static uint64_t tunnels_hold(const struct eng *e)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < e->cfg.tunnels; i++) {
		const struct wan_tunnel *t = e->tunnel[i].wan;

		if (!t)
			continue;
		n += t->rx_waiting + wan_fec_bufs(&t->fec) + wan_dgram_bufs(t) + wan_order_bufs(t);
		if (e->tunnel[i].mgmt)
			n += wan_tx_queued(e->tunnel[i].mgmt);
		if (e->tunnel[i].peer.tx)
			n += wan_tx_queued(e->tunnel[i].peer.tx);
	}
	return n;
}

const char *sim_accounts_check(const struct eng *e, uint64_t bufs, struct sim_common *before)
{
	const struct sim_common last = *before;
	uint64_t charged = 0;

	*before = (struct sim_common){e->common, e->common + e->reserved,
	    e->mem.kind[ENG_MEM_CUSTODY] + e->mem.kind[ENG_MEM_UNPAIRED] + e->mem.kind[ENG_MEM_PARKED]};
	for (unsigned k = 0; k < ENG_MEM_N; k++)
		charged += e->mem_bufs[k];
	if (charged + tunnels_hold(e) != bufs)
		return "buffers are held that nobody is charged for, or the other way round";
	/* Nobody asks for ATOMIC ACKs and messages of the engine itself, a few for each connection. */
	if (e->common > last.used && before->taken > last.taken && before->requests > last.requests &&
	    before->taken > e->cfg.memory_total + e->sides * 4 * (uint64_t)e->cfg.buf_cost)
		return "a tenant could not have its reservation";
	if (e->mem.kind[ENG_MEM_UNPAIRED] > e->cfg.unpaired_total)
		return "unpaired flows hold more than they may";
	return NULL;
}

struct sum {
	uint64_t kind[ENG_MEM_N];
	uint32_t bufs[ENG_MEM_N];
};

static uint64_t queue_cost(const struct eng *e, const struct rwy_bufq *q)
{
	uint64_t n = 0;

	for (const struct rwy_buf *b = q->head; b; b = b->next)
		n += eng_buf_cost(e, b);
	return n;
}

static bool add_responder(struct sum *s, const struct eng_responder *rs)
{
	const struct eng *e = rs->side.e;

	s->kind[rs->custody_kind] += rs->custody;
	s->bufs[rs->custody_kind] += rs->custody_bufs;
	s->kind[ENG_MEM_PARKED] +=
	    queue_cost(e, &rs->rare->parked) + (rs->dreq_waits ? eng_buf_cost(e, rs->rare->dreq.b) : 0);
	s->bufs[ENG_MEM_PARKED] += rs->rare->parked.n + rs->dreq_waits;
	s->kind[ENG_MEM_COPIES] += queue_cost(e, &rs->rare->ahead);
	s->bufs[ENG_MEM_COPIES] += rs->rare->ahead.n;
	if (rs->copy) {
		s->kind[ENG_MEM_COPIES] += rs->copy->bytes + queue_cost(e, &rs->copy->answers);
		s->bufs[ENG_MEM_COPIES] += rs->copy->bufs + rs->copy->answers.n;
	}
	s->kind[ENG_MEM_ANSWERS] += rs->rare->kept;
	s->bufs[ENG_MEM_ANSWERS] += rs->rare->reads.n;
	/*
	 * What a standby has stored may be more by what was delivered when the active gateway died,
	 * for that was not said yet.
	 */
	return rs->custody_bufs == (rs->requests ? wan_tx_queued(rs->requests) : 0) &&
	       rs->custody <= e->cfg.memory_conn * (rs->taken_over ? 2 : 1) &&
	       (eng_unpaired(&rs->side) || rs->custody_kind != ENG_MEM_UNPAIRED);
}

static bool add_requester(struct sum *s, const struct eng_requester *rq)
{
	bool active = eng_requester_active(rq);

	s->kind[ENG_MEM_RESPONSES] += rq->answering;
	s->bufs[ENG_MEM_RESPONSES] += rq->answering_bufs;
	s->kind[ENG_MEM_RECEIVED] += rq->received;
	s->bufs[ENG_MEM_RECEIVED] += active ? rq->reqr.q.n : 0;
	return rq->answering_bufs == (rq->responses ? wan_tx_queued(rq->responses) : 0) &&
	       rq->received == (active ? queue_cost(rq->side.e, &rq->reqr.q) : 0);
}

const char *sim_accounts_walk(const struct eng *e)
{
	uint64_t tenants[ENG_MEM_N] = {0}, hosts[ENG_MEM_N] = {0};
	struct sum s = {0};
	bool good = true;

	/* What a standby stores is no connection's, tenant's or host's here. */
	for (const struct eng_stored *st = e->sb.stored; st; st = st->next) {
		s.kind[ENG_MEM_STORED] += queue_cost(e, &st->q);
		s.bufs[ENG_MEM_STORED] += st->q.n;
	}
	tenants[ENG_MEM_STORED] = hosts[ENG_MEM_STORED] = s.kind[ENG_MEM_STORED];
	for (uint32_t i = 0; i <= e->table_mask; i++)
		for (const struct eng_side *c = e->table[i]; c; c = c->chain)
			good &= c->is_requester ? add_requester(&s, (const struct eng_requester *)c)
			                        : add_responder(&s, (const struct eng_responder *)c);
	for (uint32_t i = 0; i < e->tenant_slots; i++)
		for (unsigned k = 0; e->tenant[i] && k < ENG_MEM_N; k++)
			tenants[k] += e->tenant[i]->mem.kind[k];
	for (unsigned i = 0; i < sizeof(e->hosts) / sizeof(e->hosts[0]); i++)
		for (const struct eng_host *h = e->hosts[i]; h; h = h->chain)
			for (unsigned k = 0; k < ENG_MEM_N; k++)
				hosts[k] += h->mem.kind[k];
	if (!good)
		return "a connection holds something else than it is charged for, or more than it may";
	if (memcmp(s.kind, e->mem.kind, sizeof(s.kind)) != 0 ||
	    memcmp(s.bufs, e->mem_bufs, sizeof(s.bufs)) != 0)
		return "the worker is charged for something else than its connections";
	if (memcmp(tenants, e->mem.kind, sizeof(tenants)) != 0)
		return "tenants are charged for something else than the worker";
	if (memcmp(hosts, e->mem.kind, sizeof(hosts)) != 0)
		return "hosts are charged for something else than the worker";
	return NULL;
}
