/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A relay's edge in the DPDK program, proxy/edge.h: between the LAN port and the engine. A gateway
 * has none. Worker's thread only, but for gw_edge_new(), gw_edge_free() and gw_edge_policy().
 */
#ifndef GATEWAY_DATAPATH_EDGE_H
#define GATEWAY_DATAPATH_EDGE_H

#include <stddef.h>

#include "engine/engine.h"
#include "gateway/datapath/edge_pair.h"
#include "gateway/datapath/pkt.h"
#include "gateway/gw.h"
#include "proxy/edge.h"
#include "proxy/fast.h"
#include "roce/wire.h"

#define GW_EDGE_REPLIES  32
#define GW_EDGE_ONWARD   1024 /* power of two */
#define GW_EDGE_HEADROOM 128  /* of packets that enter the engine */

struct gw_edge {
	/* what each turn reads */
	rwy_time tick;
	unsigned replies, onward_head, onward_tail;
	struct gw_worker *w;
	struct proxy_policy *policy; /* of core; one allocation with its lists */
	struct proxy_edge core;
	struct gw_edge_pair *pair; /* NULL: it is not one of a pair */
	/* REJs of this relay for hosts behind tunnels; they enter the engine between its calls. */
	struct rwy_buf *reply[GW_EDGE_REPLIES];
	/* Packets for another relay, in their order; they enter the engine likewise. */
	struct rwy_buf *onward[GW_EDGE_ONWARD];
	uint8_t made[512]; /* a packet of the engine, to be rewritten */
	struct rwy_ip made_to;
};

/*
 * The worker's edge from the configuration; *out NULL if it has no relay. RWY_ENOMEM. It is freed
 * by gw_edge_free(), which allows NULL.
 */
RWY_MUST_CHECK int gw_edge_new(struct gw_edge **out, struct gw_worker *w);
void gw_edge_free(struct gw_edge *g);

enum gw_edge_where {
	GW_EDGE_ENGINE, /* k->dst is the remote host now */
	GW_EDGE_DROP,   /* counted; free it */
	GW_EDGE_KERNEL, /* no RoCE, or to an address that is no relay's */
	GW_EDGE_FOREIGN /* not counted: its source address is none of a LAN's */
};
/*
 * A packet from the LAN to an address of its port p. act->reply goes to its sender, if reply_len is
 * not 0.
 */
enum gw_edge_where gw_edge_in(struct gw_worker *w, const struct gw_port *p, struct rte_mbuf *m,
    struct gw_pkt *k, struct proxy_act *act);
/*
 * An ordinary packet of an open link, from the LAN or to it, is rewritten; gw_edge_in_fast() sets
 * k->dst to the remote host. False: nothing is done, and it is for gw_edge_in() or gw_edge_out().
 */
static inline bool gw_edge_in_fast(struct gw_worker *w, struct rte_mbuf *m, struct gw_pkt *k)
{
	const struct proxy_link *l =
	    proxy_fast_in(&w->edge->core, rte_pktmbuf_mtod_offset(m, uint8_t *, k->off), k->ip_len, w->now);

	if (l)
		k->dst = l->remote;
	return l != NULL;
}

static inline bool gw_edge_out_fast(struct gw_worker *w, const struct eng_lan_tx *tx)
{
	return tx->buf && !tx->foreign &&
	       proxy_fast_out(
	           &w->edge->core, tx->buf->data, tx->buf->len, tx->nh ? &tx->nh->link : NULL, w->now);
}

/* Prefetches for gw_edge_in_fast() of a frame that comes soon and has no VLAN tag. */
RWY_PREFETCHER void gw_edge_in_ahead(const struct gw_worker *w, const struct rte_mbuf *m)
{
	const size_t at =
	    GW_ETH + sizeof(struct roce_ip4) + sizeof(struct roce_udp) + offsetof(struct roce_bth, dqpn);

	if (m->data_len >= at + 3)
		proxy_fast_in_ahead(
		    &w->edge->core, rwy_get24(rte_pktmbuf_mtod_offset(m, const uint8_t *, at)));
}

/* Source or destination of an IP packet. */
struct rwy_ip gw_edge_address(const uint8_t *ip, bool dst);

/* As eng_ops.lan_ahead, for gw_edge_out_fast(). */
void gw_edge_out_ahead(void *ctx, const struct eng_nexthop *nh);
/* A packet of the engine for the LAN. *tx may have another packet afterwards. False: drop it; it
 * has gone on to another relay, or is counted. */
bool gw_edge_out(struct gw_worker *w, struct eng_lan_tx *tx);
/* Once a turn, while the engine runs none of its functions. Returns how many packets it gave the
 * engine. */
unsigned gw_edge_turn(struct gw_worker *w);

/*
 * The policy of the configuration, in one allocation: free() it. NULL: no memory. It has room for
 * CONF_MAP_MAX entries; one with port 0 is free.
 */
struct proxy_policy *gw_edge_policy(const struct conf_relay *c);
struct proxy_entry *gw_edge_entries(struct proxy_policy *p);
struct proxy_entry gw_edge_entry(const struct conf_map *m);

#endif
