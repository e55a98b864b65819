/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides where a received frame goes: the engine (packets of local hosts towards a tunnel,
 * datagrams of a tunnel's peer), the kernel (ARP, ND, multicast, packets for the gateway's own
 * addresses), another worker (which owns the flow), or a counted drop. rx_overlay.c handles
 * tenants' hosts.
 */
#include <rte_ether.h>
#include <rte_prefetch.h>
#include <string.h>

#include "gateway/datapath/capture.h"
#include "gateway/datapath/edge.h"
#include "gateway/datapath/notes.h"
#include "gateway/datapath/resolve.h"
#include "gateway/datapath/rx.h"
#include "gateway/datapath/sibling.h"
#include "gateway/datapath/standby.h"
#include "gateway/datapath/transit.h"
#include "gateway/datapath/tx.h"
#include "rwy/prefetch.h"
#include "tenant/tenant.h"

#define AHEAD      4 /* frames prefetched */
#define HEAD_LINES 2 /* of a frame that are prefetched then */
#define REST_LINES 6 /* of a large datagram, one frame ahead */

/* The kernel's interface is untagged: removes the tag by moving the addresses up to the
 * EtherType. */
static void to_kernel(struct gw_worker *w, struct rte_mbuf *m, uint32_t off)
{
	if (w->gated && !gw_standby_passes(w, w->by_id[m->port])) {
		gw_rx_drop(m, &w->c.drop_standby_rx);
		return;
	}
	if (off > GW_ETH) {
		uint8_t *d = rte_pktmbuf_mtod(m, uint8_t *);

		memmove(d + (off - GW_ETH), d, 12);
		rte_pktmbuf_adj(m, (uint16_t)(off - GW_ETH));
	}
	if (rte_ring_mp_enqueue(w->to_kernel, m) != 0) {
		gw_rx_drop(m, &w->c.drop_kernel_full);
		return;
	}
	w->c.to_kernel++;
	w->kernel_fed = true;
}

/* Takes the fields of a VLAN tag. */
static void read_tci(struct gw_l2 *l, uint16_t tci)
{
	l->vid = tci & 0xfff;
	l->pcp = (uint8_t)(RWY_PCP_TAGGED | tci >> 13);
}

/* Compares without a call, which GCC makes of a memcmp() of six bytes. */
static bool is_mac(const uint8_t *a, const uint8_t *b)
{
	return rte_is_same_ether_addr((const struct rte_ether_addr *)a, (const struct rte_ether_addr *)b);
}

/* Parses the header. False: dropped. On a tenant's VLAN the destination may be the tenant's MAC
 * address, which gw_rx_vlan checks. */
static bool parse_l2(struct gw_worker *w, const struct gw_port *p, struct rte_mbuf *m, struct gw_l2 *l)
{
	const uint8_t *d = rte_pktmbuf_mtod(m, const uint8_t *);

	if (m->nb_segs > 1 && rte_pktmbuf_linearize(m) != 0) {
		gw_rx_drop(m, &w->c.drop_rx_segments);
		return false;
	}
	if (m->data_len < GW_ETH) {
		gw_rx_drop(m, &w->c.drop_rx_truncated);
		return false;
	}
	l->off = GW_ETH;
	l->type = rwy_get16(d + 12);
	l->vid = 0;
	l->pcp = 0;
	if (m->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) {
		read_tci(l, m->vlan_tci);
	} else if (l->type == RWY_ETHER_VLAN && m->data_len >= GW_ETH + GW_VLAN) {
		read_tci(l, rwy_get16(d + 14));
		l->type = rwy_get16(d + 16);
		l->off = GW_ETH + GW_VLAN;
	}
	/* not for us, or sent by us and reflected by a bridge or af_packet */
	if ((!(d[0] & 1) && !is_mac(d, p->mac) && l->vid == p->vlan) || is_mac(d + 6, p->mac)) {
		gw_rx_drop(m, &w->c.drop_rx_not_ours);
		return false;
	}
	return true;
}

