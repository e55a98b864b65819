/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hardware rules as tc flower filters, for a switch port that the kernel drives (eSwitch
 * representor). The kernel hands each filter to the driver and reports whether the driver took it;
 * other filters work in the kernel. Filters on VXLAN are on a vxlan device in collect-metadata mode
 * (it removes the outer header and keeps its values), those on VLANs on the switch port.
 *
 * No DPDK. libnl carries the messages; rtnl_flower of libnl 3.7 supports neither tunnel keys nor
 * ports, so flower.c writes the attributes one by one.
 *
 * Thread: one at a time.
 */
#ifndef GATEWAY_OFFLOAD_TC_H
#define GATEWAY_OFFLOAD_TC_H

#include <net/if.h>

#include "offload/sync.h"

/* Our filters have preferences from here on, three per priority (IPv4, IPv6, other). Filters of
 * others with lower preferences come before them, with higher ones after. */
#define OFFLOAD_TC_PREF  0x6000
#define OFFLOAD_TC_PREFS (OFFLOAD_PRIOS * 3)

struct offload_tc;
struct offload_tc_cfg {
	char port[IF_NAMESIZE];  /* the switch port */
	char vxlan[IF_NAMESIZE]; /* "": found, or made and removed again */
	bool skip_hw;            /* only the kernel, for tests */
};

/* ctx of offload_tc_ops is struct offload_tc. RWY_ENOENT, RWY_EINVAL, RWY_ENOMEM with `why`, of
 * OFFLOAD_WHY bytes. Without a vxlan device it works and refuses rules for VXLAN. */
RWY_MUST_CHECK int offload_tc_new(struct offload_tc **out, const struct offload_tc_cfg *cfg, char *why);
void offload_tc_free(struct offload_tc *t); /* does not remove filters: flush first */
extern const struct offload_ops offload_tc_ops;
/* Returns whether a device was recreated with another number: its filters are gone. */
bool offload_tc_changed(struct offload_tc *t);
/* The devices in use, and why there is none for VXLAN ("": there is one). */
const char *offload_tc_port(const struct offload_tc *t);
const char *offload_tc_vxlan(const struct offload_tc *t);
const char *offload_tc_no_vxlan(const struct offload_tc *t);

/* --- private to tc.c, flower.c, vxlan.c ------------------------------------------------------- */

struct nl_msg;
struct nl_sock;
struct offload_tc_devs {
	int port, vxlan; /* interface numbers; 0: none */
};
/* Returns the EtherType of a filter, host order: the kernel sorts by it. */
uint16_t offload_flower_protocol(const struct offload_rule *r);
/* Writes match and actions as TCA_OPTIONS of a message that has its header. RWY_EINVAL with `why`:
 * flower cannot express it; RWY_ENOMEM: it does not fit the message. */
RWY_MUST_CHECK int offload_flower_put(struct nl_msg *m, const struct offload_rule *r,
    const struct offload_tc_devs *devs, uint32_t flags, char *why);

/* Returns the number of a vxlan device that takes all VXLAN: of that name; if the name is empty, of
 * any or of a new one (*made). Fills in the name. 0 with `why`: none. */
int offload_vxlan_open(struct nl_sock *sk, char name[IF_NAMESIZE], bool *made, char *why);
/* Deletes a device that offload_vxlan_open() made. */
void offload_vxlan_delete(struct nl_sock *sk, int ifindex);

#endif
