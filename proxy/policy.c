/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/policy.h"

#include "rwy/prefix.h"

bool proxy_is_relay(const struct proxy_policy *p, const struct rwy_ip *a)
{
	for (unsigned i = 0; i < p->addrs; i++)
		if (rwy_ip_eq(&p->addr[i], a))
			return true;
	return false;
}

bool proxy_allows(
    const struct proxy_policy *p, const struct rwy_ip *from, const struct rwy_ip *to, uint16_t port)
{
	for (unsigned i = 0; i < p->acls; i++) {
		const struct proxy_acl *a = &p->acl[i];

		if (rwy_prefix_match(&a->from.addr, a->from.len, from) &&
		    rwy_prefix_match(&a->to.addr, a->to.len, to) && port >= a->port_lo && port <= a->port_hi)
			return true;
	}
	return false;
}

int proxy_entry_find(const struct proxy_policy *p, const struct rwy_ip *listen, uint16_t port)
{
	for (unsigned i = 0; i < p->entries; i++)
		if (p->entry[i].port == port && rwy_ip_eq(&p->entry[i].listen, listen))
			return (int)i;
	return -1;
}
