/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of tenants' hosts: in VXLAN to one of our addresses, or on a tenant's VLAN. This file
 * finds the tenant, admits the packet and passes it, from the IP header on, to the engine or, for a
 * local host, to hairpin.c. The headers in front become headroom.
 *
 * Admissions are cached by source, destination and port (struct gw_admission). Only a packet that
 * misses the cache pays for admission, the ACL and the host table. A packet that belongs to another
 * worker goes there whole, before it changes anything of this worker.
 */
#include <rte_prefetch.h>

#include "gateway/datapath/notes.h"
#include "gateway/datapath/overlay.h"
#include "gateway/datapath/rx.h"
#include "gateway/datapath/vtep.h"

/* A packet of a tenant's host, and its source. */
struct ingress {
	struct gw_from f;
	struct gw_pkt k;
	const uint8_t *eth; /* Ethernet header of the host */
	uint16_t sport;     /* UDP source port; 0: none */
	uint8_t cls;        /* enum acl_class */
	bool local;         /* the destination is a local host on the tenant's other side */
};

static void classify(struct rte_mbuf *m, struct ingress *in)
{
	const uint8_t *udp = gw_pkt_udp(m, &in->k), *bth = gw_pkt_bth(m, &in->k);

	in->sport = udp ? rwy_get16(udp) : 0;
	in->cls = bth ? acl_class_of(bth[0], gw_bth_qpn(bth)) : ACL_OTHER;
}

/* --- admission -------------------------------------------------------------------------------- */

/* Hash of fields that gw_rx_overlay_ahead reads from an unchecked frame: no table, no tenant. */
static uint32_t admission_hash(uint32_t vni, uint32_t src, uint32_t dst, uint16_t sport)
{
	uint64_t h = ((uint64_t)src << 32 | dst) * 0x9fb21c651e98df25u + ((uint64_t)vni << 16 | sport);

	h = (h ^ h >> 32) * 0xc2b2ae3d27d4eb4fu;
	return (uint32_t)(h >> 40);
}

static uint32_t last4(const struct rwy_ip *a)
{
	return rwy_get32(a->b + 12);
}

static struct gw_admission *admission_slot(const struct gw_worker *w, const struct ingress *in)
{
	uint32_t h = admission_hash(in->f.t->cfg.vni, last4(&in->k.src), last4(&in->k.dst), in->sport);

	return &w->ov->admission[h & (GW_ADMISSIONS - 1)];
}

#define AHEAD_LEN (GW_ETH + IP4_LEN + UDP_LEN + VXLAN_HLEN + GW_ETH + IP4_LEN + UDP_LEN)

void gw_rx_overlay_ahead(const struct gw_worker *w, const struct rte_mbuf *m)
{
	const uint8_t *d = rte_pktmbuf_mtod(m, const uint8_t *), *udp = d + GW_ETH + IP4_LEN,
	              *in = udp + UDP_LEN + VXLAN_HLEN + GW_ETH;
	uint32_t h;

	if (m->data_len < AHEAD_LEN || rwy_get16(d + 12) != RWY_ETHER_IP4 ||
	    rwy_get16(udp + 2) != VXLAN_UDP_PORT)
		return;
	h = admission_hash(
	    rwy_get24(udp + UDP_LEN + 4), rwy_get32(in + 12), rwy_get32(in + 16), rwy_get16(in + IP4_LEN));
	rte_prefetch0(&w->ov->admission[h & (GW_ADMISSIONS - 1)]);
}

static bool binding_fits(const struct gw_binding *p, const struct ingress *in)
{
	return rwy_ip_eq(&p->at, &in->f.at) && !memcmp(p->mac, in->eth + 6, 6) &&
	       (!in->f.link || !memcmp(p->link, in->f.link, 6));
}

static bool admission_fits(const struct gw_worker *w, const struct gw_admission *p, const struct ingress *in)
{
	const struct gw_binding *at = &w->ov->binding[p->binding];

	return p->changed == in->f.t->changed && p->tenant == in->f.t->index && p->sport == in->sport &&
	       p->tag == in->f.tag && rwy_ip_eq(&p->src, &in->k.src) && rwy_ip_eq(&p->dst, &in->k.dst) &&
	       p->serial == at->serial && binding_fits(at, in);
}

/* Enters the source's binding, if another one has its slot. */
static void binding_make(struct gw_worker *w, struct gw_admission *p, const struct ingress *in)
{
	struct gw_binding *at;

	p->binding = gw_overlay_hash(in->f.t->index, &in->k.src) & (GW_BINDINGS - 1);
	at = &w->ov->binding[p->binding];
	if (!at->serial || !binding_fits(at, in)) {
		*at = (struct gw_binding){.at = in->f.at, .serial = ++w->ov->serial};
		memcpy(at->mac, in->eth + 6, 6);
		if (in->f.link)
			memcpy(at->link, in->f.link, 6);
	}
	p->serial = at->serial;
}

/* Checks that the VTEP and the tag can be the tenant's. */
static enum tenant_admit ingress_check(struct gw_worker *w, const struct gw_from *f)
{
	const struct tenant *t;

