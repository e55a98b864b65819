/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzer of the RC requester: the input is a script of requests, transmissions, responses and time.
 * After each step una <= nxt <= tail; packets in flight are those before `next`; requests are
 * released once, in order, and READs and ATOMICs only by their responses.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "roce/reqr.h"
#include "tests/lib/rc_pkt.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(x)                                                                                             \
	do {                                                                                                 \
		if (!(x))                                                                                    \
			__builtin_trap();                                                                    \
	} while (0)

#define QUEUE_MAX 300

struct fuzz {
	const uint8_t *p;
	size_t n;
	struct roce_reqr r;
	struct roce_reqr_host host;
	roce_psn freed; /* PSN of the next request to be released */
	uint32_t pushed, released;
	rwy_time now;
};

static uint8_t u8(struct fuzz *f)
{
	if (!f->n)
		return 0;
	f->n--;
	return *f->p++;
}

static uint32_t u16(struct fuzz *f)
{
	uint32_t hi = u8(f);

	return hi << 8 | u8(f);
}

static void check(struct fuzz *f)
{
	const struct roce_reqr *r = &f->r;
	const struct rwy_buf *b;
	uint32_t before = 0, n = 0;
	roce_psn at = f->freed;

	for (b = r->q.head; b && b != r->next; b = b->next)
		before++;
	CHECK(b == r->next && before == r->inflight);
	CHECK(r->owed == f->host.owed && (r->inflight || !r->owed));
	for (b = r->q.head; b; b = b->next, n++) {
		CHECK(b->psn == at);
		CHECK(b->psn_cnt || !b->next);
		at = roce_psn_add(b->psn, b->psn_cnt ? b->psn_cnt : 1);
	}
	CHECK(n == r->q.n && n == f->pushed - f->released && at == r->tail);
	CHECK(!roce_psn_after(r->una, r->nxt) && !roce_psn_after(r->nxt, r->tail));
	CHECK(!roce_psn_after(r->una, r->high) && !roce_psn_after(r->nxt, r->high) &&
	      !roce_psn_after(r->high, r->tail));
	CHECK(r->window >= 1 && r->window <= r->cfg.window_max);
	CHECK(r->failed || !r->inflight == (r->deadline == RWY_NEVER));
	CHECK(r->failed || r->next || r->inflight == r->q.n);
}

static void take(struct fuzz *f, struct roce_reqr_act *act, const struct roce_pkt *pkt, roce_psn una)
{
	struct rwy_buf *b;
	unsigned answered = 0;

	while ((b = rwy_bufq_pop(&act->done))) {
		bool rd = roce_op(b->opcode)->op == ROCE_OP_READ_REQ || roce_op_is_atomic(roce_op(b->opcode));

		CHECK(b->psn == f->freed && b->psn_cnt);
		f->freed = roce_psn_add(b->psn, b->psn_cnt);
		f->released++;
		answered += rd;
		CHECK(!rd || (pkt && act->forward && roce_psn_add(pkt->psn, 1) == f->freed));
		free(b);
	}
	CHECK(answered <= 1);
	CHECK(!act->forward || (pkt && f->r.una == roce_psn_add(pkt->psn, 1)));
	CHECK(!act->forward || !act->drop);
	CHECK(act->progress == (f->r.una != una));
	CHECK(!act->failed || (act->end <= ROCE_REQR_NOT_READY && f->r.failed));
}

static void step_push(struct fuzz *f)
{
	static const uint8_t ops[8] = {ROCE_RC_SEND_ONLY, ROCE_RC_WRITE_ONLY, ROCE_RC_READ_REQ,
	    ROCE_RC_FETCH_ADD, ROCE_RC_READ_REQ, ROCE_RC_WRITE_FIRST, ROCE_RC_WRITE_MIDDLE, ROCE_RC_CMP_SWAP};
	uint8_t sel = u8(f), bytes[RC_PKT_MAX];
	struct rc_mk m = {.opcode = ops[sel & 7], .psn = f->r.tail};
	struct rwy_buf *b;
	uint32_t len, cnt = 1;

	if (f->r.q.n >= QUEUE_MAX)
		return;
	if (sel & 8)
		m.psn = roce_psn_add(m.psn, (uint32_t)(int8_t)u8(f));
	if (m.opcode == ROCE_RC_READ_REQ) {
		m.len = u16(f);
		cnt = sel & 16 && f->r.pmtu ? roce_read_packets(m.len, f->r.pmtu) : 0;
	} else if (m.opcode == ROCE_RC_WRITE_FIRST || m.opcode == ROCE_RC_WRITE_MIDDLE) {
		m.payload_len = f->r.pmtu ? f->r.pmtu : 256u << (sel >> 4) % 3;
	}
	len = rc_pkt_make(bytes, &m);
	b = calloc(1, sizeof(*b) + len);
	b->data = (uint8_t *)(b + 1);
	memcpy(b->data, bytes, len);
	b->len = len;
	b->opcode = m.opcode;
	b->psn = m.psn;
	b->psn_cnt = cnt;
	if (roce_reqr_push(&f->r, b) == ROCE_REQR_PUSHED)
		f->pushed++;
	else
		free(b);
}

