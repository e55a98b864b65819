/* SPDX-License-Identifier: Apache-2.0 */
/* rte_flow: patterns and actions of a rule, and the flows made from them. */
#include "gateway/offload/rte.h"

#include <errno.h>
#include <rte_ethdev.h>
#include <rte_flow.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "roce/parse.h"
#include "rwy/endian.h"
#include "vxlan/vxlan.h"

#define ITEMS   12
#define QUEUES  64
#define TCI_VID 0x0fff
#define FRAG4   0x3fff /* more fragments, offset */

struct offload_rte {
	uint16_t port, vlan, queues;
	struct rte_flow **flow; /* indexed by handle */
	bool *counts;
	uint32_t room;
	bool is_tap;
	atomic_bool reset;
};

/* --- patterns -------------------------------------------------------------------------------- */

/* A pattern with the storage that its items point to. */
struct pattern {
	struct rte_flow_item item[ITEMS];
	unsigned n;
	struct rte_flow_item_eth eth[2];
	struct rte_flow_item_vlan vlan, vlan_mask;
	struct rte_flow_item_ipv4 ip4[2], ip4_mask[2];
	struct rte_flow_item_ipv6 ip6[2], ip6_mask[2];
	struct rte_flow_item_udp udp[2], udp_mask[2];
	struct rte_flow_item_vxlan vxlan, vxlan_mask;
	struct rte_flow_item_raw raw, raw_mask;
	uint8_t bth[8], bth_mask[8];
};

static void pattern_item(struct pattern *p, enum rte_flow_item_type type, const void *spec, const void *mask)
{
	p->item[p->n++] = (struct rte_flow_item){.type = type, .spec = spec, .mask = mask};
}

static void prefix_mask(uint8_t out[16], unsigned len)
{
	memset(out, 0, 16);
	for (unsigned i = 0; i < len; i++)
		out[i / 8] |= (uint8_t)(0x80 >> i % 8);
}

/* Adds one IP header, outer (0) or inner (1). */
static void item_ip(struct pattern *p, unsigned k, bool is4, const struct prefix *src,
    const struct prefix *dst, bool udp, bool whole)
{
	uint8_t s[16], d[16];

	prefix_mask(s, src->len);
	prefix_mask(d, dst->len);
	if (is4) {
		memcpy(&p->ip4[k].hdr.src_addr, src->addr.b + 12, 4);
		memcpy(&p->ip4[k].hdr.dst_addr, dst->addr.b + 12, 4);
		memcpy(&p->ip4_mask[k].hdr.src_addr, s + 12, 4);
		memcpy(&p->ip4_mask[k].hdr.dst_addr, d + 12, 4);
		p->ip4[k].hdr.next_proto_id = udp ? IPPROTO_UDP : 0;
		p->ip4_mask[k].hdr.next_proto_id = udp ? 0xff : 0;
		p->ip4_mask[k].hdr.fragment_offset = whole ? RTE_BE16(FRAG4) : 0;
		pattern_item(p, RTE_FLOW_ITEM_TYPE_IPV4, &p->ip4[k], &p->ip4_mask[k]);
		return;
	}
	memcpy(p->ip6[k].hdr.src_addr, src->addr.b, 16);
	memcpy(p->ip6[k].hdr.dst_addr, dst->addr.b, 16);
	memcpy(p->ip6_mask[k].hdr.src_addr, s, 16);
	memcpy(p->ip6_mask[k].hdr.dst_addr, d, 16);
	/* next header: no rule for packets with extension headers */
	p->ip6[k].hdr.proto = udp ? IPPROTO_UDP : 0;
	p->ip6_mask[k].hdr.proto = udp ? 0xff : 0;
	pattern_item(p, RTE_FLOW_ITEM_TYPE_IPV6, &p->ip6[k], &p->ip6_mask[k]);
}

