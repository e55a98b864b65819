/* SPDX-License-Identifier: Apache-2.0 */
/* The table of links: an array, a list a state class, and four hash indices. */
#include "proxy/map_int.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "rwy/hash.h"

/*
 * Links of a list have the same time to live. HALF and CLOSED are in order of the last touch.
 * Packets do not move links of OPEN and ENDING, and do not touch those of the others.
 */
enum list { L_FREE, L_HALF, L_OPEN, L_ENDING, L_CLOSED, L_COUNT };

/* Open links of an active host. Slots are probed linearly, and there are twice as many as links. */
struct source {
	struct rwy_ip ip;
	uint32_t links; /* 0: free, or was used */
	bool used;
};

struct proxy_map {
	struct proxy_map_cfg cfg;
	uint32_t mask;
	uint32_t *in, *out, *cm_in, *cm_out;
	struct proxy_link *l;
	struct {
		uint32_t head, tail, n;
	} list[L_COUNT];
	struct source *source;
	uint32_t source_mask, source_marks; /* slots that are used or were */
	uint32_t entry[PROXY_ENTRIES_MAX];
	uint32_t qpn; /* the next alias to try */
};

static enum list list_of(enum proxy_state s)
{
	switch (s) {
	case PROXY_FREE:
		return L_FREE;
	case PROXY_REQ_SEEN:
		return L_HALF;
	case PROXY_REP_SEEN:
	case PROXY_ESTABLISHED:
		return L_OPEN;
	case PROXY_DISCONNECTING:
		return L_ENDING;
	case PROXY_CLOSED:
		return L_CLOSED;
	case PROXY_STATE_COUNT:
		break;
	}
	rwy_unreachable();
}

/* --- lists ----------------------------------------------------------------------------------- */

static void list_remove(struct proxy_map *m, uint32_t i)
{
	struct proxy_link *l = &m->l[i];
	enum list k = list_of((enum proxy_state)l->state);

	if (l->prev == PROXY_NIL)
		m->list[k].head = l->next;
	else
		m->l[l->prev].next = l->next;
	if (l->next == PROXY_NIL)
		m->list[k].tail = l->prev;
	else
		m->l[l->next].prev = l->prev;
	m->list[k].n--;
}

static void list_append(struct proxy_map *m, uint32_t i, enum proxy_state s)
{
	struct proxy_link *l = &m->l[i];
	enum list k = list_of(s);

	l->state = (uint8_t)s;
	l->prev = m->list[k].tail;
	l->next = PROXY_NIL;
	if (l->prev == PROXY_NIL)
		m->list[k].head = i;
	else
		m->l[l->prev].next = i;
	m->list[k].tail = i;
	m->list[k].n++;
}

/* --- hash indices ---------------------------------------------------------------------------- */

static bool is_counted(const struct proxy_link *l)
{
	return l->state != PROXY_FREE && l->state != PROXY_CLOSED;
}

/* Aliases are given in turn: links made one after the other have neighbouring buckets. */
static uint32_t *in_bucket(const struct proxy_map *m, uint32_t alias)
{
	return &m->in[alias & m->mask];
}

static uint32_t *out_bucket(
    const struct proxy_map *m, const struct rwy_ip *remote, const struct rwy_ip *local, uint32_t lqpn)
{
	return &m->out[rwy_hash(rwy_hash_ip(rwy_hash_ip(m->cfg.seed, remote), local), lqpn) & m->mask];
}

static uint32_t *cm_bucket(const struct proxy_map *m, uint32_t *index, const struct proxy_cm_key *k)
{
	uint64_t h = rwy_hash_ip(rwy_hash_ip(m->cfg.seed, &k->from), &k->to);

	return &index[rwy_hash(h, (uint64_t)k->local_active << 32 | k->comm_a) & m->mask];
}

static struct proxy_cm_key key_in(const struct proxy_link *l)
{
	return (struct proxy_cm_key){l->local, l->relay, l->comm_a, l->local_active};
}

static struct proxy_cm_key key_out(const struct proxy_link *l)
{
	return (struct proxy_cm_key){l->remote, l->local, l->comm_a, l->local_active};
}

static bool key_eq(const struct proxy_cm_key *a, const struct proxy_cm_key *b)
{
	return a->comm_a == b->comm_a && a->local_active == b->local_active &&
	       rwy_ip_eq(&a->from, &b->from) && rwy_ip_eq(&a->to, &b->to);
}

/* Takes link i out of a chain; next_at is the offset of the chain's link. */
static void unchain(struct proxy_map *m, uint32_t *p, uint32_t i, size_t next_at)
{
	while (*p != i)
		p = (uint32_t *)(void *)((uint8_t *)&m->l[*p] + next_at);
	*p = *(uint32_t *)(void *)((uint8_t *)&m->l[i] + next_at);
}

