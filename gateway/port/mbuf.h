/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packet memory: two mempools, and the mapping between a struct rwy_buf (the engine's view) and its
 * rte_mbuf (the driver's view).
 *
 * The rwy_buf lives in the mbuf's private area, at a constant offset. rwy_buf.data/len/headroom are
 * authoritative: mbuf data_off and lengths are set from them at each transmission and are undefined
 * between transmissions.
 */
#ifndef GATEWAY_PORT_MBUF_H
#define GATEWAY_PORT_MBUF_H

#include <rte_mbuf.h>
#include <rte_ring.h>
#include <rte_stack.h>

#include "rwy/buf.h"
#include "rwy/err.h"

#define GW_MBUF_PRIV 64
/* kept free behind the largest frame: the engine may append a trailer */
#define GW_TAILROOM      64
#define GW_MBUF_OVERHEAD 256 /* bytes of a buffer besides its data room: rte_mbuf, rwy_buf, pool */
/* data room of the small pool: headers, packets made here, control messages */
#define GW_SMALL_ROOM 640
/* headroom of buffers made here: Ethernet, VLAN, IPv6, UDP, WAN header in place */
#define GW_MADE_HEAD   320
#define GW_MBUF_CACHE  256
#define GW_SMALL_SHARE 4 /* big buffers per small one */
#define GW_SMALL_MIN   8192

static_assert(sizeof(struct rwy_buf) <= GW_MBUF_PRIV, "rwy_buf fits the private area");
static_assert(GW_MBUF_PRIV % RTE_MBUF_PRIV_ALIGN == 0, "mempool's alignment of private areas");
static_assert(RTE_PKTMBUF_HEADROOM >= 128, "headroom in front of the LAN Ethernet header");

struct gw_pools {
	struct rte_mempool *big; /* received packets, custody */
	/* see GW_SMALL_ROOM; also the indirect mbufs of chained packets */
	struct rte_mempool *small;
	uint32_t room; /* data room of big, headroom included */
	uint32_t big_n, small_n;
	/* number of free big buffers below which no new requests of local hosts are accepted */
	uint32_t reserve;
};

/* `max_frame`: largest Ethernet frame of any port, bytes. RWY_ENOMEM: EAL's memory is too small
 * (logged). */
RWY_MUST_CHECK int gw_pools_new(struct gw_pools *p, uint32_t buffers, uint32_t max_frame);
void gw_pools_free(struct gw_pools *p);
/* Frees a ring with the packets in it. NULL is allowed. */
void gw_ring_free(struct rte_ring *r);

/* ctx is struct gw_pools. */
extern const struct rwy_buf_ops gw_buf_ops;

/* The pool is a stack (mbuf.c). Buffers in lcores' caches do not count, so it may report low too
 * early. */
static inline bool gw_pools_low(const struct gw_pools *p)
{
	return rte_stack_count(p->big->pool_data) < p->reserve;
}

static inline struct rwy_buf *gw_buf_of(struct rte_mbuf *m)
{
	return rte_mbuf_to_priv(m);
}

static inline struct rte_mbuf *gw_mbuf_of(struct rwy_buf *b)
{
	return RTE_PTR_SUB(b, sizeof(struct rte_mbuf));
}

/* Makes the rwy_buf of a received mbuf: `len` bytes from `off`; everything before is headroom. */
static inline struct rwy_buf *gw_buf_view(struct rte_mbuf *m, uint32_t off, uint32_t len)
{
	struct rwy_buf *b = gw_buf_of(m);

	b->data = rte_pktmbuf_mtod_offset(m, uint8_t *, off);
	b->len = len;
	b->headroom = (uint16_t)(m->data_off + off);
	b->kind = RWY_BUF_PACKET;
	b->pcp = 0;
	b->opcode = 0;
	b->next = NULL;
	return b;
}

#endif
