/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MAC addresses of hosts on the LAN: ARP (RFC 826) for IPv4, neighbour discovery (RFC 4861) for
 * IPv6. It answers for an address that the kernel does not have. Frames go out by the socket of
 * the LAN; the caller receives them.
 */
#ifndef TOOLS_REPLAY_LIVE_NEIGH_H
#define TOOLS_REPLAY_LIVE_NEIGH_H

#include "tools/replay/live/raw.h"

/* Asks everybody for the MAC address of `hop`. */
void rp_neigh_ask(const struct rp_lan *l, const struct rwy_ip *hop);
/*
 * A frame of the LAN: answers who asks for our address, if the kernel does not. True: it has the
 * MAC address of `hop` (NULL: nobody is looked for), which is then in l->next_hop.
 */
bool rp_neigh_take(struct rp_lan *l, const uint8_t *frame, uint32_t len, const struct rwy_ip *hop);

#endif