/* Puts link i at the head of a chain. */
static void chain(uint32_t *head, uint32_t *next, uint32_t i)
{
	*next = *head;
	*head = i;
}

static void out_unhash(struct proxy_map *m, struct proxy_link *l)
{
	if (l->out_hashed)
		unchain(m, out_bucket(m, &l->remote, &l->local, l->lqpn), (uint32_t)(l - m->l),
		    offsetof(struct proxy_link, next_out));
	l->out_hashed = false;
}

static void unhash(struct proxy_map *m, struct proxy_link *l)
{
	struct proxy_cm_key ki = key_in(l), ko = key_out(l);
	uint32_t i = (uint32_t)(l - m->l);

	if (l->in_hashed)
		unchain(m, in_bucket(m, l->alias), i, offsetof(struct proxy_link, next_in));
	l->in_hashed = false;
	out_unhash(m, l);
	if (l->pair)
		return;
	unchain(m, cm_bucket(m, m->cm_in, &ki), i, offsetof(struct proxy_link, next_cm_in));
	unchain(m, cm_bucket(m, m->cm_out, &ko), i, offsetof(struct proxy_link, next_cm_out));
}

struct proxy_link *proxy_map_in(const struct proxy_map *m, const struct rwy_ip *relay, uint32_t alias)
{
	for (uint32_t i = *in_bucket(m, alias); i != PROXY_NIL; i = m->l[i].next_in)
		if (m->l[i].alias == alias && rwy_ip_eq(&m->l[i].relay, relay))
			return &m->l[i];
	return NULL;
}

static inline bool is_out(
    const struct proxy_link *l, const struct rwy_ip *remote, const struct rwy_ip *local, uint32_t lqpn)
{
	return l->lqpn == lqpn && rwy_ip_eq(&l->local, local) && rwy_ip_eq(&l->remote, remote);
}

struct proxy_link *proxy_map_out(
    const struct proxy_map *m, const struct rwy_ip *remote, const struct rwy_ip *local, uint32_t lqpn)
{
	for (uint32_t i = *out_bucket(m, remote, local, lqpn); i != PROXY_NIL; i = m->l[i].next_out)
		if (is_out(&m->l[i], remote, local, lqpn))
			return &m->l[i];
	return NULL;
}

/* The newest link of a queue pair is the first of its chain; an older one is closed. */
struct proxy_link *proxy_map_out_hint(const struct proxy_map *m, uint64_t *hint, const struct rwy_ip *remote,
    const struct rwy_ip *local, uint32_t lqpn)
{
	struct proxy_link *l;

	if (*hint - 1 < m->cfg.links_max) {
		l = &m->l[*hint - 1];
		if (is_counted(l) && l->out_hashed && is_out(l, remote, local, lqpn))
			return l;
	}
	l = proxy_map_out(m, remote, local, lqpn);
	*hint = l ? (uint64_t)(l - m->l) + 1 : 0;
	return l;
}

struct proxy_map_view proxy_map_view(const struct proxy_map *m)
{
	return (struct proxy_map_view){
	    .links = m->l, .in = m->in, .links_max = m->cfg.links_max, .in_mask = m->mask};
}

struct proxy_link *proxy_map_cm_in(const struct proxy_map *m, const struct proxy_cm_key *k)
{
	for (uint32_t i = *cm_bucket(m, m->cm_in, k); i != PROXY_NIL; i = m->l[i].next_cm_in) {
		struct proxy_cm_key ki = key_in(&m->l[i]);

		if (key_eq(&ki, k))
			return &m->l[i];
	}
	return NULL;
}

struct proxy_link *proxy_map_cm_out(const struct proxy_map *m, const struct proxy_cm_key *k)
{
	for (uint32_t i = *cm_bucket(m, m->cm_out, k); i != PROXY_NIL; i = m->l[i].next_cm_out) {
		struct proxy_cm_key ko = key_out(&m->l[i]);

		if (key_eq(&ko, k))
			return &m->l[i];
	}
	return NULL;
}

/* --- open links of a source, of an entry ------------------------------------------------------ */

/* The slot of an active host, or a free one: there are more slots than links. */
static uint32_t source_slot(const struct proxy_map *m, const struct rwy_ip *ip)
{
	uint32_t i = (uint32_t)rwy_hash_ip(~m->cfg.seed, ip) & m->source_mask;

	while (m->source[i].used && !rwy_ip_eq(&m->source[i].ip, ip))
		i = (i + 1) & m->source_mask;
	return i;
}