/* Errors of routers between may come from addresses that nobody routes. */
static bool is_icmp(const struct gw_pkt *k)
{
	return k->proto == IPPROTO_ICMP || k->proto == IPPROTO_ICMPV6;
}

/*
 * A packet that a link carries goes on, to the remote host, as a gateway's do. told: the link whose
 * state the packet shows to the remote host; NULL: none.
 */
static void from_lan_relayed(struct gw_worker *w, struct gw_port *p, struct rte_mbuf *m,
    const struct gw_pkt *k, const struct proxy_link *told)
{
	if (gw_verdict_find(w, p, &k->dst) < 0) {
		gw_rx_drop(m, &w->c.drop_lan_no_route);
		return;
	}
	if (w->low && !gw_rx_frees_memory(m, k)) {
		gw_rx_drop(m, &w->c.drop_low_memory);
		return;
	}
	if (!gw_resolve_source(w, &k->src) && p->conf->source_check) {
		gw_rx_drop(m, &w->c.drop_lan_foreign_source);
		return;
	}
	if (told &&
	    gw_edge_pair_waits(w, told, rte_pktmbuf_mtod_offset(m, uint8_t *, k->off), k->ip_len, false)) {
		rte_pktmbuf_free(m);
		return;
	}
	gw_rx_engine(w, m, k, 0);
}

/* A relay: only what a link carries goes on, to its real destination. */
static void from_lan_relay(struct gw_worker *w, struct gw_port *p, struct rte_mbuf *m, struct gw_pkt *k)
{
	struct proxy_act act;
	int t;

	if (gw_edge_in_fast(w, m, k)) {
		from_lan_relayed(w, p, m, k, NULL);
		return;
	}
	t = gw_verdict_find(w, p, &k->dst);
	if (t == GW_TO_KERNEL) {
		to_kernel(w, m, k->off);
		return;
	}
	if (t != GW_OWN) {
		gw_rx_drop(m, &w->c.drop_relay_transit);
		return;
	}
	switch (gw_edge_in(w, p, m, k, &act)) {
	case GW_EDGE_ENGINE:
		break;
	case GW_EDGE_DROP:
		rte_pktmbuf_free(m);
		break;
	case GW_EDGE_KERNEL:
		to_kernel(w, m, k->off);
		return;
	case GW_EDGE_FOREIGN:
		gw_rx_drop(m, &w->c.drop_lan_foreign_source);
		return;
	}
	if (act.reply_len)
		gw_edge_to_lan(w, act.reply, act.reply_len, &k->src);
	if (act.verdict == PROXY_PASS)
		from_lan_relayed(w, p, m, k, act.link);
}

static void from_lan(struct gw_worker *w, struct gw_port *p, struct rte_mbuf *m, struct gw_pkt *k, bool owned)
{
	int t;

	if (w->edge) {
		from_lan_relay(w, p, m, k);
		return;
	}
	t = gw_verdict_find(w, p, &k->dst);
	if (t == GW_OWN && w->ts->n && gw_rx_vxlan(w, p, m, k, owned))
		return;
	if (t == GW_OWN || t == GW_TO_KERNEL) {
		to_kernel(w, m, k->off);
		return;
	}
	if (t == GW_NO_ROUTE) {
		gw_rx_drop(m, &w->c.drop_lan_no_route);
		return;
	}
	if (w->ts->n && gw_transit_vxlan(w, rte_pktmbuf_mtod_offset(m, const uint8_t *, k->off), k->ip_len)) {
		gw_rx_drop(m, &w->c.drop_vxlan_transit);
		return;
	}
	/* A packet for a sibling takes no memory; the flow's owner knows whether it is one. */
	if (w->low && !w->sib && !gw_rx_frees_memory(m, k)) {
		gw_rx_drop(m, &w->c.drop_low_memory);
		return;
	}
	if (!owned && w->app->workers > 1 && gw_rx_hand_over(w, m, gw_worker_of(w->app, 0, m, k)))
		return;
	if (w->sib) {
		if (gw_sibling_take(w, m, k))
			return;
		if (w->low && !gw_rx_frees_memory(m, k)) {
			gw_rx_drop(m, &w->c.drop_low_memory);
			return;
		}
	}
	if (!gw_resolve_source(w, &k->src) && p->conf->source_check && !is_icmp(k)) {
		gw_rx_drop(m, &w->c.drop_lan_foreign_source);
		return;
	}
	gw_rx_engine(w, m, k, 0);
}

