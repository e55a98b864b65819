/* SPDX-License-Identifier: Apache-2.0 */
/* Makes packets whose headers cannot be written in place: by reference, or by copy (tx.h). */
#include "gateway/datapath/tx.h"

#include <rte_memcpy.h>

#include "gateway/port/mbuf.h"

/* Returns a small buffer with `len` bytes of room at its data. */
struct rte_mbuf *gw_tx_small(struct gw_worker *w, uint32_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(w->pools->small);

	if (!m) {
		w->c.drop_no_mbuf++;
		return NULL;
	}
	m->data_len = (uint16_t)len;
	m->pkt_len = len;
	return m;
}

/* Puts headers `h` into a separate buffer, chained to the payload by reference. */
static struct rte_mbuf *mbuf_chain(
    struct gw_worker *w, const uint8_t *h, uint32_t hlen, struct rwy_buf *b, uint32_t off, uint32_t len)
{
	struct rte_mbuf *m = gw_tx_small(w, hlen), *ref, *base = gw_mbuf_of(b);

	if (!m)
		return NULL;
	ref = rte_pktmbuf_alloc(w->pools->small);
	if (!ref) {
		w->c.drop_no_mbuf++;
		rte_pktmbuf_free(m);
		return NULL;
	}
	rte_memcpy(rte_pktmbuf_mtod(m, void *), h, hlen);
	rte_pktmbuf_attach(ref, base);
	ref->ol_flags &= RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL;
	ref->data_off = (uint16_t)(b->data + off - (uint8_t *)base->buf_addr);
	ref->data_len = (uint16_t)len;
	ref->pkt_len = len;
	m->next = ref;
	m->nb_segs = 2;
	m->pkt_len += len;
	w->c.tx_chained++;
	return m;
}

#define AHEAD 4 /* so many buffers later it is written */
#define LINES 2 /* its headers; the processor sees by itself how it goes on */

static void prefetch_write(const struct rte_mbuf *m)
{
	const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *);

	for (unsigned i = 0; i < LINES; i++)
		__builtin_prefetch(p + i * RTE_CACHE_LINE_SIZE, 1);
}

static struct rte_mbuf *room_take(struct gw_room *r, struct rte_mempool *pool)
{
	if (!r->n && rte_pktmbuf_alloc_bulk(pool, r->m, GW_ROOM) == 0)
		r->n = GW_ROOM;
	if (!r->n)
		return rte_pktmbuf_alloc(pool); /* the last ones */
	if (r->n > AHEAD)
		prefetch_write(r->m[r->n - 1 - AHEAD]);
	return r->m[--r->n];
}

void gw_tx_room_free(struct gw_worker *w)
{
	rte_pktmbuf_free_bulk(w->small.m, w->small.n);
	rte_pktmbuf_free_bulk(w->big.m, w->big.n);
	w->small.n = w->big.n = 0;
}

struct rte_mbuf *gw_tx_room(struct gw_worker *w, uint32_t len)
{
	bool small = len <= GW_SMALL_ROOM - RTE_PKTMBUF_HEADROOM;
	struct rte_mbuf *m =
	    small ? room_take(&w->small, w->pools->small) : room_take(&w->big, w->pools->big);

	if (!m) {
		w->c.drop_no_mbuf++;
		return NULL;
	}
	if (len > rte_pktmbuf_tailroom(m)) {
		w->c.drop_tx_too_long++;
		rte_pktmbuf_free(m);
		return NULL;
	}
	m->data_len = (uint16_t)len;
	m->pkt_len = len;
	return m;
}

/* Copies headers and payload into one buffer. */
struct rte_mbuf *gw_tx_copy(
    struct gw_worker *w, const uint8_t *h, uint32_t hlen, const uint8_t *data, uint32_t len)
{
	struct rte_mbuf *m = gw_tx_room(w, hlen + len);
	uint8_t *d;

	if (!m)
		return NULL;
	d = rte_pktmbuf_mtod(m, uint8_t *);
	rte_memcpy(d, h, hlen);
	if (len)
		rte_memcpy(d + hlen, data, len);
	w->c.tx_copied++;
	return m;
}

struct rte_mbuf *gw_tx_refer(struct gw_worker *w, const uint8_t *h, uint32_t hlen, struct rwy_buf *b,
    uint32_t off, uint32_t len, bool own)
{
	struct rte_mbuf *m = mbuf_chain(w, h, hlen, b, off, len);

	if (own)
		rte_pktmbuf_free_seg(gw_mbuf_of(b));
	return m;
}

/* Refers or copies, for a packet that cannot have its headers in place. If own, b is released. */
struct rte_mbuf *gw_tx_apart(struct gw_worker *w, const struct gw_port *p, const uint8_t *h, uint32_t hlen,
    struct rwy_buf *b, uint32_t off, uint32_t len, bool own)
{
	bool refer = p->multi_seg && !p->copy_tx;
	struct rte_mbuf *m =
	    refer ? mbuf_chain(w, h, hlen, b, off, len) : gw_tx_copy(w, h, hlen, b->data + off, len);

	w->c.tx_payload_copied += !refer && m;
	if (own)
		rte_pktmbuf_free_seg(gw_mbuf_of(b));
	return m;
}
