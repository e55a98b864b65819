/* SPDX-License-Identifier: Apache-2.0 */
/* Sends datagrams of tunnels: adds Ethernet, IP, UDP and the WAN header. tx.h tells how headers are
 * put in front of a packet. */
#include <rte_ip.h>
#include <rte_memcpy.h>
#include <string.h>

#include "gateway/carrier/carrier.h"
#include "gateway/datapath/capture.h"
#include "gateway/datapath/lease.h"
#include "gateway/datapath/overlay.h"
#include "gateway/datapath/pkt.h"
#include "gateway/datapath/resolve.h"
#include "gateway/datapath/tx.h"
#include "rwy/checksum.h"

#define ECT0    2
#define TTL     64
#define HDR_MAX (GW_L2_MAX + IP6_LEN + UDP_LEN + WAN_HDR_MAX)
static_assert(HDR_MAX + RTE_PKTMBUF_HEADROOM <= GW_SMALL_ROOM, "all headers fit a small buffer");

void gw_tx_tunnel_close(struct gw_worker *w, unsigned tunnel)
{
	w->tun[tunnel].closed = true;
}

void gw_tx_tunnel_fini(struct gw_worker *w, unsigned tunnel)
{
	w->tun[tunnel] = (struct gw_tun){0};
	w->tunnel_congested &= ~((uint64_t)1 << tunnel);
	while (w->tunnels && !w->tun[w->tunnels - 1].conf)
		w->tunnels--;
}

static void path_init(const struct gw_worker *w, struct gw_tun_path *t, const struct conf_path *c)
{
	uint8_t *h = t->hdr, *udp;

	*t = (struct gw_tun_path){.port = w->app->port[c->port_idx],
	    .local = c->local,
	    .remote = c->remote,
	    .udp_port = c->udp_port,
	    .dscp = (uint8_t)(c->dscp << 2)};
	if (rwy_ip_is4(&c->local)) {
		t->ip_len = IP4_LEN;
		h[0] = 0x45;
		/* DF: the tunnel handles the path MTU; so identification may be 0 (RFC 6864) */
		h[6] = 0x40;
		h[8] = TTL;
		h[9] = IPPROTO_UDP;
		memcpy(h + 12, c->local.b + 12, 4);
		memcpy(h + 16, c->remote.b + 12, 4);
		t->sum = rwy_csum(h, IP4_LEN);
	} else {
		t->ip_len = IP6_LEN;
		h[0] = 0x60;
		h[6] = IPPROTO_UDP;
		h[7] = TTL;
		memcpy(h + 8, c->local.b, 16);
		memcpy(h + 24, c->remote.b, 16);
	}
	udp = h + t->ip_len;
	rwy_put16(udp, (uint16_t)(c->source_port + w->idx));
	rwy_put16(udp + 2, (uint16_t)(c->udp_port + w->idx));
}

void gw_tx_tunnel_init(struct gw_worker *w, unsigned tunnel, const struct conf_tunnel *c)
{
	struct gw_tun *t = &w->tun[tunnel];

	*t = (struct gw_tun){.conf = &w->tun_conf[tunnel], .paths = (uint8_t)(1 + c->paths)};
	atomic_store_explicit(&w->tun_state[tunnel], 0, memory_order_relaxed);
	w->tun_conf[tunnel] = *c;
	gw_lease_begin(w, tunnel);
	if (w->tunnels <= tunnel)
		w->tunnels = tunnel + 1;
	for (unsigned i = 0; i < t->paths; i++) {
		const struct conf_path p = conf_tunnel_path(c, i);

		path_init(w, &t->path[i], &p);
	}
}

/* Whether the path leads where the configuration says. */
static bool leads(const struct gw_worker *w, const struct gw_tun_path *t, const struct conf_path *c)
{
	return t->port == w->app->port[c->port_idx] && rwy_ip_eq(&t->local, &c->local) &&
	       rwy_ip_eq(&t->remote, &c->remote) && t->udp_port == c->udp_port &&
	       rwy_get16(t->hdr + t->ip_len) == (uint16_t)(c->source_port + w->idx);
}

