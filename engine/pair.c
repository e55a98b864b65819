/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passive pairing. A data packet names only its destination QPN; the response to it names the
 * requester's. So the gateway beside the responding host learns the pair from the first response,
 * if it knows the flow that the response is for. Many flows between two hosts may begin with the
 * same PSN and UDP port (NCCL, UCX), and then nothing in the response tells. So only one unpaired
 * flow of an address pair has a packet out at a time: a response to an unknown QPN can only be for
 * that one. After a turn without a response no turn begins for a while, for a late response would
 * name the wrong flow. A host that is silent for longer still answers all of them, in the turn of
 * any: its first response ends that turn, tells nothing, and the flow gets another turn. So it is
 * with the first response of a host that a gateway before this one may have asked. CM messages name
 * both QPNs and need no turn.
 */
#include "engine/pair.h"
#include "engine/table.h"
#include "engine/emit.h"
#include "engine/hosts.h"
#include "engine/memory.h"
#include "engine/place.h"
#include "engine/reservation.h"
#include "engine/session.h"

#define TURN_MAX RWY_SEC /* a QP that is silent this long goes to the end of the queue */
/* A host answers each copy of a request that was repeated, the last one within this time. */
#define COPIES (5 * RWY_SEC)
/* A silent host may still answer what it was asked so long ago, perhaps by a gateway before. */
#define BEFORE (5 * RWY_SEC)
/* A host that answered nothing for so long before the end of a turn may still answer all. */
#define SILENT (TURN_MAX / 2)

/* `t`, or as long as this requester's host needs to answer if that is more. */
static rwy_dur at_least(rwy_dur t, const struct eng_requester *rq, rwy_time now)
{
	return rwy_time_max(t, roce_reqr_host_wait(rq->reqr.host, now));
}

static unsigned pair_slot(const struct rwy_ip *remote, const struct rwy_ip *local)
{
	return eng_owner_hash(remote, local) & 255;
}

static struct eng_pair **pair_bucket(struct eng *e, const struct rwy_ip *remote, const struct rwy_ip *local)
{
	return &e->pairs[pair_slot(remote, local)];
}

static struct eng_pair *find_pair(
    const struct eng *e, uint32_t tenant, const struct rwy_ip *remote, const struct rwy_ip *local)
{
	struct eng_pair *p = e->pairs[pair_slot(remote, local)];

	while (p && !(p->tenant == tenant && rwy_ip_eq(&p->remote, remote) && rwy_ip_eq(&p->local, local)))
		p = p->chain;
	return p;
}

/* A gateway before may have asked hosts: an earlier process, or the active one of a pair. */
static bool follows_another(const struct eng *e)
{
	return ((e->cfg.follows || e->orphans_n) && rwy_since(e->started, e->now) < BEFORE) ||
	       (e->sb.taken && rwy_since(e->sb.took_at, e->now) < BEFORE);
}

static struct eng_pair *get_pair(
    struct eng *e, uint32_t tenant, const struct rwy_ip *remote, const struct rwy_ip *local)
{
	struct eng_pair *p = find_pair(e, tenant, remote, local), **b;

	if (p || !(p = rwy_slab_get(&e->pair_slab)))
		return p;
	b = pair_bucket(e, remote, local);
	p->e = e;
	p->tenant = tenant;
	p->remote = *remote;
	p->local = *local;
	/* Hosts may still send responses to requests from before the start of this process. */
	p->quiet_until = e->started + e->cfg.probe_timeout;
	p->before = follows_another(e);
	p->chain = *b;
	*b = p;
	p->all_next = e->pair_list;
	e->pair_list = p;
	return p;
}

static bool anybody_waits(const struct eng_pair *p)
{
	return p->fresh.head || p->tried.head;
}

/* rq waits for its turn behind the others of its queue, or before them. */
static void queue_for_turn(struct eng_pair *p, struct eng_requester *rq, bool tried, bool first)
{
	struct eng_turns *q = tried ? &p->tried : &p->fresh;
	struct eng_requester **at = first || !q->head ? &q->head : &q->tail->pair_next;

	rq->tried = tried;
	rq->pair_next = *at;
	*at = rq;
	if (!rq->pair_next)
		q->tail = rq;
	rq->turn = ENG_TURN_WAITING;
	rq->side.e->learning++;
}

/*
 * A flow that had no turn yet goes first: QPNs that nobody has do not hold up those of the same
 * hosts that somebody has. Every fourth turn is for one that was tried, whose host may be slow.
 */
static struct eng_requester *take_next(struct eng_pair *p)
{
	bool tried = !p->fresh.head || (p->tried.head && ++p->turns % 4 == 0);
	struct eng_turns *q = tried ? &p->tried : &p->fresh;
	struct eng_requester *rq = q->head;

