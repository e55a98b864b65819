/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct rwy_buf: one packet. In the gateway it lives in the private area of the rte_mbuf that
 * holds the bytes, so nothing is copied between wire, custody and wire; in the simulator and the
 * tests it is malloced. It has one owner at a time; a function's comment says when it moves
 * ownership.
 */
#ifndef RWY_BUF_H
#define RWY_BUF_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rwy/prefetch.h"
#include "rwy/time.h"

enum rwy_buf_kind {
	RWY_BUF_PACKET, /* an inner packet from its IP header on */
	RWY_BUF_CTRL,   /* a control message of the engine (engine/msg.h) */
	RWY_BUF_TENANT, /* a packet behind its tenant's VNI, 32 bits (engine/tenants.c) */
	RWY_BUF_ORDER,  /* flows and counts that others wait for (wan/order.h) */
	RWY_BUF_PARITY, /* a repair of other datagrams (wan/fec/fec.h); never a kind in a frame */
};
#define RWY_BUF_VNI 4 /* bytes of a VNI in front of a packet */

/* The first `count` buffers of a WAN flow; its low 32 bits. */
struct rwy_after {
	uint32_t flow, count;
};
#define RWY_NO_FLOW UINT32_MAX

struct rwy_buf {
	uint8_t *data;     /* first byte; the IP header once the engine has the packet */
	uint32_t len;      /* bytes from data */
	uint16_t headroom; /* writable bytes before data when the buffer is sent */
	uint8_t kind : 4;  /* enum rwy_buf_kind */
	uint8_t pcp : 4;   /* of the host's frame: 8 + PCP (rwy/ether.h); 0: no VLAN tag */
	uint8_t opcode;    /* BTH opcode, RoCE packets only */
	union {
		struct rwy_buf *next;   /* link of the present owner's list */
		struct rwy_after after; /* in a WAN flow: what must be delivered before it (wan/) */
	};

	/* The flow that owns the buffer (roce/, engine/) sets these. */
	uint32_t psn;     /* first PSN */
	uint32_t psn_cnt; /* number of its PSNs: 1, or the response packets of a READ */
	uint32_t msn;     /* MSN after this packet (messages completed, 24 bits) */

	/* Set by wan/. */
	uint32_t w2;     /* free for use by the owner */
	uint64_t seq;    /* flow sequence number, from 0 for each flow */
	uint32_t w0, w1; /* free for use by the owner */
	rwy_time stamp;  /* free for use by the owner: arrival or last transmission */
};
static_assert(sizeof(struct rwy_buf) <= 64, "one cache line a packet");

/* The IP header of the packet in the buffer; NULL: there is none. */
static inline const uint8_t *rwy_buf_ip(const struct rwy_buf *b)
{
	if (b->kind == RWY_BUF_PACKET)
		return b->data;
	return b->kind == RWY_BUF_TENANT ? b->data + RWY_BUF_VNI : NULL;
}

/* Prefetches what freeing a buffer touches: the buffer, and what a driver keeps in front of it. Any
 * address is allowed: it is only a hint. */
RWY_PREFETCHER void rwy_buf_fetch(const struct rwy_buf *b)
{
	const uintptr_t at = (uintptr_t)b; /* an integer: C defines no offset from NULL */

	__builtin_prefetch(b);
	__builtin_prefetch((const void *)(at - RWY_CACHE_LINE));
	__builtin_prefetch((const void *)(at - 2 * RWY_CACHE_LINE));
}

/* A singly linked FIFO of buffers that counts packets and bytes. Zeroed memory is an empty
 * queue. */
struct rwy_bufq {
	struct rwy_buf *head, *tail;
	uint32_t n;
	uint64_t bytes;
};

/* Appends b, which the queue has from then on. b->len must not change while it is in it. */
static inline void rwy_bufq_push(struct rwy_bufq *q, struct rwy_buf *b)
{
	b->next = NULL;
	if (q->tail)
		q->tail->next = b;
	else
		q->head = b;
	q->tail = b;
	q->n++;
	q->bytes += b->len;
}

/* Takes the first buffer, which is the caller's then; NULL: the queue is empty. */
static inline struct rwy_buf *rwy_bufq_pop(struct rwy_bufq *q)
{
	struct rwy_buf *b = q->head;

	if (!b)
		return NULL;
	q->head = b->next;
	if (!q->head)
		q->tail = NULL;
	q->n--;
	q->bytes -= b->len;
	b->next = NULL;
	return b;
}

/*
 * Source and sink of buffers. The core never mallocs a packet.
 * alloc: returns a buffer of `len` bytes with at least `headroom` before them; NULL: none is left.
 * free: returns a buffer; never fails.
 */
struct rwy_buf_ops {
	struct rwy_buf *(*alloc)(void *ctx, uint32_t headroom, uint32_t len);
	void (*free)(void *ctx, struct rwy_buf *b);
};

struct rwy_bufs {
	const struct rwy_buf_ops *ops;
	void *ctx;
};

static inline struct rwy_buf *rwy_buf_alloc(const struct rwy_bufs *p, uint32_t headroom, uint32_t len)
{
	return p->ops->alloc(p->ctx, headroom, len);
}

static inline void rwy_buf_free(const struct rwy_bufs *p, struct rwy_buf *b)
{
	p->ops->free(p->ctx, b);
}

/* Frees all buffers of the queue. */
static inline void rwy_bufq_drain(const struct rwy_bufs *p, struct rwy_bufq *q)
{
	struct rwy_buf *b;

	while ((b = rwy_bufq_pop(q)))
		rwy_buf_free(p, b);
}

#endif
