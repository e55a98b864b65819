/* SPDX-License-Identifier: Apache-2.0 */
/* The table of links: an array, a list a state class, and four hash indices (map_index.c). */
#include "proxy/map_int.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "rwy/hash.h"

#define HALF_SHARE 3

static enum proxy_list list_of(enum proxy_state s)
{
	switch (s) {
	case PROXY_FREE:
		return PROXY_L_FREE;
	case PROXY_REQ_SEEN:
		return PROXY_L_HALF;
	case PROXY_REP_SEEN:
	case PROXY_ESTABLISHED:
		return PROXY_L_OPEN;
	case PROXY_DISCONNECTING:
		return PROXY_L_ENDING;
	case PROXY_CLOSED:
		return PROXY_L_CLOSED;
	case PROXY_STATE_COUNT:
		break;
	}
	rwy_unreachable();
}

/* --- lists ----------------------------------------------------------------------------------- */

static void list_remove(struct proxy_map *m, uint32_t i)
{
	struct proxy_link *l = &m->l[i];
	enum proxy_list k = list_of((enum proxy_state)l->state);

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
	enum proxy_list k = list_of(s);

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
	m->source[l->source].half += l->state == PROXY_REQ_SEEN;
}

/* Slots without links stay marked, or others behind them were not found. Frees them at times. */
static void sources_clean(struct proxy_map *m)
{
	m->source_marks = 0;
	memset(m->source, 0, ((size_t)m->source_mask + 1) * sizeof(*m->source));
	for (unsigned k = PROXY_L_HALF; k <= PROXY_L_ENDING; k++)
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

static void count_end(struct proxy_map *m, const struct proxy_link *l)
{
	m->source[l->source].links--;
	m->source[l->source].half -= l->state == PROXY_REQ_SEEN;
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
	uint32_t i = (uint32_t)(l - m->l);

	if (proxy_map_counted(l))
		count_end(m, l);
	list_remove(m, i);
	list_append(m, i, s);
	l->touched = now;
	if (proxy_map_counted(l))
		count_begin(m, l);
}

void proxy_map_remove(struct proxy_map *m, struct proxy_link *l)
{
	proxy_map_unnote(m, l);
	proxy_map_unhash(m, l);
	proxy_map_state(m, l, PROXY_FREE, 0);
}

struct proxy_link *proxy_map_put(
    struct proxy_map *m, uint32_t i, const struct proxy_link *tmpl, enum proxy_state s, rwy_time now)
{
	struct proxy_link *l = &m->l[i];

	list_remove(m, i);
	*l = *tmpl;
	l->in_hashed = l->out_hashed = false;
	l->noted = 0;
	l->said = 0;
	l->since = l->touched = now;
	l->in_packets = l->in_bytes = l->out_packets = l->out_bytes = 0;
	memset(l->patch_in, 0, sizeof(l->patch_in));
	memset(l->patch_out, 0, sizeof(l->patch_out));
	list_append(m, i, s);
	if (l->alias)
		proxy_map_hash_in(m, l);
	if (l->lqpn)
		proxy_map_hash_out(m, l);
	if (!l->pair)
		proxy_map_hash_cm(m, l);
	if (proxy_map_counted(l))
		count_begin(m, l);
	return l;
}

/*
 * Threshold: a source may have as many half-open links as HALF_SHARE times those that are free. One
 * alone gets three of four, and leaves room for the others; a target that does not answer its REQs
 * keeps nobody else's away. A pair is open at once.
 */
static bool half_open_full(const struct proxy_map *m, const struct proxy_source *s, bool pair)
{
	const uint32_t n = m->list[PROXY_L_HALF].n, max = m->cfg.half_open_max;

	return !pair && (n >= max || s->half >= HALF_SHARE * (uint64_t)(max - n));
}

enum proxy_no_link proxy_map_add(
    struct proxy_map *m, const struct proxy_link *tmpl, struct proxy_link **out, rwy_time now)
{
	const struct rwy_ip *active = tmpl->local_active ? &tmpl->local : &tmpl->remote;
	uint32_t s = source_slot(m, active);
	struct proxy_link fresh = *tmpl;

	if (half_open_full(m, &m->source[s], tmpl->pair))
		return PROXY_HALF_OPEN_FULL;
	if (m->source[s].used && m->source[s].links >= m->cfg.source_max)
		return PROXY_SOURCE_FULL;
	if (!m->list[PROXY_L_FREE].n) {
		if (!m->list[PROXY_L_CLOSED].n)
			return PROXY_LINKS_FULL;
		proxy_map_remove(m, &m->l[m->list[PROXY_L_CLOSED].head]);
	}
	fresh.alias = fresh.lqpn = fresh.comm_b = 0;
	*out = proxy_map_put(m, m->list[PROXY_L_FREE].head, &fresh, PROXY_REQ_SEEN, now);
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
		proxy_map_hash_in(m, l);
		return 0;
	}
	return RWY_ENOMEM;
}