static void item_vlan(struct pattern *p, uint16_t vid)
{
	p->vlan.tci = rte_cpu_to_be_16(vid);
	p->vlan_mask.tci = vid ? RTE_BE16(TCI_VID) : 0;
	pattern_item(p, RTE_FLOW_ITEM_TYPE_VLAN, &p->vlan, &p->vlan_mask);
}

static void outer(struct pattern *p, const struct offload_rte *o, const struct offload_match *m)
{
	const struct prefix self = {m->self, 128}, vtep = {m->vtep, 128};
	static const struct rwy_ip none;
	static const struct prefix any;

	pattern_item(p, RTE_FLOW_ITEM_TYPE_ETH, NULL, NULL);
	if (m->place == OFFLOAD_IN_VLAN) {
		item_vlan(p, m->vlan);
		return;
	}
	if (o->vlan)
		item_vlan(p, o->vlan);
	item_ip(p, 0, rwy_ip_is4(&m->self), rwy_ip_eq(&m->vtep, &none) ? &any : &vtep, &self, true, false);
	p->udp[0].hdr.dst_port = RTE_BE16(VXLAN_UDP_PORT);
	p->udp_mask[0].hdr.dst_port = RTE_BE16(0xffff);
	pattern_item(p, RTE_FLOW_ITEM_TYPE_UDP, &p->udp[0], &p->udp_mask[0]);
	rwy_put24(p->vxlan.vni, m->vni);
	memset(p->vxlan_mask.vni, m->vni ? 0xff : 0, 3);
	pattern_item(p, RTE_FLOW_ITEM_TYPE_VXLAN, &p->vxlan, &p->vxlan_mask);
	if (m->family)
		pattern_item(p, RTE_FLOW_ITEM_TYPE_ETH, NULL, NULL);
}

/* Adds the opcode, first byte of the UDP payload, and the destination QP, its bytes 5 to 7. */
static void item_bth(struct pattern *p, const struct offload_match *m)
{
	p->bth[0] = (uint8_t)m->opcode;
	p->bth_mask[0] = (uint8_t)m->opcode_mask;
	p->bth[7] = m->qp1;
	memset(p->bth_mask + 5, m->qp1 ? 0xff : 0, 3);
	p->raw = (struct rte_flow_item_raw){.relative = 1, .length = m->qp1 ? 8 : 1, .pattern = p->bth};
	p->raw_mask = rte_flow_item_raw_mask;
	p->raw_mask.pattern = p->bth_mask;
	pattern_item(p, RTE_FLOW_ITEM_TYPE_RAW, &p->raw, &p->raw_mask);
}

static void pattern_make(struct pattern *p, const struct offload_rte *o, const struct offload_match *m)
{
	memset(p, 0, sizeof(*p));
	outer(p, o, m);
	if (m->family)
		item_ip(p, 1, m->family == 4, &m->src, &m->dst, m->roce, m->whole);
	if (m->roce) {
		p->udp[1].hdr.src_port = rte_cpu_to_be_16(m->sport);
		p->udp_mask[1].hdr.src_port = rte_cpu_to_be_16(m->sport_mask);
		p->udp[1].hdr.dst_port = RTE_BE16(ROCE_UDP_PORT);
		p->udp_mask[1].hdr.dst_port = RTE_BE16(0xffff);
		pattern_item(p, RTE_FLOW_ITEM_TYPE_UDP, &p->udp[1], &p->udp_mask[1]);
	}
	if (m->opcode_mask || m->qp1)
		item_bth(p, m);
	pattern_item(p, RTE_FLOW_ITEM_TYPE_END, NULL, NULL);
}

/* --- flows ----------------------------------------------------------------------------------- */

/* The action of a pass rule: the same as without any rule. */
struct to_queues {
	struct rte_flow_action_queue one;
	struct rte_flow_action_rss all;
	uint16_t queue[QUEUES];
};

