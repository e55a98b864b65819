/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to the datapath: ways that a received frame takes. Worker's thread only. */
#ifndef GATEWAY_DATAPATH_RX_H
#define GATEWAY_DATAPATH_RX_H

#include "gateway/datapath/pkt.h"
#include "gateway/gw.h"
#include "gateway/port/mbuf.h"

/* Frees m and counts it. */
static inline void gw_rx_drop(struct rte_mbuf *m, uint64_t *counter)
{
	(*counter)++;
	rte_pktmbuf_free(m);
}

/* The IP header at k->off of a frame; its EtherType says which. NULL, or the counter of why it is none. */
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

/* rx_out.c: to another worker, or dropped and counted. */
void gw_rx_to_worker(struct gw_worker *w, struct rte_mbuf *m, unsigned owner);
/* True: given away, to its owner or as a drop. */
static inline bool gw_rx_hand_over(struct gw_worker *w, struct rte_mbuf *m, unsigned owner)
{
	if (owner == w->idx)
		return false;
	gw_rx_to_worker(w, m, owner);
	return true;
}

/* Dropped while packet buffers are short? Only packets that free some are taken then. */
bool gw_rx_frees_memory(struct rte_mbuf *m, const struct gw_pkt *k);
/* To the engine with the next lot; the packet is k->ip_len bytes at k->off. */
static inline void gw_rx_engine(
    struct gw_worker *w, struct rte_mbuf *m, const struct gw_pkt *k, uint32_t tenant)
{
	w->lan_tenant[w->lan_n] = (uint16_t)tenant;
	w->lan[w->lan_n++] = gw_buf_view(m, k->off, k->ip_len);
	w->c.to_engine_lan++;
	if (w->lan_n == GW_TX_BUF)
		gw_rx_flush(w);
}

/* rx_overlay.c: an IP packet to one of the port's own addresses, while there are tenants. False: not VXLAN,
 * and not taken. */
bool gw_rx_vxlan(struct gw_worker *w, struct gw_port *p, struct rte_mbuf *m, uint32_t off, bool owned);
/* A frame with a VLAN tag that is not the port's own; its EtherType and where the rest lies. Takes m. */
void gw_rx_vlan(struct gw_worker *w, struct gw_port *p, struct rte_mbuf *m, uint16_t vid, uint16_t type,
    uint32_t off, bool owned);
/* Fetches what a frame will probably need; its first lines are in the cache. */
void gw_rx_overlay_ahead(const struct gw_worker *w, const struct rte_mbuf *m);

#endif
