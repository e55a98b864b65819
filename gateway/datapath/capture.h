/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker's side of a capture (gateway/capture/capture.h): where packets are copied, and how the
 * decision about one is known. Call these only while w->cap is not NULL. Worker's thread only.
 */
#ifndef GATEWAY_DATAPATH_CAPTURE_H
#define GATEWAY_DATAPATH_CAPTURE_H

#include "gateway/capture/capture.h"
#include "gateway/gw.h"

struct gw_nh;

/*
 * A received frame, in two steps around its handling: its bytes, before they change; and what
 * became of it, told by the counters that changed meanwhile. So the handling is of this one frame
 * alone: with gw_rx_flush(), without eng_poll().
 */
struct gw_cap_rx {
	struct gw_cap_facts facts;
	unsigned port;
	/* A sealed datagram is opened in place: a reference to it, until `end`, and its bytes. */
	struct rte_mbuf *sealed; /* NULL: it was in the clear */
	const uint8_t *datagram;
	uint32_t udp;                        /* offset of the datagram; 0: of no tunnel */
	uint64_t handoff, kernel, forwarded; /* counters before */
};
void gw_cap_rx_begin(struct gw_worker *w, struct gw_cap_rx *x, const struct gw_port *p, struct rte_mbuf *m);
/* The same for a datagram of the reliable carrier. */
void gw_cap_stream_begin(struct gw_worker *w, struct gw_cap_rx *x, unsigned tunnel, const struct rte_mbuf *m);
/* A relay gave the packet other addresses: what is told of it is about `b`. */
void gw_cap_rx_relayed(struct gw_cap_rx *x, const struct rwy_buf *b);
void gw_cap_rx_end(struct gw_worker *w, struct gw_cap_rx *x);

/*
 * Frames of a queue that are about to be given to the port, and how many it took; `drop`: reason of
 * the others. Sealed datagrams are left out: gw_cap_wan_out() had them.
 */
void gw_cap_tx_begin(struct gw_worker *w, const struct gw_txq *q);
void gw_cap_tx_end(struct gw_worker *w, const struct gw_txq *q, unsigned sent, uint16_t drop);

/* The next frame is this packet, to which a relay gives other addresses; NULL: no longer. All
 * queues are empty. */
void gw_cap_tx_relayed(struct gw_worker *w, const struct eng_lan_tx *tx);

/* A datagram that no port shows in the clear: before it is sealed (nh: its Ethernet header), or one
 * for the reliable carrier (NULL), as if it were sent natively by this path. */
void gw_cap_wan_out(struct gw_worker *w, const struct gw_tun_path *t, const struct gw_nh *nh,
    const struct wan_tx *tx, uint8_t tos);

#endif