uint32_t gw_tx_tunnel_set(struct gw_worker *w, unsigned tunnel, const struct conf_tunnel *c)
{
	struct gw_tun *t = &w->tun[tunnel];
	uint32_t anew = 0;

	w->tun_conf[tunnel] = *c;
	for (unsigned i = 1; i <= c->paths; i++) {
		const struct conf_path p = conf_tunnel_path(c, i);

		if (i < t->paths && leads(w, &t->path[i], &p)) {
			t->path[i].dscp = (uint8_t)(p.dscp << 2);
			continue;
		}
		path_init(w, &t->path[i], &p);
		anew |= 1u << i;
	}
	t->paths = (uint8_t)(1 + c->paths);
	return anew;
}

/* Whether all packets get one value. In a `keep` table the first and the last entry differ. */
static bool says_one(const struct vxlan_dscp *d)
{
	return d->map[0] == d->map[63];
}

/* Returns DSCP << 2 of a datagram: its reservation's, or else its tenant's policy, or else its
 * tunnel's, for the packet inside. Without a packet, as a repair, it counts as one with DSCP 0. */
static uint8_t wan_dscp(const struct gw_worker *w, const struct gw_tun *t, const struct wan_tx *tx)
{
	const struct tenant *who = tx->class_id ? tenant_by_index(w->ts, tx->class_id) : NULL;
	const struct vxlan_dscp *d = tx->congested ? &t->conf->dscp_congested : &t->conf->dscp;
	const uint8_t *ip = tx->buf ? rwy_buf_ip(tx->buf) : NULL;

	if (tx->has_dscp)
		return (uint8_t)(tx->dscp << 2);
	if (who && says_one(&who->cfg.dscp) && !tx->congested)
		d = &who->cfg.dscp;
	else if (who && says_one(&who->cfg.dscp_congested) && tx->congested)
		d = &who->cfg.dscp_congested;
	return (uint8_t)(d->map[ip ? vxlan_tos_get(ip) >> 2 : 0] << 2);
}

/* Writes Ethernet, IP and UDP at `at`, for a datagram of `size` bytes that follows them. */
static void udp_headers(uint8_t *at, const struct gw_tun_path *t, const struct gw_nh *nh,
    const struct wan_tx *tx, uint8_t dscp, uint32_t size)
{
	uint8_t *ip = at + nh->l2_len, *udp = ip + t->ip_len;
	uint32_t udp_len = UDP_LEN + size;
	uint8_t tos = dscp | (tx->ect ? ECT0 : 0);

	gw_tx_l2(at, nh, t->ip_len == IP4_LEN);
	if (t->ip_len == IP4_LEN) {
		memcpy(ip, t->hdr, IP4_LEN + UDP_LEN);
		/* UDP checksum 0: the datagram has its own CRC-32 or tag (wan/). */
		ip[1] = tos;
		rwy_put16(ip + 2, (uint16_t)(IP4_LEN + udp_len));
		rwy_put16(ip + 10, (uint16_t)~rwy_csum_fold(t->sum + tos + IP4_LEN + udp_len));
	} else {
		memcpy(ip, t->hdr, IP6_LEN + UDP_LEN);
		rwy_put16(ip, (uint16_t)(0x6000 | tos << 4));
		rwy_put16(ip + 4, (uint16_t)udp_len);
	}
	rwy_put16(udp + 4, (uint16_t)udp_len);
}

/* The same, and the WAN header; `payload` bytes of the packet follow. */
static void wan_headers(uint8_t *at, const struct gw_tun_path *t, const struct gw_nh *nh,
    const struct wan_tx *tx, uint8_t dscp, uint32_t payload)
{
	udp_headers(at, t, nh, tx, dscp, tx->hdr_len + payload);
	rte_memcpy(at + nh->l2_len + t->ip_len + UDP_LEN, tx->hdr, tx->hdr_len);
}

