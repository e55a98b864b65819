/* SPDX-License-Identifier: Apache-2.0 */
/* Accounting of buffers by connection, host, tenant and worker (memory.h). */
#include "engine/memory.h"

#include "engine/emit.h"

/*
 * Thresholds: a tenant may hold 7 times what is free to all, a host 7 times what is free to its
 * tenant. One alone gets 7 of 8 parts, two get 7 of 15 each. Of a reservation one host may have
 * nearly all: it is there to be used.
 */
#define SHARE_BITS 3
#define SHARE      ((1u << SHARE_BITS) - 1)
/* A host may hold 64 times as much as is left of its tenant's reservation. */
#define OWN_BITS 6
/* Unpaired flows of a host: two times what is left for all, so two thirds if it is alone. */
#define UNPAIRED_BITS  1
#define PLENTY_BITS    2
#define ROOM_TO_RESUME 16 /* buffers for which there must be room before a host is asked to go on */
#define PMTU_LOG_MIN   8  /* path MTU 256, 512 .. 4096 */
#define PART_BITS      8
#define HEADERS        80u /* of a READ response, about */
#define STEPS          8   /* sides that wait looked at in a turn */

/* --- accounts --- */

static uint64_t over_reserve(const struct eng_tenant *t)
{
	return t->mem.held > t->cfg.reserve ? t->mem.held - t->cfg.reserve : 0;
}

/* Inline in the functions below, for each packet pays for them: `kind` is mostly a constant. */
#define MEM_INLINE static inline __attribute__((always_inline))

MEM_INLINE void note_most(struct eng_mem *m)
{
	if (m->held > m->most)
		m->most = m->held;
}

MEM_INLINE void note_side(struct eng_side *side, uint64_t held)
{
	if (held > side->most)
		side->most = held;
}

/* Bytes that count against a connection's bound. Parked requests have a bound of their own. */
static uint64_t side_holds(const struct eng_side *side)
{
	return side->is_requester ? ((const struct eng_requester *)side)->answering
	                          : ((const struct eng_responder *)side)->custody;
}

MEM_INLINE void charge(struct eng_side *side, enum eng_mem_kind kind, uint64_t cost)
{
	struct eng *e = side->e;
	struct eng_tenant *t = side->tenant;
	struct eng_host *h = side->host;
	uint64_t over;

	e->mem_bufs[kind]++;
	e->mem.kind[kind] += cost;
	t->mem.kind[kind] += cost;
	h->mem.kind[kind] += cost;
	if (kind >= ENG_MEM_BOUNDED)
		return;
	over = over_reserve(t);
	h->mem.held += cost;
	t->mem.held += cost;
	e->mem.held += cost;
	e->common += over_reserve(t) - over;
	note_most(&h->mem);
	note_most(&t->mem);
	note_most(&e->mem);
}

MEM_INLINE void release(struct eng_side *side, enum eng_mem_kind kind, uint64_t cost, uint32_t n)
{
	struct eng *e = side->e;
	struct eng_tenant *t = side->tenant;
	struct eng_host *h = side->host;
	uint64_t over;

	e->mem_bufs[kind] -= n;
	e->mem.kind[kind] -= cost;
	t->mem.kind[kind] -= cost;
	h->mem.kind[kind] -= cost;
	if (kind >= ENG_MEM_BOUNDED)
		return;
	over = over_reserve(t);
	h->mem.held -= cost;
	t->mem.held -= cost;
	e->mem.held -= cost;
	e->common -= over - over_reserve(t);
}

void eng_mem_charge(struct eng_side *side, enum eng_mem_kind kind, uint64_t cost)
{
	charge(side, kind, cost);
}

void eng_mem_release(struct eng_side *side, enum eng_mem_kind kind, uint64_t cost, uint32_t n)
{
	release(side, kind, cost, n);
}

void eng_mem_charge_custody(struct eng_responder *rs, uint64_t cost)
{
	rs->custody += cost;
	rs->custody_bufs++;
	if (rs->custody_kind == ENG_MEM_CUSTODY)
		charge(&rs->side, ENG_MEM_CUSTODY, cost);
	else
		charge(&rs->side, ENG_MEM_UNPAIRED, cost);
	note_side(&rs->side, rs->custody);
}

