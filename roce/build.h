/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets that the gateway makes itself, from the IP header to the ICRC: ACK, NAK, RNR NAK,
 * replayed ATOMIC ACK, CNP, partial READ request; and those of a host that is replayed
 * (tools/replay/): READ responses, requests made anew.
 */
#ifndef ROCE_BUILD_H
#define ROCE_BUILD_H

#include <stdint.h>

#include "roce/parse.h"

/* Room for any packet made here: IPv6 40 + UDP 8 + BTH 12 + RETH 16 + ICRC 4, rounded up. */
#define ROCE_BUILD_MAX 96

/* Addresses of the packet to make. */
struct roce_addr {
	struct rwy_ip src, dst; /* both are of one family */
	uint32_t dqpn;
	uint16_t sport; /* UDP source port */
	uint16_t pkey;
	uint8_t tos; /* IPv4 TOS / IPv6 traffic class, ECN bits included */
	uint8_t ttl;
	bool migreq; /* BTH MigReq as the hosts use it: hardware sets it, Soft-RoCE does not */
};

/* Each returns the packet's length (<= ROCE_BUILD_MAX); `out` has room for ROCE_BUILD_MAX bytes. */
uint32_t roce_build_ack(
    uint8_t *out, const struct roce_addr *a, roce_psn psn, uint8_t syndrome, roce_msn msn);
/* The same for an XRC requester (IBA annex A14). */
uint32_t roce_build_xrc_ack(
    uint8_t *out, const struct roce_addr *a, roce_psn psn, uint8_t syndrome, roce_msn msn);
uint32_t roce_build_atomic_ack(
    uint8_t *out, const struct roce_addr *a, roce_psn psn, uint8_t syndrome, roce_msn msn, uint64_t original);
uint32_t roce_build_read_req(
    uint8_t *out, const struct roce_addr *a, roce_psn psn, uint64_t va, uint32_t rkey, uint32_t len);
/* Makes an RDMA WRITE ONLY without payload to address 0, rkey 0. len 0: legal and without effect
 * (IBA 9.7.4.1.5: a zero-length operation needs no rkey); it asks a responder which PSN it expects.
 * Other len: a request that no responder accepts: no memory has rkey 0, and DMA length and payload
 * differ. */
uint32_t roce_build_write_only(uint8_t *out, const struct roce_addr *a, roce_psn psn, uint32_t len);
/* IBA A17.9.3: BECN set, 16 zero bytes. */
uint32_t roce_build_cnp(uint8_t *out, const struct roce_addr *a);

/*
 * Packets with a payload. `out` has room for the payload and ROCE_BUILD_MAX bytes; both return the
 * packet's length. opcode: one of READ RESPONSE; syndrome and msn go into those that have an AETH.
 */
struct roce_read_resp {
	uint8_t opcode, syndrome;
	roce_psn psn;
	roce_msn msn;
	const uint8_t *payload; /* len bytes, 0..4096 */
	uint32_t len;
};
uint32_t roce_build_read_resp(uint8_t *out, const struct roce_addr *a, const struct roce_read_resp *r);
/*
 * The packet `like`, which roce_parse() accepted, for other addresses: opcode, solicited event,
 * AckReq, extension headers and payload are its own, the rest comes from `a` and `psn`. `out` has
 * room for like->len and 40 bytes.
 */
uint32_t roce_build_like(uint8_t *out, const struct roce_addr *a, const struct roce_pkt *like, roce_psn psn);

#endif
