/* SPDX-License-Identifier: Apache-2.0 */
/* Ethernet: EtherTypes (IEEE 802.3 9.2, 802.1Q 9.6). */
#ifndef RWY_ETHER_H
#define RWY_ETHER_H

#define RWY_ETHER_IP4  0x0800
#define RWY_ETHER_ARP  0x0806
#define RWY_ETHER_VLAN 0x8100 /* customer tag */
#define RWY_ETHER_IP6  0x86dd
#define RWY_ETHER_QINQ 0x88a8 /* service tag */

/* The priority of a frame in code: this plus its PCP, 0..7 (802.1Q 9.6); 0: it had no VLAN tag. */
#define RWY_PCP_TAGGED 8u

#endif
