/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which two flows are one connection. A data packet names only its destination QPN; the answer to it names
 * the requester's. So the far gateway learns the pair from the host's first answer - if it knows which flow
 * the answer is for. Many flows between two hosts may start with one PSN and one UDP port (NCCL, UCX), so
 * nothing in the answer tells: therefore only *one* unpaired flow of an address pair has a packet out at a
 * time, and an answer to an unknown QPN can only be its. After a turn without an answer the pair stays quiet
 * for a while, so that a late answer does not name the wrong flow. CM messages name both QPNs and need none
 * of this.
 */
#include "engine/pair.h"
#include "engine/table.h"
#include "engine/emit.h"
#include "engine/session.h"

#define TURN_MAX RWY_SEC /* a QP that does not answer for this long goes to the end of the line */

static unsigned slot(const struct rwy_ip *remote, const struct rwy_ip *local)
{
	return eng_owner_hash(remote, local) & 255;
}

static struct eng_pair **bucket(struct eng *e, const struct rwy_ip *remote, const struct rwy_ip *local)
{
	return &e->pairs[slot(remote, local)];
}

static struct eng_pair *find_pair(
    const struct eng *e, uint32_t tenant, const struct rwy_ip *remote, const struct rwy_ip *local)
{
	struct eng_pair *p = e->pairs[slot(remote, local)];

	while (p && !(p->tenant == tenant && rwy_ip_eq(&p->remote, remote) && rwy_ip_eq(&p->local, local)))
		p = p->chain;
	return p;
}

static struct eng_pair *get_pair(
    struct eng *e, uint32_t tenant, const struct rwy_ip *remote, const struct rwy_ip *local)
{
	struct eng_pair *p = find_pair(e, tenant, remote, local), **b;

	if (p || !(p = eng_slab_get(&e->pair_slab)))
		return p;
	b = bucket(e, remote, local);
	p->tenant = tenant;
	p->remote = *remote;
	p->local = *local;
	/* Hosts may still be answering what was delivered before this process started. */
	p->quiet_until = e->started + e->cfg.probe_timeout;
	p->chain = *b;
	*b = p;
	p->all_next = e->pair_list;
	e->pair_list = p;
	return p;
}

static void push(struct eng_pair *p, struct eng_far *f)
{
	f->pair_next = NULL;
	if (p->tail)
		p->tail->pair_next = f;
	else
		p->head = f;
	p->tail = f;
	f->turn = ENG_TURN_WAITING;
	f->h.e->learning++;
}

static void next_turn(struct eng_pair *p, rwy_time now)
{
	struct eng_far *f = p->head;

	if (p->turn || !f || now < p->quiet_until)
		return;
	p->head = f->pair_next;
	if (!p->head)
		p->tail = NULL;
	f->pair_next = NULL;
	f->turn = ENG_TURN_OUT;
	p->turn = f;
	p->turn_end = now + TURN_MAX;
	eng_dirty(&f->h);
}

bool eng_learn_waits(
    const struct eng *e, uint32_t tenant, const struct rwy_ip *remote, const struct rwy_ip *local)
{
	const struct eng_pair *p = e->learning ? find_pair(e, tenant, remote, local) : NULL;

	return p && (p->turn || p->head);
}

void eng_learn_wait(struct eng_far *f, rwy_time now)
{
	if (f->turn != ENG_TURN_NONE)
		return;
	f->pair = get_pair(f->h.e, f->h.key.tenant, &f->h.key.src, &f->h.key.dst);
	if (!f->pair)
		return; /* no memory: the flow stays silent until it is forgotten */
	push(f->pair, f);
	next_turn(f->pair, now);
}

void eng_learn_leave(struct eng_far *f, rwy_time now)
{
	struct eng_pair *p = f->pair;

	if (!p)
		return;
	if (f->turn == ENG_TURN_OUT) {
		p->turn = NULL;
		f->h.e->learning--;
		if (!eng_far_answered(f) && !f->near)
			p->quiet_until = now + f->h.e->cfg.probe_timeout;
	} else if (f->turn == ENG_TURN_WAITING) {
		struct eng_far **q = &p->head, *last = NULL;

		while (*q && *q != f) {
			last = *q;
			q = &(*q)->pair_next;
		}
		if (*q)
			*q = f->pair_next;
		if (p->tail == f)
			p->tail = last;
		f->h.e->learning--;
	}
	f->turn = ENG_TURN_NONE;
	f->pair_next = NULL;
	f->pair = NULL;
	next_turn(p, now);
}

