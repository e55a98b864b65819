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

static bool is_between(const struct proxy_acl *a, const struct rwy_ip *from, const struct rwy_ip *to)
{
	return rwy_prefix_match(&a->from.addr, a->from.len, from) &&
	       rwy_prefix_match(&a->to.addr, a->to.len, to);
}

bool proxy_allows(
    const struct proxy_policy *p, const struct rwy_ip *from, const struct rwy_ip *to, uint16_t port)
{
	for (unsigned i = 0; i < p->acls; i++)
		if (port >= p->acl[i].port_lo && port <= p->acl[i].port_hi &&
		    is_between(&p->acl[i], from, to))
			return true;
	return false;
}

/* A pair has no port: only an entry for all ports allows it. */
bool proxy_allows_pair(const struct proxy_policy *p, const struct rwy_ip *a, const struct rwy_ip *b)
{
	for (unsigned i = 0; i < p->acls; i++)
		if (p->acl[i].port_lo <= 1 && p->acl[i].port_hi == UINT16_MAX &&
		    (is_between(&p->acl[i], a, b) || is_between(&p->acl[i], b, a)))
			return true;
	return false;
}

bool proxy_allows_hosts(const struct proxy_policy *p, const struct rwy_ip *a, const struct rwy_ip *b)
{
	for (unsigned i = 0; i < p->acls; i++)
		if (is_between(&p->acl[i], a, b) || is_between(&p->acl[i], b, a))
			return true;
	return false;
}

int proxy_entry_find(const struct proxy_policy *p, const struct rwy_ip *listen, uint16_t port)
{
	for (unsigned i = 0; i < p->entries; i++)
		if (p->entry[i].port == port && rwy_ip_eq(&p->entry[i].listen, listen))
			return (int)i;
	return -1;
}
