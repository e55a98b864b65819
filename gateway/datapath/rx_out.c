/* SPDX-License-Identifier: Apache-2.0 */
/* Destinations of received packets: the worker that owns them, the engine. */
#include "gateway/datapath/notes.h"
#include "gateway/datapath/rx.h"
#include "roce/opcode.h"

static_assert(GW_WORKERS_MAX <= 64, "gw_worker.handing has a bit for each");

void gw_rx_hand_over_end(struct gw_worker *w)
{
	for (; w->handing; w->handing &= w->handing - 1) {
		const unsigned owner = (unsigned)__builtin_ctzll(w->handing);
		struct gw_worker *to = w->app->worker[owner];
		struct gw_hand *h = &w->hand[owner];
		unsigned n = rte_ring_mp_enqueue_burst(to->handoff, (void **)h->m, h->n, NULL);

		w->c.handoff += n;
		for (; n < h->n; n++)
			gw_rx_drop(h->m[n], &w->c.drop_handoff_full);
		h->n = 0;
		gw_worker_wake(to);
	}
}

/*
 * When buffers are short, only packets that free some are accepted: ACKs and ATOMIC ACKs of local
 * hosts, and CNPs. Others, READ responses among them, could fill memory to the last buffer, and
 * then neither the peer's ACKs nor the hosts' could be received to empty it.
 */
bool gw_rx_frees_memory(struct rte_mbuf *m, const struct gw_pkt *k)
{
	const uint8_t *udp = rte_pktmbuf_mtod_offset(m, const uint8_t *, k->off + k->hdr);
	uint8_t op;

	if (k->proto != IPPROTO_UDP || k->ip_len < k->hdr + UDP_LEN + 1 ||
	    rwy_get16(udp + 2) != ROCE_UDP_PORT)
		return false;
	op = udp[UDP_LEN];
	return op == ROCE_OPCODE_CNP || op == ROCE_RC_ACK || op == ROCE_RC_ATOMIC_ACK;
}

void gw_rx_flush(struct gw_worker *w)
{
	if (!w->lan_n)
		return;
	gw_notes_first(w);
	eng_tenant_rx(w->eng, w->lan, w->lan_tenant, w->lan_n, w->now);
	w->lan_n = 0;
}
