/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connection tracker of roce/cm.h. An entry is found by (a's packet address, b's, a's communication ID),
 * which every message carries one way round or the other; an established one also by each (IP, QPN). Each
 * state has a list, oldest first.
 */
#include "roce/cm.h"

#include <stdlib.h>

#define NIL UINT32_MAX

enum state { FREE, HALF, ESTABLISHED, CLOSED, STATES };

struct entry {
	struct rwy_ip src_a, src_b; /* addresses of the packets; conn has the GIDs */
	struct roce_cm_conn conn;
	uint64_t tid;     /* of the REQ and the REP */
	roce_psn req_psn; /* as the REQ said it */
	uint32_t req_qpn; /* a's */
	rwy_time touched;
	uint32_t prev, next; /* state list */
	uint32_t next_key;   /* hash chain by key */
	uint32_t next_qp[2]; /* hash chains by queue pair, a and b: values are entry * 2 + side */
	uint32_t rep_eecn; /* a REP that came before its REQ: we learn from the REQ whether this is b's QPN */
	uint8_t state;
	bool has_req, has_rep;
};

struct list {
	uint32_t head, tail, n;
};

struct roce_cm_tab {
	struct roce_cm_cfg cfg;
	struct roce_cm_stats stats;
	struct list lists[STATES];
	uint32_t mask; /* buckets - 1 */
	uint32_t *by_key, *by_qp;
	struct entry *e;
};

/* --- lists and hashes --------------------------------------------------------------------------- */

static void list_remove(struct roce_cm_tab *t, uint32_t i)
{
	struct entry *e = &t->e[i];
	struct list *l = &t->lists[e->state];

	if (e->prev == NIL)
		l->head = e->next;
	else
		t->e[e->prev].next = e->next;
	if (e->next == NIL)
		l->tail = e->prev;
	else
		t->e[e->next].prev = e->prev;
	l->n--;
}

static void list_append(struct roce_cm_tab *t, uint32_t i, enum state s)
{
	struct entry *e = &t->e[i];
	struct list *l = &t->lists[s];

	e->state = (uint8_t)s;
	e->next = NIL;
	e->prev = l->tail;
	if (l->tail == NIL)
		l->head = i;
	else
		t->e[l->tail].next = i;
	l->tail = i;
	l->n++;
}

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15u;
	return h ^ h >> 32;
}

static uint64_t mix_ip(uint64_t h, const struct rwy_ip *ip)
{
	uint64_t w[2];

	memcpy(w, ip->b, 16);
	return mix(mix(h, w[0]), w[1]);
}

static uint32_t *key_bucket(
    const struct roce_cm_tab *t, const struct rwy_ip *a, const struct rwy_ip *b, uint32_t comm_a)
{
	return &t->by_key[mix(mix_ip(mix_ip(t->cfg.seed, a), b), comm_a) & t->mask];
}

static uint32_t *qp_bucket(const struct roce_cm_tab *t, const struct rwy_ip *ip, uint32_t qpn)
{
	return &t->by_qp[mix(mix_ip(~t->cfg.seed, ip), qpn) & t->mask];
}

static struct roce_cm_side *side_of(struct entry *e, uint32_t side)
{
	return side ? &e->conn.b : &e->conn.a;
}

static void qp_link(struct roce_cm_tab *t, uint32_t i)
{
	for (uint32_t s = 0; s < 2; s++) {
		struct roce_cm_side *side = side_of(&t->e[i], s);
		uint32_t *b = qp_bucket(t, &side->ip, side->qpn);

		t->e[i].next_qp[s] = *b;
		*b = i * 2 + s;
	}
}

static void qp_unlink(struct roce_cm_tab *t, uint32_t i)
{
	for (uint32_t s = 0; s < 2; s++) {
		struct roce_cm_side *side = side_of(&t->e[i], s);
		uint32_t *p = qp_bucket(t, &side->ip, side->qpn);

		while (*p != i * 2 + s)
			p = &t->e[*p / 2].next_qp[*p % 2];
		*p = t->e[i].next_qp[s];
	}
}

/* The established entry that has the queue pair, or NIL. */
static uint32_t qp_find(const struct roce_cm_tab *t, const struct rwy_ip *ip, uint32_t qpn)
{
	uint32_t r = *qp_bucket(t, ip, qpn);

	while (r != NIL) {
		struct roce_cm_side *side = side_of(&t->e[r / 2], r % 2);

		if (side->qpn == qpn && rwy_ip_eq(&side->ip, ip))
			return r / 2;
		r = t->e[r / 2].next_qp[r % 2];
	}
	return NIL;
}

