/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of the table of links, its memory, and the number of a link. */
#include "proxy/map_int.h"

#include <stdlib.h>
#include <string.h>

#include "rwy/hash.h"

#define LINKS_MAX (1u << 20)
#define QPN_MIN   2 /* 0 and 1 are special (IBA 3.5.6) */

void proxy_map_cfg_default(struct proxy_map_cfg *cfg)
{
	*cfg = (struct proxy_map_cfg){
	    .links_max = 16384,
	    .half_open_max = 1024,
	    .source_max = 4096,
	    .qpn_first = 0x100,
	    .qpn_last = PROXY_QPN_MAX,
	    .half_open_ttl = 70 * RWY_SEC,
	    .idle_ttl = 24 * 3600 * RWY_SEC,
	    .ending_ttl = 35 * RWY_SEC, /* a host may repeat its DREQ every 17 s (CM timeout 22) */
	    .closed_ttl = 65 * RWY_SEC,
	};
}

uint64_t proxy_link_id(
    const struct rwy_ip *a, const struct rwy_ip *b, uint32_t comm_a, uint32_t qpn_a, uint64_t tid)
{
	uint64_t h = rwy_hash_ip(rwy_hash_ip(0, a), b);

	return rwy_mix64(rwy_hash(rwy_hash(h, (uint64_t)comm_a << 32 | qpn_a), tid));
}

bool proxy_map_cfg_valid(const struct proxy_map_cfg *c)
{
	return c->links_max && c->links_max <= LINKS_MAX && c->half_open_max && c->source_max &&
	       c->qpn_first >= QPN_MIN && c->qpn_first <= c->qpn_last && c->qpn_last <= PROXY_QPN_MAX;
}

struct proxy_link *proxy_map_links_new(uint32_t n)
{
	struct proxy_link *l = aligned_alloc(PROXY_LINE, n * sizeof(*l));

	return l ? memset(l, 0, n * sizeof(*l)) : NULL;
}

uint32_t *proxy_map_index_new(uint32_t buckets)
{
	uint32_t *p = malloc(buckets * sizeof(*p));

	return p ? memset(p, 0xff, buckets * sizeof(*p)) : NULL;
}
