/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames as hosts and their VTEPs make them, byte by byte: not by the functions that are tested. Each
 * function returns the length of what it wrote.
 */
#ifndef TESTS_COMPONENT_FRAMES_H
#define TESTS_COMPONENT_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "rwy/ip.h"

#define FR_MAX 1600

/* RC WRITE ONLY of `payload` bytes of value `fill`, from the IP header on, with a right ICRC. ecn: 0..3. */
struct fr_roce {
	struct rwy_ip src, dst; /* of one family */
	uint16_t sport;
	uint32_t dqpn, psn;
	uint32_t payload; /* a multiple of 4 */
	uint8_t fill, tos;
};
uint32_t fr_write(uint8_t *ip, const struct fr_roce *r);
/* The responder's ACK; tos, payload, fill do not matter. */
uint32_t fr_ack(uint8_t *ip, const struct fr_roce *r, uint32_t msn);
/* UDP, to any port. */
uint32_t fr_udp(uint8_t *ip, const struct rwy_ip *src, const struct rwy_ip *dst, uint16_t sport,
    uint16_t dport, uint32_t payload);
/* ARP, from the operation's Ethernet payload on. */
uint32_t fr_arp(uint8_t *p, uint8_t op, const uint8_t smac[6], const struct rwy_ip *sender,
    const uint8_t tmac[6], const struct rwy_ip *target);

/* Ethernet in front of `len` bytes; vid 0: untagged. */
uint32_t fr_eth(uint8_t *out, const uint8_t dst[6], const uint8_t src[6], uint16_t vid, uint16_t type,
    const uint8_t *data, uint32_t len);
/* Outer Ethernet, IP, UDP and VXLAN in front of an inner frame. */
struct fr_outer {
	uint8_t dmac[6], smac[6];
	struct rwy_ip src, dst;
	uint32_t vni;
	uint8_t tos;
	uint8_t flags; /* of VXLAN; 0: 0x08 */
};
uint32_t fr_vxlan(uint8_t *out, const struct fr_outer *o, const uint8_t *inner, uint32_t len);

/* A received frame, taken apart. */
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
	uint16_t type;        /* of the innermost EtherType */
	const uint8_t *net;   /* behind it */
	uint32_t net_len;
};
/* False: lengths, checksums or fixed fields are not what they must be. */
bool fr_read(const uint8_t *frame, uint32_t len, struct fr_seen *s);

#endif
