/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/analyze/link.h"

#include "rwy/endian.h"
#include "rwy/ether.h"
#include "vxlan/vxlan.h"

#define ETH_LEN   14
#define VLAN_LEN  4
#define IP4_MIN   20
#define IP6_LEN   40
#define UDP_LEN   8
#define PROTO_UDP 17

/* Offset of what follows Ethernet and its tags when that is IP; 0: it is not. */
static uint32_t behind_ethernet(const uint8_t *f, uint32_t at, uint32_t len)
{
	uint32_t type_at = at + ETH_LEN - 2;

	for (unsigned tags = 0; tags < 3 && type_at + 2 <= len; tags++) {
		uint16_t type = rwy_get16(f + type_at);

		if (type == RWY_ETHER_IP4 || type == RWY_ETHER_IP6)
			return type_at + 2;
		if (type != RWY_ETHER_VLAN && type != RWY_ETHER_QINQ)
			return 0;
		type_at += VLAN_LEN;
	}
	return 0;
}

/* Offset of the UDP header of the IP packet at `at`; 0: it has none, or is not captured so far. */
static uint32_t udp_of(const uint8_t *f, uint32_t at, uint32_t len)
{
	uint32_t udp;

	if (at + IP4_MIN > len)
		return 0;
	if (f[at] >> 4 == 4) {
		if (f[at + 9] != PROTO_UDP || (rwy_get16(f + at + 6) & 0x1fff))
			return 0;
		udp = at + (f[at] & 15u) * 4;
	} else {
		if (at + IP6_LEN > len || f[at + 6] != PROTO_UDP)
			return 0;
		udp = at + IP6_LEN;
	}
	return udp + UDP_LEN <= len ? udp : 0;
}

bool an_inner_find(const uint8_t *frame, uint32_t len, bool ip, struct an_inner *out)
{
	uint32_t at = 0, udp, inner;

	if (!ip && !(at = behind_ethernet(frame, 0, len)))
		return false;
	if (at >= len)
		return false;
	*out = (struct an_inner){.at = at};
	udp = udp_of(frame, at, len);
	if (!udp || rwy_get16(frame + udp + 2) != VXLAN_UDP_PORT || udp + UDP_LEN + VXLAN_HLEN > len)
		return true;
	inner = behind_ethernet(frame, udp + UDP_LEN + VXLAN_HLEN, len);
	if (!inner || inner >= len)
		return false;
	*out = (struct an_inner){inner, rwy_get24(frame + udp + UDP_LEN + 4)};
	return true;
}