/* A tunnel's path by the addresses and ports of a datagram. */
struct arrival {
	int tunnel; /* -1: none has this local address and port */
	uint8_t path;
	bool peer; /* it comes from the tunnel's peer */
};

static bool path_fits(const struct gw_worker *w, const struct gw_tun_path *t, const struct gw_port *p,
    const struct gw_pkt *k, uint16_t dport)
{
	return t->port == p && (unsigned)(dport - t->udp_port) < w->app->workers && dport >= t->udp_port &&
	       rwy_ip_eq(&t->local, &k->dst);
}

/* Whether a datagram goes to this path of a tunnel, whoever sent it. */
static bool path_hears(const struct gw_worker *w, unsigned tunnel, unsigned path, const struct gw_port *p,
    const struct gw_pkt *k, uint16_t dport)
{
	const struct gw_tun *t = &w->tun[tunnel];

	return tunnel < w->tunnels && path < t->paths && !t->closed &&
	       path_fits(w, &t->path[path], p, k, dport);
}

static struct arrival tunnel_find(
    struct gw_worker *w, const struct gw_port *p, const struct gw_pkt *k, uint16_t dport)
{
	/* Peers of one network mostly differ in the last bytes, paths of one peer in the port. */
	uint32_t at = (uint32_t)(k->src.b[15] ^ k->src.b[14] << 3 ^ dport) % GW_PEERS_SEEN;
	struct gw_peer_seen *seen = &w->peer_seen[at];
	struct arrival a = {.tunnel = -1};

	if (path_hears(w, seen->tunnel, seen->path, p, k, dport) &&
	    rwy_ip_eq(&w->tun[seen->tunnel].path[seen->path].remote, &k->src))
		return (struct arrival){seen->tunnel, seen->path, true};
	for (unsigned i = 0; i < w->tunnels; i++)
		for (unsigned n = 0; n < w->tun[i].paths; n++) {
			if (!path_hears(w, i, n, p, k, dport))
				continue;
			a = (struct arrival){
			    (int)i, (uint8_t)n, rwy_ip_eq(&w->tun[i].path[n].remote, &k->src)};
			if (!a.peer)
				continue;
			*seen = (struct gw_peer_seen){(uint8_t)i, (uint8_t)n};
			return a;
		}
	return a;
}

static void from_tunnel(struct gw_worker *w, struct rte_mbuf *m, const struct gw_pkt *k,
    const struct arrival *a, uint16_t dport, bool owned)
{
	const unsigned tunnel = (unsigned)a->tunnel;
	const uint8_t *udp = rte_pktmbuf_mtod_offset(m, const uint8_t *, k->off + k->hdr);
	uint32_t len = rwy_get16(udp + 4);

	if (len < UDP_LEN || len > k->ip_len - k->hdr) {
		gw_rx_drop(m, &w->c.drop_bad_udp);
		return;
	}
	if (!owned && gw_rx_hand_over(w, m, dport - w->tun[tunnel].path[a->path].udp_port))
		return;
	w->c.to_engine_wan++;
	eng_wan_rx(w->eng, tunnel, a->path, gw_buf_view(m, k->off + k->hdr + UDP_LEN, len - UDP_LEN), k->ecn,
	    w->now);
}