void eng_mem_release_custody(struct eng_responder *rs, uint64_t cost, uint32_t n)
{
	rs->custody -= cost;
	rs->custody_bufs -= n;
	if (rs->custody_kind == ENG_MEM_CUSTODY)
		release(&rs->side, ENG_MEM_CUSTODY, cost, n);
	else
		release(&rs->side, ENG_MEM_UNPAIRED, cost, n);
}

void eng_mem_charge_response(struct eng_requester *rq, uint64_t cost)
{
	rq->answering += cost;
	rq->answering_bufs++;
	charge(&rq->side, ENG_MEM_RESPONSES, cost);
	note_side(&rq->side, rq->answering);
}

void eng_mem_release_responses(struct eng_requester *rq, uint64_t cost, uint32_t n)
{
	rq->answering -= cost;
	rq->answering_bufs -= n;
	release(&rq->side, ENG_MEM_RESPONSES, cost, n);
}

void eng_mem_charge_received(struct eng_requester *rq, uint64_t cost)
{
	rq->received += cost;
	charge(&rq->side, ENG_MEM_RECEIVED, cost);
}

void eng_mem_release_received(struct eng_requester *rq, uint64_t cost, uint32_t n)
{
	rq->received -= cost;
	release(&rq->side, ENG_MEM_RECEIVED, cost, n);
}

/* --- bounds --- */

static uint64_t minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Bytes that nobody reserved and nobody holds. */
static uint64_t free_to_all(const struct eng *e)
{
	return minus(e->cfg.memory_total, e->reserved + e->common);
}

/* Bytes that a tenant may hold in addition: the rest of its reservation, and its part of all. */
struct room {
	uint64_t own, common;
};

/*
 * Bytes that a holder of `has` may still take of `all`: it then holds SHARE times what is free.
 * Without other tenants there is nobody to leave something to.
 */
static uint64_t part_of(const struct eng *e, uint64_t all, uint64_t has)
{
	return e->vni_used ? minus(SHARE * all, has) >> SHARE_BITS : all;
}

static struct room tenant_room(const struct eng *e, const struct eng_tenant *t)
{
	uint64_t most = minus(t->memory_max, t->mem.held);
	uint64_t own = min_u64(minus(t->cfg.reserve, t->mem.held), most);

	return (struct room){own, min_u64(part_of(e, free_to_all(e), over_reserve(t)), most - own)};
}

/* Bytes that one of the tenant's hosts may hold, when `cost` more are held. */
static uint64_t host_threshold(const struct room *r, uint64_t cost)
{
	return (r->own << OWN_BITS) + SHARE * minus(r->common, cost);
}

/*
 * Most of the memory is free: then every host has room for more, and no threshold is computed. All
 * that is held is at most a quarter of the memory that is not reserved, and of the bound of the
 * tenant; even if one host holds it, the threshold of the host is more than 3 times that.
 */
static inline bool plenty(const struct eng_side *side, uint64_t cost)
{
	uint64_t held = side->e->mem.held + cost;

	return held <= side->e->plenty && held <= side->tenant->plenty;
}

/* A connection that holds nothing yet needs only room, whatever its host's others hold. */
static bool shares_allow(const struct eng_side *side, uint64_t cost)
{
	struct room r;

	if (plenty(side, cost))
		return true;
	r = tenant_room(side->e, side->tenant);
	return cost <= r.own + r.common &&
	       (!side_holds(side) || side->host->mem.held + cost <= host_threshold(&r, cost));
}

/*
 * Whether an unpaired flow may hold more of the memory for such flows. Half of that is for first
 * packets: one is enough to find out whether there is such a queue pair.
 */
static bool unpaired_allows(const struct eng_responder *rs, uint64_t cost)
{
	const struct eng *e = rs->side.e;
	uint64_t room = minus(e->cfg.unpaired_total, e->mem.kind[ENG_MEM_UNPAIRED]);

	if (rs->custody)
		room = minus(room, e->cfg.unpaired_total >> 1);
	return cost <= room && rs->side.tenant->mem.kind[ENG_MEM_UNPAIRED] + cost <= SHARE * room &&
	       rs->side.host->mem.kind[ENG_MEM_UNPAIRED] + cost <= room << UNPAIRED_BITS;
}

uint64_t *eng_mem_refuses_request(const struct eng_responder *rs, uint64_t cost)
{
	struct eng *e = rs->side.e;

	if (rs->custody + cost > e->cfg.memory_conn)
		return &e->c.drop_memory_conn;
	if (rs->custody_kind == ENG_MEM_UNPAIRED && !unpaired_allows(rs, cost))
		return &e->c.drop_unpaired_full;
	return shares_allow(&rs->side, cost) ? NULL : &e->c.drop_memory_share;
}

