/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of hosts and VTEPs, byte by byte, without the functions under test. Each function returns
 * the length that it wrote.
 */
#ifndef TESTS_COMPONENT_FRAMES_H
#define TESTS_COMPONENT_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "rwy/ip.h"

#define FR_MAX 1600

/* RC WRITE ONLY with `payload` bytes of value `fill`, from the IP header on, with a valid ICRC.
 * ecn: 0..3. */
struct fr_roce {
	struct rwy_ip src, dst; /* of one family */
	uint16_t sport;
	uint32_t dqpn, psn;
	uint32_t payload; /* a multiple of 4 */
	uint8_t fill, tos;
};
uint32_t fr_write(uint8_t *ip, const struct fr_roce *r);
/* The responder's ACK; tos, payload and fill are ignored. */
uint32_t fr_ack(uint8_t *ip, const struct fr_roce *r, uint32_t msn);
/* UDP, to any port. */
uint32_t fr_udp(uint8_t *ip, const struct rwy_ip *src, const struct rwy_ip *dst, uint16_t sport,
    uint16_t dport, uint32_t payload);
/* ARP, from the Ethernet payload on. */
uint32_t fr_arp(uint8_t *p, uint8_t op, const uint8_t smac[6], const struct rwy_ip *sender,
    const uint8_t tmac[6], const struct rwy_ip *target);

/* Ethernet header before `len` bytes; vid 0: untagged. */
uint32_t fr_eth(uint8_t *out, const uint8_t dst[6], const uint8_t src[6], uint16_t vid, uint16_t type,
    const uint8_t *data, uint32_t len);
/* Outer Ethernet, IP, UDP and VXLAN before an inner frame. */
struct fr_outer {
	uint8_t dmac[6], smac[6];
	struct rwy_ip src, dst;
	uint32_t vni;
	uint8_t tos;
	uint8_t flags; /* of VXLAN; 0: 0x08 */
};
uint32_t fr_vxlan(uint8_t *out, const struct fr_outer *o, const uint8_t *inner, uint32_t len);

/* A received frame, parsed. */
struct fr_seen {
	const uint8_t *eth; /* outer */
	uint16_t vid;       /* of the outer tag; 0: none */
	bool vxlan;
	const uint8_t *outer; /* VXLAN: outer IP header */
	uint8_t outer_tos;
	uint16_t outer_sport;
	struct rwy_ip outer_src, outer_dst;
	uint32_t vni;
	const uint8_t *inner; /* VXLAN: inner Ethernet header; else eth */
	uint16_t type;        /* innermost EtherType */
	const uint8_t *net;   /* the bytes after it */
	uint32_t net_len;
};
/* Parses a frame. False: wrong lengths, checksums or fixed fields. */
bool fr_read(const uint8_t *frame, uint32_t len, struct fr_seen *s);

#endif
