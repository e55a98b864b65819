/* SPDX-License-Identifier: Apache-2.0 */
/*
 * VXLAN (RFC 7348) over IPv4 and IPv6: removes the outer headers of a received packet, and writes
 * them into the headroom of a packet to send. No payload is moved. The caller handles the outer
 * Ethernet header, the tenant and its access control (tenant/tenant.h), and ECN and DSCP of the
 * inner header (vxlan/ecn.h).
 *
 *   outer IP | outer UDP 8 | VXLAN 8 | inner Ethernet 14 (+4 tag) | inner packet
 *   20 or 40 |  -> 4789    |
 *
 *   VXLAN header:
 *     |R|R|R|R|I|R|R|R|            Reserved                           |
 *     |                VXLAN Network Identifier (VNI) |   Reserved    |
 *
 * Thread: every function works on its arguments alone; the control thread writes a template and any
 * number of workers read it.
 */
#ifndef VXLAN_VXLAN_H
#define VXLAN_VXLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "rwy/err.h"
#include "rwy/ip.h"

#define VXLAN_UDP_PORT 4789
#define VXLAN_VNI_MAX  0xffffffu
#define VXLAN_HLEN     8
/* bytes in front of an inner IP packet: IPv6 40, UDP 8, VXLAN 8, Ethernet 14, tag 4 */
#define VXLAN_ENCAP_MAX   74
#define VXLAN_ENCAP_IP4   50    /* IPv4, untagged */
#define VXLAN_ENCAP_IP6   70    /* IPv6, untagged */
#define VXLAN_SPORT_FIRST 49152 /* source ports carry entropy in the dynamic range (RFC 7348 5) */

struct vxlan_cfg {
	uint16_t port; /* UDP destination port, host order */
	/* accept one VLAN tag in the inner frame; RFC 7348 6.1: discard unless configured */
	bool inner_vlan;
	/* check UDP checksums other than 0 (RFC 7348 5: MAY); costs a pass over the packet */
	bool verify_csum;
};
/* Defaults: 4789, tags accepted, checksums not verified. */
void vxlan_cfg_default(struct vxlan_cfg *cfg);

/* Verdict on a packet; every reason except OK and NOT_VXLAN is a drop. X(enumerator, counter name,
 * sentence) */
#define VXLAN_REASONS(X)                                                                                     \
	X(VXLAN_OK, "ok", "decapsulated")                                                                    \
	X(VXLAN_NOT_VXLAN, "not_vxlan", "an IP packet that is not UDP to the VXLAN port; not an error")      \
	X(VXLAN_TRUNCATED, "vxlan_truncated", "shorter than its outer headers say")                          \
	X(VXLAN_BAD_IP, "vxlan_bad_ip",                                                                      \
	    "outer IP version, header length, total length or header checksum is wrong")                     \
	X(VXLAN_FRAGMENT, "vxlan_fragment", "outer packet is a fragment: tunnel endpoints do not fragment")  \
	X(VXLAN_EXT_HEADER, "vxlan_ip6_ext", "VXLAN behind IPv6 extension headers")                          \
	X(VXLAN_BAD_SOURCE, "vxlan_bad_source",                                                              \
	    "outer source cannot be a tunnel endpoint: unspecified, loopback, multicast or broadcast")       \
	X(VXLAN_BAD_UDP, "vxlan_bad_udp",                                                                    \
	    "outer UDP length does not match the IP length, or no VXLAN header fits")                        \
	X(VXLAN_BAD_CSUM, "vxlan_bad_csum", "outer UDP checksum is not 0 and wrong")                         \
	X(VXLAN_NO_VNI, "vxlan_no_vni", "the I flag is not set: the VNI is not valid (RFC 7348 5)")          \
	X(VXLAN_BAD_FLAGS, "vxlan_bad_flags",                                                                \
	    "flags of VXLAN-GPE (version, next protocol): what follows may not be Ethernet")                 \
	X(VXLAN_ZERO_VNI, "vxlan_zero_vni", "VNI 0")                                                         \
	X(VXLAN_INNER_SHORT, "vxlan_inner_short", "no complete Ethernet header inside")                      \
	X(VXLAN_INNER_SOURCE, "vxlan_inner_source", "inner source MAC address is 0 or a group address")      \
	X(VXLAN_INNER_TAG, "vxlan_inner_tag",                                                                \
	    "inner frame has a VLAN tag that is not allowed, or more than one")                              \
	X(VXLAN_INNER_IP, "vxlan_inner_ip", "inner IP header does not fit its EtherType or the frame")       \
	X(VXLAN_NESTED, "vxlan_nested", "VXLAN inside VXLAN")

enum vxlan_reason {
#define X(e, n, s) e,
	VXLAN_REASONS(X)
#undef X
	    VXLAN_REASON_COUNT
};

enum vxlan_inner { VXLAN_INNER_IP4, VXLAN_INNER_IP6, VXLAN_INNER_ARP, VXLAN_INNER_OTHER };

