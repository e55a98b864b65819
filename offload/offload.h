/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work that hardware can do for tenants: turns a tenant into a list of rules in a form from which
 * rte_flow and tc flower rules can be made. The list also names what no rule can express and what
 * stays in software.
 *
 * Rules act on packets received on a LAN port, before software gets them:
 *
 *   pass     to software; shields the packet from rules of lower priority
 *   drop     software would drop it as well
 *   forward  VXLAN off, VLAN on, or the reverse, to a host whose place is configured;
 *            software would send the same frame
 *
 * Software never relies on a rule. A drop may match fewer packets than the policy denies, and a
 * pass more than it allows, but a drop never matches an allowed packet: an ACL's deny is correct
 * only together with the passes of earlier allow rules that overlap it. offload_needs tells which
 * those are; a drop may be installed only while all of them are.
 *
 * ACL drops and forwarding cover RoCEv2 (UDP to port 4791) only: other traffic is small and has
 * exceptions (ARP, neighbor discovery, the gateway's own addresses) that software knows.
 *
 * Thread: any but a worker's, one at a time for each list. Functions work on their arguments alone.
 */
#ifndef OFFLOAD_OFFLOAD_H
#define OFFLOAD_OFFLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "rwy/err.h"
#include "rwy/ip.h"
#include "tenant/range.h"
#include "tenant/tenant.h"

#define OFFLOAD_SELF_MAX 128
#define OFFLOAD_LEVELS   16 /* priorities that one ACL may use */

/* Priorities for backends. Those of forwarding come first, so that a device that does not forward
 * can subtract them. */
#define OFFLOAD_PRIO_TTL     0
#define OFFLOAD_PRIO_FORWARD 1
#define OFFLOAD_PRIO_ACL     2
#define OFFLOAD_PRIO_VTEP    (OFFLOAD_PRIO_ACL + OFFLOAD_LEVELS)
#define OFFLOAD_PRIO_FOREIGN (OFFLOAD_PRIO_VTEP + 1)
#define OFFLOAD_PRIO_UNKNOWN (OFFLOAD_PRIO_VTEP + 2)
#define OFFLOAD_PRIOS        (OFFLOAD_PRIO_VTEP + 3)

/* The encapsulation in which a packet is seen. */
enum offload_place { OFFLOAD_IN_VXLAN, OFFLOAD_IN_VLAN };

/* X(enumerator, name, sentence) */
#define OFFLOAD_WHATS(X)                                                                                     \
	X(OFFLOAD_ACL, "acl", "a rule of the tenant's ACL")                                                  \
	X(OFFLOAD_VTEP, "vtep", "the tenant's VTEPs, and packets from others")                               \
	X(OFFLOAD_VNI, "unknown-vni", "VXLAN with an unknown VNI")                                           \
	X(OFFLOAD_FORWARD, "forward", "between two hosts with configured locations")                         \
	X(OFFLOAD_TTL, "ttl", "packets without hops left, which must not be forwarded")
enum offload_what {
#define X(e, n, s) e,
	OFFLOAD_WHATS(X)
#undef X
	    OFFLOAD_WHAT_COUNT
};
/* The name for API and CLI; static text. */
const char *offload_what_name(enum offload_what w);

#define OFFLOAD_ACTS(X)                                                                                      \
	X(OFFLOAD_NOTHING, "software", "left to software")                                                   \
	X(OFFLOAD_PASS, "pass", "to software")                                                               \
	X(OFFLOAD_DROP, "drop", "dropped")                                                                   \
	X(OFFLOAD_TO_VLAN, "to-vlan", "VXLAN removed, sent on the VLAN")                                     \
	X(OFFLOAD_TO_VXLAN, "to-vxlan", "VLAN taken off, sent in VXLAN")
enum offload_act {
#define X(e, n, s) e,
	OFFLOAD_ACTS(X)
#undef X
	    OFFLOAD_ACT_COUNT
};
const char *offload_act_name(enum offload_act a);

/* Reasons why something stays in software before any hardware is asked. */
#define OFFLOAD_LEFTS(X)                                                                                     \
	X(OFFLOAD_LEFT_NOT, "it is not")                                                                     \
	X(OFFLOAD_LEFT_NOT_ROCE, "it denies only packets that are not RoCE")                                 \
	X(OFFLOAD_LEFT_UD, "datagrams to QP1 and to others are denied differently")                          \
	X(OFFLOAD_LEFT_MASKS, "its ports and operations need too many masks")                                \
	X(OFFLOAD_LEFT_LEVELS, "allow and deny alternate too often")                                         \
	X(OFFLOAD_LEFT_MANY, "the tenant needs more rules than a tenant may have")                           \
	X(OFFLOAD_LEFT_DENIED, "the ACL denies a part of it")                                                \
	X(OFFLOAD_LEFT_DSCP, "the tenant's policy for DSCP or PCP changes packets")                          \
	X(OFFLOAD_LEFT_SELF, "the gateway has no address of the VTEP's family")
enum offload_left {
#define X(e, s) e,
	OFFLOAD_LEFTS(X)
#undef X
	    OFFLOAD_LEFT_COUNT
};
const char *offload_left_text(enum offload_left w);

/* The packets that a rule matches. A field that is 0 (prefix: of length 0) matches everything
 * unless noted. There is no padding: matches are compared as bytes. */
struct offload_match {
	uint32_t vni;         /* IN_VXLAN */
	uint32_t opcode;      /* first byte of the BTH */
	uint32_t opcode_mask; /* 0xff: exactly this opcode */
	uint16_t vlan;        /* IN_VLAN; 0: any */
	uint16_t sport;       /* inner UDP source port under the mask */
	uint16_t sport_mask;
	uint8_t place;          /* enum offload_place */
	uint8_t family;         /* 4 or 6; 0: any inner frame */
	uint8_t roce;           /* UDP to port 4791 */
	uint8_t whole;          /* the packet is not a fragment */
	uint8_t qp1;            /* BTH: the destination is QP 1 */
	uint8_t ttl_ends;       /* TTL or hop limit is 0 or 1 */
	uint8_t by_mac, pad[3]; /* src_mac and dst_mac count */
	uint8_t src_mac[6], dst_mac[6];
	struct prefix src, dst; /* inner addresses, of `family` */
	uint8_t pad2[2];
	struct rwy_ip self, vtep; /* IN_VXLAN: outer destination (never all 0) and outer source */
};

/* TO_VLAN, TO_VXLAN: the new headers; TTL or hop limit is reduced by 1. */
struct offload_to {
	uint32_t vni;
	uint16_t vlan;
	uint8_t src_mac[6], dst_mac[6]; /* inner */
	uint8_t pad[2];
	struct rwy_ip self, vtep; /* outer source and outer destination */
};

struct offload_rule {
	/* identity: two rules are the same when these fields are equal */
	struct offload_match match;
	struct offload_to to;
	uint16_t prio; /* lowest first; rules of equal priority do not overlap, or agree */
	uint8_t what;  /* enum offload_what */
	uint8_t act;   /* enum offload_act */
	uint8_t left;  /* enum offload_left; only for OFFLOAD_NOTHING */
	uint8_t pad[3];
	/* for the operator */
	uint32_t tenant; /* index; 0: all tenants */
	int32_t item;    /* ACL rule from 0; -1: the ACL's default, or no ACL */
	uint64_t id;     /* hash of the identity; almost certainly unique */
};
/* True if the rules have the same identity. */
bool offload_rule_same(const struct offload_rule *a, const struct offload_rule *b);

/* Whether `drop` (or a forward) may be installed only while `pass` is. Both are of the present
 * policy. */
bool offload_needs(const struct offload_rule *drop, const struct offload_rule *pass);

struct offload_cfg {
	struct rwy_ip self[OFFLOAD_SELF_MAX]; /* LAN addresses of the gateway: its own VTEPs */
	unsigned selfs;
	bool forward; /* forward between VTEPs and VLAN, as software does */
	/* the port's MAC: the gateway's on each VLAN; behind VTEPs it has the tenant's */
	uint8_t mac[6];
	unsigned tenant_max; /* most rules of one tenant, 1 and above */
	/* most rules that one ACL rule may become per place and family, 1 and above */
	unsigned masks_max;
};
/* Defaults: no addresses, no forwarding, 1024 rules, 32 masks. */
void offload_cfg_default(struct offload_cfg *cfg);

struct offload_list {
	struct offload_rule *rule; /* malloced; freed by offload_list_fini */
	unsigned n, room;
};
void offload_list_fini(struct offload_list *l);

/* Append the rules of one tenant; of all tenants (index 0). RWY_ENOMEM: the list is unchanged. */
RWY_MUST_CHECK int offload_tenant(
    struct offload_list *l, const struct offload_cfg *cfg, const struct tenant *t);
RWY_MUST_CHECK int offload_common(
    struct offload_list *l, const struct offload_cfg *cfg, const struct tenant_set *s);

#endif
