/* SPDX-License-Identifier: Apache-2.0 */
/* Private to arp.c and arp_make.c. */
#ifndef TENANT_ARP_INT_H
#define TENANT_ARP_INT_H

#include "rwy/ether.h"
#include "tenant/arp.h"

#define ARP_LEN    28
#define ND_ICMP6   58
#define ND_SOLICIT 135
#define ND_ADVERT  136
#define ND_LEN     24 /* without options */

/* Whether a is the unspecified address of its family. */
bool arp_ip_none(const struct rwy_ip *a);
/* Computes the solicited-node group of an address (RFC 4291 2.7.1) and the group's MAC (RFC 2464
 * 7). */
void arp_group_of(const struct rwy_ip *a, struct rwy_ip *group, uint8_t mac[6]);
/* Writes the answer to *m from `mac` into out; `own`: for the gateway's own address. Returns its
 * length. */
uint32_t arp_make_answer(const uint8_t mac[6], const struct arp_msg *m, bool own, uint16_t tci, uint8_t *out);

#endif
