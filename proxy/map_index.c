/* SPDX-License-Identifier: Apache-2.0 */
/* The four hash indices of the table of links: packets and CM messages, of both segments. */
#include "proxy/map_int.h"

#include "rwy/hash.h"

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

/* Puts link i where *head begins a chain, or goes on with it. */
static void chain(uint32_t *head, uint32_t *next, uint32_t i)
{
	*next = *head;
	*head = i;
}

void proxy_map_hash_in(struct proxy_map *m, struct proxy_link *l)
{
	chain(in_bucket(m, l->alias), &l->next_in, (uint32_t)(l - m->l));
	l->in_hashed = true;
}

/* A closed link comes last: of another table's links it may be told behind its queue pair's open
 * one. */
void proxy_map_hash_out(struct proxy_map *m, struct proxy_link *l)
{
	uint32_t *at = out_bucket(m, &l->remote, &l->local, l->lqpn);

	while (l->state == PROXY_CLOSED && *at != PROXY_NIL)
		at = &m->l[*at].next_out;
	chain(at, &l->next_out, (uint32_t)(l - m->l));
	l->out_hashed = true;
}

void proxy_map_hash_cm(struct proxy_map *m, struct proxy_link *l)
{
	struct proxy_cm_key ki = key_in(l), ko = key_out(l);
	uint32_t i = (uint32_t)(l - m->l);

	chain(cm_bucket(m, m->cm_in, &ki), &l->next_cm_in, i);
	chain(cm_bucket(m, m->cm_out, &ko), &l->next_cm_out, i);
}

void proxy_map_unhash_out(struct proxy_map *m, struct proxy_link *l)
{
	if (l->out_hashed)
		unchain(m, out_bucket(m, &l->remote, &l->local, l->lqpn), (uint32_t)(l - m->l),
		    offsetof(struct proxy_link, next_out));
	l->out_hashed = false;
}

void proxy_map_unhash(struct proxy_map *m, struct proxy_link *l)
{
	struct proxy_cm_key ki = key_in(l), ko = key_out(l);
	uint32_t i = (uint32_t)(l - m->l);

	if (l->in_hashed)
		unchain(m, in_bucket(m, l->alias), i, offsetof(struct proxy_link, next_in));
	l->in_hashed = false;
	proxy_map_unhash_out(m, l);
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
		if (proxy_map_counted(l) && l->out_hashed && is_out(l, remote, local, lqpn))
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
