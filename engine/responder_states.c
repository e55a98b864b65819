/* SPDX-License-Identifier: Apache-2.0 */
/* Events of the responder side: each calls the function that the table in states.h names. */
#include <assert.h>

#include "engine/copy.h"
#include "engine/emit.h"
#include "engine/responder.h"

typedef void on_request(struct eng_responder *rs, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now);
typedef void on_response(struct eng_responder *rs, struct rwy_buf *b, rwy_time now);
typedef void on_control(struct eng_responder *rs, struct eng_ctrl *c, rwy_time now);
typedef void on_reset(struct eng_responder *rs, rwy_time now);

static const struct {
	on_request *request, *uncarried;
	on_response *response;
	on_control *sync, *rewind, *fail, *moved;
	on_reset *reset;
} table[ENG_R_STATES] = {
#define eng_responder_IMPOSSIBLE NULL
#define ROW(s, q, u, p, y, w, f, m, r)                                                                       \
	[ENG_R_##s] = {eng_responder_##q, eng_responder_##u, eng_responder_##p, eng_responder_##y,           \
	    eng_responder_##w, eng_responder_##f, eng_responder_##m, eng_responder_##r},
    ENG_RESPONDER_TABLE(ROW)
#undef ROW
};

static void count_event(struct eng_responder *rs, enum eng_responder_event ev)
{
	rs->side.e->seen.responder[rs->side.state][ev]++;
}

void eng_responder_request(struct eng_responder *rs, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now)
{
	count_event(rs, ENG_RE_REQUEST);
	rs->silent = false;
	table[rs->side.state].request(rs, pkt, b, now);
}

void eng_responder_uncarried(struct eng_responder *rs, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now)
{
	count_event(rs, ENG_RE_UNCARRIED);
	rs->silent = false;
	pkt->info = &roce_op_uncarried;
	table[rs->side.state].uncarried(rs, pkt, b, now);
}

static void take_control(struct eng_responder *rs, struct rwy_buf *b, rwy_time now)
{
	struct eng *e = rs->side.e;
	struct eng_ctrl c;

	if (!eng_ctrl_decode(&c, b->data, b->len)) {
		eng_drop(e, b, &e->c.drop_tunnel_msg);
		return;
	}
	rwy_buf_free(&e->bufs, b);
	if (c.incarnation != rs->incarnation)
		return; /* of an earlier incarnation */
	eng_record_side(&rs->side,
	    &(struct eng_record){.kind = ENG_REC_RECEIVED, .to = c.type, .psn = c.psn & ROCE_PSN_MASK}, now);
	switch ((enum eng_ctrl_type)c.type) {
	case ENG_CTRL_SYNC:
		count_event(rs, ENG_RE_SYNC);
		table[rs->side.state].sync(rs, &c, now);
		return;
	case ENG_CTRL_REWIND:
		count_event(rs, ENG_RE_REWIND);
		table[rs->side.state].rewind(rs, &c, now);
		return;
	case ENG_CTRL_FAIL:
		count_event(rs, ENG_RE_FAIL);
		table[rs->side.state].fail(rs, &c, now);
		return;
	case ENG_CTRL_MOVED:
		count_event(rs, ENG_RE_MOVED);
		table[rs->side.state].moved(rs, &c, now);
		return;
	case ENG_CTRL_RESUME: /* only a near gateway sends it */
		e->c.drop_tunnel_msg++;
		return;
	}
}

void eng_responder_message(struct eng_responder *rs, struct rwy_buf *b, rwy_time now)
{
	if (!eng_ahead_holds(rs, b))
		eng_responder_pass_message(rs, b, now);
}

void eng_responder_pass_message(struct eng_responder *rs, struct rwy_buf *b, rwy_time now)
{
	if (!eng_copy_holds(rs, b))
		eng_responder_handle(rs, b, now);
}

void eng_responder_pass_ahead(struct eng_responder *rs, rwy_time now)
{
	struct rwy_buf *b;

	while ((b = eng_ahead_next(rs)))
		eng_responder_pass_message(rs, b, now);
}

void eng_responder_handle(struct eng_responder *rs, struct rwy_buf *b, rwy_time now)
{
	const struct eng_side *side = &rs->side;
	uint64_t seq = b->seq;

	if (b->kind == RWY_BUF_CTRL) {
		take_control(rs, b, now);
	} else {
		count_event(rs, ENG_RE_RESPONSE);
		table[rs->side.state].response(rs, b, now);
	}
	if (!side->e) /* MOVED: it is another worker's */
		return;
	/* The message is here: the far gateway may free it. */
	eng_copy_taken(rs, seq, now);
	eng_dirty(&rs->side);
}

void eng_responder_reset(struct eng_responder *rs, rwy_time now)
{
	count_event(rs, ENG_RE_RESET);
	assert(table[rs->side.state].reset);
	table[rs->side.state].reset(rs, now);
}
