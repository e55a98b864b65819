/* SPDX-License-Identifier: Apache-2.0 */
/* A requester, with the requests, transmissions and responses of a test. */
#ifndef TESTS_LIB_RC_REQR_H
#define TESTS_LIB_RC_REQR_H

#include <stdlib.h>
#include <string.h>

#include "roce/reqr.h"
#include "tests/lib/rc_pkt.h"

#define RQ_TX 8192

struct rq {
	struct roce_reqr r;
	struct roce_reqr_act act;
	struct roce_reqr_tx tx[RQ_TX];
	unsigned ntx;
	rwy_time now;
	uint32_t mtu;   /* for the length of READs */
	unsigned done;  /* requests released so far */
	roce_psn next;  /* PSN of the next request made */
	roce_psn freed; /* PSN that the next released request must have */
	uint8_t bytes[RC_PKT_MAX];
};

static inline void rq_init(struct rq *q, roce_psn first, uint32_t pmtu)
{
	struct roce_reqr_cfg cfg;

	memset(q, 0, sizeof(*q));
	roce_reqr_cfg_default(&cfg);
	q->now = RWY_SEC;
	q->next = q->freed = first & ROCE_PSN_MASK;
	roce_reqr_init(&q->r, &cfg, first, pmtu);
}

static inline void rq_buf_free(void *ctx, struct rwy_buf *b)
{
	free(b);
}

static inline void rq_fini(struct rq *q)
{
	static const struct rwy_buf_ops ops = {.free = rq_buf_free};

	roce_reqr_fini(&q->r, &(struct rwy_bufs){.ops = &ops});
}

static inline struct rwy_buf *rq_buf(struct rq *q, const struct rc_mk *m, uint32_t cnt)
{
	uint32_t len = rc_pkt_make(q->bytes, m);
	struct rwy_buf *b = calloc(1, sizeof(*b) + len);

	b->data = (uint8_t *)(b + 1);
	memcpy(b->data, q->bytes, len);
	b->len = len;
	b->opcode = m->opcode;
	b->psn = m->psn & ROCE_PSN_MASK;
	b->psn_cnt = cnt;
	return b;
}

/* Pushes the next request, of `cnt` PSNs; `len`: bytes of payload or of a READ. */
static inline enum roce_reqr_push rq_push_len(struct rq *q, uint8_t opcode, uint32_t cnt, uint32_t len)
{
	bool read = opcode == ROCE_RC_READ_REQ;
	struct rwy_buf *b = rq_buf(q,
	    &(struct rc_mk){
	        .opcode = opcode, .psn = q->next, .len = read ? len : 0, .payload_len = read ? 0 : len},
	    cnt);
	enum roce_reqr_push p = roce_reqr_push(&q->r, b);

	if (p == ROCE_REQR_PUSHED)
		q->next = roce_psn_add(q->next, cnt);
	else
		free(b);
	return p;
}

static inline void rq_push(struct rq *q, uint8_t opcode, uint32_t cnt)
{
	bool read = opcode == ROCE_RC_READ_REQ;

	if (rq_push_len(q, opcode, cnt, read ? cnt * q->r.pmtu : 4) != ROCE_REQR_PUSHED)
		__builtin_trap();
}

static inline void rq_push_sends(struct rq *q, unsigned n)
{
	while (n--)
		rq_push(q, ROCE_RC_SEND_ONLY, 1);
}

static inline unsigned rq_send(struct rq *q)
{
	q->ntx = roce_reqr_send(&q->r, q->tx, RQ_TX, q->now);
	return q->ntx;
}

/* Frees released requests, and checks that each was the next one. */
static inline void rq_done(struct rq *q)
{
	struct rwy_buf *b;

	while ((b = rwy_bufq_pop(&q->act.done))) {
		if (b->psn != q->freed)
			__builtin_trap();
		q->freed = roce_psn_add(b->psn, b->psn_cnt);
		q->done++;
		free(b);
	}
}

static inline void rq_resp(struct rq *q, uint8_t opcode, roce_psn psn, uint8_t syndrome, uint32_t len)
{
	struct roce_pkt pkt;

	rc_pkt_make(
	    q->bytes, &(struct rc_mk){
	                  .opcode = opcode, .psn = psn, .syndrome = syndrome, .msn = 5, .payload_len = len});
	if (!rc_pkt_read(q->bytes, sizeof(q->bytes), &pkt))
		__builtin_trap();
	roce_reqr_recv(&q->r, &pkt, &q->act, q->now);
	rq_done(q);
}

static inline void rq_ack(struct rq *q, roce_psn psn)
{
	rq_resp(q, ROCE_RC_ACK, psn, 31, 0);
}

static inline void rq_nak(struct rq *q, roce_psn psn, uint8_t syndrome)
{
	rq_resp(q, ROCE_RC_ACK, psn, syndrome, 0);
}

static inline void rq_tick(struct rq *q)
{
	roce_reqr_tick(&q->r, &q->act, q->now);
	rq_done(q);
}

#endif
