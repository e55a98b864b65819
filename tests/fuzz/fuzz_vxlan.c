/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a VXLAN packet (even first byte) or as an ARP or ND frame (odd). A decapsulated
 * packet has its offsets inside, folds its ECN as the table says, and is the same after
 * encapsulation and decapsulation. An answer is one frame to the sender of the question.
 */
#include <stdlib.h>
#include <string.h>

#include "tenant/arp.h"
#include "rwy/checksum.h"
#include "vxlan/ecn.h"
#include "vxlan/vxlan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(x) ((x) ? (void)0 : abort())
#define ROOM     128

static void check_offsets(const struct vxlan_pkt *p, uint32_t len)
{
	CHECK(p->vni && p->vni <= VXLAN_VNI_MAX);
	CHECK(p->eth_off >= 36 && p->net_off == p->eth_off + (p->tagged ? 18 : 14));
	CHECK(p->net_off <= p->end && p->end <= len);
	CHECK(!(p->src_mac[0] & 1));
	CHECK(!p->roce || p->inner == VXLAN_INNER_IP4 || p->inner == VXLAN_INNER_IP6);
	CHECK(p->tagged || !p->tci);
}

/* Encapsulates the inner frame by ourselves: reading it must give the same. */
static void encap_again(const uint8_t *b, const struct vxlan_pkt *p, uint8_t how)
{
	struct vxlan_tmpl_cfg c = {.local = p->outer_src,
	    .remote = p->outer_dst,
	    .vni = p->vni,
	    .port = VXLAN_UDP_PORT,
	    .ttl = p->outer_ttl,
	    .udp_csum = how & 2,
	    .tag = p->tagged,
	    .tci = p->tci};
	uint32_t n = p->end - p->eth_off;
	uint8_t *m = malloc(ROOM + n), *o;
	struct vxlan_cfg cfg = {VXLAN_UDP_PORT, true, true};
	struct vxlan_pkt q;
	struct vxlan_tmpl t;

	CHECK(m);
	memcpy(m + ROOM, b + p->eth_off, n);
	memcpy(c.src_mac, p->src_mac, 6);
	if (!vxlan_tmpl_init(&t, &c)) {
		bool whole = how & 4 || p->inner > VXLAN_INNER_IP6;
		uint32_t front = p->net_off - p->eth_off;

		if (!whole)
			memset(m + ROOM, 0, 12);
		o = whole ? vxlan_encap_frame(&t, m + ROOM, n, 50000, p->outer_tos)
		          : vxlan_encap(&t, m + ROOM + front, n - front, p->dst_mac, 50000, p->outer_tos);
		CHECK(o);
		CHECK(vxlan_decap(&cfg, o, (uint32_t)(m + ROOM + n - o), &q) == VXLAN_OK);
		CHECK(q.vni == p->vni && q.outer_tos == p->outer_tos && q.inner == p->inner &&
		      q.roce == p->roce);
		CHECK(rwy_ip_eq(&q.outer_src, &p->outer_src) && rwy_ip_eq(&q.outer_dst, &p->outer_dst));
		CHECK(q.end - q.eth_off == n && q.net_off - q.eth_off == front && q.tci == p->tci);
		CHECK(!memcmp(m + ROOM, b + p->eth_off, n));
	}
	free(m);
}

static void fold_ecn(uint8_t *b, const struct vxlan_pkt *p)
{
	struct vxlan_ecn_counters c = {0};
	uint8_t *in = b + p->net_off, was = vxlan_tos_get(in);
	bool is4 = in[0] >> 4 == 4, right = is4 && rwy_csum(in, (in[0] & 15u) * 4) == 0xffff;
	const struct vxlan_ecn_out *o = vxlan_ecn_decap(was, p->outer_tos);

	CHECK(vxlan_ecn_apply(in, p->outer_tos, &c) == !o->drop);
	CHECK(vxlan_tos_get(in) == (o->drop ? was : (was & 0xfc) | o->ecn));
	if (is4) /* a right checksum stays right, a wrong one wrong */
		CHECK(right == (rwy_csum(in, (in[0] & 15u) * 4) == 0xffff));
}

