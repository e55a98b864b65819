/* SPDX-License-Identifier: Apache-2.0 */
/* Sends packets of the engine to local hosts: adds Ethernet. tx_overlay.c is for tenants' hosts. */
#include "gateway/datapath/capture.h"
#include "gateway/datapath/edge.h"
#include "gateway/datapath/overlay.h"
#include "gateway/datapath/resolve.h"
#include "gateway/datapath/transit.h"
#include "gateway/datapath/tx.h"

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
		gw_tx_l2(tx->buf->data - nh->l2_len, nh, rwy_ip_is4(tx->dst));
		gw_tx_pcp(tx->buf->data - nh->l2_len, nh->l2_len, tx->pcp);
		m = gw_tx_in_place(tx->buf, nh->l2_len, len, tx->own);
		w->c.tx_in_place++;
	} else {
		gw_tx_l2(l2, nh, rwy_ip_is4(tx->dst));
		gw_tx_pcp(l2, nh->l2_len, tx->pcp);
		m = tx->buf ? gw_tx_apart(w, p, l2, nh->l2_len, tx->buf, 0, len, tx->own)
		            : gw_tx_copy(w, l2, nh->l2_len, tx->bytes, len);
	}
	if (m)
		gw_tx_put(w, p, m);
}

static void packet_send(struct gw_worker *w, const struct eng_lan_tx *tx)
{
	const struct gw_nh *nh;
	uint32_t len = tx->buf ? tx->buf->len : tx->len;

	if (tx->tenant) {
		gw_tx_tenant(w, tx);
		return;
	}
	if (w->ts->n && gw_transit_vxlan(w, tx->buf ? tx->buf->data : tx->bytes, len)) {
		w->c.drop_vxlan_transit++;
		gw_tx_give_up(tx);
		return;
	}
	nh = gw_next_hop(w, tx->dst, tx->nh, GW_NH_LAN);
	if (nh)
		gw_tx_lan(w, nh, tx);
	else
		gw_tx_give_up(tx);
}

/* A relay's packets have other addresses on the LAN. For a capture each goes alone, with the id
 * that it had in the engine. */
static void packet_relay(struct gw_worker *w, const struct eng_lan_tx *tx)
{
	const bool capture = w->cap != NULL;
	struct eng_lan_tx relayed;

	if (!capture && gw_edge_out_fast(w, tx)) {
		packet_send(w, tx);
		return;
	}
	relayed = *tx;
	if (capture) {
		gw_tx_flush(w);
		gw_cap_tx_relayed(w, tx);
	}
	if (gw_edge_out(w, &relayed))
		packet_send(w, &relayed);
	else
		gw_tx_give_up(&relayed);
	if (capture) {
		gw_tx_flush(w);
		gw_cap_tx_relayed(w, NULL);
	}
}

void gw_tx_engine_lan(void *ctx, const struct eng_lan_tx *tx)
{
	struct gw_worker *w = ctx;

	if (w->edge)
		packet_relay(w, tx);
	else
		packet_send(w, tx);
}
