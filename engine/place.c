/* SPDX-License-Identifier: Apache-2.0 */
/* The worker of a connection. */
#include "engine/place.h"

static uint32_t vni_of(const struct eng *e, const struct eng_key *k)
{
	return k->tenant < e->tenant_slots && e->tenant[k->tenant] ? e->tenant[k->tenant]->cfg.vni : 0;
}

static uint64_t hash_of(const struct eng *e, const struct eng_key *k, bool requester)
{
	return eng_directory_hash(e->cfg.directory, k, vni_of(e, k), requester);
}

unsigned eng_place_home(const struct eng *e, const struct eng_key *k)
{
	return e->cfg.directory ? eng_owner(vni_of(e, k), &k->src, &k->dst, e->cfg.workers) : e->cfg.worker;
}

bool eng_place_is_home(const struct eng *e, const struct eng_key *k)
{
	return eng_place_home(e, k) == e->cfg.worker;
}

int eng_place_elsewhere(const struct eng *e, const struct eng_key *k, bool requester)
{
	int w = e->cfg.directory ? eng_directory_find(e->cfg.directory, hash_of(e, k, requester)) : -1;

	return w == e->cfg.worker ? -1 : w;
}

uint32_t eng_place_turn(const struct eng *e, const struct eng_key *k)
{
	return eng_directory_turn(k, vni_of(e, k));
}

int eng_place_turn_elsewhere(const struct eng *e, const struct eng_key *k)
{
	int w = e->cfg.directory ? eng_directory_turn_of(e->cfg.directory, eng_place_turn(e, k)) : -1;

	return w == e->cfg.worker ? -1 : w;
}

bool eng_place_enter(struct eng *e, const struct eng_key *k, bool requester)
{
	return !e->cfg.directory ||
	       eng_directory_add(e->cfg.directory, hash_of(e, k, requester), e->cfg.worker);
}

void eng_place_leave(struct eng *e, const struct eng_key *k, bool requester)
{
	if (e->cfg.directory)
		eng_directory_remove(e->cfg.directory, hash_of(e, k, requester), e->cfg.worker);
}

void eng_place_began(struct eng_side *side)
{
	if (side->e->cfg.directory)
		eng_side_cold(side)->entry = hash_of(side->e, &side->key, side->is_requester);
}

void eng_place_gone(const struct eng_side *side)
{
	const struct eng *e = side->e;

	if (e->cfg.directory)
		eng_directory_remove(e->cfg.directory, eng_side_cold_of(side)->entry, e->cfg.worker);
}

/* QPNs of consecutive queue pairs, whatever their step, spread evenly: the golden ratio. */
static unsigned spread(uint32_t qpn, unsigned workers)
{
	return (unsigned)((uint64_t)(qpn * 0x9e3779b1u) * workers >> 32);
}

unsigned eng_place_choose(
    const struct eng *e, uint8_t peer, const struct eng_key *requests, uint32_t local_qpn)
{
	const unsigned n = e->cfg.workers, home = eng_place_home(e, requests);
	const bool local_first = memcmp(&requests->src, &requests->dst, sizeof(requests->src)) < 0;

	if (!e->cfg.directory || peer != n)
		return home;
	return (home + spread(local_first ? local_qpn : requests->qpn, n)) % n;
}

bool eng_place_may_move(
    const struct eng_responder *rs, const struct eng_requester *rq, const struct roce_pkt *pkt)
{
	if (rq->side.state != ENG_Q_PROBING || !rq->requests || rq->near_qpn || rq->reqr.copies)
		return false;
	/* Only its home worker knows which connections CM has set up. */
	if (rq->side.tenant->cfg.admission == ENG_ADMIT_CM)
		return false;
	/* Where its host has sent nothing yet, the far gateway may have sent rs here. */
	if (rs && (rs->side.state != ENG_R_WAITING || !rs->packets))
		return false;
	return pkt->info->op != ROCE_OP_ACK || roce_aeth_type(roce_aeth_syndrome(pkt)) == ROCE_AETH_ACK;
}

bool eng_place_send(struct eng *e, unsigned worker, const struct eng_note *n)
{
	if (e->ops->note(e->ctx, worker, n))
		return true;
	e->c.drop_note_full++;
	eng_note_free(&e->bufs, n);
	return false;
}

bool eng_place_ask_leave(struct eng_requester *rq, uint32_t qpn, unsigned to)
{
	struct eng *e = rq->side.e;
	const struct eng_key k = {rq->side.key.dst, rq->side.key.src, qpn, rq->side.key.tenant};
	const struct eng_note n = {.type = ENG_NOTE_LEAVE,
	    .target = (uint8_t)(rq->near_workers == e->cfg.workers ? to : e->cfg.worker),
	    .from = e->cfg.worker,
	    .tenant = k.tenant,
	    .qpn = qpn,
	    .key = rq->side.key};
	int at = eng_place_elsewhere(e, &k, false);

	if (at >= 0)
		(void)eng_place_send(e, (unsigned)at, &n);
	return at >= 0;
}

void eng_place_end_before(const struct eng_responder *rs)
{
	struct eng *e = rs->side.e;
	const struct eng_key k = {rs->side.key.dst, rs->side.key.src, rs->local_qpn, rs->side.key.tenant};
	const struct eng_note n = {
	    .type = ENG_NOTE_LEFT, .tenant = k.tenant, .qpn = rs->side.key.qpn, .key = k};
	int at = eng_place_elsewhere(e, &k, true);

	if (at >= 0)
		(void)eng_place_send(e, (unsigned)at, &n);
}

void eng_place_announce(struct eng *e, const struct eng_key *k, bool requester, unsigned worker)
{
	const uint64_t h = hash_of(e, k, requester);

	eng_directory_remove(e->cfg.directory, h, e->cfg.worker);
	eng_directory_add(e->cfg.directory, h, worker);
}

void eng_place_recall(struct eng *e, const struct eng_key *k, bool requester, unsigned worker)
{
	eng_directory_remove(e->cfg.directory, hash_of(e, k, requester), worker);
}

void eng_note_free(const struct rwy_bufs *bufs, const struct eng_note *n)
{
	if (n->b)
		rwy_buf_free(bufs, n->b);
}
