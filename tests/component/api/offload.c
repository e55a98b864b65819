/* SPDX-License-Identifier: Apache-2.0 */
/* A port with offload and a rule of every kind, for /v1/offload: option offload=1 of api_server. */
#include "gateway/offload/offload.h"

static struct rwy_ip ip(uint8_t a, uint8_t b, uint8_t c, uint8_t d)
{
	const uint8_t v[4] = {a, b, c, d};

	return rwy_ip_from4(v);
}

static struct offload_entry entry(enum offload_what what, enum offload_act act, enum offload_where where)
{
	struct offload_entry e = {.where = where, .counted = where == OFFLOAD_HARDWARE, .packets = 1234567};

	e.rule.what = (uint8_t)what;
	e.rule.act = (uint8_t)act;
	e.rule.tenant = 1;
	e.rule.item = -1;
	e.rule.prio = 2;
	e.rule.match.vni = 5001;
	e.rule.match.self = ip(192, 0, 2, 1);
	return e;
}

void gw_offload_each(struct gw_app *app, void (*port)(void *arg, const struct gw_offload_port *p),
    void (*rule)(void *arg, const struct offload_entry *e), void *arg)
{
	struct offload_entry drop = entry(OFFLOAD_ACL, OFFLOAD_DROP, OFFLOAD_HARDWARE),
	                     soft = entry(OFFLOAD_ACL, OFFLOAD_DROP, OFFLOAD_SOFTWARE),
	                     vlan = entry(OFFLOAD_FORWARD, OFFLOAD_TO_VLAN, OFFLOAD_KERNEL),
	                     vxlan = entry(OFFLOAD_FORWARD, OFFLOAD_TO_VXLAN, OFFLOAD_KERNEL),
	                     vni = entry(OFFLOAD_VNI, OFFLOAD_DROP, OFFLOAD_HARDWARE),
	                     not = entry(OFFLOAD_ACL, OFFLOAD_NOTHING, OFFLOAD_SOFTWARE);

	if (app->conf->port[0].offload == CONF_OFFLOAD_OFF)
		return;
	port(arg, &(struct gw_offload_port){.name = "lan0",
	              .backend = "tc",
	              .device = "enp1s0f0np0",
	              .vxlan = "rwy-vxlan",
	              .count = {2, 2, 2}});
	drop.rule.item = soft.rule.item = 3;
	drop.rule.match.src = (struct prefix){ip(10, 1, 0, 66), 128};
	drop.rule.match.family = 4;
	drop.rule.match.roce = 1;
	drop.rule.match.sport = 0xc000;
	drop.rule.match.sport_mask = 0xc000;
	rule(arg, &drop);
	soft.rule.match.opcode = 0x0a;
	soft.rule.match.opcode_mask = 0xfe;
	soft.rule.match.qp1 = 1;
	soft.rule.match.dst.addr.b[0] = 0xfd;
	soft.rule.match.dst.len = 64;
	soft.why = "flower cannot match an RDMA operation";
	rule(arg, &soft);
	vlan.rule.to.vlan = 101;
	vlan.rule.match.by_mac = 1;
	rule(arg, &vlan);
	vxlan.rule.match.place = OFFLOAD_IN_VLAN;
	vxlan.rule.match.vlan = 101;
	vxlan.rule.to.vni = 5001;
	vxlan.rule.to.vtep = ip(192, 0, 2, 11);
	vxlan.stale = true;
	rule(arg, &vxlan);
	vni.rule.tenant = 0;
	vni.rule.match.vni = 0;
	rule(arg, &vni);
	not .rule.match.vni = 0;
	not .rule.match.self = (struct rwy_ip){{0}};
	not .why = offload_left_text(OFFLOAD_LEFT_UD);
	rule(arg, &not );
}
