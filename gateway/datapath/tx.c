/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the engine wants sent: Ethernet in front of LAN packets, Ethernet, IP, UDP and the WAN header in front
 * of tunnel datagrams.
 * How headers come in front of a packet: tx.h. Packets for tenants' hosts: tx_overlay.c.
 */
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_ip.h>
#include <string.h>

#include "gateway/carrier/carrier.h"
#include "gateway/datapath/overlay.h"
#include "gateway/datapath/pkt.h"
#include "gateway/datapath/sessions.h"
#include "gateway/datapath/tx.h"

#define ECT0      2
#define VNI_LEN   4 /* in front of a packet of kind RWY_BUF_TENANT */
#define TTL       64
#define TX_TRIES  16 /* short retries when the driver's ring is full */
#define ASK_EVERY (100 * RWY_MS)
#define HDR_MAX   (GW_L2_MAX + IP6_LEN + UDP_LEN + WAN_HDR_MAX)
static_assert(HDR_MAX + RTE_PKTMBUF_HEADROOM <= GW_SMALL_ROOM, "all headers fit a small buffer");

/* --- port queues ---------------------------------------------------------------------------- */

static void queue_drop(struct gw_worker *w, struct gw_txq *q, unsigned from, uint64_t *counter)
{
	*counter += q->n - from;
	rte_pktmbuf_free_bulk(q->pkt + from, q->n - from);
	q->n = 0;
}

static void queue_flush(struct gw_worker *w, struct gw_txq *q)
{
	struct gw_port *p = q->port;
	unsigned sent = 0;

	if (!q->n)
		return;
	if (!atomic_load_explicit(&p->up, memory_order_relaxed)) {
		queue_drop(w, q, 0, &w->c.drop_port_down);
		return;
	}
	if (p->tx_shared)
		rte_spinlock_lock(&p->tx_lock[q->queue]);
	for (unsigned tries = 0; sent < q->n && tries < TX_TRIES; tries++)
		sent += rte_eth_tx_burst(p->id, q->queue, q->pkt + sent, (uint16_t)(q->n - sent));
	if (p->tx_shared)
		rte_spinlock_unlock(&p->tx_lock[q->queue]);
	w->c.tx_packets += sent;
	queue_drop(w, q, sent, &w->c.drop_tx_full);
}

void gw_tx_put(struct gw_worker *w, struct gw_port *p, struct rte_mbuf *m)
{
	struct gw_txq *q = &w->txq[p->idx];

	q->pkt[q->n++] = m;
	if (q->n == GW_TX_BUF)
		queue_flush(w, q);
}

void gw_tx_flush(struct gw_worker *w)
{
	for (unsigned i = 0; i < w->ports; i++)
		queue_flush(w, &w->txq[i]);
}

/* --- next hop ------------------------------------------------------------------------------- */

/* Tells the control thread what to resolve, each address at most once per ASK_EVERY. */
void gw_tx_ask(struct gw_worker *w, const struct rwy_ip *addr, uint16_t port)
{
	rwy_time *t = &w->ask_time[gw_neigh_hash(port, addr) % GW_ASKS];
	uint32_t head = atomic_load_explicit(&w->ask_head, memory_order_relaxed);

	if (w->now < *t || head - atomic_load_explicit(&w->ask_tail, memory_order_acquire) >= GW_ASKS)
		return;
	*t = w->now + ASK_EVERY;
	w->ask[head % GW_ASKS] = (struct gw_ask){.addr = *addr, .port = port};
	atomic_store_explicit(&w->ask_head, head + 1, memory_order_release);
	w->kernel_fed = true;
}

/* cache[0]: generation of the table, 0 = empty; cache[1]: the entry's index in it. */
static const struct gw_nh *next_hop(
    struct gw_worker *w, const struct rwy_ip *dst, struct eng_nexthop *cache, int wan_port)
{
	const struct gw_nt *t = w->nt;
	const struct gw_nh *nh;
	enum gw_nh_miss miss;
	struct rwy_ip addr;
	uint16_t port;