static void set_state(struct roce_cm_tab *t, uint32_t i, enum state s, rwy_time now)
{
	struct entry *e = &t->e[i];

	if (e->state == ESTABLISHED && s != ESTABLISHED)
		qp_unlink(t, i);
	if (e->state != ESTABLISHED && s == ESTABLISHED)
		qp_link(t, i);
	list_remove(t, i);
	list_append(t, i, s);
	e->touched = now;
}

static void drop(struct roce_cm_tab *t, uint32_t i)
{
	struct entry *e = &t->e[i];
	uint32_t *p = key_bucket(t, &e->src_a, &e->src_b, e->conn.comm_a);

	while (*p != i)
		p = &t->e[*p].next_key;
	*p = e->next_key;
	set_state(t, i, FREE, 0);
}

/* --- finding and making entries ----------------------------------------------------------------- */

/* The next entry with this key after `from` in its chain (NIL: from the start), or NIL. Newest first. */
static uint32_t key_find(const struct roce_cm_tab *t, const struct rwy_ip *a, const struct rwy_ip *b,
    uint32_t comm_a, uint32_t from)
{
	uint32_t i = from == NIL ? *key_bucket(t, a, b, comm_a) : t->e[from].next_key;

	while (i != NIL) {
		const struct entry *e = &t->e[i];

		if (e->conn.comm_a == comm_a && rwy_ip_eq(&e->src_a, a) && rwy_ip_eq(&e->src_b, b))
			return i;
		i = e->next_key;
	}
	return NIL;
}

/* A free entry in state HALF with this key; makes room if there is none. */
static uint32_t half_new(
    struct roce_cm_tab *t, const struct rwy_ip *a, const struct rwy_ip *b, uint32_t comm_a, rwy_time now)
{
	uint32_t i, *bucket;

	if (t->lists[HALF].n >= t->cfg.half_open_max) {
		t->stats.evicted_half_open++;
		drop(t, t->lists[HALF].head);
	} else if (!t->lists[FREE].n) {
		if (t->lists[CLOSED].n) {
			drop(t, t->lists[CLOSED].head);
		} else if (t->lists[HALF].n) {
			t->stats.evicted_half_open++;
			drop(t, t->lists[HALF].head);
		} else {
			t->stats.evicted_established++;
			drop(t, t->lists[ESTABLISHED].head);
		}
	}
	i = t->lists[FREE].head;
	list_remove(t, i);
	t->e[i] = (struct entry){.src_a = *a, .src_b = *b, .conn.comm_a = comm_a, .touched = now};
	list_append(t, i, HALF);
	bucket = key_bucket(t, a, b, comm_a);
	t->e[i].next_key = *bucket;
	*bucket = i;
	return i;
}

/* --- REQ and REP -------------------------------------------------------------------------------- */

static bool gid_is_set(const struct rwy_ip *gid)
{
	static const struct rwy_ip zero;

	return !rwy_ip_eq(gid, &zero);
}

/* A REQ tells about a itself, and what b shall use when it sends. */
static void take_req(struct entry *e, const struct roce_cm_msg *m)
{
	struct roce_cm_conn *c = &e->conn;

	e->has_req = true;
	e->tid = m->tid;
	e->req_psn = m->starting_psn;
	e->req_qpn = m->qpn;
	c->a.ip = gid_is_set(&m->local_gid) ? m->local_gid : e->src_a;
	c->b.ip = gid_is_set(&m->remote_gid) ? m->remote_gid : e->src_b;
	c->gid_differs = !rwy_ip_eq(&c->a.ip, &e->src_a) || !rwy_ip_eq(&c->b.ip, &e->src_b);
	c->a.qpn = m->qpn;
	c->a.responder_resources = m->responder_resources;
	c->a.initiator_depth = m->initiator_depth;
	c->b.psn = m->starting_psn;    /* IBA 12.7.31 */
	c->b.rnr_retry = m->rnr_retry; /* IBA 12.7.38 */
	c->service_id = m->service_id;
	c->flow_label = m->flow_label;
	c->pkey = m->pkey;
	c->path_mtu = m->path_mtu;
	c->transport = m->transport;
	c->retry_count = m->retry_count;
	c->ack_timeout = m->local_ack_timeout;
	c->srq_a = m->srq;
}

/* A REP tells about b itself, and what a shall use when it sends. */
static void take_rep(struct entry *e, const struct roce_cm_msg *m)
{
	struct roce_cm_conn *c = &e->conn;

	e->has_rep = true;
	e->tid = m->tid;
	c->comm_b = m->local_comm_id;
	c->b.qpn = m->qpn;
	e->rep_eecn = m->eecn;
	c->b.responder_resources = m->responder_resources;
	c->b.initiator_depth = m->initiator_depth;
	c->a.psn = m->starting_psn;
	c->a.rnr_retry = m->rnr_retry;
	c->srq_b = m->srq;
}

