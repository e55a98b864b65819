/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the datapath: destinations of a received frame. Worker's thread only. */
#ifndef GATEWAY_DATAPATH_RX_H
#define GATEWAY_DATAPATH_RX_H

#include "gateway/datapath/pkt.h"
#include "gateway/gw.h"
#include "gateway/port/mbuf.h"

/* Frees m and counts the drop. */
static inline void gw_rx_drop(struct rte_mbuf *m, uint64_t *counter)
{
	(*counter)++;
	rte_pktmbuf_free(m);
}

/* Parses the IP header at k->off of a frame; its EtherType gives the family. Returns NULL, or the
 * counter of the error. */
static inline uint64_t *gw_rx_ip(
    struct gw_worker *w, const struct rte_mbuf *m, uint16_t type, struct gw_pkt *k)
{
	switch (gw_pkt_ip(m, type, k)) {
	case GW_PKT_OK:
		return NULL;
	case GW_PKT_BAD_IP:
		return &w->c.drop_bad_ip;
	case GW_PKT_TRUNCATED:
		return &w->c.drop_rx_truncated;
	}
	rwy_unreachable();
}

/*
 * Hands m to its owner with the rest of the burst: one frame of it at most is one owner's, so that
 * there is room. False: this worker is the owner.
 */
static inline bool gw_rx_hand_over(struct gw_worker *w, struct rte_mbuf *m, unsigned owner)
{
	struct gw_hand *h;

	if (owner == w->idx)
		return false;
	h = &w->hand[owner];
	h->m[h->n++] = m;
	w->handing |= UINT64_C(1) << owner;
	return true;
}
/* rx_out.c: the end of a burst. Other workers get what is theirs; what finds no room is dropped and
 * counted. */
void gw_rx_hand_over_end(struct gw_worker *w);

/*
 * verdict.c: where a packet to this address goes that came in by this port; a host of the plain
 * LAN's. A tunnel, or enum gw_verdict_kind.
 */
int gw_verdict_find(struct gw_worker *w, const struct gw_port *p, const struct rwy_ip *dst);
int gw_verdict_route(struct gw_worker *w, const struct rwy_ip *host);
/* Whether a packet is accepted while packet buffers are short: only packets that free some are. */
bool gw_rx_frees_memory(struct rte_mbuf *m, const struct gw_pkt *k);
/* Makes the packet of a received frame: k->ip_len bytes at k->off. */
static inline struct rwy_buf *gw_rx_packet(struct rte_mbuf *m, const struct gw_pkt *k)
{
	struct rwy_buf *b = gw_buf_view(m, k->off, k->ip_len);

	b->pcp = k->pcp & 15;
	return b;
}
/* Queues a packet for the engine's next batch. */
static inline void gw_rx_engine(
    struct gw_worker *w, struct rte_mbuf *m, const struct gw_pkt *k, uint32_t tenant)
{
	w->lan_tenant[w->lan_n] = (uint16_t)tenant;
	w->lan[w->lan_n++] = gw_rx_packet(m, k);
	w->c.to_engine_lan++;
	if (w->lan_n == GW_TX_BUF)
		gw_rx_flush(w);
}

/* rx_overlay.c: an IP packet to one of the port's own addresses, while there are tenants. outer has
 * its offset and PCP. False: not VXLAN, and not taken. */
bool gw_rx_vxlan(
    struct gw_worker *w, struct gw_port *p, struct rte_mbuf *m, const struct gw_pkt *outer, bool owned);
/* The Ethernet header of a frame. */
struct gw_l2 {
	uint32_t off; /* offset of the payload */
	uint16_t type;
	uint16_t vid; /* 0: untagged */
	uint8_t pcp;  /* as in struct rwy_buf */
};
/* Processes a frame with a VLAN tag other than the port's. Takes m. */
void gw_rx_vlan(
    struct gw_worker *w, struct gw_port *p, struct rte_mbuf *m, const struct gw_l2 *l, bool owned);
/* Prefetches what a frame will probably need; its first lines are in the cache. */
void gw_rx_overlay_ahead(const struct gw_worker *w, const struct rte_mbuf *m);

#endif