/* A datagram that is sealed: the encryption is the copy, and custody keeps the packet. */
static struct rte_mbuf *sealed(struct gw_worker *w, const struct gw_tun_path *t, const struct gw_nh *nh,
    const struct wan_tx *tx, uint8_t dscp)
{
	uint32_t hlen = nh->l2_len + t->ip_len + UDP_LEN, size = wan_tx_size(tx);
	struct rte_mbuf *m = gw_tx_room(w, hlen + size);
	uint8_t *at;

	if (!m)
		return NULL;
	if (__builtin_expect(w->cap != NULL, 0))
		gw_cap_wan_out(w, t, nh, tx, (uint8_t)(dscp | (tx->ect ? ECT0 : 0)));
	at = rte_pktmbuf_mtod(m, uint8_t *);
	udp_headers(at, t, nh, tx, dscp, size);
	if (tx->buf && tx->off == 0 && gw_tx_front_free(tx->buf, tx->hdr_len))
		wan_tx_write_joined(tx, at + hlen);
	else
		wan_tx_write(tx, at + hlen);
	w->c.tx_sealed++;
	return m;
}

/* IPv6: tunnels may use a zero checksum (RFC 6936), but hosts and middleboxes drop it, so it is
 * computed. */
static void udp6_checksum(struct rte_mbuf *m, uint32_t l2_len)
{
	struct rte_ipv6_hdr *ip = rte_pktmbuf_mtod_offset(m, struct rte_ipv6_hdr *, l2_len);
	uint8_t *udp = (uint8_t *)(ip + 1);
	uint64_t all = rte_be_to_cpu_16(rte_ipv6_phdr_cksum(ip, 0));
	uint32_t skip = l2_len + IP6_LEN, at = 0;
	uint16_t sum;

	for (const struct rte_mbuf *s = m; s; s = s->next, skip = 0) {
		const uint32_t len = s->data_len - skip;

		all = rwy_csum_part(all, at, rte_pktmbuf_mtod_offset(s, const uint8_t *, skip), len);
		at += len;
	}
	sum = (uint16_t)~rwy_csum_fold(all);
	rwy_put16(udp + 6, sum ? sum : 0xffff);
}

void gw_tx_engine_wan(void *ctx, unsigned tunnel, const struct wan_tx *tx)
{
	struct gw_worker *w = ctx;
	struct gw_tun_path *t;
	struct gw_port *p;
	const struct gw_nh *nh;
	uint32_t len = tx->buf ? tx->len : 0, hlen;
	uint8_t h[HDR_MAX], dscp;
	struct rte_mbuf *m;

	if (tx->stream) {
		if (__builtin_expect(w->cap != NULL, 0))
			gw_cap_wan_out(w, &w->tun[tunnel].path[0], NULL, tx, 0);
		gw_carrier_tx(w, tunnel, tx);
		return;
	}
	t = &w->tun[tunnel].path[tx->path];
	p = t->port;
	nh = gw_next_hop(w, &t->remote, &t->nh, p->idx);
	if (nh && t->ip_len + UDP_LEN + wan_tx_size(tx) > p->conf->mtu) {
		w->c.drop_tx_too_long++;
		nh = NULL;
	}
	if (!nh) {
		if (tx->buf && tx->own)
			rte_pktmbuf_free_seg(gw_mbuf_of(tx->buf));
		return;
	}
	hlen = nh->l2_len + t->ip_len + UDP_LEN + tx->hdr_len;
	dscp = t->dscp ? t->dscp : wan_dscp(w, &w->tun[tunnel], tx);
	if (tx->key) {
		m = sealed(w, t, nh, tx, dscp);
		if (tx->buf && tx->own)
			rte_pktmbuf_free_seg(gw_mbuf_of(tx->buf));
	} else if (tx->buf && tx->off == 0 && gw_tx_fits(p, tx->buf, hlen)) {
		wan_headers(tx->buf->data - hlen, t, nh, tx, dscp, len);
		m = gw_tx_in_place(tx->buf, hlen, len, tx->own);
		w->c.tx_in_place++;
	} else {
		wan_headers(h, t, nh, tx, dscp, len);
		m = tx->buf ? gw_tx_apart(w, p, h, hlen, tx->buf, tx->off, len, tx->own)
		            : gw_tx_copy(w, h, hlen, NULL, 0);
	}
	if (!m)
		return;
	if (t->ip_len == IP6_LEN)
		udp6_checksum(m, nh->l2_len);
	gw_tx_put(w, p, m);
}
