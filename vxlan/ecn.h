/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tunnel's effect on the traffic class byte: ECN by RFC 6040 (normal mode) in both directions,
 * DSCP by a policy. For IPv4 and IPv6 headers. RoCEv2's ICRC does not cover this byte (IBA
 * A17.3.3), so nothing else has to be corrected.
 *
 * "ip" below is the first byte of an IP header with at least 20 (version 4) or 40 bytes (version 6)
 * whose version nibble has been checked.
 */
#ifndef VXLAN_ECN_H
#define VXLAN_ECN_H

#include <stdbool.h>
#include <stdint.h>

#include "rwy/checksum.h"
#include "rwy/endian.h"
#include "rwy/err.h"

/* RFC 3168 5: the two low bits of the byte, as on the wire. */
enum vxlan_ecn { VXLAN_NOT_ECT = 0, VXLAN_ECT1 = 1, VXLAN_ECT0 = 2, VXLAN_CE = 3 };

/* Returns DSCP << 2 | ECN of either family. */
static inline uint8_t vxlan_tos_get(const uint8_t *ip)
{
	return ip[0] >> 4 == 4 ? ip[1] : (uint8_t)(ip[0] << 4 | ip[1] >> 4);
}

/* Sets DSCP << 2 | ECN; an IPv4 header checksum that was right stays right, one that was wrong
 * stays wrong. */
static inline void vxlan_tos_set(uint8_t *ip, uint8_t tos)
{
	if (ip[0] >> 4 == 4) {
		if (ip[1] != tos)
			rwy_ip4_set16(ip, 0, (uint16_t)(ip[0] << 8 | tos));
	} else {
		ip[0] = (uint8_t)(0x60 | tos >> 4);
		ip[1] = (uint8_t)(tos << 4 | (ip[1] & 0x0f));
	}
}

/* Encapsulation, RFC 6040 4.1, normal mode: the outer field is a copy of the inner one, including
 * CE. */
static inline uint8_t vxlan_ecn_encap(uint8_t inner)
{
	return inner & 3;
}

/* The verdict on a combination of inner and outer field, RFC 6040 4.2 (figure 4). */
enum vxlan_ecn_verdict {
	VXLAN_ECN_FINE,
	VXLAN_ECN_UNUSED,    /* "(!)": unused combination; worth a counter */
	VXLAN_ECN_DANGEROUS, /* "(!!!)": sign of a broken or lying tunnel entry; worth an alarm */
};

struct vxlan_ecn_out {
	uint8_t ecn;     /* new value of the inner header */
	uint8_t verdict; /* enum vxlan_ecn_verdict */
	/* CE outside, Not-ECT inside: loss is the only signal that the sender understands */
	bool drop;
};

/* Index: inner * 4 + outer. */
extern const struct vxlan_ecn_out vxlan_ecn_table[16];

/* Decapsulation, RFC 6040 4.2. Only the two low bits of the arguments count. */
static inline const struct vxlan_ecn_out *vxlan_ecn_decap(uint8_t inner, uint8_t outer)
{
	return &vxlan_ecn_table[(inner & 3) << 2 | (outer & 3)];
}

/* X(field, sentence): counters, never reset. */
#define VXLAN_ECN_COUNTERS(X)                                                                                \
	X(ecn_ce, "packets marked on the way: CE copied from the outer header")                              \
	X(ecn_ect1, "packets whose ECT(0) became ECT(1) on the way")                                         \
	X(ecn_drop, "packets dropped: marked on the way, and their sender does not support ECN")             \
	X(ecn_unused, "unused combinations (RFC 6040: ECT(1) inside ECT(0))")                                \
	X(ecn_dangerous, "combinations that only a faulty tunnel ingress makes (RFC 6040), drops included")
struct vxlan_ecn_counters {
#define X(f, s) uint64_t f;
	VXLAN_ECN_COUNTERS(X)
#undef X
};

/*
 * Applies decapsulation to a packet: combines the outer ECN field with the inner header at
 * `inner_ip` and counts. Returns false when the packet must be dropped; it is then unchanged.
 */
bool vxlan_ecn_apply(uint8_t *inner_ip, uint8_t outer_ecn, struct vxlan_ecn_counters *c);

/* --- DSCP ------------------------------------------------------------------------------------- */

/* A policy is always a table; "keep" and "set" are tables too, so that applying one costs a
 * load. */
struct vxlan_dscp {
	uint8_t map[64]; /* index: DSCP; value: the DSCP that it becomes, 0..63 */
};

/* A table that keeps every DSCP. */
void vxlan_dscp_keep(struct vxlan_dscp *p);
/* Everything becomes `dscp`. RWY_EINVAL: above 63; *p is then unchanged. */
RWY_MUST_CHECK int vxlan_dscp_set(struct vxlan_dscp *p, uint8_t dscp);

/* Returns the outer byte of a packet to encapsulate, from the inner byte. */
static inline uint8_t vxlan_outer_tos(const struct vxlan_dscp *p, uint8_t inner)
{
	return (uint8_t)(p->map[inner >> 2] << 2 | vxlan_ecn_encap(inner));
}

#endif