static void from_wan(
    struct gw_worker *w, struct gw_port *p, struct rte_mbuf *m, const struct gw_pkt *k, bool owned)
{
	int v = gw_verdict_find(w, p, &k->dst);

	if (v != GW_OWN && v != GW_TO_KERNEL) {
		gw_rx_drop(m, &w->c.drop_wan_not_ours);
		return;
	}
	if (k->proto == IPPROTO_UDP && k->ip_len >= k->hdr + UDP_LEN) {
		const uint8_t *udp = rte_pktmbuf_mtod_offset(m, const uint8_t *, k->off + k->hdr);
		uint16_t dport = rwy_get16(udp + 2);
		struct arrival a;

		if (k->fragment) { /* tunnels never send fragments, and the kernel needs no UDP */
			gw_rx_drop(m, &w->c.drop_bad_ip);
			return;
		}
		a = tunnel_find(w, p, k, dport);
		if (a.peer) {
			from_tunnel(w, m, k, &a, dport, owned);
			return;
		}
		if (a.tunnel >= 0) {
			gw_rx_drop(m, &w->c.drop_wan_stranger);
			return;
		}
	}
	to_kernel(w, m, k->off);
}

static void rx_one(struct gw_worker *w, struct gw_port *p, struct rte_mbuf *m, bool owned)
{
	uint64_t *bad;
	struct gw_pkt k;
	struct gw_l2 l;

	if (!parse_l2(w, p, m, &l))
		return;
	if (__builtin_expect(w->gated, 0) && !gw_standby_receives(p)) {
		gw_rx_drop(m, &w->c.drop_standby_rx);
		return;
	}
	k.off = l.off;
	k.pcp = l.pcp;
	if (l.vid != p->vlan) {
		if (p->conf->role == CONF_ROLE_LAN && w->ts->n && l.vid)
			gw_rx_vlan(w, p, m, &l, owned);
		else
			gw_rx_drop(m, &w->c.drop_rx_vlan);
		return;
	}
	if (l.type == RWY_ETHER_ARP) {
		to_kernel(w, m, k.off);
		return;
	}
	if (l.type != RWY_ETHER_IP4 && l.type != RWY_ETHER_IP6) {
		gw_rx_drop(m, &w->c.drop_rx_not_ip);
		return;
	}
	bad = gw_rx_ip(w, m, l.type, &k);
	if (bad) {
		gw_rx_drop(m, bad);
		return;
	}
	/* ND, broadcast, multicast: for the kernel */
	if (rte_pktmbuf_mtod(m, const uint8_t *)[0] & 1) {
		to_kernel(w, m, k.off);
		return;
	}
	if (p->conf->role == CONF_ROLE_LAN)
		from_lan(w, p, m, &k, owned);
	else
		from_wan(w, p, m, &k, owned);
}

void gw_rx_forget(struct gw_worker *w)
{
	for (unsigned i = 0; i < w->ports; i++)
		memset(w->verdict[i], 0, GW_VERDICTS * sizeof(*w->verdict[i]));
	memset(w->seen, 0, GW_SEEN * sizeof(*w->seen));
}

/* The driver needs larger buffers than ours: copies the bytes into one of ours, so that custody
 * does not hold large ones. */
static struct rte_mbuf *rx_copy(struct gw_worker *w, struct rte_mbuf *m)
{
	struct rte_mbuf *c = rte_pktmbuf_alloc(w->pools->big);

	if (!c) {
		gw_rx_drop(m, &w->c.drop_no_mbuf);
		return NULL;
	}
	if (m->nb_segs > 1 || m->data_len > rte_pktmbuf_tailroom(c)) {
		rte_pktmbuf_free(c);
		gw_rx_drop(m, &w->c.drop_rx_segments);
		return NULL;
	}
	memcpy(rte_pktmbuf_mtod(c, void *), rte_pktmbuf_mtod(m, void *), m->data_len);
	c->data_len = m->data_len;
	c->pkt_len = m->data_len;
	c->port = m->port;
	c->vlan_tci = m->vlan_tci;
	c->ol_flags = m->ol_flags & (RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED);
	rte_pktmbuf_free(m);
	return c;
}