/* A parsed packet. Offsets count from the first byte of the outer IP header. */
struct vxlan_pkt {
	struct rwy_ip outer_src, outer_dst; /* the VTEPs */
	uint32_t vni;                       /* 1 .. VXLAN_VNI_MAX */
	uint32_t eth_off;                   /* offset of the inner Ethernet header */
	uint32_t net_off;                   /* offset of what follows it and its tag: IP, ARP */
	uint32_t end;                       /* end of the inner frame; >= net_off */
	uint16_t outer_sport;
	uint16_t ethertype; /* behind the tag if there is one; host order */
	uint16_t tci;       /* VLAN tag, host order; 0: untagged */
	uint8_t dst_mac[6], src_mac[6];
	uint8_t outer_tos; /* DSCP << 2 | ECN */
	uint8_t outer_ttl;
	uint8_t inner; /* enum vxlan_inner */
	bool outer6;
	bool tagged;
	/* inner packet is IP, not a fragment, UDP port 4791: the fast path; roce_parse checks the
	 * rest */
	bool roce;
};

/*
 * Parses `len` bytes at `ip`, a frame from its outer IP header on; bytes behind the IP length
 * (Ethernet padding) are ignored. The caller checks, before or after, that the outer destination is
 * its own. *out is valid for VXLAN_OK only.
 *
 * Reserved bits are ignored (RFC 7348 5), except those with which VXLAN-GPE changes the meaning of
 * what follows: version (0x30) and next protocol (0x04). A later fragment has no port and is
 * NOT_VXLAN; the first one is FRAGMENT. Inner IP headers are checked as far as needed to classify
 * the packet (version, lengths), without their checksum. Nesting is found behind inner IPv6
 * extension headers too.
 */
enum vxlan_reason vxlan_decap(
    const struct vxlan_cfg *cfg, const uint8_t *ip, uint32_t len, struct vxlan_pkt *out);

/* --- encapsulation ---------------------------------------------------------------------------- */

struct vxlan_tmpl_cfg {
	struct rwy_ip local, remote; /* VTEPs, of one family */
	uint32_t vni;                /* 1 .. VXLAN_VNI_MAX */
	uint16_t port;               /* UDP destination port */
	uint8_t ttl;                 /* outer TTL or hop limit, 1..255 */
	bool udp_csum;               /* write UDP checksums; see below */
	bool tag;                    /* inner frames get a VLAN tag */
	uint16_t tci;                /* the tag's PCP, DEI and VLAN ID */
	uint8_t src_mac[6];          /* inner source: the gateway's MAC in that tenant */
};

/*
 * UDP checksum. IPv4: 0 (RFC 7348 5: SHOULD). IPv6: RFC 6935 allows 0 for tunnels under the
 * conditions of RFC 6936, which VXLAN meets: the inner packet has a checksum of its own (RoCE: the
 * ICRC over addresses, ports and payload), and a packet to a wrong endpoint is refused there by VNI
 * and addresses. So 0 is the default. The receiver must be configured to accept it: Linux needs
 * `udp6zerocsumrx` on its vxlan device. Where that is impossible, udp_csum writes the checksum
 * (either family) at the cost of a pass over the packet.
 */

/* Headers common to all packets of a tenant to one VTEP. Members are private. */
struct vxlan_tmpl {
	uint8_t hdr[VXLAN_ENCAP_MAX]; /* outer IP .. inner Ethernet */
	uint8_t len;                  /* bytes in front of an inner IP packet */
	uint8_t ip_len;               /* 20 or 40 */
	uint8_t eth_len;              /* 14 or 18 */
	bool udp_csum;
	uint32_t ip_sum; /* IPv4: sum of the header without TOS, length and checksum */
	uint32_t pseudo; /* udp_csum: sum of the pseudo-header without the length */
};

/* RWY_EINVAL: families differ, or vni, ttl, tci or an address is out of range or a group
 * address. */
RWY_MUST_CHECK int vxlan_tmpl_init(struct vxlan_tmpl *t, const struct vxlan_tmpl_cfg *cfg);

/* Returns the bytes of headroom that encapsulation needs in front of an inner IP packet. */
static inline uint32_t vxlan_tmpl_headroom(const struct vxlan_tmpl *t)
{
	return t->len;
}

/*
 * Writes outer IP, UDP, VXLAN and inner Ethernet directly in front of the inner IP packet at `ip`,
 * whose version nibble gives the EtherType, and returns the outer IP header; the packet then has
 * `len` + vxlan_tmpl_headroom bytes from there. The caller owns at least that much headroom.
 * Nothing at or behind `ip` is written. sport: vxlan_sport(). tos: the outer DSCP << 2 | ECN,
 * vxlan_outer_tos(). Returns NULL and writes nothing when the result would exceed an IP packet, or
 * `ip` is neither version 4 nor 6. IPv4: DF set, identification 0 (RFC 6864 4.1: DF makes it
 * meaningless).
 */
uint8_t *vxlan_encap(const struct vxlan_tmpl *t, uint8_t *ip, uint32_t len, const uint8_t dst_mac[6],
    uint16_t sport, uint8_t tos);
/* The same for a whole inner Ethernet frame at `eth` (ARP, ND, anything): only outer IP, UDP and
 * VXLAN, 36 or 56 bytes. */
uint8_t *vxlan_encap_frame(
    const struct vxlan_tmpl *t, uint8_t *eth, uint32_t len, uint16_t sport, uint8_t tos);

/* Returns a flow's hash, equal for all packets of one direction of a connection, on every gateway.
 * For packets other than RoCE: qpn 0. */
uint32_t vxlan_flow_hash(const struct rwy_ip *src, const struct rwy_ip *dst, uint16_t sport, uint32_t dqpn);
/* Returns the outer source port of a flow: 49152..65535. */
static inline uint16_t vxlan_sport(uint32_t flow_hash)
{
	return (uint16_t)(VXLAN_SPORT_FIRST | flow_hash >> 18);
}

#endif
