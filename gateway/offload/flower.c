/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a rule as the attributes of a tc flower filter: keys, then actions. Values on the wire are
 * in network order, as the kernel keeps them.
 */
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/pkt_cls.h>
#include <linux/tc_act/tc_csum.h>
#include <linux/tc_act/tc_gact.h>
#include <linux/tc_act/tc_mirred.h>
#include <linux/tc_act/tc_pedit.h>
#include <linux/tc_act/tc_tunnel_key.h>
#include <linux/tc_act/tc_vlan.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <stdio.h>
#include <string.h>

#include "gateway/offload/tc.h"
#include "roce/parse.h"
#include "vxlan/vxlan.h"

static const struct rwy_ip none;

/* libnl reports "does not fit" per attribute; this struct remembers it. */
struct put {
	struct nl_msg *m;
	bool full;
};

static void attr_put(struct put *p, int type, const void *data, int len)
{
	p->full = p->full || nla_put(p->m, type, len, data) < 0;
}

static void put8(struct put *p, int type, uint8_t v)
{
	attr_put(p, type, &v, 1);
}

static void put16(struct put *p, int type, uint16_t v)
{
	v = htons(v);
	attr_put(p, type, &v, 2);
}

static void put32(struct put *p, int type, uint32_t v)
{
	v = htonl(v);
	attr_put(p, type, &v, 4);
}

static struct nlattr *nest(struct put *p, int type)
{
	struct nlattr *a = nla_nest_start(p->m, type);

	p->full = p->full || !a;
	return a;
}

static void nest_end(struct put *p, struct nlattr *a)
{
	if (!p->full)
		nla_nest_end(p->m, a);
}

/* --- keys ------------------------------------------------------------------------------------ */

static void put_prefix(struct put *p, const struct prefix *x, bool is4, int key, int mask)
{
	uint8_t m[16] = {0};
	const unsigned skip = is4 ? 12 : 0;

	if (!x->len)
		return;
	for (unsigned i = 0; i < x->len; i++)
		m[i / 8] |= (uint8_t)(0x80 >> i % 8);
	attr_put(p, key, x->addr.b + skip, (int)(16 - skip));
	attr_put(p, mask, m + skip, (int)(16 - skip));
}

static void put_ip(struct put *p, const struct rwy_ip *a, int key4, int mask4, int key6, int mask6)
{
	const struct prefix whole = {*a, 128};

	if (rwy_ip_eq(a, &none))
		return;
	if (rwy_ip_is4(a))
		put_prefix(p, &whole, true, key4, mask4);
	else
		put_prefix(p, &whole, false, key6, mask6);
}

static void keys_outer(struct put *p, const struct offload_match *m)
{
	if (m->place == OFFLOAD_IN_VLAN) {
		if (m->vlan) { /* host order, unlike all others: the kernel reads a number */
			const uint16_t v = m->vlan;

			attr_put(p, TCA_FLOWER_KEY_VLAN_ID, &v, 2);
		}
		return;
	}
	if (m->vni)
		put32(p, TCA_FLOWER_KEY_ENC_KEY_ID, m->vni);
	put_ip(p, &m->self, TCA_FLOWER_KEY_ENC_IPV4_DST, TCA_FLOWER_KEY_ENC_IPV4_DST_MASK,
	    TCA_FLOWER_KEY_ENC_IPV6_DST, TCA_FLOWER_KEY_ENC_IPV6_DST_MASK);
	put_ip(p, &m->vtep, TCA_FLOWER_KEY_ENC_IPV4_SRC, TCA_FLOWER_KEY_ENC_IPV4_SRC_MASK,
	    TCA_FLOWER_KEY_ENC_IPV6_SRC, TCA_FLOWER_KEY_ENC_IPV6_SRC_MASK);
	put16(p, TCA_FLOWER_KEY_ENC_UDP_DST_PORT, VXLAN_UDP_PORT);
	put16(p, TCA_FLOWER_KEY_ENC_UDP_DST_PORT_MASK, 0xffff);
}

