/* SPDX-License-Identifier: Apache-2.0 */
/* The mempools and the engine's buffer callbacks. Headers are written elsewhere
 * (datapath/tx*.c). */
#include "gateway/port/mbuf.h"

#include <rte_errno.h>
#include <rte_lcore.h>

#include "base/log.h"

#define RESERVE_SHARE 16
#define RESERVE_MAX   4096
#define ROOM_STEP     64
/* NICs need 2 KiB buffers to receive a 1518-byte frame whole */
#define ROOM_MIN (2048 + RTE_PKTMBUF_HEADROOM)

/*
 * Pool names are process-wide; a process has one gateway. A pool is a stack: the buffer that was
 * freed last comes next, while it is still in the cache and its page in the TLB. A ring would go
 * through the whole pool, however few buffers are in use. It is lock-free: a worker that loses its
 * CPU in the middle would else hold up the others.
 */
static struct rte_mempool *pool_new(const char *name, uint32_t n, uint32_t room)
{
	return rte_pktmbuf_pool_create_by_ops(
	    name, n, GW_MBUF_CACHE, GW_MBUF_PRIV, (uint16_t)room, SOCKET_ID_ANY, "lf_stack");
}

int gw_pools_new(struct gw_pools *p, uint32_t buffers, uint32_t max_frame)
{
	uint32_t room = RTE_ALIGN(RTE_PKTMBUF_HEADROOM + max_frame + GW_TAILROOM, ROOM_STEP);

	p->room = RTE_MAX(room, (uint32_t)ROOM_MIN);
	p->big_n = buffers;
	p->reserve = RTE_MIN(buffers / RESERVE_SHARE, (uint32_t)RESERVE_MAX);
	p->small_n = RTE_MAX(buffers / GW_SMALL_SHARE, (uint32_t)GW_SMALL_MIN);
	p->big = pool_new("rwy_big", p->big_n, p->room);
	p->small = p->big ? pool_new("rwy_small", p->small_n, GW_SMALL_ROOM) : NULL;
	if (p->small)
		return 0;
	gw_log(GW_LOG_ERROR, "memory",
	    "memory.buffers=%u of %u bytes need %u MiB and do not fit (%s): raise -m in eal.args or lower it",
	    buffers, p->room, (unsigned)(((uint64_t)buffers * (p->room + GW_MBUF_OVERHEAD)) >> 20),
	    rte_strerror(rte_errno));
	gw_pools_free(p);
	return RWY_ENOMEM;
}

void gw_pools_free(struct gw_pools *p)
{
	rte_mempool_free(p->big);
	rte_mempool_free(p->small);
	p->big = p->small = NULL;
}

static struct rwy_buf *buf_alloc(void *ctx, uint32_t headroom, uint32_t len)
{
	struct gw_pools *p = ctx;
	uint32_t head = RTE_MAX(headroom, (uint32_t)GW_MADE_HEAD);
	struct rte_mbuf *m;
	struct rwy_buf *b;

	m = rte_pktmbuf_alloc(head + len <= GW_SMALL_ROOM ? p->small : p->big);
	if (!m)
		return NULL;
	if (head + len > m->buf_len)
		head = headroom;
	if (head + len > m->buf_len) {
		rte_pktmbuf_free(m);
		return NULL;
	}
	m->data_off = (uint16_t)head;
	b = gw_buf_view(m, 0, len);
	return b;
}

static void buf_free(void *ctx, struct rwy_buf *b)
{
	rte_pktmbuf_free_seg(gw_mbuf_of(b));
}

const struct rwy_buf_ops gw_buf_ops = {.alloc = buf_alloc, .free = buf_free};

void gw_ring_free(struct rte_ring *r)
{
	void *m;

	while (r && rte_ring_dequeue(r, &m) == 0)
		rte_pktmbuf_free(m);
	rte_ring_free(r);
}
