/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internal: an IP header up to what it carries, lengths first. Shared by the outer and the inner look of
 * decap.c.
 */
#ifndef VXLAN_IPWALK_H
#define VXLAN_IPWALK_H

#include <stdbool.h>
#include <stdint.h>

enum ip_walk { IP_WALK_OK, IP_WALK_TRUNCATED, IP_WALK_BAD };

struct ip_l4 {
	uint32_t off;  /* of what the packet carries, from the IP header */
	uint32_t end;  /* of the packet, by its IP length */
	uint8_t proto; /* IP protocol there; with `later`, of the whole */
	bool fragment; /* a piece of a packet */
	bool later;    /* not the first piece: nothing at `off` can be read as a header */
	bool ext;      /* behind IPv6 extension headers */
};

/* OK: *l is filled, off <= end <= len. TRUNCATED: fewer than `len` bytes are there than the headers say. BAD:
 * version, header length, total length, or an IPv6 chain that does not fit (RFC 7112) or is longer than 8. */
enum ip_walk ip_walk(const uint8_t *ip, uint32_t len, struct ip_l4 *l);

#endif
