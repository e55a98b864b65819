/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold of reservations: see rates.h. The world has one tunnel. */
#include "engine/tunnel.h"
#include "tests/sim/rates.h"

#include <math.h>

#include "engine/requester.h"
#include "engine/responder.h"
#include "engine/steer.h"
#include "wan/tunnel.h"

#define CATCH_UP_BYTES 32768. /* what a reservation may catch up with (wan/sched.c), as a time: */
#define CATCH_UP_MIN   .010   /* s */
#define CATCH_UP_MAX   .100   /* s */
#define DATAGRAM       9100   /* bytes of one on the wire, which begins below the bound and ends above */
#define TAKEN_UP       (3 * RWY_SEC) /* by then a change has reached the connections that exist */

static const struct wan_class *class_of(const struct wan_tunnel *t, unsigned id)
{
	const struct wan_class_table *v = &t->sched.table[id / WAN_CLASS_TABLE_MAX];
	const unsigned at = id % WAN_CLASS_TABLE_MAX;

	return id && at < v->cap ? v->v[at] : NULL;
}

static const struct wan_class *reserved(const struct eng *e, unsigned number)
{
	return e->tunnel[0].wan ? class_of(e->tunnel[0].wan, ENG_TENANTS_MAX + number) : NULL;
}

/* It waits for its guarantee: listed, stopped by no limit, and its flow has credit. One that was
 * listed just now may have come after the turn's datagrams. */
static bool is_due(const struct wan_class *c, rwy_time now)
{
	const struct wan_txflow *f = c->head;

	return c->place[WAN_HEAP_GUARANTEE] && !c->fresh && c->guarantee.ns_fp && c->guarantee.at <= now &&
	       f && wan_tx_sendable(f) && (f->next_frag || wan_tx_has_credit(f));
}

/* A flow that is not bulk goes on without a share of its class where bulk flows have no credit. */
static bool goes_ahead(const struct wan_tunnel *t)
{
	return t->sched.ahead_head;
}

static uint64_t shared(const struct wan_tunnel *t)
{
	uint64_t n = t->sched.first.sent - t->sched.first.sent_guaranteed;

	for (unsigned i = 0; i < WAN_CLASS_TABLES; i++)
		for (uint32_t j = 0; j < t->sched.table[i].cap; j++) {
			const struct wan_class *c = t->sched.table[i].v[j];

			if (c && c != &t->sched.first)
				n += c->sent - c->sent_guaranteed;
		}
	return n;
}

static double catch_up(const struct wan_class *c)
{
	return fmin(fmax(CATCH_UP_BYTES / (double)c->cfg.guarantee_Bps, CATCH_UP_MIN), CATCH_UP_MAX);
}

/* A class begins with what it may catch up with. */
static void refill(struct sim_rates *k, unsigned i, rwy_time now)
{
	k->credit[i] += (double)(now - k->at) / 1e9;
	if (!k->known[i] || k->credit[i] > CATCH_UP_MAX)
		k->credit[i] = CATCH_UP_MAX;
	k->known[i] = true;
}

/* The rate at which it sends now says how much of the time before counts. */
static void spend(struct sim_rates *k, unsigned i, const struct wan_class *c, uint64_t sent)
{
	if (!sent)
		return;
	k->credit[i] = fmin(k->credit[i], catch_up(c)) - (double)sent / (double)c->cfg.limit_Bps;
}

void sim_rates_before(const struct eng *e, struct sim_rates *k, rwy_time now)
{
	const struct wan_tunnel *t = e->tunnel[0].wan;

	if (!t)
		return;
	if (k->gen != e->steering_gen) {
		k->gen = e->steering_gen;
		k->gen_at = now;
	}
	for (unsigned i = 1; i < SIM_RATES; i++) {
		const struct wan_class *c = reserved(e, i);

		k->due[i] = c && is_due(c, now) && !goes_ahead(t);
		if (c)
			refill(k, i, now);
	}
	k->shared = shared(t);
}

const char *sim_rates_after(const struct eng *e, struct sim_rates *k, rwy_time now)
{
	const struct wan_tunnel *t = e->tunnel[0].wan;
	const char *why = NULL;
	uint64_t sent;

	for (unsigned i = 1; t && i < SIM_RATES; i++) {
		const struct wan_class *c = reserved(e, i);

		if (!c)
			continue;
		if (!k->known[i]) /* it was made within the turn */
			refill(k, i, now);
		sent = c->sent - k->sent[i];
		k->sent[i] = c->sent;
		spend(k, i, c, sent);
		if (sent && k->credit[i] * (double)c->cfg.limit_Bps < -DATAGRAM)
			why = "more was sent than is reserved";
		if (k->due[i] && is_due(c, now) && !goes_ahead(t) && shared(t) > k->shared)
			why = "others got a share of the path while a reservation waited";
	}
	k->at = now;
	if (eng_counters(e)->reservation_no_memory)
		why = "a reservation found no memory";
	return why;
}

static const struct wan_txflow *flow_of(const struct eng_side *s)
{
	return s->is_requester ? ((const struct eng_requester *)s)->responses
	                       : ((const struct eng_responder *)s)->requests;
}

static const struct eng_steer_cfg *assignment_of(const struct eng *e, const struct eng_side *s)
{
	const struct eng_key *k = &s->key;
	const uint32_t vni = s->tenant->cfg.vni;

	return s->is_requester
	           ? eng_steer_find(e, vni, &k->dst, &k->src, ((const struct eng_requester *)s)->remote_qpn)
	           : eng_steer_find(e, vni, &k->src, &k->dst, k->qpn);
}

static const char *check_side(const struct eng *e, const struct eng_side *s, bool old)
{
	const struct wan_txflow *f = flow_of(s);
	const struct eng_steer_cfg *a = f ? assignment_of(e, s) : NULL;
	const uint32_t want =
	    a && a->reservation ? (uint32_t)ENG_TENANTS_MAX + a->reservation : s->key.tenant;

	/* A connection that has ended keeps its flow, and no QPN, until it is empty. */
	if (!f || !eng_tunnel_there(e, s->tunnel) ||
	    (s->is_requester && !((const struct eng_requester *)s)->remote_qpn))
		return NULL;
	/* One that learns its QPN counts as one change late until it is looked at. */
	if (eng_side_cold_of(s)->steering_gen != e->steering_gen)
		return old && eng_side_cold_of(s)->steering_gen + 1 != e->steering_gen
		           ? "a connection did not take up a change of reservations"
		           : NULL;
	/* The class of a tenant is made when it has a share; until then class 0 serves it. */
	if (f->class->id != want && (want >= ENG_TENANTS_MAX || f->class->id >= ENG_TENANTS_MAX))
		return "a flow is not in the reservation of its pair";
	return NULL;
}

const char *sim_rates_walk(const struct eng *e, const struct sim_rates *k, rwy_time now)
{
	const bool old = now > k->gen_at + TAKEN_UP && k->gen == e->steering_gen;
	const char *why = NULL;

	for (uint32_t i = 0; i <= e->table_mask && !why; i++)
		for (const struct eng_side *s = e->table[i]; s && !why; s = s->chain)
			why = check_side(e, s, old);
	return why;
}
