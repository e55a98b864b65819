/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RoCEv2 invariant CRC (IBA A17.3.3): CRC-32 over 8 bytes of 0xff and the packet from the IP header to before
 * the ICRC, with the fields a router may change taken as ones: IPv4 TOS, TTL, header checksum; IPv6 traffic
 * class, flow label, hop limit; UDP checksum; BTH byte 4 (FECN, BECN, reserved). Stored little-endian.
 */
#ifndef ROCE_ICRC_H
#define ROCE_ICRC_H

#include <stdbool.h>
#include <stdint.h>

#include "roce/parse.h"

/* The ICRC of the packet, as a host integer; store it little-endian. */
uint32_t roce_icrc_compute(const struct roce_pkt *pkt);

bool roce_icrc_ok(const struct roce_pkt *pkt);

/* Writes the computed ICRC into the packet. */
void roce_icrc_store(const struct roce_pkt *pkt);

/*
 * Corrects the stored ICRC after `n` bytes (1..16) at `at` (between the IP header and the ICRC) changed from
 * `before` to what is there now, by the linearity of the CRC: crc(a ^ d) = crc(a) ^ crc0(d). Constant cost,
 * no payload is read. The caller has verified the packet before it changed it: a bad ICRC stays bad. Masked
 * fields in the range do no harm. A UDP checksum that is not 0 is corrected too (RFC 1624), for the changed
 * bytes and the ICRC; so whoever changes BECN alone still calls this. The IPv4 header checksum is the
 * caller's.
 */
void roce_icrc_adjust(const struct roce_pkt *pkt, const uint8_t *at, const uint8_t *before, unsigned n);

/* Sets or clears BTH AckReq in place and corrects the ICRC. pkt->ack_req follows. */
void roce_icrc_set_ackreq(struct roce_pkt *pkt, bool ack_req);

#endif