/* Prefetches Ethernet to BTH, and the headroom for the next headers. */
RWY_PREFETCHER void prefetch_head(struct rte_mbuf *m)
{
	uint8_t *d = rte_pktmbuf_mtod(m, uint8_t *);

	__builtin_prefetch(d - RTE_CACHE_LINE_SIZE, 1);
	rte_prefetch0(d);
	rte_prefetch0(d + RTE_CACHE_LINE_SIZE);
}

/*
 * Prefetches what follows in a large datagram, whose checksum or tag covers all of it: the
 * processor sees by itself how it goes on, but not where it begins.
 */
RWY_PREFETCHER void prefetch_rest(const struct rte_mbuf *m)
{
	if (m->data_len > (HEAD_LINES + REST_LINES) * RTE_CACHE_LINE_SIZE)
		rwy_prefetch(
		    rte_pktmbuf_mtod_offset(m, const uint8_t *, HEAD_LINES *RTE_CACHE_LINE_SIZE), REST_LINES);
}

/* Prefetches for a burst: frames' descriptors, and the first frames. */
RWY_PREFETCHER void prefetch_burst(struct rte_mbuf **pkts, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		rte_prefetch0(pkts[i]);
		rte_prefetch0(gw_buf_of(pkts[i]));
	}
	for (unsigned i = 0; i < n && i < AHEAD; i++)
		prefetch_head(pkts[i]);
}

/* The same burst with a capture, which looks at each frame before and after. */
static __attribute__((noinline)) void rx_captured(
    struct gw_worker *w, struct rte_mbuf **pkts, unsigned n, bool owned)
{
	prefetch_burst(pkts, n);
	gw_cap_burst_begin(w);
	for (unsigned i = 0; i < n; i++) {
		const unsigned waiting = w->lan_n;
		struct rte_mbuf *m = pkts[i];
		struct gw_port *p = w->by_id[m->port];
		struct gw_cap_sealed s;

		if (i + AHEAD < n)
			prefetch_head(pkts[i + AHEAD]);
		if (!owned && p->copy_rx && !(m = rx_copy(w, m)))
			continue;
		gw_cap_rx_begin(w, &s, p, m);
		rx_one(w, p, m, owned);
		gw_rx_hand_over_end(w); /* whether there was room is part of what is told of it */
		if (w->lan_n > waiting)
			gw_cap_rx_waits(w);
		else
			gw_cap_rx_end(w, &s);
	}
	gw_cap_burst_end(w);
}

void gw_rx(struct gw_worker *w, struct rte_mbuf **pkts, unsigned n, bool owned)
{
	gw_notes_first(w);
	if (__builtin_expect(w->cap != NULL, 0)) {
		rx_captured(w, pkts, n, owned);
		return;
	}
	prefetch_burst(pkts, n);
	for (unsigned i = 0; i < n; i++) {
		struct rte_mbuf *m = pkts[i];
		struct gw_port *p = w->by_id[m->port];

		if (i + AHEAD < n)
			prefetch_head(pkts[i + AHEAD]);
		if (i + 1 < n && p->conf->role != CONF_ROLE_LAN)
			prefetch_rest(pkts[i + 1]);
		if (w->ts->n && p->conf->role == CONF_ROLE_LAN && i + AHEAD / 2 < n)
			gw_rx_overlay_ahead(w, pkts[i + AHEAD / 2]);
		if (w->edge && p->conf->role == CONF_ROLE_LAN && i + AHEAD / 2 < n)
			gw_edge_in_ahead(w, pkts[i + AHEAD / 2]);
		if (!owned && p->copy_rx && !(m = rx_copy(w, m)))
			continue;
		rx_one(w, p, m, owned);
	}
	if (w->handing)
		gw_rx_hand_over_end(w);
	gw_rx_flush(w);
}
