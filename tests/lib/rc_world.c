/* SPDX-License-Identifier: Apache-2.0 */
/* The virtual-time world of the property test; see rc_world.h. */
#include "tests/lib/rc_world.h"

#include <stdlib.h>
#include <string.h>

#include "roce/icrc.h"
#include "rwy/endian.h"

/* --- time and chance ----------------------------------------------------------------------- */

enum rc_where { AT_A, AT_NEAR, AT_FAR, AT_B, PIPE_REQ, PIPE_RESP, PIPE_ALLOW, PIPE_FAIL };

/* Packets under way. */
struct rc_event {
	enum rc_where where;
	uint32_t len;
	uint8_t *bytes;
	struct rwy_buf *b;
	roce_psn psn;
	roce_msn msn;
	uint8_t syndrome;
};

static void push(struct rc_world *w, const struct rc_event *e, rwy_time at)
{
	struct rc_event *x = malloc(sizeof(*x));

	*x = *e;
	due_push(&w->ev, &(struct due){.at = at, .order = w->ev_seq++, .what = x});
}

static struct rc_event pop(struct rc_world *w)
{
	struct rc_event *x = due_pop(&w->ev).what, e = *x;

	free(x);
	return e;
}

static uint8_t *copy(const uint8_t *bytes, uint32_t len)
{
	uint8_t *p = malloc(len);

	memcpy(p, bytes, len);
	return p;
}

static void lan(struct rc_world *w, enum rc_where to, const uint8_t *bytes, uint32_t len)
{
	struct link_fate f = {0};

	link_send(&w->lan, len, &w->rng, &f, w->now);
	for (unsigned i = 0; i < f.copies; i++) {
		struct rc_event e = {.where = to, .len = len, .bytes = copy(bytes, len)};

		link_flip(&f.flip[i], e.bytes);
		push(w, &e, f.at[i]);
	}
}

static void pipe_put(struct rc_world *w, struct rc_event e)
{
	rwy_time *last = &w->pipe_last[e.where == PIPE_REQ];
	rwy_time at = w->now + w->cfg.wan_delay + rng_below(&w->rng, (uint32_t)w->cfg.wan_jitter);

	*last = rwy_time_max(*last, at);
	push(w, &e, *last);
}

/* --- the near gateway's responder ------------------------------------------------------------- */

static void near_flush(struct rc_world *w)
{
	struct roce_resp_out o;
	uint8_t bytes[RC_PKT_MAX];
	uint32_t len;

	for (unsigned n = 0; roce_resp_flush(&w->resp, &o, w->now); n++) {
		if (n > 4)
			w->broken = "flush does not end";
		if (o.syndrome == ROCE_AETH_CREDIT_INVALID && w->resp.rd_n &&
		    !roce_psn_before(o.psn, w->resp.rd[w->resp.rd_head].psn))
			w->broken = "an ACK passed an unanswered READ";
		len = rc_host_make(&w->b, bytes,
		    (struct rc_mk){
		        .opcode = ROCE_RC_ACK, .psn = o.psn, .msn = o.msn, .syndrome = o.syndrome});
		lan(w, AT_A, bytes, len);
	}
}

/* Sends a cached response with the opcode that it must have now. */
static void near_send_response(struct rc_world *w, const uint8_t *cached, uint32_t len, uint8_t opcode)
{
	uint8_t bytes[RC_PKT_MAX], *c = copy(cached, len);
	struct rc_mk m = {.opcode = opcode, .syndrome = ROCE_AETH_CREDIT_INVALID};
	struct roce_pkt pkt;

	if (!rc_pkt_read(c, len, &pkt)) {
		w->broken = "bad packet in the cache";
	} else {
		m.psn = pkt.psn;
		m.payload = pkt.payload;
		m.payload_len = pkt.payload_len;
		if (pkt.info->flags & ROCE_F_AETH) {
			m.syndrome = roce_aeth_syndrome(&pkt);
			m.msn = roce_aeth_msn(&pkt);
		}
		if (pkt.info->flags & ROCE_F_ATOMICACKETH)
			m.original = rwy_get64(pkt.ext + 4);
		lan(w, AT_A, bytes, rc_host_make(&w->b, bytes, m));
	}
	free(c);
}