static void source_take(struct proxy_map *m, struct proxy_link *l)
{
	const struct rwy_ip *ip = l->local_active ? &l->local : &l->remote;

	l->source = source_slot(m, ip);
	m->source_marks += !m->source[l->source].used;
	m->source[l->source].used = true;
	m->source[l->source].ip = *ip;
	m->source[l->source].links++;
}

/* Slots without links stay marked, or others behind them were not found. Frees them at times. */
static void sources_clean(struct proxy_map *m)
{
	m->source_marks = 0;
	memset(m->source, 0, ((size_t)m->source_mask + 1) * sizeof(*m->source));
	for (unsigned k = L_HALF; k <= L_ENDING; k++)
		for (uint32_t i = m->list[k].head; i != PROXY_NIL; i = m->l[i].next) {
			source_take(m, &m->l[i]);
		}
}

static void count_begin(struct proxy_map *m, struct proxy_link *l)
{
	if (m->source_marks > m->source_mask / 2 + m->source_mask / 4) {
		sources_clean(m); /* l is in its list, and counted */
	} else {
		source_take(m, l);
	}
	if (l->entry < PROXY_ENTRIES_MAX)
		m->entry[l->entry]++;
}

static void count_end(struct proxy_map *m, struct proxy_link *l)
{
	m->source[l->source].links--;
	if (l->entry < PROXY_ENTRIES_MAX)
		m->entry[l->entry]--;
}

uint32_t proxy_map_of_entry(const struct proxy_map *m, uint32_t entry)
{
	return entry < PROXY_ENTRIES_MAX ? m->entry[entry] : 0;
}

/* --- links ----------------------------------------------------------------------------------- */

void proxy_map_state(struct proxy_map *m, struct proxy_link *l, enum proxy_state s, rwy_time now)
{
	bool was = is_counted(l);
	uint32_t i = (uint32_t)(l - m->l);

	list_remove(m, i);
	list_append(m, i, s);
	l->touched = now;
	if (was && !is_counted(l))
		count_end(m, l);
	else if (!was && is_counted(l))
		count_begin(m, l);
}

void proxy_map_remove(struct proxy_map *m, struct proxy_link *l)
{
	unhash(m, l);
	proxy_map_state(m, l, PROXY_FREE, 0);
}

enum proxy_no_link proxy_map_add(
    struct proxy_map *m, const struct proxy_link *tmpl, struct proxy_link **out, rwy_time now)
{
	const struct rwy_ip *active = tmpl->local_active ? &tmpl->local : &tmpl->remote;
	struct proxy_cm_key ki = key_in(tmpl), ko = key_out(tmpl);
	uint32_t i, s = source_slot(m, active);
	struct proxy_link *l;

	if (m->list[L_HALF].n >= m->cfg.half_open_max)
		return PROXY_HALF_OPEN_FULL;
	if (m->source[s].used && m->source[s].links >= m->cfg.source_max)
		return PROXY_SOURCE_FULL;
	if (!m->list[L_FREE].n) {
		if (!m->list[L_CLOSED].n)
			return PROXY_LINKS_FULL;
		proxy_map_remove(m, &m->l[m->list[L_CLOSED].head]);
	}
	i = m->list[L_FREE].head;
	list_remove(m, i);
	l = &m->l[i];
	*l = *tmpl;
	l->alias = l->lqpn = l->comm_b = 0;
	l->in_hashed = l->out_hashed = false;
	l->since = l->touched = now;
	l->in_packets = l->in_bytes = l->out_packets = l->out_bytes = 0;
	memset(l->patch_in, 0, sizeof(l->patch_in));
	memset(l->patch_out, 0, sizeof(l->patch_out));
	list_append(m, i, PROXY_REQ_SEEN);
	if (!l->pair) {
		chain(cm_bucket(m, m->cm_in, &ki), &l->next_cm_in, i);
		chain(cm_bucket(m, m->cm_out, &ko), &l->next_cm_out, i);
	}
	count_begin(m, l);
	*out = l;
	return PROXY_LINK_OK;
}

int proxy_map_alias(struct proxy_map *m, struct proxy_link *l)
{
	uint32_t span = m->cfg.qpn_last - m->cfg.qpn_first + 1;

	if (l->alias)
		return 0;
	/* Among links_max + 1 numbers one is free, if the range has so many. */
	for (uint32_t n = 0; n < span && n <= m->cfg.links_max; n++) {
		uint32_t qpn = m->qpn;

		m->qpn = m->qpn == m->cfg.qpn_last ? m->cfg.qpn_first : m->qpn + 1;
		if (proxy_map_in(m, &l->relay, qpn))
			continue;
		l->alias = qpn;
		chain(in_bucket(m, qpn), &l->next_in, (uint32_t)(l - m->l));
		l->in_hashed = true;
		return 0;
	}
	return RWY_ENOMEM;
}