bool eng_mem_admits_response(const struct eng_requester *rq, uint64_t cost)
{
	return rq->answering + cost <= rq->side.e->cfg.memory_conn && shares_allow(&rq->side, cost);
}

uint64_t eng_mem_read_room(const struct eng_requester *rq)
{
	const struct eng *e = rq->side.e;
	struct room r = tenant_room(e, rq->side.tenant);
	uint64_t share =
	    min_u64(minus(host_threshold(&r, 0), rq->side.host->mem.held) >> SHARE_BITS, r.own + r.common);
	uint64_t room = min_u64(minus(e->cfg.custody_conn, rq->answering), share);
	unsigned log = rq->reqr.pmtu ? (unsigned)__builtin_ctz(rq->reqr.pmtu) : PMTU_LOG_MIN;

	return room * e->payload_part[log - PMTU_LOG_MIN] >> PART_BITS;
}

/* All that a READ has left comes again after a NAK of ours, so it is asked for in large parts. */
bool eng_mem_has_room(const struct eng_side *side)
{
	const struct eng_cfg *c = &side->e->cfg;
	uint64_t more = side->is_requester ? c->memory_conn >> 2 : (uint64_t)ROOM_TO_RESUME * c->buf_cost;
	uint64_t cost = side_holds(side) ? more : c->buf_cost;

	if (side->is_requester)
		return eng_mem_admits_response((const struct eng_requester *)side, cost);
	return !eng_mem_refuses_request((const struct eng_responder *)side, cost);
}

bool eng_mem_over_share(const struct eng_side *side)
{
	const struct eng_tenant *t = side->tenant;

	return side->host->mem.held >= min_u64(t->host_share, t->host_reserve + side->e->host_share);
}

/* The part of a full READ response's buffer that is payload, by path MTU. */
static void set_payload_parts(struct eng *e)
{
	for (unsigned i = 0; i < ENG_PMTUS; i++) {
		uint64_t pmtu = 1u << (i + PMTU_LOG_MIN), cost = pmtu + HEADERS;

		if (cost < e->cfg.buf_cost)
			cost = e->cfg.buf_cost;
		e->payload_part[i] = (uint32_t)((pmtu << PART_BITS) / cost);
	}
}

static void default_bounds(struct eng_cfg *c)
{
	uint64_t window = (uint64_t)ENG_UNPAIRED_MAX * c->buf_cost;

	if (!c->memory_conn)
		c->memory_conn =
		    c->custody_conn + (c->custody_conn >> 2 > window ? c->custody_conn >> 2 : window);
	if (!c->memory_total)
		c->memory_total =
		    c->custody_total + (c->custody_total >> 2 > window ? c->custody_total >> 2 : window);
	if (!c->unpaired_total)
		c->unpaired_total = c->memory_total >> 2;
}

void eng_mem_init(struct eng *e)
{
	default_bounds(&e->cfg);
	set_payload_parts(e);
	e->host_share = e->cfg.custody_total;
	e->plenty = e->cfg.memory_total >> PLENTY_BITS;
}

/* Fair shares: equal parts of what is its tenant's, and of what is everybody's. */
static void set_shares(struct eng *e, struct eng_tenant *t)
{
	uint32_t hosts = t->hosts ? t->hosts : 1;

	e->host_share = minus(e->cfg.custody_total, e->reserved) / (e->hosts_n ? e->hosts_n : 1);
	t->host_share = t->cfg.custody / hosts;
	t->host_reserve = t->cfg.reserve / hosts;
}

void eng_mem_tenant_changed(struct eng *e, struct eng_tenant *t, uint64_t old_reserve)
{
	uint64_t window = (uint64_t)ENG_UNPAIRED_MAX * e->cfg.buf_cost, more = t->cfg.custody >> 2;

	e->common -= minus(t->mem.held, old_reserve);
	e->common += over_reserve(t);
	e->reserved += t->cfg.reserve - old_reserve;
	more = more > window ? more : window;
	t->memory_max = t->cfg.memory                        ? t->cfg.memory
	                : t->cfg.custody < UINT64_MAX - more ? t->cfg.custody + more
	                                                     : UINT64_MAX;
	e->plenty = minus(e->cfg.memory_total, e->reserved) >> PLENTY_BITS;
	t->plenty = t->memory_max >> PLENTY_BITS;
	set_shares(e, t);
}

