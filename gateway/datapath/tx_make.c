/* SPDX-License-Identifier: Apache-2.0 */
/* Makes packets whose headers cannot be written in place: by reference, or by copy (tx.h). */
#include "gateway/datapath/tx.h"

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
	memcpy(rte_pktmbuf_mtod(m, void *), h, hlen);
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

struct rte_mbuf *gw_tx_room(struct gw_worker *w, uint32_t len)
{
	uint32_t room = GW_SMALL_ROOM - RTE_PKTMBUF_HEADROOM;
	struct rte_mbuf *m = rte_pktmbuf_alloc(len <= room ? w->pools->small : w->pools->big);

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
	memcpy(d, h, hlen);
	if (len)
		memcpy(d + hlen, data, len);
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
