/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of local hosts: what a host holds (memory.h), and what its queue pairs can answer
 * (roce/reqr_host.h).
 */
#include "engine/memory.h"
#include "engine/table.h"

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
