/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internal to tx*.c: a packet with headers in front of it, and its way into a port's queue.
 *
 * A packet in custody may be sent while an earlier transmission of it still waits in a driver's ring. So:
 *   - nobody else holds the mbuf (count 1) and the headers fit the headroom: they are written in place, and
 * the driver gets a reference; payload is not touched, rwy_buf.data/len stay as they are (the mbuf's own
 * offsets are set anew at each sending);
 *   - else the headers go into a buffer of their own, chained to an indirect mbuf that refers to the payload;
 *   - else, where the driver sends no chains, header and payload are copied into a fresh buffer (counted as
 * tx_copied).
 */
#ifndef GATEWAY_DATAPATH_TX_H
#define GATEWAY_DATAPATH_TX_H

#include <string.h>

#include "gateway/gw.h"
#include "gateway/port/mbuf.h"
#include "gateway/port/neigh.h"

/* The mbuf of a packet whose headers were written into the `hlen` bytes before b->data. */
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

static inline bool gw_tx_fits(const struct gw_port *p, struct rwy_buf *b, uint32_t hlen)
{
	return !p->copy_tx && b->headroom >= hlen && rte_mbuf_refcnt_read(gw_mbuf_of(b)) == 1;
}

/* A packet of the engine that is not sent after all. */
static inline void gw_tx_give_up(const struct eng_lan_tx *tx)
{
	if (tx->buf && tx->own)
		rte_pktmbuf_free_seg(gw_mbuf_of(tx->buf));
}

/* A packet to a next hop on a LAN: own says whose it is then. */
void gw_tx_lan(struct gw_worker *w, const struct gw_nh *nh, const struct eng_lan_tx *tx);

/* A small buffer with `len` bytes of room at its data. */
struct rte_mbuf *gw_tx_small(struct gw_worker *w, uint32_t len);
/* Headers and payload copied into one buffer. */
struct rte_mbuf *gw_tx_copy(
    struct gw_worker *w, const uint8_t *h, uint32_t hlen, const uint8_t *data, uint32_t len);
/* By reference, for who takes chains. Gives b up when it is ours. */
struct rte_mbuf *gw_tx_refer(struct gw_worker *w, const uint8_t *h, uint32_t hlen, struct rwy_buf *b,
    uint32_t off, uint32_t len, bool own);
/* By reference or by copy, for a packet that cannot take its headers in place. Gives b up when it is ours. */
struct rte_mbuf *gw_tx_apart(struct gw_worker *w, const struct gw_port *p, const uint8_t *h, uint32_t hlen,
    struct rwy_buf *b, uint32_t off, uint32_t len, bool own);

/* tx.c */
void gw_tx_put(struct gw_worker *w, struct gw_port *p, struct rte_mbuf *m);
/* Tells the control thread what to resolve, each address at most once in a while. */
void gw_tx_ask(struct gw_worker *w, const struct rwy_ip *addr, uint16_t port);

#endif
