/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One record for each pair of hosts, with the connections that have requests in custody (busy), and
 * those that were acknowledged since the last list was sent.
 *
 * Nothing busy but the connection itself: a request waits for nothing. One other: it names what
 * that one has acknowledged. More: they share lists in an order flow (wan.h); a list has what was
 * acknowledged since the list before, so it is short, and there is at most one for each beat.
 */
#include <stdlib.h>

#include "engine/causal.h"
#include "engine/responder.h"
#include "engine/emit.h"
#include "engine/steer.h"
#include "engine/tunnel.h"

struct eng_causal {
	struct rwy_ip src, dst;
	uint32_t tenant;
	uint8_t tunnel; /* of all members; their flows must not be spread */
	uint32_t members, busy;
	struct eng_responder *busy_head, *acked_head, *owed_head;
	struct rwy_after order; /* the latest list; its flow */
	/*
	 * A flow and a count that cover every ACK from before acked_head was filled: of the flow
	 * `order`, or of one connection's flow.
	 */
	struct rwy_after after;
	rwy_time beat;     /* the latest turn in which ACKs went out */
	uint32_t messages; /* begun since then */
	bool lag;          /* ACKs of this beat cover what was accepted before the beat before */
	struct eng_causal *chain;
	bool due; /* it is in e->causal_due: ACKs wait */
	struct eng_causal *due_next;
};

/* So many messages in a beat are no stream: an ACK covers all that was accepted. */
#define FEW 4
/* The beat is twice as long for each so many lists in custody. */
#define LISTS_STEP (WAN_ORDER_BUFS_MAX / 8)

static const struct rwy_after nothing = {RWY_NO_FLOW, 0};

/* --- the record ------------------------------------------------------------------------------- */
static struct eng_causal **bucket(struct eng *e, const struct eng_key *k)
{
	return &e->causal[(uint8_t)(eng_host_hash(&k->src) ^ eng_host_hash(&k->dst) * 31)];
}

static struct eng_causal *find_record(const struct eng *e, const struct eng_key *k)
{
	struct eng_causal *c = *bucket((struct eng *)e, k);

	while (c && !(c->tenant == k->tenant && rwy_ip_eq(&c->src, &k->src) && rwy_ip_eq(&c->dst, &k->dst)))
		c = c->chain;
	return c;
}

static struct eng_causal *make_record(struct eng *e, const struct eng_key *k, uint8_t tunnel)
{
	struct eng_causal *c = calloc(1, sizeof(*c)), **b = bucket(e, k);

	if (!c)
		return NULL;
	*c = (struct eng_causal){.src = k->src,
	    .dst = k->dst,
	    .tenant = k->tenant,
	    .tunnel = tunnel,
	    .order = nothing,
	    .after = nothing,
	    .chain = *b};
	*b = c;
	return c;
}

/* No member has anything in custody: all that was named is delivered, or its flow has ended. */
static void forget_order(struct eng *e, struct eng_causal *c, rwy_time now)
{
	if (c->order.flow != RWY_NO_FLOW && e->tunnel[c->tunnel].wan)
		wan_order_end(e->tunnel[c->tunnel].wan, c->order.flow, now);
	c->order = c->after = nothing;
}

static void remove_due(struct eng *e, struct eng_causal *c)
{
	struct eng_causal **at = &e->causal_due;

	if (!c->due)
		return;
	while (*at != c)
		at = &(*at)->due_next;
	*at = c->due_next;
	c->due = false;
}

static void free_record(struct eng *e, struct eng_causal *c, const struct eng_key *k)
{
	struct eng_causal **at = bucket(e, k);

	remove_due(e, c);
	while (*at != c)
		at = &(*at)->chain;
	*at = c->chain;
	free(c);
}

/* --- members ---------------------------------------------------------------------------------- */
static void list_remove(struct eng_responder **head, struct eng_responder *rs, size_t link)
{
#define NEXT(x) (*(struct eng_responder **)((char *)eng_rare_of(x) + link))
	struct eng_responder **at = head;

	while (*at && *at != rs)
		at = &NEXT(*at);
	if (*at)
		*at = NEXT(rs);
#undef NEXT
}

void eng_causal_busy(struct eng_responder *rs)
{
	struct eng_causal *c = rs->causal;
	struct eng_rare *r;

	if (!c || rs->causal_busy)
		return;
	rs->causal_busy = true;
	r = eng_rare_of(rs);
	r->busy_prev = NULL;
	r->busy_next = c->busy_head;
	if (c->busy_head)
		eng_rare_of(c->busy_head)->busy_prev = rs;
	c->busy_head = rs;
	c->busy++;
}

void eng_causal_idle(struct eng_responder *rs, rwy_time now)
{
	const struct eng_rare *r = rs->rare;
	struct eng_causal *c = rs->causal;

	if (!c || !rs->causal_busy)
		return;
	rs->causal_busy = rs->marked = false;
	*(r->busy_prev ? &eng_rare_of(r->busy_prev)->busy_next : &c->busy_head) = r->busy_next;
	if (r->busy_next)
		eng_rare_of(r->busy_next)->busy_prev = r->busy_prev;
	if (!--c->busy)
		forget_order(rs->side.e, c, now);
}

