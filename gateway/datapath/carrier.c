/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The workers' side of the TCP carrier. It never waits and never drops: the engine is told the room
 * and sends no more. If a datagram cannot be handed over nevertheless (no packet buffer), the
 * carrier counts as broken: everything in flight is retransmitted.
 */
#include <stdatomic.h>
#include <unistd.h>

#include "gateway/carrier/internal.h"
#include "gateway/datapath/capture.h"
#include "gateway/datapath/tx.h"

#define HDR_MAX (WAN_REC_HDR + WAN_HDR_MAX)

static __attribute__((noinline)) void streams_captured(struct gw_worker *w, struct rte_mbuf **m, unsigned n)
{
	gw_cap_burst_begin(w);
	for (unsigned i = 0; i < n; i++) {
		struct gw_cap_sealed s;

		gw_cap_stream_begin(w, &s, m[i]->port, m[i]);
		eng_stream_rx(w->eng, m[i]->port, gw_buf_view(m[i], 0, m[i]->data_len), w->now);
		gw_cap_rx_end(w, &s);
	}
	gw_cap_burst_end(w);
}

static unsigned streams_receive(struct gw_worker *w, struct rte_ring *in)
{
	struct rte_mbuf *m[GW_BURST];
	unsigned n, got = 0;

	do {
		n = rte_ring_sc_dequeue_burst(in, (void **)m, GW_BURST, NULL);
		if (__builtin_expect(w->cap != NULL, 0))
			streams_captured(w, m, n);
		for (unsigned i = 0; i < n && !w->cap; i++)
			eng_stream_rx(w->eng, m[i]->port, gw_buf_view(m[i], 0, m[i]->data_len), w->now);
		got += n;
	} while (n == GW_BURST && got < 8 * GW_BURST);
	w->c.to_engine_wan += got;
	return got;
}

static void room_report(struct gw_worker *w, unsigned tunnel, struct gw_link *l)
{
	uint64_t waits = l->given - atomic_load_explicit(&l->taken, memory_order_acquire);
	uint64_t most = eng_stream_rate(w->eng, tunnel) >> 7; /* bytes of 1/128 s */

	most = most < GW_LINK_MIN ? GW_LINK_MIN : most > GW_LINK_MAX ? GW_LINK_MAX : most;
	eng_stream_room(w->eng, tunnel, rte_ring_free_count(l->out), waits < most ? most - waits : 0);
}

static void link_turn(struct gw_worker *w, unsigned tunnel, struct gw_link *l)
{
	uint32_t set = atomic_load_explicit(&l->set, memory_order_acquire);
	bool on = set && atomic_load_explicit(&l->send, memory_order_relaxed);
	uint8_t after = set ? atomic_load_explicit(&l->detour, memory_order_relaxed) : 0;

	if ((l->seen && set != l->seen) || l->failed) {
		eng_stream_lost(w->eng, tunnel, w->now);
		l->on = l->failed = false;
		l->after = 0;
	}
	l->seen = set;
	if (on != l->on && eng_stream_use(w->eng, tunnel, on, w->now) == 0)
		l->on = on;
	if (after != l->after && eng_stream_detour(w->eng, tunnel, after, w->now) == 0)
		l->after = after;
	if (l->on || l->after)
		room_report(w, tunnel, l);
	if (set)
		atomic_store_explicit(
		    &l->inflight, eng_stream_inflight(w->eng, tunnel), memory_order_relaxed);
}

unsigned gw_carrier_turn(struct gw_worker *w)
{
	struct gw_carriers *cs = w->app->carriers;
	uint64_t active;
	unsigned got;

	if (!cs)
		return 0;
	active = atomic_load_explicit(&cs->active, memory_order_acquire);
	if (!active)
		return 0;
	got = streams_receive(w, cs->in[w->idx]);
	for (; active; active &= active - 1) {
		unsigned i = (unsigned)__builtin_ctzll(active);

		link_turn(w, i, &cs->link[i][w->idx]);
	}
	return got;
}

bool gw_carrier_pending(const struct gw_worker *w)
{
	const struct gw_carriers *cs = w->app->carriers;

	return cs && !rte_ring_empty(cs->in[w->idx]);
}

/* A number of the flow that a host's packet belongs to, not 0: addresses and destination QPN. */
static uint32_t bucket_of(const struct rwy_buf *b)
{
	bool v4 = b->len && b->data[0] >> 4 == 4;
	uint32_t from = v4 ? 12 : 8, qpn = (v4 ? 28 : 48) + 5, h = 0;

	if (b->len < qpn + 3)
		return 1;
	for (; from < (v4 ? 20u : 40u); from++)
		h = (h ^ b->data[from]) * 0x9e3779b1u;
	for (unsigned i = 0; i < 3; i++)
		h = (h ^ b->data[qpn + i]) * 0x9e3779b1u;
	return h >> 1 | 0x40000000;
}

void gw_carrier_tx(struct gw_worker *w, unsigned tunnel, const struct wan_tx *tx)
{
	struct gw_link *l = &w->app->carriers->link[tunnel][w->idx];
	uint32_t len = tx->buf ? tx->len : 0, hlen = WAN_REC_HDR + tx->hdr_len;
	uint8_t h[HDR_MAX];
	struct rte_mbuf *m;

	wan_rec_head(h, WAN_REC_DATAGRAM, (uint8_t)w->idx, tx->hdr_len + len);
	memcpy(h + WAN_REC_HDR, tx->hdr, tx->hdr_len);
	if (tx->buf && tx->off == 0 && tx->buf->headroom >= hlen &&
	    rte_mbuf_refcnt_read(gw_mbuf_of(tx->buf)) == 1) {
		memcpy(tx->buf->data - hlen, h, hlen);
		m = gw_tx_in_place(tx->buf, hlen, len, tx->own);
		w->c.tx_in_place++;
	} else if (tx->buf) {
		m = gw_tx_refer(w, h, hlen, tx->buf, tx->off, len, tx->own);
	} else {
		m = gw_tx_copy(w, h, hlen, NULL, 0);
	}
	if (m)
		m->hash.usr = tx->buf ? bucket_of(tx->buf) : 0;
	if (!m || rte_ring_sp_enqueue(l->out, m) != 0) {
		rte_pktmbuf_free(m);
		l->failed = true;
		return;
	}
	l->given += hlen + len;
	w->carrier_fed = true;
}

void gw_carrier_flush(struct gw_worker *w)
{
	struct gw_carriers *cs = w->app->carriers;

	if (!w->carrier_fed)
		return;
	w->carrier_fed = false;
	/* the exchange is a barrier: what the ring got before is seen by who falls asleep */
	if (atomic_exchange(&cs->asleep, false) && write(cs->wake_fd, &(uint64_t){1}, 8) < 0)
		return; /* a full counter wakes as well */
}
