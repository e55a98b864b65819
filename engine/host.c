/* SPDX-License-Identifier: Apache-2.0 */
/* Records of local hosts: a host's queue pairs share its rate of responses (roce/reqr_host.h). */
#include "engine/table.h"

struct eng_host *eng_host_get(struct eng *e, uint32_t tenant, const struct rwy_ip *addr)
{
	struct eng_host **b = &e->hosts[eng_host_hash(addr)], *h = *b;

	while (h && !(h->tenant == tenant && rwy_ip_eq(&h->addr, addr)))
		h = h->chain;
	if (!h) {
		if (!(h = eng_slab_get(&e->host_slab)))
			return NULL;
		h->addr = *addr;
		h->tenant = tenant;
		h->chain = *b;
		*b = h;
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
	eng_slab_put(&e->host_slab, h);
}