	if (f->side != TENANT_VTEP)
		return TENANT_OK;
	return tenant_of_vxlan(w->ts, f->t->cfg.vni, &f->at, f->tag, &t);
}

static bool is_gateway_ip(const struct tenant *t, const struct rwy_ip *a)
{
	return rwy_ip_eq(a, &t->cfg.gw_ip[0]) || rwy_ip_eq(a, &t->cfg.gw_ip[1]);
}

/* Makes an admission. False: refused and counted. Refusals are not cached, so packets sent in vain
 * do not displace good entries. */
static bool admission_make(struct gw_worker *w, struct gw_admission *p, const struct ingress *in)
{
	const struct tenant *t = in->f.t;
	struct acl_key key = {.src = in->k.src, .dst = in->k.dst, .sport = in->sport, .cls = in->cls};
	enum tenant_admit why = ingress_check(w, &in->f);
	struct tenant_at to = {0};
	uint16_t rule;

	if (why == TENANT_OK)
		why = tenant_admits(t, in->f.side, &key, &to, &rule);
	if (why == TENANT_OK && is_gateway_ip(t, &in->k.src))
		why = TENANT_FORGED_SOURCE;
	if (why != TENANT_OK) {
		gw_overlay_drop(w, t->index, why);
		return false;
	}
	if (to.side == in->f.side || is_gateway_ip(t, &in->k.dst)) {
		w->c.drop_tenant_local++;
		return false;
	}
	*p = (struct gw_admission){.src = in->k.src,
	    .dst = in->k.dst,
	    .changed = t->changed,
	    .tenant = (uint16_t)t->index,
	    .sport = in->sport,
	    .tag = in->f.tag,
	    .local = to.side != TENANT_TUNNEL,
	    .allowed = acl_allowed(t->acl, &key)};
	binding_make(w, p, in);
	return true;
}

/* Checks the source's place from time to time. */
static bool source_learn(struct gw_worker *w, struct gw_admission *p, const struct ingress *in)
{
	if ((in->f.side == TENANT_VTEP && !gw_vtep_genuine(w, &in->f)) ||
	    !gw_host_learn(w, &in->f, &in->k.src, in->eth + 6)) {
		p->changed = 0;
		return false;
	}
	p->learned = w->now;
	return true;
}

/* Admits a packet. False: drop; counted. */
static bool admit(struct gw_worker *w, struct ingress *in)
{
	struct gw_admission *p = admission_slot(w, in);

	if (!admission_fits(w, p, in) && !admission_make(w, p, in))
		return false;
	if (w->now - p->learned >= GW_RECHECK && !source_learn(w, p, in))
		return false;
	if (!(p->allowed >> in->cls & 1)) {
		gw_overlay_drop(w, in->f.t->index, TENANT_DENIED);
		return false;
	}
	in->local = p->local;
	return true;
}

/* --- common to VXLAN and VLAN ----------------------------------------------------------------- */

/* True: the packet is this worker's and admitted. False: m was taken. */
static bool packet_admit(struct gw_worker *w, struct rte_mbuf *m, struct ingress *in, bool owned)
{
	const struct gw_app *app = w->app;

	if (!owned && app->workers > 1 &&
	    gw_rx_hand_over(w, m, gw_worker_of(app, in->f.t->cfg.vni, m, &in->k)))
		return false;
	classify(m, in);
	if (!admit(w, in)) {
		rte_pktmbuf_free(m);
		return false;
	}
	/* A packet for a local host is not kept: it needs no memory. */
	if (w->low && !in->local && !gw_rx_frees_memory(m, &in->k)) {
		gw_rx_drop(m, &w->c.drop_low_memory);
		return false;
	}
	return true;
}

static void packet_forward(struct gw_worker *w, struct rte_mbuf *m, const struct ingress *in)
{
	struct gw_tenant_count *c = &w->tenants[in->f.t->index];

	w->ov->c.admit[TENANT_OK]++;
	c->rx_packets++;
	c->rx_bytes += in->k.ip_len;
	if (in->local)
		gw_hairpin_forward(w, in->f.t, m, &in->k);
	else
		gw_rx_engine(w, m, &in->k, in->f.t->index);
}

/* ARP and ND come first: they are no flows, so their source is checked here. True: the frame is
 * gone. */
static bool arp_handle(struct gw_worker *w, const struct ingress *in, struct rte_mbuf *m, uint16_t type,
    uint32_t eth, uint32_t end, bool owned)
{
	enum tenant_admit why;

	if (type != RWY_ETHER_ARP && !(type == RWY_ETHER_IP6 && in->k.proto == IPPROTO_ICMPV6))
		return false;
	why = ingress_check(w, &in->f);
	if (why != TENANT_OK)
		gw_overlay_drop(w, in->f.t->index, why);
	if (why != TENANT_OK || (in->f.side == TENANT_VTEP && !gw_vtep_genuine(w, &in->f))) {
		rte_pktmbuf_free(m);
		return true;
	}
	if (gw_host_arp(w, &in->f, m, eth, in->k.off, end, owned))
		return true;
	if (type != RWY_ETHER_ARP)
		return false;
	gw_rx_drop(m, &w->c.drop_tenant_not_ip);
	return true;
}

