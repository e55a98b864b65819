/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A flow of rte_flow: its pattern, its creation, and whether the port lost its flows. rte.c makes
 * the tenants' rules from these pieces, queues.c those that sort datagrams by worker.
 *
 * Thread: one at a time for each port.
 */
#ifndef GATEWAY_OFFLOAD_FLOW_H
#define GATEWAY_OFFLOAD_FLOW_H

#include <rte_flow.h>
#include <stdatomic.h>

#include "offload/sync.h"

#define OFFLOAD_ITEMS 12

/* A pattern with the storage that its items point to: it must not be copied. */
struct offload_pattern {
	struct rte_flow_item item[OFFLOAD_ITEMS];
	unsigned n;
	struct rte_flow_item_vlan vlan, vlan_mask;
	struct rte_flow_item_ipv4 ip4[2], ip4_mask[2];
	struct rte_flow_item_ipv6 ip6[2], ip6_mask[2];
	struct rte_flow_item_udp udp[2], udp_mask[2];
	struct rte_flow_item_vxlan vxlan, vxlan_mask;
	struct rte_flow_item_raw raw, raw_mask;
	uint8_t bth[8], bth_mask[8];
};

/* Clears p and adds the Ethernet header. Add the others in the order of a frame, then the end. */
void offload_pattern_begin(struct offload_pattern *p);
void offload_pattern_item(
    struct offload_pattern *p, enum rte_flow_item_type type, const void *spec, const void *mask);
/* vid 0: a tag with any VLAN ID. */
void offload_pattern_vlan(struct offload_pattern *p, uint16_t vid);

struct offload_ip_match {
	bool is4;
	struct prefix src, dst; /* length 0: any */
	bool udp;               /* UDP follows the header at once */
	bool whole;             /* no fragments; IPv4 only */
};
/* k: the outer header (0) or the inner one (1). */
void offload_pattern_ip(struct offload_pattern *p, unsigned k, const struct offload_ip_match *m);
/* sport counts as far as the bits of its mask do. */
void offload_pattern_udp(
    struct offload_pattern *p, unsigned k, uint16_t sport, uint16_t sport_mask, uint16_t dport);
void offload_pattern_end(struct offload_pattern *p);

/*
 * Validates an ingress flow with one action, and creates it. counts: with a counter if the driver
 * can count, which *counts then says; NULL: without. Returns 0; with the device's words in `why`:
 * RWY_ENOMEM: no room; RWY_EAGAIN: not now; RWY_EINVAL: refused for good.
 */
RWY_MUST_CHECK int offload_flow_new(struct rte_flow **out, uint16_t port, uint32_t priority,
    const struct offload_pattern *p, struct rte_flow_action act, bool *counts, char why[OFFLOAD_WHY]);
/* Returns 0, also for a flow that was gone; RWY_EAGAIN: it may still be there. */
RWY_MUST_CHECK int offload_flow_del(uint16_t port, struct rte_flow *f);

/* Watches for resets of a port. The driver's thread sets `seen`. */
struct offload_resets {
	uint16_t port;
	bool keeps; /* the driver restores flows when it recovers */
	atomic_bool seen;
};
/* r must not move until offload_resets_end(). */
void offload_resets_begin(struct offload_resets *r, uint16_t port);
void offload_resets_end(struct offload_resets *r);
/* Returns whether the port lost its flows since the last call: their handles are void. */
bool offload_resets_seen(struct offload_resets *r);

#endif
