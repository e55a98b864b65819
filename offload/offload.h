/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work that hardware can do for the tenants: from a tenant to a list of rules in a form that rte_flow
 * and tc flower can both be made from. What cannot be said exactly is in the list, too, as left to software.
 *
 * Rules act on what a LAN port receives, before software sees it:
 *
 *   pass     to software; shields what follows it in priority
 *   drop     software would have dropped it, too
 *   forward  VXLAN off, VLAN on, or the other way round, to a host whose place is configured; software would
 *            have sent the same frame
 *
 * Software never relies on a rule being there. A drop may match fewer packets than the policy denies, a pass
 * more than it allows, but a drop never one that is allowed: an ACL's deny is only as good as the passes of
 * the allow rules in front of it that it could meet. offload_needs says which those are; a drop may be
 * installed only while they all are.
 *
 * Only RoCEv2 (UDP to port 4791) is dropped by ACLs and forwarded: the rest is little and has exceptions
 * (ARP, neighbour discovery, the gateway's own addresses) that software knows.
 *
 * Thread: the control thread's. Functions work on their arguments alone.
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
#define OFFLOAD_LEVELS   16 /* of priority that one ACL may take */

/* Priorities, for backends: those of forwarding come first, so that a device that does not forward can
 * subtract them. */
#define OFFLOAD_PRIO_TTL     0
#define OFFLOAD_PRIO_FORWARD 1
#define OFFLOAD_PRIO_ACL     2
#define OFFLOAD_PRIO_VTEP    (OFFLOAD_PRIO_ACL + OFFLOAD_LEVELS)
#define OFFLOAD_PRIO_FOREIGN (OFFLOAD_PRIO_VTEP + 1)
#define OFFLOAD_PRIO_UNKNOWN (OFFLOAD_PRIO_VTEP + 2)
#define OFFLOAD_PRIOS        (OFFLOAD_PRIO_VTEP + 3)

/* Where a packet is seen. */
enum offload_place { OFFLOAD_IN_VXLAN, OFFLOAD_IN_VLAN };

/* X(enumerator, name, sentence) */
#define OFFLOAD_WHATS(X)                                                                                     \
	X(OFFLOAD_ACL, "acl", "a rule of the tenant's ACL")                                                  \
	X(OFFLOAD_VTEP, "vtep", "the tenant's VTEPs, and what comes from others")                            \
	X(OFFLOAD_VNI, "unknown-vni", "VXLAN of nobody's VNI")                                               \
	X(OFFLOAD_FORWARD, "forward", "between two hosts whose places are configured")                       \
	X(OFFLOAD_TTL, "ttl", "packets at the end of their hops, which forwarding must not take")
enum offload_what {
#define X(e, n, s) e,
	OFFLOAD_WHATS(X)
#undef X
	    OFFLOAD_WHAT_COUNT
};
const char *offload_what_name(enum offload_what w);

#define OFFLOAD_ACTS(X)                                                                                      \
	X(OFFLOAD_NOTHING, "software", "left to software")                                                   \
	X(OFFLOAD_PASS, "pass", "to software")                                                               \
	X(OFFLOAD_DROP, "drop", "dropped")                                                                   \
	X(OFFLOAD_TO_VLAN, "to-vlan", "VXLAN taken off, sent on the VLAN")                                   \
	X(OFFLOAD_TO_VXLAN, "to-vxlan", "VLAN taken off, sent in VXLAN")
enum offload_act {
#define X(e, n, s) e,
	OFFLOAD_ACTS(X)
#undef X
	    OFFLOAD_ACT_COUNT
};
const char *offload_act_name(enum offload_act a);

/* Why something is left to software before any hardware was asked. */
#define OFFLOAD_LEFTS(X)                                                                                     \
	X(OFFLOAD_LEFT_NOT, "it is not")                                                                     \
	X(OFFLOAD_LEFT_NOT_ROCE, "it denies only what is not RoCE")                                          \
	X(OFFLOAD_LEFT_UD, "datagrams to QP1 and to others are denied differently")                          \
	X(OFFLOAD_LEFT_MASKS, "its ports and operations need too many masks")                                \
	X(OFFLOAD_LEFT_LEVELS, "allow and deny alternate too often")                                         \
	X(OFFLOAD_LEFT_MANY, "the tenant needs more rules than one may have")                                \
	X(OFFLOAD_LEFT_DENIED, "the ACL denies a part of it")                                                \
	X(OFFLOAD_LEFT_DSCP, "the tenant's DSCP policy changes packets")                                     \
	X(OFFLOAD_LEFT_SELF, "the gateway has no address of the VTEP's family")
enum offload_left {
#define X(e, s) e,
	OFFLOAD_LEFTS(X)
#undef X
	    OFFLOAD_LEFT_COUNT
};
const char *offload_left_text(enum offload_left w);

/* The packets that a rule matches. Fields that are 0 (prefixes: of length 0) match everything, unless it says
 * otherwise. No padding: matches are compared as bytes. */
struct offload_match {
	uint32_t vni;         /* IN_VXLAN */
	uint32_t opcode;      /* bth: of the BTH, first byte */
	uint32_t opcode_mask; /* 0xff: this one */
	uint16_t vlan;        /* IN_VLAN; 0: any */
	uint16_t sport;       /* inner UDP source port under the mask */
	uint16_t sport_mask;
	uint8_t place;          /* enum offload_place */
	uint8_t family;         /* 4, 6; 0: whatever the inner frame carries */
	uint8_t roce;           /* UDP to port 4791 */
	uint8_t whole;          /* not a fragment */
	uint8_t qp1;            /* BTH: destination QP 1 */
	uint8_t ttl_ends;       /* TTL or hop limit is 0 or 1 */
	uint8_t by_mac, pad[3]; /* the next two count */
	uint8_t src_mac[6], dst_mac[6];
	struct prefix src, dst; /* inner; of `family` */
	uint8_t pad2[2];
	struct rwy_ip self, vtep; /* IN_VXLAN: outer destination (never all 0) and source */
};

/* TO_VLAN, TO_VXLAN: what the frame becomes; TTL or hop limit - 1. */
struct offload_to {
	uint32_t vni;
	uint16_t vlan;
	uint8_t src_mac[6], dst_mac[6]; /* inner */
	uint8_t pad[2];
	struct rwy_ip self, vtep; /* outer source and destination */
};

struct offload_rule {
	/* what it is: two rules are the same one when these are equal */
	struct offload_match match;
	struct offload_to to;
	uint16_t prio; /* the lowest number is looked at first; those of one number do not meet, or agree */
	uint8_t what;  /* enum offload_what */
	uint8_t act;   /* enum offload_act */
	uint8_t left;  /* enum offload_left; for OFFLOAD_NOTHING */
	uint8_t pad[3];
	/* what people want to know of it */
	uint32_t tenant; /* index; 0: all */
	int32_t item;    /* ACL rule from 0; -1: the ACL's default, or no ACL */
	uint64_t id;     /* hash of what it is; differs from others' with all likelihood */
};
bool offload_rule_same(const struct offload_rule *a, const struct offload_rule *b);

/* `drop` (or forward) may be installed only while `pass` is: both of the present policy. */
bool offload_needs(const struct offload_rule *drop, const struct offload_rule *pass);

struct offload_cfg {
	struct rwy_ip self[OFFLOAD_SELF_MAX]; /* the gateway's LAN addresses: VTEPs of its own */
	unsigned selfs;
	bool forward;        /* between VTEPs and VLAN, as software does */
	uint8_t mac[6];      /* the port's: the gateway's on every VLAN. Behind VTEPs it has the tenant's. */
	unsigned tenant_max; /* rules of one tenant at most, 1 .. */
	unsigned masks_max;  /* rules that one ACL rule may become for one place and family, 1 .. */
};
void offload_cfg_default(struct offload_cfg *cfg); /* no addresses, no forwarding, 1024 rules, 32 */

struct offload_list {
	struct offload_rule *rule; /* malloced; offload_list_fini */
	unsigned n, room;
};
void offload_list_fini(struct offload_list *l);

/* Appends the rules of one tenant; of all (tenant index 0). RWY_ENOMEM: the list is as before. */
RWY_MUST_CHECK int offload_tenant(
    struct offload_list *l, const struct offload_cfg *cfg, const struct tenant *t);
RWY_MUST_CHECK int offload_common(
    struct offload_list *l, const struct offload_cfg *cfg, const struct tenant_set *s);

#endif
