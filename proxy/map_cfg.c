/* SPDX-License-Identifier: Apache-2.0 */
/* Defaults of the table of links, and the number of a link: what needs nothing of the table. */
#include "proxy/map.h"

#include "rwy/hash.h"

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
	    .closed_ttl = 65 * RWY_SEC,
	};
}

uint64_t proxy_link_id(
    const struct rwy_ip *a, const struct rwy_ip *b, uint32_t comm_a, uint32_t qpn_a, uint64_t tid)
{
	uint64_t h = rwy_hash_ip(rwy_hash_ip(0, a), b);

	return rwy_mix64(rwy_hash(rwy_hash(h, (uint64_t)comm_a << 32 | qpn_a), tid));
}
