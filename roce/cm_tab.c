/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connection tracker of roce/cm.h. An entry's key is (a's packet address, b's, a's
 * communication ID), which every message carries in one order or the other; an established entry is
 * also found by each (IP, QPN). Each state has a list, oldest first.
 */
#include <stdlib.h>
#include <string.h>

#include "roce/cm_int.h"
#include "rwy/hash.h"

/* --- lists and hashes ------------------------------------------------------------------------- */

static void list_remove(struct roce_cm_tab *t, uint32_t i)
{
	struct roce_cm_entry *e = &t->e[i];
	struct roce_cm_list *l = &t->lists[e->state];

	if (e->prev == ROCE_CM_NIL)
		l->head = e->next;
	else
		t->e[e->prev].next = e->next;
	if (e->next == ROCE_CM_NIL)
		l->tail = e->prev;
	else
		t->e[e->next].prev = e->prev;
	l->n--;
}

static void list_append(struct roce_cm_tab *t, uint32_t i, enum roce_cm_state s)
{
	struct roce_cm_entry *e = &t->e[i];
	struct roce_cm_list *l = &t->lists[s];

	e->state = (uint8_t)s;
	e->next = ROCE_CM_NIL;
	e->prev = l->tail;
	if (l->tail == ROCE_CM_NIL)
		l->head = i;
	else
		t->e[l->tail].next = i;
	l->tail = i;
	l->n++;
}

static uint32_t *key_bucket(
    const struct roce_cm_tab *t, const struct rwy_ip *a, const struct rwy_ip *b, uint32_t comm_a)
{
	return &t->by_key[rwy_hash(rwy_hash_ip(rwy_hash_ip(t->cfg.seed, a), b), comm_a) & t->mask];
}

static uint32_t *qp_bucket(const struct roce_cm_tab *t, const struct rwy_ip *ip, uint32_t qpn)
{
	return &t->by_qp[rwy_hash(rwy_hash_ip(~t->cfg.seed, ip), qpn) & t->mask];
}

struct roce_cm_side *roce_cm_side_of(struct roce_cm_entry *e, uint32_t side)
{
	return side ? &e->conn.b : &e->conn.a;
}

static void qp_link(struct roce_cm_tab *t, uint32_t i)
{
	for (uint32_t s = 0; s < 2; s++) {
		struct roce_cm_side *side = roce_cm_side_of(&t->e[i], s);
		uint32_t *b = qp_bucket(t, &side->ip, side->qpn);

		t->e[i].next_qp[s] = *b;
		*b = i * 2 + s;
	}
}

static void qp_unlink(struct roce_cm_tab *t, uint32_t i)
{
	for (uint32_t s = 0; s < 2; s++) {
		struct roce_cm_side *side = roce_cm_side_of(&t->e[i], s);
		uint32_t *p = qp_bucket(t, &side->ip, side->qpn);

		while (*p != i * 2 + s)
			p = &t->e[*p / 2].next_qp[*p % 2];
		*p = t->e[i].next_qp[s];
	}
}

uint32_t roce_cm_qp_find(const struct roce_cm_tab *t, const struct rwy_ip *ip, uint32_t qpn)
{
	uint32_t r = *qp_bucket(t, ip, qpn);

	while (r != ROCE_CM_NIL) {
		struct roce_cm_side *side = roce_cm_side_of(&t->e[r / 2], r % 2);

		if (side->qpn == qpn && rwy_ip_eq(&side->ip, ip))
			return r / 2;
		r = t->e[r / 2].next_qp[r % 2];
	}
	return ROCE_CM_NIL;
}

void roce_cm_set_state(struct roce_cm_tab *t, uint32_t i, enum roce_cm_state s, rwy_time now)
{
	struct roce_cm_entry *e = &t->e[i];

	if (e->state == ROCE_CM_S_ESTABLISHED && s != ROCE_CM_S_ESTABLISHED)
		qp_unlink(t, i);
	if (e->state != ROCE_CM_S_ESTABLISHED && s == ROCE_CM_S_ESTABLISHED)
		qp_link(t, i);
	list_remove(t, i);
	list_append(t, i, s);
	e->touched = now;
}

static void drop(struct roce_cm_tab *t, uint32_t i)
{
	struct roce_cm_entry *e = &t->e[i];
	uint32_t *p = key_bucket(t, &e->src_a, &e->src_b, e->conn.comm_a);

	while (*p != i)
		p = &t->e[*p].next_key;
	*p = e->next_key;
	roce_cm_set_state(t, i, ROCE_CM_S_FREE, 0);
}

