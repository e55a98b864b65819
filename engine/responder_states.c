/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The responder side's state table: in which state, on which event, what is done. The states themselves
 * change in eng_near_enter. The table itself is in states.h.
 */
#include <assert.h>

#include "engine/emit.h"
#include "engine/responder.h"

typedef void on_request(struct eng_near *n, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now);
typedef void on_response(struct eng_near *n, struct rwy_buf *b, rwy_time now);
typedef void on_control(struct eng_near *n, struct eng_ctrl *c, rwy_time now);
typedef void on_reset(struct eng_near *n, rwy_time now);

static const struct {
	on_request *request;
	on_response *response;
	on_control *sync, *rewind, *fail;
	on_reset *reset;
} table[ENG_R_STATES] = {
#define eng_near_IMPOSSIBLE NULL
#define ROW(s, q, p, y, w, f, r)                                                                             \
	[ENG_R_##s] = {eng_near_##q, eng_near_##p, eng_near_##y, eng_near_##w, eng_near_##f, eng_near_##r},
    ENG_RESPONDER_TABLE(ROW)
#undef ROW
};

static void seen(struct eng_near *n, enum eng_responder_event ev)
{
	n->h.e->seen.responder[n->h.state][ev]++;
}

void eng_near_request(struct eng_near *n, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now)
{
	seen(n, ENG_RE_REQUEST);
	table[n->h.state].request(n, pkt, b, now);
}

static void control(struct eng_near *n, struct rwy_buf *b, rwy_time now)
{
	struct eng *e = n->h.e;
	struct eng_ctrl c;

	if (!eng_ctrl_decode(&c, b->data, b->len)) {
		eng_drop(e, b, &e->c.drop_tunnel_msg);
		return;
	}
	rwy_buf_free(&e->bufs, b);
	if (c.life != n->life)
		return; /* about an earlier incarnation of this flow */
	switch ((enum eng_ctrl_type)c.type) {
	case ENG_CTRL_SYNC:
		seen(n, ENG_RE_SYNC);
		table[n->h.state].sync(n, &c, now);
		return;
	case ENG_CTRL_REWIND:
		seen(n, ENG_RE_REWIND);
		table[n->h.state].rewind(n, &c, now);
		return;
	case ENG_CTRL_FAIL:
		seen(n, ENG_RE_FAIL);
		table[n->h.state].fail(n, &c, now);
		return;
	case ENG_CTRL_RESUME: /* it goes the other way */
		e->c.drop_tunnel_msg++;
		return;
	}
}

void eng_near_answer(struct eng_near *n, struct rwy_buf *b, rwy_time now)
{
	uint64_t seq = b->seq;

	if (b->kind == RWY_BUF_CTRL) {
		control(n, b, now);
	} else {
		seen(n, ENG_RE_RESPONSE);
		table[n->h.state].response(n, b, now);
	}
	/* Answers are in our hands: the far gateway need not keep them. */
	if (n->rsp)
		wan_rx_delivered(n->rsp, seq, now);
	eng_dirty(&n->h);
}

void eng_near_reset(struct eng_near *n, rwy_time now)
{
	seen(n, ENG_RE_RESET);
	assert(table[n->h.state].reset);
	table[n->h.state].reset(n, now);
}