	if (cache && cache->cache[0] == t->gen) {
		nh = &t->nh[cache->cache[1]];
	} else {
		w->c.neigh_misses++;
		nh = gw_nt_find(t, w->app, dst, wan_port, &miss, &addr, &port);
		if (!nh) {
			if (miss == GW_NH_UNRESOLVED)
				gw_tx_ask(w, &addr, port);
			(*(miss == GW_NH_NO_ROUTE ? &w->c.drop_lan_unreachable
			    : wan_port >= 0       ? &w->c.drop_wan_unresolved
			                          : &w->c.drop_lan_unresolved))++;
			return NULL;
		}
		if (cache) {
			cache->cache[0] = t->gen;
			cache->cache[1] = (uint64_t)(nh - t->nh);
		}
	}
	if (!w->nh_used[nh->id])
		w->nh_used[nh->id] = 1;
	return nh;
}

void gw_tx_meet(struct gw_worker *w, const struct rwy_ip *host)
{
	struct gw_seen *s = &w->seen[gw_neigh_hash(0, host) & (GW_SEEN - 1)];
	enum gw_nh_miss miss;
	struct rwy_ip addr;
	uint16_t port;

	if (s->gen == w->nt->gen && rwy_ip_eq(&s->addr, host))
		return;
	if (s->again > w->now && rwy_ip_eq(&s->addr, host))
		return;
	s->addr = *host;
	s->gen = w->nt->gen;
	s->again = w->now + ASK_EVERY;
	if (!gw_nt_find(w->nt, w->app, host, -1, &miss, &addr, &port)) {
		s->gen = 0;
		if (miss == GW_NH_UNRESOLVED)
			gw_tx_ask(w, &addr, port);
	}
}

/* --- towards local hosts -------------------------------------------------------------------- */

static void l2_write(uint8_t *at, const struct gw_nh *nh, bool v4)
{
	memcpy(at, nh->l2, nh->l2_len);
	rwy_put16(at + nh->l2_len - 2, v4 ? ET_IP4 : ET_IP6);
}

void gw_tx_lan(struct gw_worker *w, const struct gw_nh *nh, const struct eng_lan_tx *tx)
{
	struct gw_port *p = w->app->port[nh->port];
	uint32_t len = tx->buf ? tx->buf->len : tx->len;
	uint8_t l2[GW_L2_MAX];
	struct rte_mbuf *m;

	if (len > p->conf->mtu) {
		w->c.drop_tx_too_long++;
		gw_tx_give_up(tx);
		return;
	}
	if (tx->buf && gw_tx_fits(p, tx->buf, nh->l2_len)) {
		l2_write(tx->buf->data - nh->l2_len, nh, rwy_ip_is4(tx->dst));
		m = gw_tx_in_place(tx->buf, nh->l2_len, len, tx->own);
		w->c.tx_in_place++;
	} else {
		l2_write(l2, nh, rwy_ip_is4(tx->dst));
		m = tx->buf ? gw_tx_apart(w, p, l2, nh->l2_len, tx->buf, 0, len, tx->own)
		            : gw_tx_copy(w, l2, nh->l2_len, tx->bytes, len);
	}
	if (m)
		gw_tx_put(w, p, m);
}

static void lan_tx(void *ctx, const struct eng_lan_tx *tx)
{
	struct gw_worker *w = ctx;
	const struct gw_nh *nh;
	uint32_t len = tx->buf ? tx->buf->len : tx->len;

	if (tx->tenant) {
		gw_tx_tenant(w, tx);
		return;
	}
	if (w->ts->n && gw_rx_transit(w, tx->buf ? tx->buf->data : tx->bytes, len)) {
		w->c.drop_vxlan_transit++;
		gw_tx_give_up(tx);
		return;
	}
	nh = next_hop(w, tx->dst, tx->nh, -1);
	if (nh)
		gw_tx_lan(w, nh, tx);
	else
		gw_tx_give_up(tx);
}

/* --- towards the peer ----------------------------------------------------------------------- */

void gw_tx_tunnel_set(struct gw_worker *w, unsigned tunnel, const struct conf_tunnel *c)
{
	w->tun_conf[tunnel] = *c;
}

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

