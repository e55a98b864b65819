/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For the tests of offload/: random sets of tenants, random packets near the edges of their rules,
 * the software's verdict on a packet (by the plain matcher), and a device that matches rules as
 * hardware does.
 */
#ifndef TESTS_LIB_OFFLOAD_WORLD_H
#define TESTS_LIB_OFFLOAD_WORLD_H

#include "tests/lib/acl_rand.h"
#include "offload/sync.h"

#define OW_TENANTS 4
#define OW_RULES   12
#define OW_DEVICE  4096

struct ow_tenant { /* the arrays of a random tenant's configuration */
	struct tenant_cfg cfg;
	struct tenant_prefix prefix[3];
	struct rwy_ip vtep[3];
	struct tenant_host host[4];
	struct acl_rule rule[OW_RULES];
};

struct ow_pkt {
	enum offload_place place;
	struct rwy_ip self, vtep;
	uint32_t vni, dqpn;
	uint16_t vlan;
	struct acl_key k; /* cls: the software's */
	uint8_t opcode, ttl;
	bool roce, fragment, ext; /* ext: UDP after IPv6 extension headers, which hardware finds */
	uint8_t src_mac[6], dst_mac[6];
};

/* simple: ACLs that hardware can express exactly. */
void ow_tenant_rand(struct ow_tenant *t, unsigned number, bool simple, uint32_t *seed);
void ow_cfg(struct offload_cfg *cfg);
void ow_pkt_rand(struct ow_pkt *p, const struct tenant_set *s, uint32_t *seed);
uint32_t ow_rand(uint32_t *seed);

/* True if the policy denies it: foreign VNI or VTEP, or the ACL. A packet that is not for us, or on
 * a VLAN of no tenant, is not denied. */
bool ow_denied(const struct tenant_set *s, const struct ow_pkt *p);
/* True if software would send it as `to` says. */
bool ow_forwards(const struct tenant_set *s, const struct ow_pkt *p, const struct offload_rule *r);

/* The first rule that matches; NULL: none, so the packet goes to software. */
const struct offload_rule *ow_match(
    const struct offload_rule *const *rule, unsigned n, const struct ow_pkt *p);
/* Fails the test if hardware with these rules contradicts the policy; counts drops and forwards. */
void ow_check(const struct tenant_set *s, const struct offload_rule *const *rule, unsigned n,
    const struct ow_pkt *p, uint64_t *drops, uint64_t *forwards);

#endif