static void supersede(struct roce_cm_tab *t, uint32_t old, struct roce_cm_event *ev, rwy_time now)
{
	ev->superseded[ev->superseded_count++] = t->e[old].conn;
	t->stats.superseded++;
	set_state(t, old, CLOSED, now);
}

/* The established entry whose a and b are at these addresses with these communication IDs, or NIL. NULL: any
 * ID of b. */
static uint32_t established_find(const struct roce_cm_tab *t, const struct rwy_ip *a, const struct rwy_ip *b,
    uint32_t comm_a, const uint32_t *comm_b)
{
	uint32_t i = key_find(t, a, b, comm_a, NIL);

	while (i != NIL && (t->e[i].state != ESTABLISHED || (comm_b && t->e[i].conn.comm_b != *comm_b)))
		i = key_find(t, a, b, comm_a, i);
	return i;
}

/*
 * REQ and REP are there: forget whoever had the queue pairs or the communication IDs before, and report. A
 * host has one connection under one ID (IBA 12.7.1), in whichever direction it was made: so a DREQ names one
 * connection at most.
 */
static void establish(struct roce_cm_tab *t, uint32_t i, struct roce_cm_event *ev, rwy_time now)
{
	struct entry *e = &t->e[i];
	uint32_t old;

	if (e->conn.transport == ROCE_XRC) /* annex A14: the target QP stands in the EECN field */
		e->conn.b.qpn = e->rep_eecn;
	for (uint32_t s = 0; s < 2; s++) {
		old = qp_find(t, &side_of(e, s)->ip, side_of(e, s)->qpn);
		if (old != NIL)
			supersede(t, old, ev, now);
	}
	old = established_find(t, &e->src_a, &e->src_b, e->conn.comm_a, NULL);
	if (old != NIL)
		supersede(t, old, ev, now);
	old = established_find(t, &e->src_b, &e->src_a, e->conn.comm_b, &e->conn.comm_a);
	if (old != NIL)
		supersede(t, old, ev, now);
	set_state(t, i, ESTABLISHED, now);
	t->stats.established++;
	ev->kind = ROCE_CM_ESTABLISHED;
	ev->conn = e->conn;
}

static void on_req(struct roce_cm_tab *t, const struct roce_cm_msg *m, const struct rwy_ip *src,
    const struct rwy_ip *dst, struct roce_cm_event *ev, rwy_time now)
{
	uint32_t half = NIL, i;

	for (i = key_find(t, src, dst, m->local_comm_id, NIL); i != NIL;
	     i = key_find(t, src, dst, m->local_comm_id, i)) {
		struct entry *e = &t->e[i];

		if (e->has_req && e->tid == m->tid && e->req_qpn == m->qpn && e->req_psn == m->starting_psn) {
			t->stats.duplicate++;
			if (e->state == HALF) /* the sender is still waiting */
				set_state(t, i, HALF, now);
			return;
		}
		if (e->state == HALF && (!e->has_rep || e->tid == m->tid))
			half = i;
	}
	/* A new attempt under the same ID replaces one that came to nothing; an established one stays until
	 * the REP. */
	if (half == NIL)
		half = half_new(t, src, dst, m->local_comm_id, now);
	take_req(&t->e[half], m);
	if (t->e[half].has_rep)
		establish(t, half, ev, now);
	else
		set_state(t, half, HALF, now);
}

/* The REP was seen before: another copy, or a replay, whatever became of its connection. */
static bool rep_is_known(struct roce_cm_tab *t, const struct roce_cm_msg *m, const struct rwy_ip *src,
    const struct rwy_ip *dst, rwy_time now)
{
	uint32_t i;

	for (i = key_find(t, dst, src, m->remote_comm_id, NIL); i != NIL;
	     i = key_find(t, dst, src, m->remote_comm_id, i)) {
		struct entry *e = &t->e[i];

		if (e->has_rep && e->tid == m->tid && e->conn.comm_b == m->local_comm_id &&
		    e->conn.a.psn == m->starting_psn) {
			if (e->state == HALF) /* the sender is still waiting */
				set_state(t, i, HALF, now);
			return true;
		}
	}
	return false;
}