void proxy_map_local_qpn(struct proxy_map *m, struct proxy_link *l, uint32_t lqpn)
{
	if (l->out_hashed && l->lqpn == lqpn)
		return;
	proxy_map_unhash_out(m, l);
	l->lqpn = lqpn;
	proxy_map_hash_out(m, l);
}

static rwy_dur ttl_of(const struct proxy_map *m, enum proxy_list k)
{
	switch (k) {
	case PROXY_L_HALF:
		return m->cfg.half_open_ttl;
	case PROXY_L_OPEN:
		return m->cfg.idle_ttl;
	case PROXY_L_ENDING:
		return m->cfg.ending_ttl;
	case PROXY_L_CLOSED:
		return m->cfg.closed_ttl;
	case PROXY_L_FREE:
	case PROXY_L_COUNT:
		break;
	}
	return RWY_NEVER;
}

/* Packets keep links of this list alive: any of them may be the one that was idle for longest. */
static bool has_no_order(enum proxy_list k)
{
	return k == PROXY_L_OPEN || k == PROXY_L_ENDING;
}

void proxy_map_expire(struct proxy_map *m, unsigned budget,
    void (*gone)(void *ctx, const struct proxy_link *l), void *ctx, rwy_time now)
{
	for (enum proxy_list k = PROXY_L_HALF; k < PROXY_L_COUNT; k++) {
		const rwy_dur ttl = ttl_of(m, k);

		for (uint32_t left = m->list[k].n < budget ? m->list[k].n : budget; left && ttl != RWY_NEVER;
		     left--) {
			const uint32_t i = m->list[k].head;
			struct proxy_link *l = &m->l[i];

			if (rwy_since(rwy_time_max(l->touched, m->awake), now) >= ttl) {
				if (gone)
					gone(ctx, l);
				proxy_map_remove(m, l);
			} else if (has_no_order(k)) { /* it is looked at again behind the others */
				list_remove(m, i);
				list_append(m, i, (enum proxy_state)l->state);
			} else {
				break;
			}
		}
	}
}

void proxy_map_wake(struct proxy_map *m, rwy_time now)
{
	m->awake = now;
}

void proxy_map_count(const struct proxy_map *m, struct proxy_map_now *out)
{
	*out = (struct proxy_map_now){.half_open = m->list[PROXY_L_HALF].n,
	    .open = m->list[PROXY_L_OPEN].n + m->list[PROXY_L_ENDING].n,
	    .closed = m->list[PROXY_L_CLOSED].n};
}

struct proxy_link *proxy_map_next(const struct proxy_map *m, uint32_t *cursor)
{
	while (*cursor < m->cfg.links_max) {
		struct proxy_link *l = &m->l[(*cursor)++];

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
	for (unsigned k = 0; k < PROXY_L_COUNT; k++)
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