	q->head = rq->pair_next;
	if (!q->head)
		q->tail = NULL;
	rq->pair_next = NULL;
	return rq;
}

/*
 * From then on the turn may end without a response. A host that answers READs of other flows in the
 * order of their requests comes to this one's after them.
 */
static rwy_time turn_ends(const struct eng_pair *p)
{
	return p->turn_end + roce_reqr_busy(&p->turn->reqr);
}

static uint32_t turn_of(const struct eng_pair *p)
{
	return eng_place_turn(p->e, &(struct eng_key){p->remote, p->local, 0, p->tenant});
}

/* Others may wait for a turn that nobody answers, at other workers perhaps. */
static bool others_wait(const struct eng_pair *p)
{
	return anybody_waits(p) || p->e->cfg.directory;
}

/*
 * Where the workers of a gateway share address pairs, one of them at a time has turns of a pair. It
 * keeps the right to them until no late response can come.
 */
static bool take_right(struct eng_pair *p)
{
	struct eng *e = p->e;

	if (!e->cfg.directory || p->own_turn)
		return true;
	p->right = turn_of(p);
	if (!eng_directory_turn_take(e->cfg.directory, p->right, e->cfg.worker))
		return false;
	p->own_turn = true;
	return true;
}

/* Two pairs may share a turn of the directory, by their hash. */
static bool shares_right(const struct eng_pair *p)
{
	for (const struct eng_pair *q = p->e->pair_list; q; q = q->all_next)
		if (q != p && q->own_turn && eng_directory_turn_same(p->right, q->right))
			return true;
	return false;
}

/* False: it had none. */
static bool give_right(struct eng_pair *p)
{
	struct eng *e = p->e;

	if (!p->own_turn)
		return false;
	p->own_turn = false;
	if (p->silent)
		eng_directory_turn_doubt(e->cfg.directory, p->right);
	if (!shares_right(p))
		eng_directory_turn_give(e->cfg.directory, p->right, e->cfg.worker);
	return true;
}

static void begin_next_turn(struct eng_pair *p, rwy_time now)
{
	struct eng_requester *rq;

	if (p->turn || !anybody_waits(p) || now < p->quiet_until || !take_right(p))
		return;
	rq = take_next(p);
	eng_host_ask_others(p->e, rq->side.host, now);
	rq->turn = ENG_TURN_OUT;
	p->turn = rq;
	p->late = NULL;
	p->doubt = 0;
	p->turn_end = now + at_least(TURN_MAX, rq, now);
	roce_reqr_resume(&rq->reqr, now);
	eng_record_side(&rq->side, &(struct eng_record){.kind = ENG_REC_TURN}, now);
	eng_dirty(&rq->side);
}

/* The host may still answer what it was asked: what was heard just then, it sent before. */
static bool was_silent(const struct eng_requester *rq, rwy_time now)
{
	const rwy_time heard = rq->side.host->reqr.heard;

	return rwy_since(heard, now) >= SILENT || heard < rq->last_tx + ENG_AT_ONCE;
}

/* After a turn without an answer no turn begins for a while. */
static void end_turn(struct eng_pair *p, struct eng_requester *rq, rwy_time now)
{
	struct eng *e = rq->side.e;

	p->turn = NULL;
	e->learning--;
	if (eng_requester_answered(rq) || rq->responder || rq->flow == ENG_FLOW_MOVED)
		return;
	eng_record_side(&rq->side, &(struct eng_record){.kind = ENG_REC_TURN_END}, now);
	p->quiet_until = now + at_least(e->cfg.probe_timeout, rq, now);
	if (was_silent(rq, now))
		p->silent++;
}

/* Ends rq's turn without an answer: it asks nothing before it has another one. */
static void queue_again(struct eng_pair *p, struct eng_requester *rq, bool tried, rwy_time now)
{
	end_turn(p, rq, now);
	roce_reqr_pause(&rq->reqr);
	queue_for_turn(p, rq, tried, !tried);
}

bool eng_pair_is_waiting(
    const struct eng *e, uint32_t tenant, const struct rwy_ip *remote, const struct rwy_ip *local)
{
	const struct eng_pair *p = e->learning ? find_pair(e, tenant, remote, local) : NULL;

	return p && (p->turn || anybody_waits(p));
}

void eng_pair_queue(struct eng_requester *rq, rwy_time now)
{
	if (rq->turn > ENG_TURN_UNQUEUED)
		return;
	rq->pair = get_pair(rq->side.e, rq->side.key.tenant, &rq->side.key.src, &rq->side.key.dst);
	if (!rq->pair) {
		rq->turn = ENG_TURN_UNQUEUED;
		eng_wheel_arm(rq, now + RWY_MS);
		return;
	}
	queue_for_turn(rq->pair, rq, false, false);
	begin_next_turn(rq->pair, now);
}