static struct rte_flow_action pass_make(struct to_queues *q, const struct offload_rte *o)
{
	if (o->queues <= 1)
		return (struct rte_flow_action){.type = RTE_FLOW_ACTION_TYPE_QUEUE, .conf = &q->one};
	for (uint16_t i = 0; i < o->queues && i < QUEUES; i++)
		q->queue[i] = i;
	q->all.types = RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP | RTE_ETH_RSS_TCP;
	q->all.queue_num = RTE_MIN(o->queues, QUEUES);
	q->all.queue = q->queue;
	return (struct rte_flow_action){.type = RTE_FLOW_ACTION_TYPE_RSS, .conf = &q->all};
}

static int room(struct offload_rte *o, uint32_t handle)
{
	uint32_t more = o->room ? o->room : 64;
	struct rte_flow **flow;
	bool *counts;

	while (more <= handle)
		more *= 2;
	if (more == o->room)
		return 0;
	flow = realloc(o->flow, more * sizeof(struct rte_flow *));
	if (flow)
		o->flow = flow;
	counts = flow ? realloc(o->counts, more * sizeof(*counts)) : NULL;
	if (!counts)
		return RWY_ENOMEM;
	o->counts = counts;
	memset(o->flow + o->room, 0, (more - o->room) * sizeof(struct rte_flow *));
	memset(o->counts + o->room, 0, (more - o->room) * sizeof(*counts));
	o->room = more;
	return 0;
}

static int refused(int rc, const struct rte_flow_error *err, char *why)
{
	snprintf(why, OFFLOAD_WHY, "%s", err->message ? err->message : strerror(rc < 0 ? -rc : rc));
	if (rc == -ENOSPC || rc == -ENOMEM)
		return RWY_ENOMEM;
	return rc == -EAGAIN || rc == -EBUSY || rc == -EEXIST || rc == -EIO ? RWY_EAGAIN : RWY_EINVAL;
}

/* net_tap of DPDK 22.11 accepts rules that it applies wrongly: with a mask of 12 bits it keeps the
 * low four bits of a VLAN ID, and it ignores masks of ports. Other VLANs and ports would be
 * dropped. */
static bool taken_wrong(const struct offload_rte *o, const struct offload_match *m)
{
	return o->is_tap && ((m->vlan | o->vlan) & 0x0ff0 || (m->sport_mask && m->sport_mask != UINT16_MAX));
}

/* Adds a flow, with a counter if the driver can count. */
static int rte_add(
    void *ctx, const struct offload_rule *r, uint32_t handle, enum offload_where *where, char *why)
{
	struct offload_rte *o = ctx;
	const struct rte_flow_attr attr = {.ingress = 1, .priority = (uint32_t)r->prio - OFFLOAD_PRIO_ACL};
	struct rte_flow_error err = {0};
	struct to_queues q = {0};
	struct rte_flow_action act[3] = {{.type = RTE_FLOW_ACTION_TYPE_COUNT}};
	struct pattern p;
	int rc;

	if (r->what == OFFLOAD_FORWARD || r->what == OFFLOAD_TTL) {
		snprintf(why, OFFLOAD_WHY, "forwarding is done through tc only");
		return RWY_EINVAL;
	}
	if (taken_wrong(o, &r->match)) {
		snprintf(why, OFFLOAD_WHY, "the driver would take it for another rule");
		return RWY_EINVAL;
	}
	if (*where != OFFLOAD_HARDWARE || room(o, handle) != 0)
		return RWY_ENOMEM;
	pattern_make(&p, o, &r->match);
	act[1] = r->act == OFFLOAD_DROP ? (struct rte_flow_action){.type = RTE_FLOW_ACTION_TYPE_DROP}
	                                : pass_make(&q, o);
	act[2].type = RTE_FLOW_ACTION_TYPE_END;
	rc = rte_flow_validate(o->port, &attr, p.item, act, &err);
	o->counts[handle] = rc == 0;
	if (rc) {
		err = (struct rte_flow_error){0};
		rc = rte_flow_validate(o->port, &attr, p.item, act + 1, &err);
	}
	if (rc)
		return refused(rc, &err, why);
	o->flow[handle] = rte_flow_create(o->port, &attr, p.item, act + !o->counts[handle], &err);
	return o->flow[handle] ? 0 : refused(-rte_errno, &err, why);
}

