/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a captured frame to the IP packet that RoCEv2 is in, also inside VXLAN (RFC 7348). Pure
 * functions.
 */
#ifndef TOOLS_ANALYZE_LINK_H
#define TOOLS_ANALYZE_LINK_H

#include <stdbool.h>
#include <stdint.h>

struct an_inner {
	uint32_t at;  /* offset of the IP header in the frame */
	uint32_t vni; /* 0: not encapsulated */
};

/*
 * Finds the innermost IP packet in len captured bytes. Behind up to two VLAN tags; in VXLAN again
 * Ethernet. ip: the frame begins with the IP header. False: no IP packet.
 */
bool an_inner_find(const uint8_t *frame, uint32_t len, bool ip, struct an_inner *out);

#endif