void eng_pair_leave(struct eng_requester *rq, rwy_time now)
{
	struct eng_pair *p = rq->pair;

	if (!p) {
		rq->turn = ENG_TURN_NONE;
		return;
	}
	if (p->late == rq) {
		p->late = NULL;
		if (rq->responder) { /* that was the late response */
			p->quiet_until = now;
			p->silent = 0;
		}
	}
	if (rq->turn == ENG_TURN_OUT) {
		end_turn(p, rq, now);
	} else if (rq->turn == ENG_TURN_WAITING) {
		struct eng_turns *turns = rq->tried ? &p->tried : &p->fresh;
		struct eng_requester **q = &turns->head, *last = NULL;

		while (*q && *q != rq) {
			last = *q;
			q = &(*q)->pair_next;
		}
		if (*q)
			*q = rq->pair_next;
		if (turns->tail == rq)
			turns->tail = last;
		rq->side.e->learning--;
	}
	rq->turn = ENG_TURN_NONE;
	rq->pair_next = NULL;
	rq->pair = NULL;
	begin_next_turn(p, now);
}

/* A late response to what rq sent may still arrive: an answer, or that to a repeat. */
static bool may_answer(const struct eng_requester *rq, rwy_time now)
{
	const struct roce_reqr *r = &rq->reqr;

	return (eng_requester_active(rq) && r->una != r->high) ||
	       rwy_since(rq->last_tx, now) < at_least(rq->side.e->cfg.probe_timeout, rq, now) ||
	       (r->copies && rwy_since(r->repeated_at, now) < COPIES);
}

static bool acks_last(const struct eng_requester *rq, const struct roce_pkt *pkt)
{
	return pkt->opcode == ROCE_RC_ACK && roce_aeth_type(roce_aeth_syndrome(pkt)) == ROCE_AETH_ACK &&
	       pkt->psn == roce_psn_add(rq->reqr.una, -1);
}

bool eng_pair_may_answer(const struct eng_requester *rq, const struct roce_pkt *pkt, rwy_time now)
{
	/* A side that has ended is answered for as long as repeats: then it is another QP. */
	return may_answer(rq, now) ||
	       (acks_last(rq, pkt) && (eng_requester_active(rq) || rwy_since(rq->last_tx, now) < COPIES));
}

/*
 * An ACK of the last PSN that rq had acknowledged, and of none that the other flow has out: a host
 * answers each packet that was repeated, a slow one long afterwards.
 */
static bool acks_again(
    const struct eng_requester *rq, const struct eng_requester *other, const struct roce_pkt *pkt)
{
	return acks_last(rq, pkt) &&
	       (roce_psn_before(pkt->psn, other->reqr.una) || !roce_psn_before(pkt->psn, other->reqr.high));
}

/*
 * False: a response can only be for the flow that has its turn. True: it may be for one before that
 * was asked in silence, so the turn ends.
 */
static bool end_in_doubt(struct eng_pair *p, rwy_time now)
{
	struct eng_directory *d = p->e->cfg.directory;
	const bool silent = (d && eng_directory_turn_doubted(d, p->right)) || p->silent;

	if (!silent && !p->before)
		return false;
	queue_again(p, p->turn, false, now);
	p->doubt = silent ? p->e->cfg.probe_timeout : ENG_AT_ONCE;
	p->quiet_until = rwy_time_max(now + p->doubt, silent ? p->quiet_until : 0);
	p->silent = 0;
	p->before = false;
	p->turns = 0; /* rq has the next one */
	return true;
}

/* The unpaired flow that was asked last, if the response can be its first one; else NULL. */
static struct eng_requester *asked(const struct eng_pair *p, const struct roce_pkt *pkt, rwy_time now)
{
	struct eng_requester *rq = p->turn;

	if (!rq && now < p->quiet_until)
		rq = p->late;
	/* The PSN of a NAK proves nothing: a host that expects another PSN names that one. */
	return rq && eng_requester_active(rq) && rq->reqr.high != rq->reqr.una &&
	               roce_reqr_may_begin(&rq->reqr, pkt)
	           ? rq
	           : NULL;
}

/*
 * The requester side of rs is the owner, unless it had nothing outstanding for so long that no late
 * response can still arrive: then another connection uses the QPN.
 */
struct eng_requester *eng_pair_owner(
    struct eng *e, uint32_t tenant, const struct eng_responder *rs, const struct roce_pkt *pkt, rwy_time now)
{
	struct eng_requester *rq = rs ? rs->requester : NULL, *other;
	struct eng_pair *p;

	if (rq && (!e->learning || may_answer(rq, now)))
		return rq;
	p = find_pair(e, tenant, &pkt->dst, &pkt->src);
	if (!p)
		return rq;
	if (p->doubt && !rq)
		p->quiet_until = rwy_time_max(p->quiet_until, now + p->doubt);
	other = asked(p, pkt, now);
	if (!other || (rq && acks_again(rq, other, pkt)) || (other == p->turn && end_in_doubt(p, now)))
		return rq;
	return other;
}