void eng_causal_leave(struct eng_responder *rs, rwy_time now)
{
	struct eng_causal *c = rs->causal;

	if (!c)
		return;
	eng_causal_idle(rs, now);
	if (rs->causal_acked)
		list_remove(&c->acked_head, rs, offsetof(struct eng_rare, acked_next));
	if (rs->causal_owed)
		list_remove(&c->owed_head, rs, offsetof(struct eng_rare, owed_next));
	rs->causal_acked = rs->causal_owed = false;
	rs->causal = NULL;
	if (!--c->members)
		free_record(rs->side.e, c, &rs->side.key);
}

static bool may_join(const struct eng_responder *rs)
{
	const struct wan_tunnel *t = eng_wan(&rs->side);

	return eng_mode_wanted(rs) == ENG_ACK_CAUSAL && t && wan_tx_orders(t);
}

void eng_causal_join(struct eng_responder *rs, rwy_time now)
{
	struct eng_causal *c = rs->causal;
	bool may = may_join(rs);

	if (c && may && c->tunnel == rs->side.tunnel)
		return;
	eng_causal_leave(rs, now);
	if (!may || !eng_rare_take(rs))
		return;
	c = find_record(rs->side.e, &rs->side.key);
	if (!c && !(c = make_record(rs->side.e, &rs->side.key, rs->side.tunnel)))
		return;
	if (c->tunnel != rs->side.tunnel) {
		if (c->busy)
			return;
		c->tunnel = rs->side.tunnel;
	}
	c->members++;
	rs->causal = c;
	if (rs->requests && wan_tx_queued(rs->requests)) {
		eng_causal_busy(rs);
		eng_causal_acked(rs, now);
	}
}

int eng_causal_tunnel(const struct eng *e, const struct eng_key *k, int tunnel)
{
	const struct eng_tenant *t = eng_tenant(e, k->tenant);
	const struct eng_causal *c = t && eng_mode_of(t, k) == ENG_ACK_CAUSAL ? find_record(e, k) : NULL;

	return c && eng_tunnel_there(e, c->tunnel) ? c->tunnel : tunnel;
}

/* --- what a request waits for ----------------------------------------------------------------- */
/* Names what rs has acknowledged; `nothing` if that is delivered. */
static struct rwy_after acked_of(const struct eng_responder *rs)
{
	struct rwy_after a = nothing;
	uint64_t end;

	if (!rs->requests)
		return a;
	end = wan_tx_base(rs->requests) + wan_tx_queued(rs->requests);
	a = wan_tx_mark(rs->requests, end - roce_resp_unacked(&rs->resp));
	return wan_tx_pending(eng_wan(&rs->side), &a) ? a : nothing;
}

/* Busy connections besides rs. */
static uint32_t others(const struct eng_causal *c, const struct eng_responder *rs)
{
	return c->busy - rs->causal_busy;
}

/* Names that are collected for a list. */
struct names {
	struct rwy_after v[WAN_ORDER_MAX];
	unsigned n;
	bool listed; /* a list is not followed to its end yet: what comes now must be one, too */
};

/*
 * c->after names what was collected, of the acknowledged connections before `upto`. False: no
 * memory; nothing changed.
 */
static bool name_collected(
    struct eng *e, struct eng_causal *c, struct names *k, const struct eng_responder *upto, rwy_time now)
{
	if (k->n == 1 && !k->listed) {
		c->after = k->v[0];
	} else if (k->n) {
		if (!wan_order_put(e->tunnel[c->tunnel].wan, &c->order, c->tenant, k->v, k->n, now))
			return false;
		e->c.causal_lists++;
		c->after = c->order;
		k->listed = true;
	}
	k->n = 0;
	while (c->acked_head != upto) {
		c->acked_head->causal_acked = false;
		c->acked_head = c->acked_head->rare->acked_next;
	}
	return true;
}

/* c->after names all that is acknowledged now. False: no memory. */
static bool name_all(struct eng *e, struct eng_causal *c, rwy_time now)
{
	const struct wan_tunnel *t = e->tunnel[c->tunnel].wan;
	struct names k = {.listed = wan_tx_pending(t, &c->order)};

	/* A list follows the lists before it. A flow that was named alone must be named again. */
	if (c->after.flow != c->order.flow && wan_tx_pending(t, &c->after))
		k.v[k.n++] = c->after;
	for (struct eng_responder *rs = c->acked_head; rs; rs = rs->rare->acked_next) {
		struct rwy_after a = acked_of(rs);

		if (a.flow == RWY_NO_FLOW)
			continue;
		if (k.n == WAN_ORDER_MAX && !name_collected(e, c, &k, rs, now))
			return false;
		k.v[k.n++] = a;
	}
	return name_collected(e, c, &k, NULL, now);
}

