/* SPDX-License-Identifier: Apache-2.0 */
/* Transmit queues of one worker. */
#include "gateway/datapath/capture.h"
#include "gateway/datapath/standby.h"
#include "gateway/datapath/tx.h"

#include <rte_ethdev.h>

#define TX_TRIES 16 /* short retries while the driver's ring is full */

static void queue_drop(struct gw_worker *w, struct gw_txq *q, unsigned from, uint64_t *counter)
{
	*counter += q->n - from;
	rte_pktmbuf_free_bulk(q->pkt + from, q->n - from);
	q->n = 0;
}

/* Returns how many the port took. */
static unsigned queue_send(struct gw_worker *w, struct gw_txq *q)
{
	struct gw_port *p = q->port;
	unsigned sent = 0;

	if (p->tx_shared)
		rte_spinlock_lock(&p->tx_lock[q->queue]);
	for (unsigned tries = 0; sent < q->n && tries < TX_TRIES; tries++)
		sent += rte_eth_tx_burst(p->id, q->queue, q->pkt + sent, (uint16_t)(q->n - sent));
	if (p->tx_shared)
		rte_spinlock_unlock(&p->tx_lock[q->queue]);
	w->c.tx_packets += sent;
	return sent;
}

static __attribute__((noinline)) unsigned send_captured(struct gw_worker *w, struct gw_txq *q, bool up)
{
	unsigned sent;

	gw_cap_tx_begin(w, q);
	sent = up ? queue_send(w, q) : 0;
	gw_cap_tx_end(w, q, sent, up ? GW_CAP_REASON(drop_tx_full) : GW_CAP_REASON(drop_port_down));
	return sent;
}

void gw_txq_flush(struct gw_worker *w, struct gw_txq *q)
{
	bool up;
	unsigned sent;

	if (!q->n)
		return;
	if (__builtin_expect(w->gated, 0) && !gw_standby_passes(w, q->port)) {
		queue_drop(w, q, 0, &w->c.drop_standby_tx);
		return;
	}
	up = atomic_load_explicit(&q->port->up, memory_order_relaxed);
	if (__builtin_expect(w->cap != NULL, 0))
		sent = send_captured(w, q, up);
	else
		sent = up ? queue_send(w, q) : 0;
	queue_drop(w, q, sent, up ? &w->c.drop_tx_full : &w->c.drop_port_down);
}

void gw_tx_flush(struct gw_worker *w)
{
	for (unsigned i = 0; i < w->ports; i++)
		gw_txq_flush(w, &w->txq[i]);
}