/*
 * rq loses its pair while its host may still answer it. Where workers share address pairs, nobody
 * knows then whose response that is.
 */
static void put_in_doubt(const struct eng_requester *rq)
{
	struct eng *e = rq->side.e;

	if (e->cfg.directory && rq->reqr.una != rq->reqr.high)
		eng_directory_turn_doubt(e->cfg.directory, eng_place_turn(e, &rq->side.key));
}

void eng_pair_undo(struct eng_requester *rq)
{
	put_in_doubt(rq);
	eng_log(rq->side.e, 4, "unpair local_qpn=%u remote_qpn=%u", rq->side.key.qpn,
	    rq->responder->side.key.qpn);
	eng_record_side(&rq->side, &(struct eng_record){.kind = ENG_REC_UNPAIR}, rq->side.e->now);
	rq->side.e->paired--;
	rq->responder->requester = NULL;
	rq->responder = NULL;
	rq->remote_qpn_before = rq->remote_qpn;
	rq->remote_qpn = 0;
	rq->side.learned = ENG_BY_NOBODY;
	if (rq->side.state == ENG_Q_FAILED)
		eng_requester_enter(rq, ENG_Q_IDLE);
}

void eng_pair_join(struct eng_responder *rs, struct eng_requester *rq, enum eng_learned how)
{
	struct eng *e = rs->side.e;

	if (rs->requester == rq && rq->responder == rs)
		return;
	if (rs->requester)
		eng_pair_undo(rs->requester);
	if (rq->responder)
		eng_pair_undo(rq);
	rs->requester = rq;
	rq->responder = rs;
	/* Where CM has ended the connection before: this one has its QPNs now. */
	rs->cold.close_at = rq->cold.close_at = RWY_NEVER;
	e->paired++;
	eng_log(e, 4, "pair local_qpn=%u remote_qpn=%u how=%d", rq->side.key.qpn, rs->side.key.qpn, how);
	rs->local_qpn = rq->side.key.qpn;
	rq->remote_qpn = rs->side.key.qpn;
	eng_record_side(&rs->side, &(struct eng_record){.kind = ENG_REC_PAIR, .to = (uint8_t)how}, e->now);
	eng_reservation_outdated(&rq->side);
	if (eng_unpaired(&rs->side)) {
		rs->side.learned = (uint8_t)how;
		eng_count_half_open(rs, -1);
		e->c.conns_paired++;
	}
	if (rq->side.learned == ENG_BY_NOBODY)
		rq->side.learned = (uint8_t)how;
	eng_session_open(rs);
	/* Responses of the local host are known to belong to rq: it needs no turn. */
	eng_pair_leave(rq, e->now);
	eng_dirty(&rq->side);
	eng_dirty(&rs->side);
}

/* A pair without flows is freed: a host may invent addresses without end. */
static void forget_pair(struct eng *e, struct eng_pair **at)
{
	struct eng_pair *p = *at, **b = pair_bucket(e, &p->remote, &p->local);

	while (*b != p)
		b = &(*b)->chain;
	*b = p->chain;
	*at = p->all_next;
	rwy_slab_put(&e->pair_slab, p);
}

void eng_pair_tick(struct eng *e, rwy_time now)
{
	struct eng_pair **at = &e->pair_list, *p;

	while ((p = *at)) {
		struct eng_requester *rq = p->turn;

		if (rq)
			eng_host_ask_others(e, rq->side.host, now);
		/* Another worker may take it before the next tick. */
		bool gave = !rq && now >= p->quiet_until && give_right(p);

		if (!rq && !anybody_waits(p) && now >= p->quiet_until + (p->silent ? BEFORE : 0)) {
			forget_pair(e, at);
			continue;
		}
		if (rq && others_wait(p) && now >= turn_ends(p)) {
			/* Others wait: it goes behind them, and no turn begins for a while. */
			queue_again(p, rq, true, now);
			p->late = p->silent > 1 || p->before ? NULL : rq;
		}
		if (!gave)
			begin_next_turn(p, now);
		at = &p->all_next;
	}
}

rwy_time eng_pair_next(const struct eng *e)
{
	rwy_time at = RWY_NEVER;

	if (!e->learning)
		return at;
	for (const struct eng_pair *p = e->pair_list; p; p = p->all_next) {
		if (p->turn && others_wait(p))
			at = rwy_time_min(at, turn_ends(p));
		else if (!p->turn && anybody_waits(p))
			at = rwy_time_min(at, p->quiet_until);
	}
	/* Not before the wheel's next tick, which calls eng_pair_tick. */
	return rwy_time_max(at, (e->wheel_tick + 1) << ENG_WHEEL_SHIFT);
}