static void keys_inner(struct put *p, const struct offload_match *m)
{
	static const uint8_t all[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	const bool is4 = m->family == 4;

	if (m->by_mac) {
		attr_put(p, TCA_FLOWER_KEY_ETH_SRC, m->src_mac, 6);
		attr_put(p, TCA_FLOWER_KEY_ETH_SRC_MASK, all, 6);
		attr_put(p, TCA_FLOWER_KEY_ETH_DST, m->dst_mac, 6);
		attr_put(p, TCA_FLOWER_KEY_ETH_DST_MASK, all, 6);
	}
	put_prefix(p, &m->src, is4, is4 ? TCA_FLOWER_KEY_IPV4_SRC : TCA_FLOWER_KEY_IPV6_SRC,
	    is4 ? TCA_FLOWER_KEY_IPV4_SRC_MASK : TCA_FLOWER_KEY_IPV6_SRC_MASK);
	put_prefix(p, &m->dst, is4, is4 ? TCA_FLOWER_KEY_IPV4_DST : TCA_FLOWER_KEY_IPV6_DST,
	    is4 ? TCA_FLOWER_KEY_IPV4_DST_MASK : TCA_FLOWER_KEY_IPV6_DST_MASK);
	if (m->roce) {
		put8(p, TCA_FLOWER_KEY_IP_PROTO, IPPROTO_UDP);
		put16(p, TCA_FLOWER_KEY_UDP_DST, ROCE_UDP_PORT);
		put16(p, TCA_FLOWER_KEY_UDP_DST_MASK, 0xffff);
	}
	if (m->sport_mask) {
		put16(p, TCA_FLOWER_KEY_UDP_SRC, m->sport);
		put16(p, TCA_FLOWER_KEY_UDP_SRC_MASK, m->sport_mask);
	}
	if (m->whole) {
		put32(p, TCA_FLOWER_KEY_FLAGS, 0);
		put32(p, TCA_FLOWER_KEY_FLAGS_MASK, TCA_FLOWER_KEY_FLAGS_IS_FRAGMENT);
	}
	if (m->ttl_ends) {
		put8(p, TCA_FLOWER_KEY_IP_TTL, 0);
		put8(p, TCA_FLOWER_KEY_IP_TTL_MASK, 0xfe);
	}
}

static uint16_t inner_type(const struct offload_match *m)
{
	return m->family == 4 ? ETH_P_IP : m->family == 6 ? ETH_P_IPV6 : ETH_P_ALL;
}

uint16_t offload_flower_protocol(const struct offload_rule *r)
{
	return r->match.place == OFFLOAD_IN_VLAN ? ETH_P_8021Q : inner_type(&r->match);
}

static void keys(struct put *p, const struct offload_rule *r)
{
	const uint16_t type = offload_flower_protocol(r);

	if (type != ETH_P_ALL)
		put16(p, TCA_FLOWER_KEY_ETH_TYPE, type);
	if (type == ETH_P_8021Q && r->match.family)
		put16(p, TCA_FLOWER_KEY_VLAN_ETH_TYPE, inner_type(&r->match));
	keys_outer(p, &r->match);
	keys_inner(p, &r->match);
}

/* --- actions --------------------------------------------------------------------------------- */

/* One action of a filter: its number, its kind, and the bounds of its options. */
struct action {
	struct nlattr *outer, *options;
};

static struct action action(struct put *p, int *number, const char *kind)
{
	struct action a;

	a.outer = nest(p, ++*number);
	attr_put(p, TCA_ACT_KIND, kind, (int)strlen(kind) + 1);
	a.options = nest(p, TCA_ACT_OPTIONS);
	return a;
}

static void action_end(struct put *p, struct action a)
{
	nest_end(p, a.options);
	nest_end(p, a.outer);
}

static void act_gact(struct put *p, int *number, int verdict)
{
	const struct tc_gact parms = {.action = verdict};
	struct action a = action(p, number, "gact");

	attr_put(p, TCA_GACT_PARMS, &parms, sizeof(parms));
	action_end(p, a);
}

static void act_redirect(struct put *p, int *number, int ifindex)
{
	const struct tc_mirred parms = {
	    .action = TC_ACT_STOLEN, .eaction = TCA_EGRESS_REDIR, .ifindex = (uint32_t)ifindex};
	struct action a = action(p, number, "mirred");

	attr_put(p, TCA_MIRRED_PARMS, &parms, sizeof(parms));
	action_end(p, a);
}

static void act_vlan(struct put *p, int *number, uint16_t push)
{
	const struct tc_vlan parms = {
	    .action = TC_ACT_PIPE, .v_action = push ? TCA_VLAN_ACT_PUSH : TCA_VLAN_ACT_POP};
	struct action a = action(p, number, "vlan");

	attr_put(p, TCA_VLAN_PARMS, &parms, sizeof(parms));
	if (push) {
		attr_put(p, TCA_VLAN_PUSH_VLAN_ID, &push, 2); /* also a number */
		put16(p, TCA_VLAN_PUSH_VLAN_PROTOCOL, ETH_P_8021Q);
	}
	action_end(p, a);
}

static void act_tunnel(struct put *p, int *number, const struct offload_to *to)
{
	const struct tc_tunnel_key parms = {
	    .action = TC_ACT_PIPE, .t_action = to->vni ? TCA_TUNNEL_KEY_ACT_SET : TCA_TUNNEL_KEY_ACT_RELEASE};
	struct action a = action(p, number, "tunnel_key");

	attr_put(p, TCA_TUNNEL_KEY_PARMS, &parms, sizeof(parms));
	if (to->vni && rwy_ip_is4(&to->vtep)) {
		attr_put(p, TCA_TUNNEL_KEY_ENC_IPV4_SRC, to->self.b + 12, 4);
		attr_put(p, TCA_TUNNEL_KEY_ENC_IPV4_DST, to->vtep.b + 12, 4);
		put8(p, TCA_TUNNEL_KEY_NO_CSUM, 1);
	} else if (to->vni) {
		attr_put(p, TCA_TUNNEL_KEY_ENC_IPV6_SRC, to->self.b, 16);
		attr_put(p, TCA_TUNNEL_KEY_ENC_IPV6_DST, to->vtep.b, 16);
	}
	if (to->vni) {
		put32(p, TCA_TUNNEL_KEY_ENC_KEY_ID, to->vni);
		put16(p, TCA_TUNNEL_KEY_ENC_DST_PORT, VXLAN_UDP_PORT);
	}
	action_end(p, a);
}

/* A key's written bytes and kept bytes: (old & mask) ^ value. With CMD_ADD it adds. */
static struct tc_pedit_key pedit_key(uint32_t off, const uint8_t value[4], const uint8_t keep[4])
{
	struct tc_pedit_key k = {.off = off};

	memcpy(&k.val, value, 4);
	memcpy(&k.mask, keep, 4);
	return k;
}

#define PEDIT_KEYS 5

/* Rewrites both MAC addresses and decrements TTL or hop limit. */
static void act_rewrite(struct put *p, int *number, const struct offload_to *to, bool is4)
{
	static const uint8_t no[4], first[4] = {0, 0, 0xff, 0xff}, last[4] = {0xff, 0xff, 0, 0};
	const uint8_t *d = to->dst_mac, *s = to->src_mac;
	struct {
		struct tc_pedit_sel sel;
		struct tc_pedit_key key[PEDIT_KEYS];
	} parms = {.sel = {.action = TC_ACT_PIPE, .nkeys = PEDIT_KEYS}};
	struct action a = action(p, number, "pedit");
	struct nlattr *ex;

	parms.key[0] = pedit_key(0, d, no);
	parms.key[1] = pedit_key(4, (uint8_t[4]){d[4], d[5]}, first);
	parms.key[2] = pedit_key(4, (uint8_t[4]){0, 0, s[0], s[1]}, last);
	parms.key[3] = pedit_key(8, s + 2, no);
	if (is4) /* TTL is byte 8 of the header; hop limit byte 7 */
		parms.key[4] = pedit_key(8, (uint8_t[4]){0xff}, (uint8_t[4]){0, 0xff, 0xff, 0xff});
	else
		parms.key[4] = pedit_key(4, (uint8_t[4]){0, 0, 0, 0xff}, (uint8_t[4]){0xff, 0xff, 0xff, 0});
	attr_put(p, TCA_PEDIT_PARMS_EX, &parms, sizeof(parms));
	ex = nest(p, TCA_PEDIT_KEYS_EX);
	for (unsigned i = 0; i < PEDIT_KEYS; i++) {
		const bool ttl = i == PEDIT_KEYS - 1;
		const uint16_t head = !ttl  ? TCA_PEDIT_KEY_EX_HDR_TYPE_ETH
		                      : is4 ? TCA_PEDIT_KEY_EX_HDR_TYPE_IP4
		                            : TCA_PEDIT_KEY_EX_HDR_TYPE_IP6;
		const uint16_t cmd = ttl ? TCA_PEDIT_KEY_EX_CMD_ADD : TCA_PEDIT_KEY_EX_CMD_SET;
		struct nlattr *one = nest(p, TCA_PEDIT_KEY_EX);

		attr_put(p, TCA_PEDIT_KEY_EX_HTYPE, &head, 2);
		attr_put(p, TCA_PEDIT_KEY_EX_CMD, &cmd, 2);
		nest_end(p, one);
	}
	nest_end(p, ex);
	action_end(p, a);
}

static void act_csum(struct put *p, int *number)
{
	const struct tc_csum parms = {.action = TC_ACT_PIPE, .update_flags = TCA_CSUM_UPDATE_FLAG_IPV4HDR};
	struct action a = action(p, number, "csum");

	attr_put(p, TCA_CSUM_PARMS, &parms, sizeof(parms));
	action_end(p, a);
}

static void forward(struct put *p, const struct offload_rule *r, const struct offload_tc_devs *devs)
{
	const bool is4 = r->match.family == 4, off = r->act == OFFLOAD_TO_VLAN;
	int number = 0;

	if (off)
		act_tunnel(p, &number, &r->to);
	else
		act_vlan(p, &number, 0);
	act_rewrite(p, &number, &r->to, is4);
	if (is4)
		act_csum(p, &number);
	if (off)
		act_vlan(p, &number, r->to.vlan);
	else
		act_tunnel(p, &number, &r->to);
	act_redirect(p, &number, off ? devs->port : devs->vxlan);
}

static void actions(struct put *p, const struct offload_rule *r, const struct offload_tc_devs *devs)
{
	struct nlattr *a = nest(p, TCA_FLOWER_ACT);
	int number = 0;

	switch ((enum offload_act)r->act) {
	case OFFLOAD_PASS:
		act_gact(p, &number, TC_ACT_OK);
		break;
	case OFFLOAD_DROP:
		act_gact(p, &number, TC_ACT_SHOT);
		break;
	case OFFLOAD_TO_VLAN:
	case OFFLOAD_TO_VXLAN:
		forward(p, r, devs);
		break;
	case OFFLOAD_NOTHING:
	case OFFLOAD_ACT_COUNT:
		rwy_unreachable();
	}
	nest_end(p, a);
}

int offload_flower_put(struct nl_msg *m, const struct offload_rule *r, const struct offload_tc_devs *devs,
    uint32_t flags, char *why)
{
	struct put p = {.m = m};
	struct nlattr *options;

	if (r->match.opcode_mask || r->match.qp1) {
		snprintf(why, OFFLOAD_WHY, "flower cannot match an RDMA operation");
		return RWY_EINVAL;
	}
	if (r->act == OFFLOAD_DROP && r->match.family == 6 && r->match.sport_mask) {
		snprintf(
		    why, OFFLOAD_WHY, "flower finds ports behind IPv6 extension headers, software does not");
		return RWY_EINVAL;
	}
	if ((r->match.place == OFFLOAD_IN_VXLAN || r->act == OFFLOAD_TO_VXLAN) && !devs->vxlan) {
		snprintf(why, OFFLOAD_WHY, "there is no vxlan device");
		return RWY_EINVAL;
	}
	attr_put(&p, TCA_KIND, "flower", sizeof("flower"));
	options = nest(&p, TCA_OPTIONS);
	keys(&p, r);
	attr_put(&p, TCA_FLOWER_FLAGS, &flags, 4);
	actions(&p, r, devs);
	nest_end(&p, options);
	if (p.full)
		snprintf(why, OFFLOAD_WHY, "the filter does not fit a message");
	return p.full ? RWY_ENOMEM : 0;
}