static void near_replay(struct rc_world *w, roce_psn psn, uint32_t cnt)
{
	for (uint32_t i = 0; i < cnt; i++) {
		uint32_t k = roce_psn_add(psn, i) % RC_CACHE;

		if (!w->cache[k].bytes || w->cache[k].psn != roce_psn_add(psn, i))
			return;
		near_send_response(w, w->cache[k].bytes, w->cache[k].len,
		    roce_op(w->cache[k].bytes[28])->op == ROCE_OP_ATOMIC_ACK ? ROCE_RC_ATOMIC_ACK
		                                                             : roce_resp_read_opcode(i, cnt));
	}
}

static void near_accept(struct rc_world *w, const struct roce_resp_act *act, const struct roce_pkt *pkt,
    const uint8_t *bytes, uint32_t len)
{
	struct rwy_buf *b = calloc(1, sizeof(*b) + len);

	b->data = (uint8_t *)(b + 1);
	memcpy(b->data, bytes, len);
	b->len = len;
	b->opcode = pkt->opcode;
	b->psn = pkt->psn;
	b->psn_cnt = act->psn_cnt;
	b->msn = act->msn;
	pipe_put(w, (struct rc_event){.where = PIPE_REQ, .b = b});
	if (w->cfg.mode == RC_NEAR)
		roce_resp_allow(&w->resp, w->resp.epsn, w->resp.msn);
}

static void near_request(struct rc_world *w, uint8_t *bytes, uint32_t len)
{
	struct roce_resp_act act;
	struct roce_pkt pkt;

	if (!rc_pkt_read(bytes, len, &pkt))
		return;
	roce_resp_recv(&w->resp, &pkt, &act, w->now);
	w->verdicts[act.verdict]++;
	if (act.verdict == ROCE_RESP_ACCEPT) {
		near_accept(w, &act, &pkt, bytes, len);
	} else if (act.verdict == ROCE_RESP_DUP_READ || act.verdict == ROCE_RESP_DUP_ATOMIC) {
		near_replay(w, pkt.psn, act.verdict == ROCE_RESP_DUP_ATOMIC ? 1 : act.psn_cnt);
	} else if (act.verdict == ROCE_RESP_PARK && w->park_n < RC_PARK) {
		w->park[w->park_n].bytes = copy(bytes, len);
		w->park[w->park_n++].len = len;
		if (act.pmtu)
			roce_resp_set_pmtu(&w->resp, act.pmtu);
	}
}

/* Takes parked packets again when the READ before them has its count. */
static void near_unpark(struct rc_world *w)
{
	while (w->park_n && !roce_resp_parks(&w->resp)) {
		uint8_t *bytes[RC_PARK];
		uint32_t len[RC_PARK], n = w->park_n;

		for (uint32_t i = 0; i < n; i++) {
			bytes[i] = w->park[i].bytes;
			len[i] = w->park[i].len;
		}
		w->park_n = 0;
		for (uint32_t i = 0; i < n; i++) {
			near_request(w, bytes[i], len[i]);
			free(bytes[i]);
		}
	}
}

static void near_response(struct rc_world *w, uint8_t *bytes, uint32_t len)
{
	struct roce_pkt pkt;
	uint32_t k;

	if (!rc_pkt_read(bytes, len, &pkt)) {
		w->broken = "bad packet from the pipe";
		return;
	}
	if (pkt.opcode == ROCE_RC_READ_RESP_FIRST)
		roce_resp_set_pmtu(&w->resp, pkt.payload_len);
	if (roce_resp_response(&w->resp, pkt.psn, pkt.opcode) != ROCE_RESP_SERVE) {
		w->broken = roce_resp_broken(&w->resp) ? w->broken : "a forwarded response was not the next";
		return;
	}
	k = pkt.psn % RC_CACHE;
	free(w->cache[k].bytes);
	w->cache[k].bytes = copy(bytes, len);
	w->cache[k].len = len;
	w->cache[k].psn = pkt.psn;
	near_send_response(w, bytes, len, w->resp.serve_opcode);
}