/* --- finding and making entries --------------------------------------------------------------- */

uint32_t roce_cm_key_find(const struct roce_cm_tab *t, const struct rwy_ip *a, const struct rwy_ip *b,
    uint32_t comm_a, uint32_t from)
{
	uint32_t i = from == ROCE_CM_NIL ? *key_bucket(t, a, b, comm_a) : t->e[from].next_key;

	while (i != ROCE_CM_NIL) {
		const struct roce_cm_entry *e = &t->e[i];

		if (e->conn.comm_a == comm_a && rwy_ip_eq(&e->src_a, a) && rwy_ip_eq(&e->src_b, b))
			return i;
		i = e->next_key;
	}
	return ROCE_CM_NIL;
}

uint32_t roce_cm_half_new(
    struct roce_cm_tab *t, const struct rwy_ip *a, const struct rwy_ip *b, uint32_t comm_a, rwy_time now)
{
	uint32_t i, *bucket;

	if (t->lists[ROCE_CM_S_HALF].n >= t->cfg.half_open_max) {
		t->stats.evicted_half_open++;
		drop(t, t->lists[ROCE_CM_S_HALF].head);
	} else if (!t->lists[ROCE_CM_S_FREE].n) {
		if (t->lists[ROCE_CM_S_CLOSED].n) {
			drop(t, t->lists[ROCE_CM_S_CLOSED].head);
		} else if (t->lists[ROCE_CM_S_HALF].n) {
			t->stats.evicted_half_open++;
			drop(t, t->lists[ROCE_CM_S_HALF].head);
		} else {
			t->stats.evicted_established++;
			drop(t, t->lists[ROCE_CM_S_ESTABLISHED].head);
		}
	}
	i = t->lists[ROCE_CM_S_FREE].head;
	list_remove(t, i);
	t->e[i] = (struct roce_cm_entry){.src_a = *a, .src_b = *b, .conn.comm_a = comm_a, .touched = now};
	list_append(t, i, ROCE_CM_S_HALF);
	bucket = key_bucket(t, a, b, comm_a);
	t->e[i].next_key = *bucket;
	*bucket = i;
	return i;
}

/* --- other functions -------------------------------------------------------------------------- */

const struct roce_cm_conn *roce_cm_find(const struct roce_cm_tab *tab, const struct rwy_ip *ip, uint32_t qpn)
{
	uint32_t i = roce_cm_qp_find(tab, ip, qpn);

	return i == ROCE_CM_NIL ? NULL : &tab->e[i].conn;
}

static rwy_dur ttl_of(const struct roce_cm_tab *t, enum roce_cm_state s)
{
	switch (s) {
	case ROCE_CM_S_HALF:
		return t->cfg.half_open_ttl;
	case ROCE_CM_S_ESTABLISHED:
		return t->cfg.established_ttl;
	case ROCE_CM_S_CLOSED:
		return t->cfg.closed_ttl;
	case ROCE_CM_S_FREE:
	case ROCE_CM_S_COUNT:
		break;
	}
	return RWY_NEVER;
}

void roce_cm_expire(struct roce_cm_tab *tab, rwy_time now)
{
	for (enum roce_cm_state s = ROCE_CM_S_HALF; s < ROCE_CM_S_COUNT; s++) {
		rwy_dur ttl = ttl_of(tab, s);

		while (tab->lists[s].n && rwy_since(tab->e[tab->lists[s].head].touched, now) >= ttl) {
			if (s != ROCE_CM_S_CLOSED)
				tab->stats.expired++;
			drop(tab, tab->lists[s].head);
		}
	}
}

void roce_cm_stats_get(const struct roce_cm_tab *tab, struct roce_cm_stats *out)
{
	*out = tab->stats;
	out->half_open_now = tab->lists[ROCE_CM_S_HALF].n;
	out->established_now = tab->lists[ROCE_CM_S_ESTABLISHED].n;
	out->closed_now = tab->lists[ROCE_CM_S_CLOSED].n;
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
	for (unsigned s = 0; s < ROCE_CM_S_COUNT; s++)
		t->lists[s] = (struct roce_cm_list){ROCE_CM_NIL, ROCE_CM_NIL, 0};
	for (uint32_t i = 0; i < cfg->capacity; i++)
		list_append(t, i, ROCE_CM_S_FREE);
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
