/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to the datapath: a packet with headers in front of it, and its way into a port's queue.
 *
 * A packet in custody may be sent while an earlier transmission of it still waits in a driver's
 * ring. So there are three cases:
 * - Nobody else holds the mbuf (count 1) and the headers fit the headroom: they are written in
 *   place, and the driver gets a reference. The payload is not touched, rwy_buf.data/len stay as
 *   they are, and the mbuf's own offsets are set at each transmission.
 * - Otherwise the headers go into a separate buffer, chained to an indirect mbuf that refers to the
 *   payload.
 * - If the driver cannot send chains, header and payload are copied into a fresh buffer (counted as
 *   tx_copied).
 */
#ifndef GATEWAY_DATAPATH_TX_H
#define GATEWAY_DATAPATH_TX_H

#include <string.h>

#include "gateway/gw.h"
#include "gateway/port/mbuf.h"
#include "gateway/port/neigh.h"
#include "rwy/endian.h"
#include "rwy/ether.h"

struct tenant;

/* Returns the mbuf of a packet whose headers were written into the `hlen` bytes before b->data. */
static inline struct rte_mbuf *gw_tx_in_place(struct rwy_buf *b, uint32_t hlen, uint32_t len, bool own)
{
	struct rte_mbuf *m = gw_mbuf_of(b);

	m->data_off = (uint16_t)(b->data - hlen - (uint8_t *)m->buf_addr);
	m->data_len = (uint16_t)(hlen + len);
	m->pkt_len = hlen + len;
	m->nb_segs = 1;
	m->next = NULL;
	m->ol_flags &= RTE_MBUF_F_EXTERNAL;
	if (!own)
		rte_mbuf_refcnt_update(m, 1);
	return m;
}

/* Nobody else holds the packet, so nobody reads the `len` bytes before b->data, and they exist. */
static inline bool gw_tx_front_free(struct rwy_buf *b, uint32_t len)
{
	return b->headroom >= len && rte_mbuf_refcnt_read(gw_mbuf_of(b)) == 1;
}

static inline bool gw_tx_fits(const struct gw_port *p, struct rwy_buf *b, uint32_t hlen)
{
	return !p->copy_tx && gw_tx_front_free(b, hlen);
}

/* Frees a packet of the engine that is not sent. */
static inline void gw_tx_give_up(const struct eng_lan_tx *tx)
{
	if (tx->buf && tx->own)
		rte_pktmbuf_free_seg(gw_mbuf_of(tx->buf));
}

/* Sends a packet to a next hop on a LAN; tx->own: ownership of the buffer moves. */
void gw_tx_lan(struct gw_worker *w, const struct gw_nh *nh, const struct eng_lan_tx *tx);

/* Returns a small buffer with `len` bytes of room at its data. */
struct rte_mbuf *gw_tx_small(struct gw_worker *w, uint32_t len);
/* Returns a buffer with `len` bytes of room at its data; NULL: counted. */
struct rte_mbuf *gw_tx_room(struct gw_worker *w, uint32_t len);
/* Gives back the buffers that it has in stock. */
void gw_tx_room_free(struct gw_worker *w);
/* Copies headers and payload into one buffer. */
struct rte_mbuf *gw_tx_copy(
    struct gw_worker *w, const uint8_t *h, uint32_t hlen, const uint8_t *data, uint32_t len);
/* Refers to the payload, for ports that send chains. If own, b is released. */
struct rte_mbuf *gw_tx_refer(struct gw_worker *w, const uint8_t *h, uint32_t hlen, struct rwy_buf *b,
    uint32_t off, uint32_t len, bool own);
/* Refers or copies, for a packet that cannot have its headers in place. If own, b is released. */
struct rte_mbuf *gw_tx_apart(struct gw_worker *w, const struct gw_port *p, const uint8_t *h, uint32_t hlen,
    struct rwy_buf *b, uint32_t off, uint32_t len, bool own);

/* Copies an Ethernet header, with or without a tag. Lengths are constants: two stores each. */
static inline void gw_tx_l2_copy(uint8_t *at, const uint8_t *l2, uint32_t l2_len)
{
	if (l2_len == GW_ETH)
		memcpy(at, l2, GW_ETH);
	else
		memcpy(at, l2, GW_ETH + GW_VLAN);
}

/* Writes Ethernet in front of a packet of the given family: nh->l2_len bytes at `at`. */
static inline void gw_tx_l2(uint8_t *at, const struct gw_nh *nh, bool is4)
{
	gw_tx_l2_copy(at, nh->l2, nh->l2_len);
	rwy_put16(at + nh->l2_len - 2, is4 ? RWY_ETHER_IP4 : RWY_ETHER_IP6);
}

/* Puts a PCP, as in struct rwy_buf, into the VLAN tag of an Ethernet header, if it has one. */
static inline void gw_tx_pcp(uint8_t *l2, uint32_t l2_len, uint8_t pcp)
{
	if (l2_len == GW_ETH + GW_VLAN && pcp)
		l2[14] = (uint8_t)((l2[14] & 0x1f) | (pcp & 7) << 5);
}

/* tx.c: sends the queue's packets. */
void gw_txq_flush(struct gw_worker *w, struct gw_txq *q);
/* Queues m for the port's next burst; takes m. */
static inline void gw_tx_put(struct gw_worker *w, struct gw_port *p, struct rte_mbuf *m)
{
	struct gw_txq *q = &w->txq[p->idx];

	q->pkt[q->n++] = m;
	if (q->n == GW_TX_BUF)
		gw_txq_flush(w, q);
}

/* tx_lan.c, tx_wan.c: functions of struct eng_ops; ctx is the worker. */
void gw_tx_engine_lan(void *ctx, const struct eng_lan_tx *tx);
void gw_tx_engine_wan(void *ctx, unsigned tunnel, const struct wan_tx *tx);

/* tx_overlay.c: sends a packet of the engine to a tenant's host. */
void gw_tx_tenant(struct gw_worker *w, const struct eng_lan_tx *tx);

/* tx_frame.c: sends a whole Ethernet frame of ours to a VTEP, in VXLAN from `local`; NULL: from a
 * suitable address of the port. */
void gw_tx_vxlan_frame(struct gw_worker *w, const struct tenant *t, const struct rwy_ip *local,
    const struct rwy_ip *vtep, const uint8_t *eth, uint32_t len);
/* Sends one on a VLAN, with its tag. */
void gw_tx_vlan_frame(struct gw_worker *w, struct gw_port *p, uint16_t vid, const uint8_t *eth, uint32_t len);

#endif