/*
 * `n` is the half that the answer's QPN belongs to as far as we know, or NULL. Its own far half is the owner,
 * unless it has nothing out and had nothing out for so long that no late answer can be under way: then the
 * QPN is in use again with another peer.
 */
struct eng_far *eng_learn_owner(
    struct eng *e, uint32_t tenant, const struct eng_near *n, const struct roce_pkt *pkt, rwy_time now)
{
	struct eng_far *f = n ? n->far : NULL;
	struct eng_pair *p;

	if (f && (!e->learning || (eng_far_active(f) && f->reqr.una != f->reqr.high) ||
	             now - f->last_tx < e->cfg.probe_timeout))
		return f;
	p = find_pair(e, tenant, &pkt->dst, &pkt->src);
	/* Its PSN proves nothing either way: a host that expects another PSN names that one in its NAK. */
	if (p && p->turn && eng_far_active(p->turn) && p->turn->reqr.high != p->turn->reqr.una)
		return p->turn;
	return f;
}

void eng_unpair(struct eng_far *f)
{
	eng_log(f->h.e, 4, "unpair local_qpn=%u remote_qpn=%u", f->h.key.qpn, f->near->h.key.qpn);
	f->h.e->paired--;
	f->near->far = NULL;
	f->near = NULL;
	f->rqpn = 0;
	f->h.learned = ENG_BY_NOBODY;
	if (f->h.state == ENG_Q_FAILED)
		eng_far_enter(f, ENG_Q_IDLE);
}

void eng_pair_halves(struct eng_near *n, struct eng_far *f, enum eng_learned how)
{
	struct eng *e = n->h.e;

	if (n->far == f && f->near == n)
		return;
	if (n->far)
		eng_unpair(n->far);
	if (f->near)
		eng_unpair(f);
	n->far = f;
	f->near = n;
	e->paired++;
	eng_log(e, 4, "pair local_qpn=%u remote_qpn=%u how=%d", f->h.key.qpn, n->h.key.qpn, how);
	n->lqpn = f->h.key.qpn;
	f->rqpn = n->h.key.qpn;
	if (eng_unpaired(&n->h)) {
		n->h.learned = (uint8_t)how;
		eng_half_open(n, -1);
		e->c.conns_paired++;
	}
	if (f->h.learned == ENG_BY_NOBODY)
		f->h.learned = (uint8_t)how;
	eng_session_open(n);
	/* What L answers to R is known to belong to f from now on; f needs no turn of its own. */
	eng_learn_leave(f, e->now);
	eng_dirty(&f->h);
	eng_dirty(&n->h);
}

/* A pair without flows is forgotten: hosts may invent addresses without end. */
static void forget_pair(struct eng *e, struct eng_pair **at)
{
	struct eng_pair *p = *at, **b = bucket(e, &p->remote, &p->local);

	while (*b != p)
		b = &(*b)->chain;
	*b = p->chain;
	*at = p->all_next;
	eng_slab_put(&e->pair_slab, p);
}

void eng_learn_tick(struct eng *e, rwy_time now)
{
	struct eng_pair **at = &e->pair_list, *p;

	while ((p = *at)) {
		struct eng_far *f = p->turn;

		if (!f && !p->head && now >= p->quiet_until) {
			forget_pair(e, at);
			continue;
		}
		if (f && now >= p->turn_end && p->head) {
			/* Others wait: this one goes to the end of the line, and nobody speaks for a while.
			 */
			p->turn = NULL;
			e->learning--;
			p->quiet_until = now + e->cfg.probe_timeout;
			push(p, f);
		}
		next_turn(p, now);
		at = &p->all_next;
	}
}

rwy_time eng_learn_next(const struct eng *e)
{
	rwy_time at = RWY_NEVER;

	if (!e->learning)
		return at;
	for (const struct eng_pair *p = e->pair_list; p; p = p->all_next) {
		if (p->turn && p->head)
			at = rwy_time_min(at, p->turn_end);
		else if (!p->turn && p->head)
			at = rwy_time_min(at, p->quiet_until);
	}
	/* Not before eng_learn_tick is called again: it goes with the wheel. */
	return rwy_time_max(at, (e->wheel_tick + 1) << ENG_WHEEL_SHIFT);
}
