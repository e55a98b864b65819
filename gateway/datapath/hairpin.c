/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets between a tenant's two sides of one site: from a host behind a VTEP to a host on the
 * VLAN, and back. They are forwarded as by a router: TTL or hop limit is decremented, and they get
 * the other side's headers. Nothing is terminated or kept, and only the hop count and its checksum
 * are written: the two hosts are as near to each other as in any data center, and their RC is their
 * own.
 *
 * rx_overlay.c has admitted them. Packets that would evade the admission are dropped here by the
 * engine's rules for packets to a tunnel: RoCE in a fragment or behind extension headers, and
 * damaged ones.
 */
#include "gateway/datapath/overlay.h"
#include "gateway/datapath/rx.h"
#include "gateway/datapath/tx.h"
#include "roce/parse.h"

void gw_hairpin_forward(
    struct gw_worker *w, const struct tenant *t, struct rte_mbuf *m, const struct gw_pkt *k)
{
	uint8_t *ip = rte_pktmbuf_mtod_offset(m, uint8_t *, k->off);
	struct roce_pkt pkt;
	enum roce_parse_reason r = roce_parse(ip, k->ip_len, &pkt);

	if (r != ROCE_PARSE_OK && r != ROCE_PARSE_NOT_ROCE) {
		gw_rx_drop(m, &w->c.drop_tenant_bad);
		return;
	}
	if (!gw_pkt_hop(ip)) {
		gw_rx_drop(m, &w->c.drop_tenant_hops);
		return;
	}
	w->c.tenant_local++;
	gw_tx_tenant(w, &(struct eng_lan_tx){.tenant = t->index,
	                    .buf = gw_rx_packet(m, k),
	                    .len = k->ip_len,
	                    .own = true,
	                    .pcp = k->pcp,
	                    .dst = &k->dst});
}
