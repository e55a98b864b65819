/* SPDX-License-Identifier: Apache-2.0 */
/* VXLAN on the plain LAN does not cross the WAN while there are tenants: the other side could not
 * tell it from a VTEP's. */
#ifndef GATEWAY_DATAPATH_TRANSIT_H
#define GATEWAY_DATAPATH_TRANSIT_H

#include "gateway/datapath/pkt.h"
#include "gateway/gw.h"
#include "vxlan/vxlan.h"

/* Whether an IPv6 packet with extension headers is VXLAN. */
bool gw_transit_vxlan6(const struct gw_worker *w, const uint8_t *ip, uint32_t len);

/* Whether a packet of the plain LAN is VXLAN. `len` bytes from the IP header on. */
static inline bool gw_transit_vxlan(const struct gw_worker *w, const uint8_t *ip, uint32_t len)
{
	bool is4 = ip[0] >> 4 == 4;
	uint32_t hdr = is4 ? (ip[0] & 15u) * 4 : IP6_LEN;
	uint8_t proto = is4 ? ip[9] : ip[6];

	if (len < hdr + 4)
		return false;
	if (proto == IPPROTO_UDP)
		return rwy_get16(ip + hdr + 2) == VXLAN_UDP_PORT &&
		       !(is4 && rwy_get16(ip + 6) & ROCE_IP4_OFFMASK);
	return !is4 && proto != IPPROTO_TCP && proto != IPPROTO_ICMPV6 && gw_transit_vxlan6(w, ip, len);
}

#endif