void proxy_map_local_qpn(struct proxy_map *m, struct proxy_link *l, uint32_t lqpn)
{
	if (l->out_hashed && l->lqpn == lqpn)
		return;
	out_unhash(m, l);
	l->lqpn = lqpn;
	chain(out_bucket(m, &l->remote, &l->local, lqpn), &l->next_out, (uint32_t)(l - m->l));
	l->out_hashed = true;
}

static rwy_dur ttl_of(const struct proxy_map *m, enum list k)
{
	switch (k) {
	case L_HALF:
		return m->cfg.half_open_ttl;
	case L_OPEN:
		return m->cfg.idle_ttl;
	case L_ENDING:
		return m->cfg.ending_ttl;
	case L_CLOSED:
		return m->cfg.closed_ttl;
	case L_FREE:
	case L_COUNT:
		break;
	}
	return RWY_NEVER;
}

/* The first link of a list that packets keep alive goes to the end. */
static bool may_be_last(const struct proxy_map *m, enum list k, const struct proxy_link *l, rwy_time now)
{
	return k == L_ENDING || (k == L_OPEN && rwy_since(l->since, now) >= m->cfg.idle_ttl);
}

void proxy_map_expire(struct proxy_map *m, unsigned budget,
    void (*gone)(void *ctx, const struct proxy_link *l), void *ctx, rwy_time now)
{
	for (enum list k = L_HALF; k < L_COUNT; k++) {
		const rwy_dur ttl = ttl_of(m, k);

		for (uint32_t left = m->list[k].n < budget ? m->list[k].n : budget; left && ttl != RWY_NEVER;
		     left--) {
			const uint32_t i = m->list[k].head;
			struct proxy_link *l = &m->l[i];

			if (rwy_since(l->touched, now) >= ttl) {
				if (gone)
					gone(ctx, l);
				proxy_map_remove(m, l);
			} else if (may_be_last(m, k, l, now)) {
				list_remove(m, i);
				list_append(m, i, (enum proxy_state)l->state);
			} else {
				break;
			}
		}
	}
}

void proxy_map_count(const struct proxy_map *m, struct proxy_map_now *out)
{
	*out = (struct proxy_map_now){.half_open = m->list[L_HALF].n,
	    .open = m->list[L_OPEN].n + m->list[L_ENDING].n,
	    .closed = m->list[L_CLOSED].n};
}

const struct proxy_link *proxy_map_next(const struct proxy_map *m, uint32_t *cursor)
{
	while (*cursor < m->cfg.links_max) {
		const struct proxy_link *l = &m->l[(*cursor)++];

		if (l->state != PROXY_FREE)
			return l;
	}
	return NULL;
}

/* --- begin and end --------------------------------------------------------------------------- */

int proxy_map_new(struct proxy_map **out, const struct proxy_map_cfg *cfg)
{
	uint32_t buckets = 16;
	struct proxy_map *m;

	if (!proxy_map_cfg_valid(cfg))
		return RWY_EINVAL;
	while (buckets < cfg->links_max)
		buckets *= 2;
	m = calloc(1, sizeof(*m));
	if (!m)
		return RWY_ENOMEM;
	m->cfg = *cfg;
	m->mask = buckets - 1;
	m->source_mask = 2 * buckets - 1;
	m->qpn = cfg->qpn_first + (uint32_t)(rwy_mix64(cfg->seed) % (cfg->qpn_last - cfg->qpn_first + 1));
	m->in = proxy_map_index_new(buckets);
	m->out = proxy_map_index_new(buckets);
	m->cm_in = proxy_map_index_new(buckets);
	m->cm_out = proxy_map_index_new(buckets);
	m->l = proxy_map_links_new(cfg->links_max);
	m->source = calloc(2 * (size_t)buckets, sizeof(*m->source));
	if (!m->in || !m->out || !m->cm_in || !m->cm_out || !m->l || !m->source) {
		proxy_map_free(m);
		return RWY_ENOMEM;
	}
	for (unsigned k = 0; k < L_COUNT; k++)
		m->list[k].head = m->list[k].tail = PROXY_NIL;
	for (uint32_t i = 0; i < cfg->links_max; i++)
		list_append(m, i, PROXY_FREE);
	*out = m;
	return 0;
}

void proxy_map_free(struct proxy_map *m)
{
	if (!m)
		return;
	free(m->in);
	free(m->out);
	free(m->cm_in);
	free(m->cm_out);
	free(m->l);
	free(m->source);
	free(m);
}
