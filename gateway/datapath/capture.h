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
 * A burst of received frames. Each is begun before it is handled: its bytes are copied, before they
 * change, unless the filter cannot take it. When its handling is over, the counters that changed
 * meanwhile tell what became of it: then it is ended. One that waits for the engine is ended when
 * the engine had it, in gw_cap_burst_end(), which gives all that wait to the engine.
 */
struct gw_cap_sealed {
	/* A sealed datagram is opened in place: a reference to it, until `end`, and its bytes. */
	struct rte_mbuf *m; /* NULL: it was in the clear */
	const uint8_t *datagram;
	uint32_t udp;                        /* offset of the datagram in the frame */
	int tunnel;                          /* -1: of none */
	uint64_t handoff, kernel, forwarded; /* counters before */
};
void gw_cap_burst_begin(struct gw_worker *w);
void gw_cap_rx_begin(
    struct gw_worker *w, struct gw_cap_sealed *s, const struct gw_port *p, const struct rte_mbuf *m);
/* The same for a datagram of the reliable carrier. */
void gw_cap_stream_begin(
    struct gw_worker *w, struct gw_cap_sealed *s, unsigned tunnel, const struct rte_mbuf *m);
/* The frame's packet is the last one of w->lan now. */
void gw_cap_rx_waits(struct gw_worker *w);
void gw_cap_rx_end(struct gw_worker *w, struct gw_cap_sealed *s);
void gw_cap_burst_end(struct gw_worker *w);

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
