/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hosts of a tenant for the benchmark: behind VTEPs, with an ACL and all that a tenant has, or on a
 * VLAN. A host and its VTEP are one machine: fp_lab's host is the VTEP, its overlay address is
 * 192.168.(s+1).2.
 */
#include <stdlib.h>
#include <string.h>

#include "rwy/endian.h"
#include "tests/bench/fp_lab.h"

#define RULES 10

const uint8_t fp_host_mac[6] = {0x02, 0xaa, 0, 0, 0, 1};
const uint8_t fp_gw_mac[6] = {0x02, 0xbb, 0, 0, 0, 1};

struct rwy_ip fp_host_ip(const struct fp_cfg *cfg, enum fp_site s)
{
	uint8_t n = (uint8_t)(s + 1);

	if (cfg->overlay == FP_PLAIN)
		return rwy_ip_from4((uint8_t[4]){10, n, 0, 2});
	return rwy_ip_from4((uint8_t[4]){192, 168, n, 2});
}

/* Site s on the LAN: host 1 is the gateway, 2 the host. */
static struct rwy_ip underlay(const struct fp_cfg *cfg, enum fp_site s, uint8_t host)
{
	if (cfg->overlay == FP_VXLAN6)
		return (struct rwy_ip){{0xfd, 0, [3] = (uint8_t)(s + 1), [15] = host}};
	return rwy_ip_from4((uint8_t[4]){10, (uint8_t)(s + 1), 0, host});
}

static struct prefix net(enum fp_site s)
{
	return (struct prefix){
	    .addr = rwy_ip_from4((uint8_t[4]){192, 168, (uint8_t)(s + 1), 0}), .len = 96 + 24};
}

void fp_overlay_conf(struct conf *c, const struct fp_cfg *cfg, enum fp_site s)
{
	struct conf_tenant *t = calloc(1, sizeof(*t));
	struct tenant_prefix *p = calloc(2, sizeof(*p));
	struct tenant_host *h = calloc(1, sizeof(*h));
	struct acl_rule *r = calloc(RULES, sizeof(*r));
	struct rwy_ip *v = calloc(1, sizeof(*v));
	bool vlan = cfg->overlay == FP_VLAN;

	if (!t || !p || !h || !r || !v)
		fp_die("no memory");
	tenant_cfg_default(&t->cfg);
	snprintf(t->cfg.name, sizeof(t->cfg.name), "tenant");
	t->cfg.vni = FP_VNI;
	t->cfg.vlan = vlan ? FP_VTAG : 0;
	p[0] = (struct tenant_prefix){net(s), {.side = vlan ? TENANT_LAN : TENANT_VTEP}};
	p[1] = (struct tenant_prefix){net(1 - s), {.side = TENANT_TUNNEL}};
	t->cfg.prefix = p;
	t->cfg.prefixes = 2;
	v[0] = underlay(cfg, s, 2);
	t->cfg.vtep = v;
	t->cfg.vteps = !vlan;
	h[0].addr = fp_host_ip(cfg, s);
	if (!vlan)
		h[0].vtep = v[0];
	memcpy(h[0].mac, fp_host_mac, 6);
	t->cfg.host = h;
	t->cfg.hosts = 1;
	memcpy(t->cfg.gw_mac, fp_gw_mac, 6);
	/* No rule matches the hosts' packets, so all are examined. */
	for (uint16_t i = 0; i < RULES; i++)
		r[i] = (struct acl_rule){
		    .src = net(s), .sport_lo = i, .sport_hi = i, .classes = ACL_ALL, .allow = false};
	t->cfg.rule = r;
	t->cfg.rules = RULES;
	c->tenant = t;
	c->tenants = 1;
}

static void ip4_checksum(uint8_t *ip)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < 20; i += 2)
		sum += rwy_get16(ip + i);
	sum = (sum & 0xffff) + (sum >> 16);
	rwy_put16(ip + 10, (uint16_t) ~(sum + (sum >> 16)));
}

static uint32_t ethernet(uint8_t *o, const uint8_t *dst, uint16_t vid, uint16_t type)
{
	memcpy(o, dst, 6);
	memcpy(o + 6, fp_host_mac, 6);
	if (vid) {
		rwy_put16(o + 12, 0x8100);
		rwy_put16(o + 14, vid);
	}
	rwy_put16(o + (vid ? 16 : 12), type);
	return vid ? 18 : 14;
}

uint32_t fp_front(const struct fp_lab *l, enum fp_site s, uint32_t ip_len, uint8_t out[96])
{
	const struct fp_cfg *cfg = &l->cfg;
	const uint8_t *port = l->gw[s].port[FP_LAN].mac;
	struct rwy_ip src = underlay(cfg, s, 2), dst = underlay(cfg, s, 1);
	uint32_t udp_len = 8 + 8 + GW_ETH + ip_len;
	uint8_t *p = out;

	memset(out, 0, 96);
	if (cfg->overlay == FP_PLAIN)
		return ethernet(p, port, 0, 0x0800);
	if (cfg->overlay == FP_VLAN)
		return ethernet(p, port, FP_VTAG, 0x0800);
	if (cfg->overlay == FP_VXLAN) {
		p += ethernet(p, port, 0, 0x0800);
		p[0] = 0x45;
		p[1] = 0x02;
		rwy_put16(p + 2, (uint16_t)(20 + udp_len));
		p[6] = 0x40;
		p[8] = 64;
		p[9] = 17;
		memcpy(p + 12, src.b + 12, 4);
		memcpy(p + 16, dst.b + 12, 4);
		ip4_checksum(p);
		p += 20;
	} else {
		p += ethernet(p, port, 0, 0x86dd);
		rwy_put32(p, 0x60200000);
		rwy_put16(p + 4, (uint16_t)udp_len);
		p[6] = 17;
		p[7] = 64;
		memcpy(p + 8, src.b, 16);
		memcpy(p + 24, dst.b, 16);
		p += 40;
	}
	rwy_put16(p, 50000);
	rwy_put16(p + 2, 4789);
	rwy_put16(p + 4, (uint16_t)udp_len);
	p[8] = 0x08;
	rwy_put24(p + 12, FP_VNI);
	p += 16;
	return (uint32_t)(p - out) + ethernet(p, fp_gw_mac, 0, 0x0800);
}