static int rte_del(void *ctx, const struct offload_rule *r, uint32_t handle)
{
	struct offload_rte *o = ctx;
	struct rte_flow_error err;
	int rc;

	if (handle >= o->room || !o->flow[handle])
		return RWY_ENOENT;
	rc = rte_flow_destroy(o->port, o->flow[handle], &err);
	if (rc && rc != -ENOENT)
		return RWY_EAGAIN;
	o->flow[handle] = NULL;
	return 0;
}

/* A driver without flows has none to flush. */
static int rte_flush(void *ctx)
{
	struct offload_rte *o = ctx;
	struct rte_flow_error err;
	int rc = rte_flow_flush(o->port, &err);

	if (rc && rc != -ENOSYS && rc != -ENOTSUP && rc != -ENODEV)
		return RWY_EAGAIN;
	for (uint32_t i = 0; i < o->room; i++)
		o->flow[i] = NULL;
	return 0;
}

static int rte_read(void *ctx, struct offload_sync *s)
{
	struct offload_rte *o = ctx;
	const struct rte_flow_action act[2] = {
	    {.type = RTE_FLOW_ACTION_TYPE_COUNT}, {.type = RTE_FLOW_ACTION_TYPE_END}};

	for (uint32_t i = 1; i < o->room; i++) {
		struct rte_flow_query_count c = {0};
		struct rte_flow_error err;
		bool known;

		if (!o->flow[i])
			continue;
		known = o->counts[i] && rte_flow_query(o->port, o->flow[i], act, &c, &err) == 0;
		offload_sync_seen(
		    s, i, OFFLOAD_HARDWARE, known && c.hits_set, c.hits, c.bytes_set ? c.bytes : 0);
	}
	return 0;
}

const struct offload_ops offload_rte_ops = {rte_add, rte_del, rte_flush, rte_read};

/* --- the port -------------------------------------------------------------------------------- */

static int on_reset(uint16_t port, enum rte_eth_event_type type, void *arg, void *ret)
{
	struct offload_rte *o = arg;

	atomic_store(&o->reset, true);
	return 0;
}

int offload_rte_new(struct offload_rte **out, uint16_t port, uint16_t vlan, uint16_t queues)
{
	struct offload_rte *o = calloc(1, sizeof(*o));
	struct rte_eth_dev_info info;

	if (!o)
		return RWY_ENOMEM;
	o->is_tap = rte_eth_dev_info_get(port, &info) == 0 && !strcmp(info.driver_name, "net_tap");
	o->port = port;
	o->vlan = vlan;
	o->queues = queues;
	rte_eth_dev_callback_register(port, RTE_ETH_EVENT_INTR_RESET, on_reset, o);
	rte_eth_dev_callback_register(port, RTE_ETH_EVENT_RECOVERY_SUCCESS, on_reset, o);
	*out = o;
	return 0;
}

void offload_rte_free(struct offload_rte *o)
{
	if (!o)
		return;
	rte_eth_dev_callback_unregister(o->port, RTE_ETH_EVENT_INTR_RESET, on_reset, o);
	rte_eth_dev_callback_unregister(o->port, RTE_ETH_EVENT_RECOVERY_SUCCESS, on_reset, o);
	free(o->flow);
	free(o->counts);
	free(o);
}

bool offload_rte_was_reset(struct offload_rte *o)
{
	bool was = atomic_exchange(&o->reset, false);

	for (uint32_t i = 0; i < o->room && was; i++)
		o->flow[i] = NULL;
	return was;
}
