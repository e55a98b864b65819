/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of a flow of rte_flow: see flow.h. */
#include "gateway/offload/flow.h"

#include <errno.h>
#include <netinet/in.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <stdio.h>
#include <string.h>

#define TCI_VID 0x0fff
#define FRAG4   0x3fff /* more fragments, offset */

/* --- patterns -------------------------------------------------------------------------------- */

void offload_pattern_item(
    struct offload_pattern *p, enum rte_flow_item_type type, const void *spec, const void *mask)
{
	p->item[p->n++] = (struct rte_flow_item){.type = type, .spec = spec, .mask = mask};
}

void offload_pattern_begin(struct offload_pattern *p)
{
	memset(p, 0, sizeof(*p));
	offload_pattern_item(p, RTE_FLOW_ITEM_TYPE_ETH, NULL, NULL);
}

void offload_pattern_end(struct offload_pattern *p)
{
	offload_pattern_item(p, RTE_FLOW_ITEM_TYPE_END, NULL, NULL);
}

/* Some drivers refuse a mask of zeros; none refuses an item without one. */
void offload_pattern_vlan(struct offload_pattern *p, uint16_t vid)
{
	p->vlan.tci = rte_cpu_to_be_16(vid);
	p->vlan_mask.tci = RTE_BE16(TCI_VID);
	offload_pattern_item(p, RTE_FLOW_ITEM_TYPE_VLAN, vid ? &p->vlan : NULL, vid ? &p->vlan_mask : NULL);
}

static void prefix_mask(uint8_t out[16], unsigned len)
{
	memset(out, 0, 16);
	for (unsigned i = 0; i < len; i++)
		out[i / 8] |= (uint8_t)(0x80 >> i % 8);
}

void offload_pattern_ip(struct offload_pattern *p, unsigned k, const struct offload_ip_match *m)
{
	uint8_t s[16], d[16];

	prefix_mask(s, m->src.len);
	prefix_mask(d, m->dst.len);
	if (m->is4) {
		memcpy(&p->ip4[k].hdr.src_addr, m->src.addr.b + 12, 4);
		memcpy(&p->ip4[k].hdr.dst_addr, m->dst.addr.b + 12, 4);
		memcpy(&p->ip4_mask[k].hdr.src_addr, s + 12, 4);
		memcpy(&p->ip4_mask[k].hdr.dst_addr, d + 12, 4);
		p->ip4[k].hdr.next_proto_id = m->udp ? IPPROTO_UDP : 0;
		p->ip4_mask[k].hdr.next_proto_id = m->udp ? 0xff : 0;
		p->ip4_mask[k].hdr.fragment_offset = m->whole ? RTE_BE16(FRAG4) : 0;
		offload_pattern_item(p, RTE_FLOW_ITEM_TYPE_IPV4, &p->ip4[k], &p->ip4_mask[k]);
		return;
	}
	memcpy(p->ip6[k].hdr.src_addr, m->src.addr.b, 16);
	memcpy(p->ip6[k].hdr.dst_addr, m->dst.addr.b, 16);
	memcpy(p->ip6_mask[k].hdr.src_addr, s, 16);
	memcpy(p->ip6_mask[k].hdr.dst_addr, d, 16);
	/* next header: no rule for packets with extension headers */
	p->ip6[k].hdr.proto = m->udp ? IPPROTO_UDP : 0;
	p->ip6_mask[k].hdr.proto = m->udp ? 0xff : 0;
	offload_pattern_item(p, RTE_FLOW_ITEM_TYPE_IPV6, &p->ip6[k], &p->ip6_mask[k]);
}

void offload_pattern_udp(
    struct offload_pattern *p, unsigned k, uint16_t sport, uint16_t sport_mask, uint16_t dport)
{
	p->udp[k].hdr.src_port = rte_cpu_to_be_16(sport);
	p->udp_mask[k].hdr.src_port = rte_cpu_to_be_16(sport_mask);
	p->udp[k].hdr.dst_port = rte_cpu_to_be_16(dport);
	p->udp_mask[k].hdr.dst_port = RTE_BE16(0xffff);
	offload_pattern_item(p, RTE_FLOW_ITEM_TYPE_UDP, &p->udp[k], &p->udp_mask[k]);
}

/* --- flows ----------------------------------------------------------------------------------- */

static int refused(int rc, const struct rte_flow_error *err, char *why)
{
	snprintf(why, OFFLOAD_WHY, "%s", err->message ? err->message : strerror(rc < 0 ? -rc : rc));
	if (rc == -ENOSPC || rc == -ENOMEM)
		return RWY_ENOMEM;
	return rc == -EAGAIN || rc == -EBUSY || rc == -EEXIST || rc == -EIO ? RWY_EAGAIN : RWY_EINVAL;
}

int offload_flow_new(struct rte_flow **out, uint16_t port, uint32_t priority, const struct offload_pattern *p,
    struct rte_flow_action act, bool *counts, char why[OFFLOAD_WHY])
{
	const struct rte_flow_attr attr = {.ingress = 1, .priority = priority};
	const struct rte_flow_action acts[3] = {
	    {.type = RTE_FLOW_ACTION_TYPE_COUNT}, act, {.type = RTE_FLOW_ACTION_TYPE_END}};
	struct rte_flow_error err = {0};
	bool ask = counts && rte_flow_validate(port, &attr, p->item, acts, &err) == 0;
	int rc = 0;

	if (counts)
		*counts = ask;
	err = (struct rte_flow_error){0};
	if (!ask)
		rc = rte_flow_validate(port, &attr, p->item, acts + 1, &err);
	if (rc)
		return refused(rc, &err, why);
	*out = rte_flow_create(port, &attr, p->item, acts + !ask, &err);
	return *out ? 0 : refused(-rte_errno, &err, why);
}

int offload_flow_del(uint16_t port, struct rte_flow *f)
{
	struct rte_flow_error err;
	int rc = rte_flow_destroy(port, f, &err);

	return rc && rc != -ENOENT ? RWY_EAGAIN : 0;
}

/* --- resets ---------------------------------------------------------------------------------- */

static int on_reset(uint16_t port, enum rte_eth_event_type type, void *arg, void *ret)
{
	struct offload_resets *r = arg;

	if (type != RTE_ETH_EVENT_RECOVERY_SUCCESS || !r->keeps)
		atomic_store(&r->seen, true);
	return 0;
}

void offload_resets_begin(struct offload_resets *r, uint16_t port)
{
	struct rte_eth_dev_info info;

	r->port = port;
	r->keeps = rte_eth_dev_info_get(port, &info) == 0 && info.dev_capa & RTE_ETH_DEV_CAPA_FLOW_RULE_KEEP;
	atomic_init(&r->seen, false);
	rte_eth_dev_callback_register(port, RTE_ETH_EVENT_INTR_RESET, on_reset, r);
	rte_eth_dev_callback_register(port, RTE_ETH_EVENT_RECOVERY_SUCCESS, on_reset, r);
}

void offload_resets_end(struct offload_resets *r)
{
	rte_eth_dev_callback_unregister(r->port, RTE_ETH_EVENT_INTR_RESET, on_reset, r);
	rte_eth_dev_callback_unregister(r->port, RTE_ETH_EVENT_RECOVERY_SUCCESS, on_reset, r);
}

bool offload_resets_seen(struct offload_resets *r)
{
	return atomic_exchange(&r->seen, false);
}