void gw_tx_tunnel_init(struct gw_worker *w, unsigned tunnel, const struct conf_tunnel *c)
{
	struct gw_tun *t = &w->tun[tunnel];
	uint8_t *h = t->hdr, *udp;

	*t = (struct gw_tun){.conf = &w->tun_conf[tunnel]};
	atomic_store_explicit(&w->tun_state[tunnel], 0, memory_order_relaxed);
	w->tun_conf[tunnel] = *c;
	if (w->tunnels <= tunnel)
		w->tunnels = tunnel + 1;
	t->port = w->app->port[t->conf->port_idx];
	t->udp_port = (uint16_t)(t->conf->udp_port + w->idx);
	memset(h, 0, sizeof(t->hdr));
	t->sum = 0;
	if (rwy_ip_is4(&t->conf->local)) {
		t->ip_len = IP4_LEN;
		h[0] = 0x45;
		h[6] = 0x40; /* do not fragment: the path MTU is the tunnel's affair; identification 0 is then
		                fine, RFC 6864 */
		h[8] = TTL;
		h[9] = IPPROTO_UDP;
		memcpy(h + 12, t->conf->local.b + 12, 4);
		memcpy(h + 16, t->conf->remote.b + 12, 4);
		for (unsigned i = 0; i < IP4_LEN; i += 2)
			t->sum += rwy_get16(h + i);
	} else {
		t->ip_len = IP6_LEN;
		h[0] = 0x60;
		h[6] = IPPROTO_UDP;
		h[7] = TTL;
		memcpy(h + 8, t->conf->local.b, 16);
		memcpy(h + 24, t->conf->remote.b, 16);
	}
	udp = h + t->ip_len;
	rwy_put16(udp, t->udp_port);
	rwy_put16(udp + 2, t->udp_port);
}

/* Of the sum of the header's 16-bit words. */
static uint16_t ip4_checksum(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t) ~(sum + (sum >> 16));
}

/* One value for all packets, not `keep`: such a table's ends are equal. */
static bool says_one(const struct vxlan_dscp *d)
{
	return d->map[0] == d->map[63];
}

/* DSCP << 2 of a datagram: what its tenant says, or else its tunnel, of the packet inside. */
static uint8_t wan_dscp(const struct gw_worker *w, const struct gw_tun *t, const struct wan_tx *tx)
{
	const struct tenant *who = tx->class_id ? tenant_by_index(w->ts, tx->class_id) : NULL;
	const struct vxlan_dscp *d = tx->congested ? &t->conf->dscp_congested : &t->conf->dscp;
	const uint8_t *ip = tx->buf && tx->buf->kind != RWY_BUF_CTRL
	                        ? tx->buf->data + (tx->buf->kind == RWY_BUF_TENANT ? VNI_LEN : 0)
	                        : NULL;

	if (who && says_one(&who->cfg.dscp) && !tx->congested)
		d = &who->cfg.dscp;
	else if (who && says_one(&who->cfg.dscp_congested) && tx->congested)
		d = &who->cfg.dscp_congested;
	return (uint8_t)(d->map[ip ? vxlan_tos_get(ip) >> 2 : 0] << 2);
}

/* Ethernet, IP, UDP and the WAN header at `at`; returns how many bytes. `payload` bytes of the packet follow.
 */
static uint32_t wan_headers(uint8_t *at, const struct gw_tun *t, const struct gw_nh *nh,
    const struct wan_tx *tx, uint8_t dscp, uint32_t payload)
{
	uint8_t *ip = at + nh->l2_len, *udp = ip + t->ip_len;
	uint32_t udp_len = UDP_LEN + tx->hdr_len + payload;
	uint8_t tos = dscp | (tx->ect ? ECT0 : 0);

	l2_write(at, nh, t->ip_len == IP4_LEN);
	memcpy(ip, t->hdr, t->ip_len + UDP_LEN);
	rwy_put16(udp + 4, (uint16_t)udp_len);
	if (t->ip_len == IP4_LEN) {
		/* UDP checksum 0: the datagram carries a CRC32C of its own (wan/). */
		ip[1] = tos;
		rwy_put16(ip + 2, (uint16_t)(IP4_LEN + udp_len));
		rwy_put16(ip + 10, ip4_checksum(t->sum + tos + IP4_LEN + udp_len));
	} else {
		rwy_put16(ip, (uint16_t)(0x6000 | tos << 4));
		rwy_put16(ip + 4, (uint16_t)udp_len);
	}
	memcpy(udp + UDP_LEN, tx->hdr, tx->hdr_len);
	return nh->l2_len + t->ip_len + UDP_LEN + tx->hdr_len;
}