static void on_rep(struct roce_cm_tab *t, const struct roce_cm_msg *m, const struct rwy_ip *src,
    const struct rwy_ip *dst, struct roce_cm_event *ev, rwy_time now)
{
	uint32_t i;

	if (rep_is_known(t, m, src, dst, now)) {
		t->stats.duplicate++;
		return;
	}
	/* The REP repeats the REQ's transaction ID (IBA 12.6.8): that tells attempts under one communication
	 * ID apart. */
	for (i = key_find(t, dst, src, m->remote_comm_id, NIL); i != NIL;
	     i = key_find(t, dst, src, m->remote_comm_id, i)) {
		struct entry *e = &t->e[i];

		if (e->tid != m->tid)
			continue;
		if (e->has_rep) {
			t->stats.mismatch++;
		} else if (e->state == CLOSED) { /* rejected before this REP came by */
			t->stats.duplicate++;
		} else {
			take_rep(e, m);
			establish(t, i, ev, now);
		}
		return;
	}
	/* Overtook its REQ, or the REQ was not ours to see: wait for it like for a REP. */
	t->stats.unknown++;
	i = half_new(t, dst, src, m->remote_comm_id, now);
	take_rep(&t->e[i], m);
}

/* --- the other messages ------------------------------------------------------------------------- */

static void close_entry(struct roce_cm_tab *t, uint32_t i, struct roce_cm_event *ev, rwy_time now)
{
	struct entry *e = &t->e[i];

	if (e->state == ESTABLISHED) {
		t->stats.closed++;
		ev->kind = ROCE_CM_CLOSED;
		ev->conn = e->conn;
	} else if (e->state == HALF) {
		t->stats.rejected++;
	}
	set_state(t, i, CLOSED, now);
}

/* MRA, RTU, REJ, DREQ, DREP on an entry it names. */
static void on_named(struct roce_cm_tab *t, uint32_t i, const struct roce_cm_msg *m, bool from_a,
    struct roce_cm_event *ev, rwy_time now)
{
	struct entry *e = &t->e[i];

	if (m->attr == ROCE_CM_DREQ && e->has_req && e->has_rep) {
		uint32_t mine = from_a ? e->conn.b.qpn : e->conn.a.qpn; /* IBA 12.6.10: the receiver's QPN */

		if (m->qpn != mine) {
			t->stats.mismatch++;
			return;
		}
	}
	if (e->state == CLOSED) {
		t->stats.duplicate++;
		return;
	}
	if (m->attr == ROCE_CM_MRA || m->attr == ROCE_CM_RTU)
		set_state(t, i, e->state, now);
	else
		close_entry(t, i, ev, now);
}

/* How a message may name an entry under its key. */
enum naming {
	BY_BOTH_ESTABLISHED, /* both communication IDs; which state, in this order */
	BY_BOTH_HALF,
	BY_BOTH_CLOSED,
	/*
	 * There is no ID of b to compare: before the REP, or in the REJ of a side a that gave up waiting for
	 * a REP which we did see (reason 4). MRA and REJ repeat the set-up's transaction ID (IBA 12.6): the
	 * newest attempt that has it is meant.
	 */
	BY_TID,
	NAMINGS,
};

static bool is_named(const struct entry *e, const struct roce_cm_msg *m, bool from_a, enum naming how)
{
	uint32_t id = from_a ? m->remote_comm_id : m->local_comm_id;

	static const uint8_t states[] = {ESTABLISHED, HALF, CLOSED};

	if (how != BY_TID)
		return e->has_rep && e->conn.comm_b == id && e->state == states[how];
	if (e->tid != m->tid || (m->attr != ROCE_CM_REJ && m->attr != ROCE_CM_MRA))
		return false;
	return !e->has_rep || (from_a && !id);
}

static void on_other(struct roce_cm_tab *t, const struct roce_cm_msg *m, const struct rwy_ip *src,
    const struct rwy_ip *dst, struct roce_cm_event *ev, rwy_time now)
{
	bool seen = false;

	/* Sent by a, its own ID is in the key; sent by b, the other one. */
	for (enum naming how = BY_BOTH_ESTABLISHED; how < NAMINGS; how++) {
		for (int from_a = 1; from_a >= 0; from_a--) {
			const struct rwy_ip *a = from_a ? src : dst, *b = from_a ? dst : src;
			uint32_t comm_a = from_a ? m->local_comm_id : m->remote_comm_id;
			uint32_t i = key_find(t, a, b, comm_a, NIL);

			for (; i != NIL; i = key_find(t, a, b, comm_a, i)) {
				seen = true;
				if (is_named(&t->e[i], m, from_a, how)) {
					on_named(t, i, m, from_a, ev, now);
					return;
				}
			}
		}
	}
	if (seen)
		t->stats.mismatch++;
	else
		t->stats.unknown++;
}

