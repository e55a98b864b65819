/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of local hosts: what a host holds (memory.h), and what its queue pairs can answer
 * (roce/reqr_host.h), those of other workers, too (hosts.h).
 */
#include "engine/hosts.h"
#include "engine/memory.h"
#include "engine/table.h"

#define SHARE_EVERY RWY_MS /* timeouts are longer by far */

struct eng_host *eng_host_get(struct eng *e, uint32_t tenant, const struct rwy_ip *addr)
{
	struct eng_tenant *t = eng_tenant(e, tenant);
	struct eng_host **b = &e->hosts[eng_host_hash(addr)], *h = *b;

	while (h && !(h->tenant == t && rwy_ip_eq(&h->addr, addr)))
		h = h->chain;
	if (!h) {
		if (!(h = rwy_slab_get(&e->host_slab)))
			return NULL;
		h->addr = *addr;
		h->tenant = t;
		h->index = tenant;
		h->chain = *b;
		*b = h;
		eng_mem_count_host(e, t, 1);
	}
	h->refs++;
	return h;
}

void eng_host_put(struct eng *e, struct eng_host *h)
{
	struct eng_host **at;

	if (!h || --h->refs)
		return;
	for (at = &e->hosts[eng_host_hash(&h->addr)]; *at != h; at = &(*at)->chain)
		;
	*at = h->chain;
	eng_mem_count_host(e, h->tenant, -1);
	rwy_slab_put(&e->host_slab, h);
}

/* The host's entry of a worker. */
static struct eng_host_shared *shared_by(const struct eng *e, const struct eng_host *h, unsigned worker)
{
	return &e->cfg.hosts->of[worker][(uint8_t)(eng_host_hash(&h->addr) + h->index)];
}

static void put(_Atomic uint64_t *at, uint64_t v)
{
	atomic_store_explicit(at, v, memory_order_relaxed);
}

static uint64_t get(_Atomic uint64_t *at)
{
	return atomic_load_explicit(at, memory_order_relaxed);
}

void eng_host_answered(const struct eng *e, struct eng_host *h, rwy_time now)
{
	struct eng_host_shared *s;

	if (rwy_since(h->shared_at, now) < SHARE_EVERY)
		return;
	h->shared_at = now;
	s = shared_by(e, h, e->cfg.worker);
	put(&s->heard, now);
	put(&s->until, now + roce_reqr_host_busy(&h->reqr, 0));
	put(&s->late, h->reqr.late);
	put(&s->late_at, h->reqr.late_at);
}

static void ask_one(struct roce_reqr_host *h, struct eng_host_shared *s, rwy_time now)
{
	rwy_time until = get(&s->until);

	h->heard = rwy_time_max(h->heard, get(&s->heard));
	h->others += until > now ? until - now : 0;
	roce_reqr_host_late_elsewhere(h, get(&s->late), get(&s->late_at), now);
}

void eng_host_ask_others(const struct eng *e, struct eng_host *h, rwy_time now)
{
	h->reqr.others = 0;
	for (unsigned k = 0; e->cfg.hosts && k < e->cfg.workers; k++)
		if (k != e->cfg.worker)
			ask_one(&h->reqr, shared_by(e, h, k), now);
}