void eng_mem_count_host(struct eng *e, struct eng_tenant *t, int by)
{
	e->hosts_n += (uint32_t)by;
	t->hosts += (uint32_t)by;
	set_shares(e, t);
}

/* --- sides that wait for memory --- */

void eng_mem_wait(struct eng_side *side)
{
	struct eng_side *head = side->e->waiting;
	struct eng_side_cold *c = eng_side_cold(side);

	if (c->wait_next)
		return;
	c->wait_next = head ? head : side;
	c->wait_prev = head ? eng_side_cold(head)->wait_prev : side;
	eng_side_cold(c->wait_next)->wait_prev = eng_side_cold(c->wait_prev)->wait_next = side;
	if (!head)
		side->e->waiting = side;
	side->e->waiting_n++;
}

void eng_mem_wait_end(struct eng_side *side)
{
	struct eng_side_cold *c = eng_side_cold(side);
	struct eng *e = side->e;

	if (!c->wait_next)
		return;
	if (e->waiting == side)
		e->waiting = c->wait_next == side ? NULL : c->wait_next;
	eng_side_cold(c->wait_next)->wait_prev = c->wait_prev;
	eng_side_cold(c->wait_prev)->wait_next = c->wait_next;
	c->wait_next = c->wait_prev = NULL;
	e->waiting_n--;
}

void eng_mem_wake(struct eng *e)
{
	for (unsigned i = 0; i < STEPS && e->waiting; i++) {
		struct eng_side *side = e->waiting;

		e->waiting = eng_side_cold(side)->wait_next;
		if (!eng_mem_has_room(side))
			continue;
		eng_mem_wait_end(side);
		eng_dirty(side);
	}
}

/* --- unpaired flows --- */

/* Places that the tenant may take in addition. */
static uint64_t half_open_room(const struct eng *e, const struct eng_tenant *t)
{
	uint64_t room = part_of(e, minus(e->cfg.half_open_max, e->half_open), t->half_open);

	return t->cfg.half_open_max ? min_u64(room, minus(t->cfg.half_open_max, t->half_open)) : room;
}

bool eng_half_open_admits(const struct eng *e, const struct eng_tenant *t, const struct eng_host *h)
{
	return h->half_open + 1 <= SHARE * minus(half_open_room(e, t), 1);
}

static void enter_half_open(struct eng_responder *rs)
{
	struct eng_host *h = rs->side.host;
	struct eng_rare *r = eng_rare_of(rs);

	r->half_since = rs->side.e->now;
	r->half_next = NULL;
	r->half_prev = h->half_tail;
	*(h->half_tail ? &eng_rare_of(h->half_tail)->half_next : &h->half_head) = rs;
	h->half_tail = rs;
}

static void leave_half_open(struct eng_responder *rs)
{
	struct eng_host *h = rs->side.host;
	struct eng_rare *r = eng_rare_of(rs);

	*(r->half_prev ? &eng_rare_of(r->half_prev)->half_next : &h->half_head) = r->half_next;
	*(r->half_next ? &eng_rare_of(r->half_next)->half_prev : &h->half_tail) = r->half_prev;
	r->half_next = r->half_prev = NULL;
}

/* The requests in custody count as the other kind from now on. */
static void recount(struct eng_responder *rs, enum eng_mem_kind to)
{
	struct eng_mem *mem[] = {&rs->side.e->mem, &rs->side.tenant->mem, &rs->side.host->mem};
	enum eng_mem_kind from = (enum eng_mem_kind)rs->custody_kind;

	rs->custody_kind = (uint8_t)to;
	if (from == to || !rs->custody)
		return;
	for (unsigned i = 0; i < sizeof(mem) / sizeof(mem[0]); i++) {
		mem[i]->kind[from] -= rs->custody;
		mem[i]->kind[to] += rs->custody;
	}
	rs->side.e->mem_bufs[from] -= rs->custody_bufs;
	rs->side.e->mem_bufs[to] += rs->custody_bufs;
}

void eng_count_half_open(struct eng_responder *rs, int by)
{
	rs->side.e->half_open += (uint32_t)by;
	rs->side.tenant->half_open += (uint32_t)by;
	rs->side.host->half_open += (uint32_t)by;
	if (by > 0)
		enter_half_open(rs);
	else
		leave_half_open(rs);
	recount(rs, by > 0 ? ENG_MEM_UNPAIRED : ENG_MEM_CUSTODY);
}
