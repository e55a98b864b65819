/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to arp*.c. */
#ifndef TENANT_ARP_INT_H
#define TENANT_ARP_INT_H

#include "rwy/ether.h"
#include "tenant/arp.h"

#define ARP_LEN    28
#define ND_ICMP6   58
#define ND_SOLICIT 135
#define ND_ADVERT  136
#define ND_LEN     24 /* without options */

extern const uint8_t arp_broadcast[6];
bool arp_ip_none(const struct rwy_ip *a);
void arp_group_of(const struct rwy_ip *a, struct rwy_ip *group, uint8_t mac[6]);
uint32_t arp_make_answer(const uint8_t mac[6], const struct arp_msg *m, bool own, uint16_t tci, uint8_t *out);

#endif
