/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internal: walks an IP header up to its payload and checks lengths. decap.c uses it for the outer
 * and the inner packet.
 */
#ifndef VXLAN_IPWALK_H
#define VXLAN_IPWALK_H

#include <stdbool.h>
#include <stdint.h>

enum ip_walk { IP_WALK_OK, IP_WALK_TRUNCATED, IP_WALK_BAD };

struct ip_l4 {
	uint32_t off;  /* offset of the payload from the IP header */
	uint32_t end;  /* end of the packet by its IP length */
	uint8_t proto; /* IP protocol of the payload; with `later`, of the whole packet */
	bool fragment; /* the packet is a fragment */
	bool later;    /* not the first fragment: the payload begins with no header */
	bool ext;      /* the payload is behind IPv6 extension headers */
};

/* OK: *l is filled, off <= end <= len. TRUNCATED: the headers announce more than `len` bytes. BAD:
 * wrong version, header length or total length, an IPv4-mapped IPv6 address, or an IPv6 chain that
 * does not fit (RFC 7112: in a first fragment with the UDP header) or has more than 8 headers. */
enum ip_walk ip_walk(const uint8_t *ip, uint32_t len, struct ip_l4 *l);

#endif