/* IPv6: a zero checksum is allowed to tunnels (RFC 6936) but hosts and middleboxes drop it, so it is
 * computed. */
static void udp6_checksum(struct rte_mbuf *m, uint32_t l2_len)
{
	struct rte_ipv6_hdr *ip = rte_pktmbuf_mtod_offset(m, struct rte_ipv6_hdr *, l2_len);
	uint32_t off = l2_len + IP6_LEN;
	uint16_t raw, sum;
	uint32_t all;

	if (rte_raw_cksum_mbuf(m, off, m->pkt_len - off, &raw) != 0)
		return;
	all = (uint32_t)raw + rte_ipv6_phdr_cksum(ip, 0);
	all = (all & 0xffff) + (all >> 16);
	sum = (uint16_t)~all;
	if (sum == 0)
		sum = 0xffff;
	memcpy((uint8_t *)(ip + 1) + 6, &sum, 2); /* already in network order */
}

static void wan_tx(void *ctx, unsigned tunnel, const struct wan_tx *tx)
{
	struct gw_worker *w = ctx;
	struct gw_tun *t = &w->tun[tunnel];
	struct gw_port *p = t->port;
	const struct gw_nh *nh;
	uint32_t len = tx->buf ? tx->len : 0, hlen;
	uint8_t h[HDR_MAX], dscp;
	struct rte_mbuf *m;

	if (tx->stream) {
		gw_carrier_tx(w, tunnel, tx);
		return;
	}
	nh = next_hop(w, &t->conf->remote, &t->nh, p->idx);
	if (nh && t->ip_len + UDP_LEN + tx->hdr_len + len > p->conf->mtu) {
		w->c.drop_tx_too_long++;
		nh = NULL;
	}
	if (!nh) {
		if (tx->buf && tx->own)
			rte_pktmbuf_free_seg(gw_mbuf_of(tx->buf));
		return;
	}
	hlen = nh->l2_len + t->ip_len + UDP_LEN + tx->hdr_len;
	dscp = wan_dscp(w, t, tx);
	if (tx->buf && tx->off == 0 && gw_tx_fits(p, tx->buf, hlen)) {
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

/* --- the kernel's frames -------------------------------------------------------------------- */

void gw_tx_frame(struct gw_worker *w, struct gw_port *p, struct rte_mbuf *m)
{
	if (p->vlan) {
		uint8_t *d = (uint8_t *)rte_pktmbuf_prepend(m, GW_VLAN);

		if (!d) {
			w->c.drop_no_mbuf++;
			rte_pktmbuf_free(m);
			return;
		}
		memmove(d, d + GW_VLAN, 12);
		rwy_put16(d + 12, 0x8100);
		rwy_put16(d + 14, p->vlan);
	}
	w->c.from_kernel++;
	gw_tx_put(w, p, m);
}

static void log_event(void *ctx, int level, const char *msg)
{
	const struct gw_worker *w = ctx;

	if (w->app->workers > 1)
		gw_log(level, "engine", "worker=%u %s", w->idx, msg);
	else
		gw_log(level, "engine", "%s", msg);
}

static void path_congested(void *ctx, unsigned tunnel, uint8_t path, const struct wan_congest_state *s)
{
	struct gw_worker *w = ctx;
	uint64_t bit = (uint64_t)1 << tunnel;

	w->tunnel_congested = s->by ? w->tunnel_congested | bit : w->tunnel_congested & ~bit;
}

/* For the control thread, which tells people (tunnel_tell.c). */
static void tunnel_state(void *ctx, unsigned tunnel, bool up, rwy_time now)
{
	struct gw_worker *w = ctx;
	_Atomic uint64_t *s = &w->tun_state[tunnel];

	if ((atomic_load_explicit(s, memory_order_relaxed) & 1) !=
	    up) /* also called when the peer restarted */
		atomic_store_explicit(s, now << 1 | up, memory_order_relaxed);
}

static void session(void *ctx, bool open, const struct eng_session *s)
{
	struct gw_worker *w = ctx;

	if (w->sessions && !gw_session_put(w->sessions, open, s))
		w->c.drop_session_event++;
}

const struct eng_ops gw_eng_ops = {.lan_tx = lan_tx,
    .wan_tx = wan_tx,
    .log = log_event,
    .path_congested = path_congested,
    .tunnel_state = tunnel_state,
    .session = session};
