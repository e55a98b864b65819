/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The vxlan device that holds filters on VXLAN: a device in collect-metadata mode ("external")
 * removes the outer headers of all VNIs and keeps their values. A UDP port can have only one, so an
 * existing one is used.
 */
#include <netlink/netlink.h>
#include <netlink/route/link.h>
#include <netlink/route/link/vxlan.h>
#include <stdio.h>
#include <string.h>

#include "gateway/offload/tc.h"
#include "vxlan/vxlan.h"

#define VXLAN_OURS "rwy-vxlan"

static bool takes_all_vxlan(struct rtnl_link *l)
{
	uint32_t port = 0;

	return rtnl_link_is_vxlan(l) && rtnl_link_vxlan_get_collect_metadata(l) > 0 &&
	       rtnl_link_vxlan_get_port(l, &port) == 0 && port == VXLAN_UDP_PORT;
}

/* Returns the number of a device of that name, or of any that takes all VXLAN; 0: none. */
static int vxlan_find(struct nl_sock *sk, char name[IF_NAMESIZE])
{
	struct nl_cache *links = NULL;
	int found = 0;

	if (rtnl_link_alloc_cache(sk, AF_UNSPEC, &links) < 0)
		return 0;
	for (struct nl_object *o = nl_cache_get_first(links); o && !found; o = nl_cache_get_next(o)) {
		struct rtnl_link *l = (struct rtnl_link *)o;

		if (!takes_all_vxlan(l) || (name[0] && strcmp(rtnl_link_get_name(l), name) != 0))
			continue;
		found = rtnl_link_get_ifindex(l);
		snprintf(name, IF_NAMESIZE, "%s", rtnl_link_get_name(l));
	}
	nl_cache_free(links);
	return found;
}

static int vxlan_make(struct nl_sock *sk, char *why)
{
	struct rtnl_link *l = rtnl_link_vxlan_alloc();
	int rc = -NLE_NOMEM;

	if (l) {
		rtnl_link_set_name(l, VXLAN_OURS);
		rtnl_link_set_flags(l, IFF_UP);
		rtnl_link_vxlan_set_collect_metadata(l, 1);
		rtnl_link_vxlan_set_port(l, VXLAN_UDP_PORT);
		rtnl_link_vxlan_set_learning(l, 0);
		rtnl_link_vxlan_set_udp_zero_csum6_rx(l, 1); /* hosts send them (RFC 6935) */
		rtnl_link_vxlan_set_udp_zero_csum6_tx(l, 1);
		rc = rtnl_link_add(sk, l, NLM_F_CREATE | NLM_F_EXCL);
		rtnl_link_put(l);
	}
	if (rc < 0) {
		snprintf(why, OFFLOAD_WHY, "no vxlan device: %s", nl_geterror(rc));
		return 0;
	}
	return (int)if_nametoindex(VXLAN_OURS);
}

int offload_vxlan_open(struct nl_sock *sk, char name[IF_NAMESIZE], bool *made, char *why)
{
	const bool named = name[0];
	int ifindex = vxlan_find(sk, name);

	*made = false;
	if (!ifindex && named)
		snprintf(why, OFFLOAD_WHY, "%s is no vxlan device in external mode on port %u", name,
		    VXLAN_UDP_PORT);
	if (ifindex || named)
		return ifindex;
	ifindex = vxlan_make(sk, why);
	*made = ifindex != 0;
	if (*made)
		snprintf(name, IF_NAMESIZE, "%s", VXLAN_OURS);
	return ifindex;
}

void offload_vxlan_delete(struct nl_sock *sk, int ifindex)
{
	struct rtnl_link *l = rtnl_link_alloc();

	if (!l)
		return;
	rtnl_link_set_ifindex(l, ifindex);
	(void)rtnl_link_delete(sk, l);
	rtnl_link_put(l);
}
