/* SPDX-License-Identifier: Apache-2.0 */
/* The standby's store of requests that the active gateway answers for. */
#include "engine/store.h"

#include "engine/emit.h"
#include "engine/table.h"
#include "roce/parse.h"

struct eng_stored *eng_store_open(struct eng *e, struct wan_rxflow *f, const struct eng_open *o)
{
	struct eng_stored *s;

	if (e->sb.state != ENG_SB_STORING && e->sb.state != ENG_SB_READY)
		return NULL;
	s = e->sb.stored_n < e->cfg.conns_max ? rwy_slab_get(&e->stored_slab) : NULL;
	if (!s)
		return NULL;
	s->e = e;
	s->flow = f;
	s->open = *o;
	s->next = e->sb.stored;
	if (s->next)
		s->next->at = &s->next;
	s->at = &e->sb.stored;
	e->sb.stored = s;
	e->sb.stored_n++;
	return s;
}

static void count(struct eng *e, const struct rwy_buf *b, bool more)
{
	uint64_t cost = eng_buf_cost(e, b);

	e->mem_bufs[ENG_MEM_STORED] += more ? 1 : UINT32_MAX;
	e->mem.kind[ENG_MEM_STORED] += more ? cost : -cost;
}

struct rwy_buf *eng_store_pop(struct eng_stored *s)
{
	struct rwy_buf *b = rwy_bufq_pop(&s->q);

	if (b)
		count(s->e, b, false);
	return b;
}

void eng_store_free(struct eng_stored *s, rwy_time now)
{
	struct rwy_buf *b;

	while ((b = eng_store_pop(s)))
		rwy_buf_free(&s->e->bufs, b);
	if (s->flow)
		wan_rx_reset(s->flow, now);
	*s->at = s->next;
	if (s->next)
		s->next->at = s->at;
	s->e->sb.stored_n--;
	rwy_slab_put(&s->e->stored_slab, s);
}

void eng_store_clear(struct eng *e, rwy_time now)
{
	while (e->sb.stored)
		eng_store_free(e->sb.stored, now);
}

/*
 * The PSN after b, the oldest request. A READ of unknown path MTU has one response if it has had
 * any: two would have shown the MTU.
 */
static roce_psn end_of(const struct eng_stored *s, const struct rwy_buf *b)
{
	uint32_t len = b->msn; /* bytes requested */

	if (b->next)
		return b->next->psn;
	if (roce_op(b->opcode)->op != ROCE_OP_READ_REQ || (len > 256 && !s->pmtu))
		return roce_psn_add(b->psn, 1);
	return roce_psn_add(b->psn, roce_read_packets(len, s->pmtu ? s->pmtu : 256));
}

static void release_stored(struct eng_stored *s, roce_psn psn)
{
	struct rwy_buf *b;

	if (!roce_psn_after(psn, s->released))
		return;
	s->released = psn;
	s->rewound = false;
	while ((b = s->q.head)) {
		roce_psn end = end_of(s, b);

		if (roce_psn_after(end, psn))
			return;
		s->first = end;
		s->msn = roce_psn_add(s->msn, roce_op_ends(roce_op(b->opcode)));
		rwy_buf_free(&s->e->bufs, eng_store_pop(s));
	}
	s->first = psn;
}

static bool take_message(struct eng_stored *s, const struct rwy_buf *b)
{
	struct eng_copy_msg m;

	if (!eng_copy_decode(&m, b->data, b->len))
		return false;
	if (m.pmtu)
		s->pmtu = m.pmtu;
	if (s->based != (m.type != ENG_COPY_BASE)) /* BASE comes first, and once */
		return false;
	if (m.type == ENG_COPY_RELEASE)
		release_stored(s, m.psn);
	if (s->based)
		return true;
	s->based = true;
	s->rewound = m.rewound;
	s->first = s->released = m.psn;
	s->msn = m.msn;
	return true;
}

/* True: b is stored. */
static bool take_request(struct eng_stored *s, struct rwy_buf *b)
{
	struct eng *e = s->e;
	struct roce_pkt pkt;

	if (!s->based || roce_parse(b->data, b->len, &pkt) != ROCE_PARSE_OK ||
	    !roce_op_is_request(pkt.info) || pkt.info->transport != ROCE_RC || pkt.dqpn != s->open.key.qpn ||
	    !rwy_ip_eq(&pkt.src, &s->open.key.src) || !rwy_ip_eq(&pkt.dst, &s->open.key.dst)) {
		e->c.drop_tunnel_msg++;
		return false;
	}
	if (e->mem.kind[ENG_MEM_STORED] + eng_buf_cost(e, b) > e->cfg.memory_total) {
		e->c.drop_store_full++;
		return false;
	}
	b->opcode = pkt.opcode;
	b->psn = pkt.psn;
	b->msn = pkt.info->op == ROCE_OP_READ_REQ ? roce_reth_len(&pkt) : 0;
	count(e, b, true);
	rwy_bufq_push(&s->q, b);
	return true;
}

void eng_store_message(struct eng_stored *s, struct rwy_buf *b, rwy_time now)
{
	struct eng *e = s->e;
	uint64_t seq = b->seq;
	bool packet = b->kind == RWY_BUF_PACKET, good;

	good = packet ? take_request(s, b) : take_message(s, b);
	if (!packet || !good)
		rwy_buf_free(&e->bufs, b);
	if (good)
		wan_rx_delivered(s->flow, seq, now);
	else
		eng_store_free(s, now); /* the active gateway hears that it is refused */
}
