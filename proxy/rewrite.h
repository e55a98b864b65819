/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes fields of a RoCEv2 packet in place and corrects its checksums from the changed bytes: the
 * ICRC by the linearity of the CRC, the UDP checksum if there is one, the IPv4 header checksum. No
 * payload is read. A packet whose ICRC is bad before is bad afterwards.
 *
 * pkt: a packet that roce_parse() accepted. Any thread that owns the packet.
 */
#ifndef PROXY_REWRITE_H
#define PROXY_REWRITE_H

#include "roce/parse.h"

/* Writes n bytes (1..16, between the IP header and the ICRC) over those at `at`. */
void proxy_rewrite_bytes(const struct roce_pkt *pkt, uint8_t *at, const uint8_t *bytes, unsigned n);

/* Source or destination address, in the packet and in *pkt. The family must be the packet's. */
void proxy_rewrite_src(struct roce_pkt *pkt, const struct rwy_ip *src);
void proxy_rewrite_dst(struct roce_pkt *pkt, const struct rwy_ip *dst);

/* Destination QPN of the BTH, 24 bits, in the packet and in *pkt. */
void proxy_rewrite_dqpn(struct roce_pkt *pkt, uint32_t qpn);

#endif