void roce_cm_track(struct roce_cm_tab *tab, const struct roce_cm_msg *msg, const struct rwy_ip *src,
    const struct rwy_ip *dst, struct roce_cm_event *ev, rwy_time now)
{
	ev->kind = ROCE_CM_NONE;
	ev->superseded_count = 0;
	roce_cm_expire(tab, now);
	if (msg->attr == ROCE_CM_REQ)
		on_req(tab, msg, src, dst, ev, now);
	else if (msg->attr == ROCE_CM_REP)
		on_rep(tab, msg, src, dst, ev, now);
	else if (msg->attr == ROCE_CM_MRA || msg->attr == ROCE_CM_REJ || msg->attr == ROCE_CM_RTU ||
	         msg->attr == ROCE_CM_DREQ || msg->attr == ROCE_CM_DREP)
		on_other(tab, msg, src, dst, ev, now);
}

/* --- the rest of the interface ------------------------------------------------------------------ */

void roce_cm_forget(struct roce_cm_tab *tab, const struct rwy_ip *ip, uint32_t qpn, rwy_time now)
{
	uint32_t i = qp_find(tab, ip, qpn);

	if (i != NIL)
		set_state(tab, i, CLOSED, now);
}

const struct roce_cm_conn *roce_cm_find(const struct roce_cm_tab *tab, const struct rwy_ip *ip, uint32_t qpn)
{
	uint32_t i = qp_find(tab, ip, qpn);

	return i == NIL ? NULL : &tab->e[i].conn;
}

static rwy_dur ttl_of(const struct roce_cm_tab *t, enum state s)
{
	switch (s) {
	case HALF:
		return t->cfg.half_open_ttl;
	case ESTABLISHED:
		return t->cfg.established_ttl;
	case CLOSED:
		return t->cfg.closed_ttl;
	case FREE:
	case STATES:
		break;
	}
	return RWY_NEVER;
}

void roce_cm_expire(struct roce_cm_tab *tab, rwy_time now)
{
	for (enum state s = HALF; s < STATES; s++) {
		rwy_dur ttl = ttl_of(tab, s);

		while (tab->lists[s].n && rwy_since(tab->e[tab->lists[s].head].touched, now) >= ttl) {
			if (s != CLOSED)
				tab->stats.expired++;
			drop(tab, tab->lists[s].head);
		}
	}
}

void roce_cm_stats_get(const struct roce_cm_tab *tab, struct roce_cm_stats *out)
{
	*out = tab->stats;
	out->half_open_now = tab->lists[HALF].n;
	out->established_now = tab->lists[ESTABLISHED].n;
	out->closed_now = tab->lists[CLOSED].n;
}

void roce_cm_cfg_default(struct roce_cm_cfg *cfg)
{
	*cfg = (struct roce_cm_cfg){
	    .capacity = 1024,
	    .half_open_max = 256,
	    .half_open_ttl = 70 * RWY_SEC,
	    .closed_ttl = 60 * RWY_SEC,
	    .established_ttl = RWY_NEVER,
	};
}

int roce_cm_tab_new(struct roce_cm_tab **out, const struct roce_cm_cfg *cfg)
{
	struct roce_cm_tab *t;
	uint32_t buckets = 16;

	if (!cfg->capacity || cfg->capacity > 1u << 24 || !cfg->half_open_max ||
	    cfg->half_open_max > cfg->capacity)
		return RWY_EINVAL;
	while (buckets < cfg->capacity)
		buckets *= 2;
	t = calloc(1, sizeof(*t));
	if (!t)
		return RWY_ENOMEM;
	t->cfg = *cfg;
	t->mask = buckets - 1;
	t->e = calloc(cfg->capacity, sizeof(*t->e));
	t->by_key = malloc(buckets * sizeof(*t->by_key));
	t->by_qp = malloc(buckets * sizeof(*t->by_qp));
	if (!t->e || !t->by_key || !t->by_qp) {
		roce_cm_tab_free(t);
		return RWY_ENOMEM;
	}
	memset(t->by_key, 0xff, buckets * sizeof(*t->by_key));
	memset(t->by_qp, 0xff, buckets * sizeof(*t->by_qp));
	for (unsigned s = 0; s < STATES; s++)
		t->lists[s] = (struct list){NIL, NIL, 0};
	for (uint32_t i = 0; i < cfg->capacity; i++)
		list_append(t, i, FREE);
	*out = t;
	return 0;
}

void roce_cm_tab_free(struct roce_cm_tab *tab)
{
	if (!tab)
		return;
	free(tab->e);
	free(tab->by_key);
	free(tab->by_qp);
	free(tab);
}