static void step_send(struct fuzz *f)
{
	struct roce_reqr_tx tx[16];
	unsigned n = roce_reqr_send(&f->r, tx, u8(f) & 15, f->now);

	for (unsigned i = 0; i < n; i++) {
		CHECK(
		    tx[i].skip == 0 || (i == 0 && tx[i].again && tx[i].skip < tx[i].b->psn_cnt && f->r.pmtu));
		CHECK(i == 0 || tx[i].b == tx[i - 1].b->next);
	}
	CHECK(!n || f->r.inflight <= f->r.cfg.window_max);
}

static void step_recv(struct fuzz *f)
{
	static const uint8_t ops[8] = {ROCE_RC_ACK, ROCE_RC_ACK, ROCE_RC_ACK, ROCE_RC_READ_RESP_FIRST,
	    ROCE_RC_READ_RESP_MIDDLE, ROCE_RC_READ_RESP_LAST, ROCE_RC_READ_RESP_ONLY, ROCE_RC_ATOMIC_ACK};
	uint8_t sel = u8(f), ext[12] = {0};
	struct roce_pkt pkt = {.opcode = ops[sel & 7], .ext = ext};
	struct roce_reqr_act act;
	roce_psn una = f->r.una;

	pkt.info = roce_op(pkt.opcode);
	pkt.psn = sel & 8 ? roce_psn_add(una, (uint32_t)(int8_t)u8(f)) : una;
	ext[0] = sel & 16 ? u8(f) : 31;
	if (pkt.info->flags & ROCE_F_PAYLOAD) /* usually the right length */
		pkt.payload_len = sel & 32 ? u16(f) : f->r.pmtu ? f->r.pmtu : 256;
	if (sel & 64 && f->r.q.head && f->r.q.head->opcode == ROCE_RC_READ_REQ && f->r.q.head->len >= 60) {
		uint32_t left = rwy_get32(f->r.q.head->data + 28 + 12 + 12);

		if (f->r.pmtu)
			left -= ((una - f->r.q.head->psn) & ROCE_PSN_MASK) * f->r.pmtu;
		pkt.payload_len = f->r.pmtu && left > f->r.pmtu ? f->r.pmtu : left;
	}
	roce_reqr_recv(&f->r, &pkt, &act, f->now);
	take(f, &act, &pkt, una);
}

static void step_time(struct fuzz *f)
{
	rwy_time next = roce_reqr_next(&f->r);
	struct roce_reqr_act act;
	uint8_t d = u8(f);

	f->now = d < 128 || next == RWY_NEVER ? f->now + d * RWY_MS / 4 : rwy_time_max(f->now, next);
	roce_reqr_tick(&f->r, &act, f->now);
	take(f, &act, NULL, f->r.una);
}

static void buf_free(void *ctx, struct rwy_buf *b)
{
	free(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct rwy_buf_ops ops = {.free = buf_free};
	struct fuzz f = {.p = data, .n = size, .now = RWY_SEC};
	struct roce_reqr_cfg cfg;
	uint8_t how = u8(&f);

	roce_reqr_cfg_default(&cfg);
	cfg.window_max = 1u << (how & 7);
	cfg.rnr_retry = how & 8 ? 7 : 2;
	f.freed = how & 16 ? 0xfffffa : u16(&f) << 8;
	roce_reqr_init(&f.r, &cfg, f.freed, how & 32 ? 256 : 0);
	roce_reqr_share(&f.r, &f.host);
	f.r.probe = how & 64;
	f.r.resumed = how & 128;
	while (f.n) {
		switch (u8(&f) & 7) {
		case 0:
		case 1:
			step_push(&f);
			break;
		case 2:
		case 3:
			step_send(&f);
			break;
		case 4:
		case 5:
			step_recv(&f);
			break;
		case 6:
			step_time(&f);
			break;
		case 7:
			roce_reqr_go(&f.r);
			break;
		}
		check(&f);
	}
	roce_reqr_fini(&f.r, &(struct rwy_bufs){.ops = &ops});
	CHECK(!f.host.owed);
	return 0;
}
