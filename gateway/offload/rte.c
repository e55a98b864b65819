/* SPDX-License-Identifier: Apache-2.0 */
/* rte_flow: patterns and actions of a tenant's rule, and the flows made from them by flow.h. */
#include "gateway/offload/rte.h"

#include <errno.h>
#include <rte_ethdev.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/offload/flow.h"
#include "roce/parse.h"
#include "rwy/endian.h"
#include "vxlan/vxlan.h"

#define QUEUES 64

struct offload_rte {
	uint16_t port, vlan, queues;
	struct rte_flow **flow; /* indexed by handle */
	bool *counts;
	uint32_t room;
	bool is_tap;
	struct offload_resets resets;
};

/* --- patterns -------------------------------------------------------------------------------- */

static void outer(struct offload_pattern *p, const struct offload_rte *o, const struct offload_match *m)
{
	struct offload_ip_match ip = {
	    .is4 = rwy_ip_is4(&m->self), .src = {m->vtep, 128}, .dst = {m->self, 128}, .udp = true};
	static const struct rwy_ip none;

	offload_pattern_begin(p);
	if (m->place == OFFLOAD_IN_VLAN) {
		offload_pattern_vlan(p, m->vlan);
		return;
	}
	if (o->vlan)
		offload_pattern_vlan(p, o->vlan);
	if (rwy_ip_eq(&m->vtep, &none))
		ip.src.len = 0;
	offload_pattern_ip(p, 0, &ip);
	offload_pattern_udp(p, 0, 0, 0, VXLAN_UDP_PORT);
	rwy_put24(p->vxlan.vni, m->vni);
	memset(p->vxlan_mask.vni, m->vni ? 0xff : 0, 3);
	offload_pattern_item(p, RTE_FLOW_ITEM_TYPE_VXLAN, &p->vxlan, &p->vxlan_mask);
	if (m->family)
		offload_pattern_item(p, RTE_FLOW_ITEM_TYPE_ETH, NULL, NULL);
}

/* Adds the opcode, first byte of the UDP payload, and the destination QP, its bytes 5 to 7. */
static void item_bth(struct offload_pattern *p, const struct offload_match *m)
{
	p->bth[0] = (uint8_t)m->opcode;
	p->bth_mask[0] = (uint8_t)m->opcode_mask;
	p->bth[7] = m->qp1;
	memset(p->bth_mask + 5, m->qp1 ? 0xff : 0, 3);
	p->raw = (struct rte_flow_item_raw){.relative = 1, .length = m->qp1 ? 8 : 1, .pattern = p->bth};
	p->raw_mask = rte_flow_item_raw_mask;
	p->raw_mask.pattern = p->bth_mask;
	offload_pattern_item(p, RTE_FLOW_ITEM_TYPE_RAW, &p->raw, &p->raw_mask);
}

static void pattern_make(
    struct offload_pattern *p, const struct offload_rte *o, const struct offload_match *m)
{
	const struct offload_ip_match inner = {m->family == 4, m->src, m->dst, m->roce, m->whole};

	outer(p, o, m);
	if (m->family)
		offload_pattern_ip(p, 1, &inner);
	if (m->roce)
		offload_pattern_udp(p, 1, m->sport, m->sport_mask, ROCE_UDP_PORT);
	if (m->opcode_mask || m->qp1)
		item_bth(p, m);
	offload_pattern_end(p);
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
	struct offload_pattern p;
	struct to_queues q = {0};

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
	return offload_flow_new(&o->flow[handle], o->port, (uint32_t)r->prio - OFFLOAD_PRIO_ACL, &p,
	    r->act == OFFLOAD_DROP ? (struct rte_flow_action){.type = RTE_FLOW_ACTION_TYPE_DROP}
	                           : pass_make(&q, o),
	    &o->counts[handle], why);
}

static int rte_del(void *ctx, const struct offload_rule *r, uint32_t handle)
{
	struct offload_rte *o = ctx;

	if (handle >= o->room || !o->flow[handle])
		return RWY_ENOENT;
	if (offload_flow_del(o->port, o->flow[handle]) != 0)
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
	offload_resets_begin(&o->resets, port);
	*out = o;
	return 0;
}

void offload_rte_free(struct offload_rte *o)
{
	if (!o)
		return;
	offload_resets_end(&o->resets);
	free(o->flow);
	free(o->counts);
	free(o);
}

bool offload_rte_was_reset(struct offload_rte *o)
{
	bool was = offload_resets_seen(&o->resets);

	for (uint32_t i = 0; i < o->room && was; i++)
		o->flow[i] = NULL;
	return was;
}