static bool begins_message(const struct roce_pkt *pkt)
{
	return pkt->info->pos == ROCE_POS_FIRST || pkt->info->pos == ROCE_POS_ONLY;
}

bool eng_causal_ready(struct eng_responder *rs, const struct roce_pkt *pkt, rwy_time now)
{
	struct eng_causal *c;

	eng_causal_join(rs, now);
	c = rs->causal;
	if (!c || others(c, rs) < 2 || !begins_message(pkt))
		return true;
	if (!c->acked_head || (c->acked_head == rs && !rs->rare->acked_next))
		return true;
	return name_all(rs->side.e, c, now);
}

struct rwy_after eng_causal_after(struct eng_responder *rs, const struct roce_pkt *pkt)
{
	struct eng_causal *c = rs->causal;

	if (!c || !begins_message(pkt))
		return nothing;
	c->messages++;
	if (!others(c, rs))
		return nothing;
	if (others(c, rs) == 1)
		return acked_of(c->busy_head == rs ? rs->rare->busy_next : c->busy_head);
	return wan_tx_pending(eng_wan(&rs->side), &c->after) ? c->after : nothing;
}

/* --- ACKs in beats ---------------------------------------------------------------------------- */
bool eng_causal_shares(const struct eng_responder *rs)
{
	return rs->causal && others(rs->causal, rs);
}

/*
 * When the next beat may be. Two connections tell each other less than many. The more lists there
 * are in custody, the longer it takes: so they stay far below their bound, which costs a request.
 */
static rwy_time next_beat(const struct eng *e, const struct eng_causal *c)
{
	const struct wan_tunnel *t = e->tunnel[c->tunnel].wan;
	rwy_dur beat = c->busy <= 2 ? e->cfg.causal_beat / 2 : e->cfg.causal_beat;

	return c->beat + (t ? beat << (wan_order_bufs(t) / LISTS_STEP) : beat);
}

/* The ACKs of rs wait for the next beat. */
static void owe(struct eng_responder *rs)
{
	struct eng_causal *c = rs->causal;
	struct eng *e = rs->side.e;
	rwy_time at = next_beat(e, c);

	if (rs->causal_owed)
		return;
	if (!c->due) {
		e->causal_at = e->causal_due ? rwy_time_min(e->causal_at, at) : at;
		c->due = true;
		c->due_next = e->causal_due;
		e->causal_due = c;
	}
	eng_rare_of(rs)->owed_next = c->owed_head;
	c->owed_head = rs;
	rs->causal_owed = true;
}

/*
 * Allows ACKs for what was accepted before the last beat, and remembers what is accepted now for
 * the next one. Requests of a beat so wait at the far end for those of the beat before the last,
 * which are delivered by then, and the far host is never idle between two beats.
 */
static void allow_marked(struct eng_responder *rs)
{
	struct eng_rare *rare = eng_rare_of(rs);
	struct roce_resp *r = &rs->resp;

	if (!rs->causal->lag)
		roce_resp_allow(r, r->epsn, r->msn);
	else if (rs->marked)
		roce_resp_allow(r, rare->mark_psn, rare->mark_msn);
	rs->marked = r->allow_psn != r->epsn;
	rare->mark_psn = r->epsn;
	rare->mark_msn = r->msn;
	if (rs->marked)
		owe(rs);
}

bool eng_causal_defers(struct eng_responder *rs, rwy_time now)
{
	struct eng_causal *c = rs->causal;

	if (!eng_causal_shares(rs)) {
		if (!rs->ack_blocked)
			roce_resp_allow(&rs->resp, rs->resp.epsn, rs->resp.msn);
		return false;
	}
	if (now != c->beat) {
		if (now < next_beat(rs->side.e, c)) {
			owe(rs);
			return true;
		}
		c->beat = now;
		c->lag = c->messages > FEW;
		c->messages = 0;
	}
	if (!rs->ack_blocked)
		allow_marked(rs);
	return false;
}

void eng_causal_acked(struct eng_responder *rs, rwy_time now)
{
	struct eng_causal *c = rs->causal;

	if (!c || rs->causal_acked)
		return;
	rs->causal_acked = true;
	eng_rare_of(rs)->acked_next = c->acked_head;
	c->acked_head = rs;
}

void eng_causal_poll(struct eng *e, rwy_time now)
{
	struct eng_causal **at = &e->causal_due, *c;

	e->causal_at = RWY_NEVER;
	while ((c = *at)) {
		struct eng_responder *rs;

		if (next_beat(e, c) > now && c->owed_head) {
			e->causal_at = rwy_time_min(e->causal_at, next_beat(e, c));
			at = &c->due_next;
			continue;
		}
		*at = c->due_next;
		c->due = false;
		while ((rs = c->owed_head)) {
			c->owed_head = rs->rare->owed_next;
			rs->causal_owed = false;
			eng_dirty(&rs->side);
		}
	}
}