static void packet(uint8_t how, const uint8_t *data, uint32_t len)
{
	struct vxlan_cfg cfg = {VXLAN_UDP_PORT, how & 8, how & 16};
	uint8_t *b = malloc(len ? len : 1);
	struct vxlan_pkt p, q;
	enum vxlan_reason r;

	CHECK(b);
	memcpy(b, data, len);
	r = vxlan_decap(&cfg, b, len, &p);
	CHECK(r < VXLAN_REASON_COUNT && !memcmp(b, data, len));
	if (r == VXLAN_OK) {
		check_offsets(&p, len);
		CHECK(!p.tagged || cfg.inner_vlan);
		/* One byte less than the headers announce. */
		CHECK(vxlan_decap(&cfg, b, p.end - 1, &q) == VXLAN_TRUNCATED);
		encap_again(b, &p, how);
		if (p.inner <= VXLAN_INNER_IP6)
			fold_ecn(b, &p);
	}
	free(b);
}

/* 10.0.0.0/8 and fd00::/16 are at this site, 10.1.0.0/16 and fd00:1::/32 behind a tunnel; the
 * gateway is 10.0.0.254 and fd00::fe. */
static const struct tenant *tenant(void)
{
	static const struct tenant *t;
	const struct tenant_limits lim = {.tenants = 1, .tunnels = 1};
	const uint8_t net[4] = {10}, sub[4] = {10, 1}, gw[4] = {10, 0, 0, 254};
	const struct tenant_prefix prefix[] = {
	    {{rwy_ip_from4(net), 104}, {TENANT_VTEP, 0}},
	    {{rwy_ip_from4(sub), 112}, {TENANT_TUNNEL, 0}},
	    {{{{0xfd}}, 16}, {TENANT_VTEP, 0}},
	    {{{{0xfd, 0, 0, 1}}, 32}, {TENANT_TUNNEL, 0}},
	};
	static struct tenant_db *db; /* lives as long as the process */
	const struct tenant_set *s;
	struct tenant_txn *x;
	struct tenant_cfg c;
	struct tenant_err err;

	if (t)
		return t;
	tenant_cfg_default(&c);
	c.name[0] = 't';
	c.vni = 1;
	c.prefix = prefix;
	c.prefixes = 4;
	c.proxy_arp = true;
	c.gw_mac[0] = 2;
	c.gw_mac[5] = 0xfe;
	c.gw_ip[0] = rwy_ip_from4(gw);
	c.gw_ip[1] = (struct rwy_ip){{0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xfe}};
	CHECK(!tenant_db_new(&db, &lim) && !tenant_txn_begin(&x, db) && !tenant_txn_add(x, &c, &err) &&
	      !tenant_txn_commit(x, &s, &err));
	t = tenant_by_vni(s, 1);
	return t;
}

static void arp(uint8_t how, const uint8_t *data, uint32_t len)
{
	const struct tenant *t = tenant();
	uint32_t off = how & 2 ? 18 : 14, n = 7;
	uint8_t *b = malloc(len ? len : 1), out[ARP_FRAME_MAX], back[ARP_FRAME_MAX];
	struct arp_msg m, again;
	enum arp_what w;

	CHECK(b);
	memcpy(b, data, len);
	w = arp_rx(t, how & 4 ? TENANT_LAN : TENANT_VTEP, t->cfg.gw_mac, b, off, len, &m, out, &n);
	CHECK(w < ARP_WHAT_COUNT && !memcmp(b, data, len) && n <= ARP_FRAME_MAX);
	CHECK((n != 0) == (w == ARP_ANSWER_OWN || w == ARP_ANSWER_PROXY));
	if (n) {
		uint32_t off2 = out[12] == 0x81 ? 18 : 14, n2;
		struct tenant_at at = tenant_find(t, &m.target);

		CHECK(m.request && !memcmp(out + 6, t->cfg.gw_mac, 6));
		CHECK(!memcmp(out, m.mac, 6) || out[0] == 0x33);
		CHECK(w == ARP_ANSWER_OWN ? rwy_ip_eq(&m.target, &t->cfg.gw_ip[m.is6])
		                          : at.side == TENANT_TUNNEL);
		/* Our own frames must be readable: our own address is a conflict for the reader, a
		 * proxied one is not on this side. */
		memcpy(out, t->cfg.gw_mac, 6);
		w = arp_rx(t, TENANT_VTEP, t->cfg.gw_mac, out, off2, n, &again, back, &n2);
		CHECK(!n2 && (w == ARP_CONFLICT || w == ARP_FORGED));
		CHECK(!again.request && again.is6 == m.is6 && rwy_ip_eq(&again.sender, &m.target));
	}
	free(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size || size > 9000)
		return 0;
	if (data[0] & 1)
		arp(data[0], data + 1, (uint32_t)size - 1);
	else
		packet(data[0], data + 1, (uint32_t)size - 1);
	return 0;
}