/* --- the far gateway's requester -------------------------------------------------------------- */

static void far_push(struct rc_world *w, struct rwy_buf *b)
{
	if (roce_reqr_push(&w->reqr, b) != ROCE_REQR_PUSHED) {
		w->hole++;
		free(b);
	} else if (w->cfg.mode == RC_FAR && b->psn_cnt) {
		pipe_put(w, (struct rc_event){
		                .where = PIPE_ALLOW, .psn = roce_psn_add(b->psn, b->psn_cnt), .msn = b->msn});
	}
}

static void far_act(struct rc_world *w, struct roce_reqr_act *act, const uint8_t *bytes, uint32_t len)
{
	struct rwy_buf *b;
	roce_psn end = 0;
	roce_msn msn = 0;
	bool any = false;

	if (act->forward)
		pipe_put(w, (struct rc_event){.where = PIPE_RESP, .bytes = copy(bytes, len), .len = len});
	while ((b = rwy_bufq_pop(&act->done))) {
		if (any && b->psn != end)
			w->broken = "released out of order";
		end = roce_psn_add(b->psn, b->psn_cnt);
		msn = b->msn;
		any = true;
		free(b);
	}
	if (any && w->cfg.mode == RC_END)
		pipe_put(w, (struct rc_event){.where = PIPE_ALLOW, .psn = end, .msn = msn});
	if (act->failed) {
		w->far_failed = true;
		pipe_put(w, (struct rc_event){
		                .where = PIPE_FAIL, .psn = act->fail_psn, .syndrome = act->fail_syndrome});
	}
	w->drops += act->drop != NULL;
}

static void far_check(struct rc_world *w)
{
	const struct roce_reqr *r = &w->reqr;

	if (roce_psn_after(r->una, r->nxt) || roce_psn_after(r->nxt, r->tail) ||
	    roce_psn_after(r->high, r->tail))
		w->broken = "una <= nxt <= tail";
	if (r->inflight > r->cfg.window_max || r->inflight > r->q.n)
		w->broken = "in flight";
	if (!r->inflight != (r->deadline == RWY_NEVER) && !r->failed)
		w->broken = "timer";
}

static void far_send(struct rc_world *w)
{
	struct roce_reqr_tx tx[8];
	unsigned n;

	while ((n = roce_reqr_send(&w->reqr, tx, 8, w->now)))
		for (unsigned i = 0; i < n; i++) {
			uint8_t *p = copy(tx[i].b->data, tx[i].b->len), part[RC_PKT_MAX];
			struct roce_pkt pkt;
			uint32_t skip = tx[i].skip * w->reqr.pmtu;

			if (!rc_pkt_read(p, tx[i].b->len, &pkt)) {
				w->broken = "bad packet in custody";
			} else if (skip) {
				lan(w, AT_B, part,
				    rc_host_make(&w->a, part,
				        (struct rc_mk){.opcode = ROCE_RC_READ_REQ,
				            .psn = roce_psn_add(pkt.psn, tx[i].skip),
				            .va = roce_reth_va(&pkt) + skip,
				            .rkey = roce_reth_rkey(&pkt),
				            .len = roce_reth_len(&pkt) - skip}));
			} else {
				if (tx[i].ack_req)
					roce_icrc_set_ackreq(&pkt, true);
				lan(w, AT_B, p, tx[i].b->len);
			}
			free(p);
		}
	far_check(w);
}

static void far_response(struct rc_world *w, uint8_t *bytes, uint32_t len)
{
	struct roce_reqr_act act;
	struct roce_pkt pkt;

	if (!rc_pkt_read(bytes, len, &pkt))
		return;
	roce_reqr_recv(&w->reqr, &pkt, &act, w->now);
	far_act(w, &act, bytes, len);
}

/* --- the world ------------------------------------------------------------------------------- */