/* --- VXLAN ----------------------------------------------------------------------------------- */

static void vxlan_frame(struct gw_worker *w, struct gw_port *p, struct rte_mbuf *m,
    const struct gw_pkt *outer, const struct vxlan_pkt *v, bool owned)
{
	const uint32_t off = outer->off;
	struct ingress in = {.f = {.t = tenant_by_vni(w->ts, v->vni),
	                         .port = p,
	                         .at = v->outer_src,
	                         .local = v->outer_dst,
	                         .side = TENANT_VTEP,
	                         .tag = v->tci & 0xfff,
	                         .link = rte_pktmbuf_mtod(m, const uint8_t *) + 6},
	    .k.pcp = outer->pcp};
	uint8_t *ip;
	uint64_t *bad;

	if (!in.f.t) {
		gw_overlay_drop(w, 0, TENANT_UNKNOWN_VNI);
		rte_pktmbuf_free(m);
		return;
	}
	in.eth = rte_pktmbuf_mtod_offset(m, const uint8_t *, off + v->eth_off);
	in.k.off = off + v->net_off;
	if (v->inner == VXLAN_INNER_OTHER) {
		gw_rx_drop(m, &w->c.drop_tenant_not_ip);
		return;
	}
	if (v->inner != VXLAN_INNER_ARP && (bad = gw_rx_ip(w, m, v->ethertype, &in.k)) != NULL) {
		gw_rx_drop(m, bad);
		return;
	}
	if (arp_handle(w, &in, m, v->ethertype, off + v->eth_off, off + v->end, owned))
		return;
	if (memcmp(v->dst_mac, in.f.t->cfg.gw_mac, 6) != 0) {
		gw_rx_drop(m, &w->c.drop_tenant_mac);
		return;
	}
	if (!packet_admit(w, m, &in, owned))
		return;
	ip = rte_pktmbuf_mtod_offset(m, uint8_t *, in.k.off);
	if (!vxlan_ecn_apply(ip, v->outer_tos & 3, &w->ov->c.ecn)) {
		gw_rx_drop(m, &w->c.drop_vxlan_ecn);
		return;
	}
	packet_forward(w, m, &in);
}

/* Whether this is a later fragment of UDP over IPv4. */
static bool later_fragment(const struct rte_mbuf *m, uint32_t off)
{
	const uint8_t *ip = rte_pktmbuf_mtod_offset(m, const uint8_t *, off);

	return ip[0] >> 4 == 4 && ip[9] == IPPROTO_UDP && (rwy_get16(ip + 6) & ROCE_IP4_OFFMASK);
}

bool gw_rx_vxlan(
    struct gw_worker *w, struct gw_port *p, struct rte_mbuf *m, const struct gw_pkt *outer, bool owned)
{
	const uint32_t off = outer->off;
	struct vxlan_pkt v;
	enum vxlan_reason r = vxlan_decap(
	    &w->ov->vxlan, rte_pktmbuf_mtod_offset(m, const uint8_t *, off), m->data_len - off, &v);

	if (r == VXLAN_NOT_VXLAN && !later_fragment(m, off))
		return false;
	if (r == VXLAN_NOT_VXLAN)
		r = VXLAN_FRAGMENT; /* the first fragment showed the port */
	w->ov->c.vxlan[r] += !owned || r != VXLAN_OK;
	if (r == VXLAN_OK)
		vxlan_frame(w, p, m, outer, &v, owned);
	else
		rte_pktmbuf_free(m);
	return true;
}

/* --- VLAN ------------------------------------------------------------------------------------ */

void gw_rx_vlan(struct gw_worker *w, struct gw_port *p, struct rte_mbuf *m, const struct gw_l2 *l, bool owned)
{
	struct ingress in = {.f = {.t = tenant_by_vlan(w->ts, l->vid), .port = p, .side = TENANT_LAN},
	    .k = {.off = l->off, .pcp = l->pcp}};
	const uint16_t type = l->type;
	uint64_t *bad;

	in.eth = rte_pktmbuf_mtod(m, const uint8_t *);
	if (!in.f.t) {
		gw_overlay_drop(w, 0, TENANT_UNKNOWN_VLAN);
		rte_pktmbuf_free(m);
		return;
	}
	in.f.at = gw_host_on_port(p->idx);
	if (type != RWY_ETHER_ARP && type != RWY_ETHER_IP4 && type != RWY_ETHER_IP6) {
		gw_rx_drop(m, &w->c.drop_tenant_not_ip);
		return;
	}
	if (type != RWY_ETHER_ARP && (bad = gw_rx_ip(w, m, type, &in.k)) != NULL) {
		gw_rx_drop(m, bad);
		return;
	}
	if (arp_handle(w, &in, m, type, 0, m->data_len, owned))
		return;
	if (memcmp(in.eth, p->mac, 6) != 0 && memcmp(in.eth, in.f.t->cfg.gw_mac, 6) != 0) {
		gw_rx_drop(m, &w->c.drop_tenant_mac);
		return;
	}
	if (packet_admit(w, m, &in, owned))
		packet_forward(w, m, &in);
}
