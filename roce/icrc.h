/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RoCEv2 invariant CRC (IBA A17.3.3): CRC-32 over 8 bytes of 0xff and the packet from the IP header
 * up to the ICRC. Fields that a router may change count as ones: IPv4 TOS, TTL, header checksum;
 * IPv6 traffic class, flow label, hop limit; UDP checksum; BTH byte 4 (FECN, BECN, reserved). It is
 * stored little-endian.
 */
#ifndef ROCE_ICRC_H
#define ROCE_ICRC_H

#include <stdbool.h>
#include <stdint.h>

#include "roce/parse.h"

/* Returns the ICRC of the packet as a host integer; store it little-endian. */
uint32_t roce_icrc_compute(const struct roce_pkt *pkt);

/* True: the stored ICRC is that of the packet. Reads all of it, and changes nothing. */
bool roce_icrc_ok(const struct roce_pkt *pkt);

/*
 * The CRC-32 (rwy/crc32.h) of some bytes, and then of the whole packet as it is, its ICRC included:
 * `crc` is that of the bytes. Reads headers only; where the packet's ICRC is wrong, so is the
 * result. The packet has less than RWY_CRC32_LONG bytes.
 */
uint32_t roce_icrc_extend(uint32_t crc, const struct roce_pkt *pkt);

/*
 * A CRC-32 of what the packet asks for: opcode, extension headers and payload. Retransmissions have
 * the same, although AckReq or the IP identification may differ.
 */
uint32_t roce_content_crc(const struct roce_pkt *pkt);

/* Writes the computed ICRC into the packet. */
void roce_icrc_store(const struct roce_pkt *pkt);
/*
 * The same for an RC or XRC ACK (or NAK) without IP options, 44 bytes from `ip` on, or 64 with
 * IPv6, and 4 for the ICRC. Faster, for its length is known. UDP length must be set.
 */
void roce_icrc_store_ack(uint8_t *ip, bool is6);

/*
 * Corrects the stored ICRC after `n` bytes (1..16) at `at` (between the IP header and the ICRC)
 * changed from `before` to their present value, by the linearity of the CRC: crc(a ^ d) = crc(a) ^
 * crc0(d). The cost is constant and no payload is read. The caller has verified the packet before
 * the change: a bad ICRC stays bad. Masked fields in the range do no harm. A UDP checksum other
 * than 0 is corrected too (RFC 1624), for the changed bytes and the ICRC; so call this even when
 * only BECN changes. The IPv4 header checksum is left to the caller.
 */
void roce_icrc_adjust(const struct roce_pkt *pkt, const uint8_t *at, const uint8_t *before, unsigned n);

/* Sets or clears BTH AckReq in place, corrects the ICRC and updates pkt->ack_req. */
void roce_icrc_set_ackreq(struct roce_pkt *pkt, bool ack_req);

#endif