void rc_world_init(struct rc_world *w, const struct rc_world_cfg *cfg, const struct rc_host_cfg *a,
    uint8_t *mem_a, uint32_t len_a, const struct rc_host_cfg *b, uint8_t *mem_b, uint32_t len_b)
{
	struct roce_reqr_cfg rc;
	uint32_t pmtu = cfg->pmtu_known ? a->mtu : 0;

	memset(w, 0, sizeof(*w));
	w->cfg = *cfg;
	w->rng = cfg->seed;
	w->lan.cfg = cfg->lan;
	rc_host_init(&w->a, a, mem_a, len_a);
	rc_host_init(&w->b, b, mem_b, len_b);
	roce_resp_init(&w->resp, a->sq_psn, pmtu);
	roce_resp_go(&w->resp, 0);
	roce_reqr_cfg_default(&rc);
	rc.retry = 50;
	roce_reqr_init(&w->reqr, &rc, a->sq_psn, pmtu);
	roce_reqr_share(&w->reqr, &w->b_record);
}

static void buf_free(void *ctx, struct rwy_buf *b)
{
	free(b);
}

void rc_world_fini(struct rc_world *w)
{
	static const struct rwy_buf_ops ops = {.free = buf_free};

	roce_resp_fini(&w->resp);
	roce_reqr_fini(&w->reqr, &(struct rwy_bufs){.ops = &ops});
	rc_host_fini(&w->a);
	rc_host_fini(&w->b);
	while (w->ev.n) {
		struct rc_event e = pop(w);

		free(e.bytes);
		free(e.b);
	}
	free(w->ev.v);
	for (unsigned k = 0; k < RC_CACHE; k++)
		free(w->cache[k].bytes);
	for (uint32_t i = 0; i < w->park_n; i++)
		free(w->park[i].bytes);
}

static void transmit(struct rc_world *w)
{
	uint8_t bytes[RC_PKT_MAX];
	uint32_t len;

	near_flush(w);
	far_send(w);
	while ((len = rc_host_output(&w->a, bytes, w->now)))
		lan(w, AT_NEAR, bytes, len);
	while ((len = rc_host_output(&w->b, bytes, w->now)))
		lan(w, AT_FAR, bytes, len);
}

static void happen(struct rc_world *w, struct rc_event *e)
{
	switch (e->where) {
	case AT_A:
		rc_host_input(&w->a, e->bytes, e->len, w->now);
		break;
	case AT_NEAR:
		near_request(w, e->bytes, e->len);
		near_unpark(w);
		break;
	case AT_FAR:
		far_response(w, e->bytes, e->len);
		break;
	case AT_B:
		rc_host_input(&w->b, e->bytes, e->len, w->now);
		break;
	case PIPE_REQ:
		far_push(w, e->b);
		break;
	case PIPE_RESP:
		near_response(w, e->bytes, e->len);
		near_unpark(w);
		break;
	case PIPE_ALLOW:
		roce_resp_allow(&w->resp, e->psn, e->msn);
		break;
	case PIPE_FAIL:
		roce_resp_fail(&w->resp, e->psn, e->syndrome);
		break;
	}
	free(e->bytes);
}

static void tick(struct rc_world *w)
{
	struct roce_reqr_act act;

	rc_host_tick(&w->a, w->now);
	rc_host_tick(&w->b, w->now);
	roce_reqr_tick(&w->reqr, &act, w->now);
	far_act(w, &act, NULL, 0);
}

bool rc_world_step(struct rc_world *w, rwy_time until)
{
	rwy_time t =
	    rwy_time_min(rwy_time_min(rc_host_next(&w->a), rc_host_next(&w->b)), roce_reqr_next(&w->reqr));
	rwy_time at = rwy_time_min(due_next(&w->ev), t);

	if (at == RWY_NEVER || at > until) {
		w->now = rwy_time_max(w->now, until == RWY_NEVER ? 0 : until);
		transmit(w);
		return false;
	}
	w->now = rwy_time_max(w->now, at);
	if (due_next(&w->ev) <= w->now) {
		struct rc_event e = pop(w);

		happen(w, &e);
	} else {
		tick(w);
	}
	transmit(w);
	return !w->broken;
}
