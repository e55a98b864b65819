/* SPDX-License-Identifier: Apache-2.0 */
/* Slabs of packet buffers with free lists; see bufs.h. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/sim/wan/bufs.h"

#define GUARD     16384 /* bytes after a slab, where the last thin buffer's length reaches to */
#define BIG_CHUNK 64
#define WAN_ROOM  256

static bool slab_init(struct slab *s, size_t slot, uint64_t n)
{
	s->slot = slot;
	s->cap = slot * n;
	s->base = mmap(
	    NULL, s->cap + GUARD, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return s->base != MAP_FAILED;
}

static struct rwy_buf *slab_take(struct slab *s)
{
	struct rwy_buf *b = s->free;

	if (b) {
		s->free = b->next;
	} else if (s->used + s->slot <= s->cap) {
		b = (struct rwy_buf *)(void *)(s->base + s->used);
		s->used += s->slot;
	} else {
		return NULL;
	}
	return b;
}

static struct rwy_buf *ready(struct bufs *p, struct rwy_buf *b, uint32_t headroom, uint32_t len)
{
	memset(b, 0, sizeof(*b));
	b->data = (uint8_t *)(b + 1) + headroom;
	b->headroom = (uint16_t)headroom;
	b->len = len;
	if (++p->live > p->peak)
		p->peak = p->live;
	return b;
}

/* Chunks form a list through their first pointer. */
static struct rwy_buf *big_take(struct bufs *p)
{
	size_t step = (sizeof(struct rwy_buf) + BUF_BIG + 63) & ~(size_t)63;

	if (!p->big) {
		uint8_t *chunk = aligned_alloc(64, 64 + step * BIG_CHUNK);

		if (!chunk)
			return NULL;
		memcpy(chunk, &p->chunks, sizeof(p->chunks));
		p->chunks = chunk;
		for (int i = 0; i < BIG_CHUNK; i++) {
			struct rwy_buf *b = (struct rwy_buf *)(void *)(chunk + 64 + (size_t)i * step);

			memset(b + 1, 0, BUF_BIG);
			b->next = p->big;
			p->big = b;
		}
	}
	struct rwy_buf *b = p->big;

	p->big = b->next;
	return b;
}

static struct rwy_buf *on_alloc(void *ctx, uint32_t headroom, uint32_t len)
{
	struct bufs *p = ctx;
	struct rwy_buf *b = headroom + len <= BUF_BIG ? big_take(p) : NULL;

	return b ? ready(p, b, headroom, len) : NULL;
}

static bool in_slab(const struct slab *s, const struct rwy_buf *b)
{
	return (const uint8_t *)b >= s->base && (const uint8_t *)b < s->base + s->cap;
}

static void on_free(void *ctx, struct rwy_buf *b)
{
	struct bufs *p = ctx;
	struct rwy_buf **list = in_slab(&p->tx, b) ? &p->tx.free : in_slab(&p->rx, b) ? &p->rx.free : &p->big;

	p->live--;
	b->next = *list;
	*list = b;
}

bool bufs_init(struct bufs *p, uint64_t packets, bool full)
{
	static const struct rwy_buf_ops ops = {on_alloc, on_free};
	size_t tx = full ? (sizeof(struct rwy_buf) + WAN_ROOM + 4352) & ~(size_t)63 : TX_SLOT;

	memset(p, 0, sizeof(*p));
	p->ops = (struct rwy_bufs){&ops, p};
	p->full = full;
	return slab_init(&p->tx, tx, packets) && slab_init(&p->rx, RX_SLOT, full ? 1 : packets);
}

void bufs_fini(struct bufs *p)
{
	munmap(p->tx.base, p->tx.cap + GUARD);
	munmap(p->rx.base, p->rx.cap + GUARD);
	while (p->chunks) {
		void *next;

		memcpy(&next, p->chunks, sizeof(next));
		free(p->chunks);
		p->chunks = next;
	}
}

struct rwy_buf *bufs_tx(struct bufs *p, uint32_t len)
{
	struct rwy_buf *b = slab_take(&p->tx);

	return b ? ready(p, b, 0, len) : NULL;
}

struct rwy_buf *bufs_rx(struct bufs *p, uint32_t len, uint32_t stored)
{
	if (p->full || stored > RX_THIN_MAX)
		return on_alloc(p, WAN_ROOM, len);
	struct rwy_buf *b = slab_take(&p->rx);

	return b ? ready(p, b, 0, len) : NULL;
}
