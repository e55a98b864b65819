/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requester side of a connection, from birth to end: it asks a local host in the far host's name.
 * Requests come over the WAN (deliver.c) and go to the host in PSN order (send.c); its answers go back
 * (response.c). When to send and what an answer means is roce/reqr's decision.
 */
#include <stdlib.h>

#include "engine/requester.h"
#include "engine/emit.h"
#include "engine/pair.h"
#include "engine/responder.h"
#include "engine/steer.h"

struct eng_far *eng_far_get(struct eng *e, const struct eng_key *k, rwy_time now)
{
	return eng_far_get_at(e, k, eng_way(e, k->tenant, &k->dst, &k->src, 0), now);
}

struct eng_far *eng_far_get_at(struct eng *e, const struct eng_key *k, int tunnel, rwy_time now)
{
	struct eng_far *f = (struct eng_far *)eng_find(e, k, true);

	if (f)
		return f;
	if (tunnel < 0) {
		e->c.drop_no_route++;
		return NULL;
	}
	const struct eng_ten *t = eng_tenant(e, k->tenant);

	if (e->halves >= e->cfg.conns_max || (t->cfg.flows_max && t->halves >= t->cfg.flows_max) ||
	    !(f = eng_slab_get(&e->far_slab))) {
		e->c.drop_flow_table_full++;
		return NULL;
	}
	f->h.key = *k;
	f->h.ten = eng_tenant(e, k->tenant);
	f->h.e = e;
	f->h.is_far = true;
	f->h.tunnel = (uint8_t)tunnel;
	f->h.close_at = RWY_NEVER;
	f->h.last = now;
	f->h.error = "";
	f->rnr_retry = f->retry = 255;
	f->host = eng_host_get(e, k->tenant, &k->dst);
	eng_insert(e, &f->h);
	e->c.conns_opened++;
	return f;
}

static void forget_requests(struct eng_far *f)
{
	if (eng_far_active(f)) {
		roce_reqr_fini(&f->reqr, &f->h.e->bufs);
		eng_far_enter(f, ENG_Q_IDLE);
	}
	eng_rp_leave(f);
	f->wait_head = f->wait_n = 0;
}

void eng_far_free(struct eng_far *f, rwy_time now)
{
	struct eng *e = f->h.e;

	eng_learn_leave(f, now);
	eng_wheel_disarm(f);
	if (f->req)
		wan_rx_reset(f->req, now);
	if (f->rsp)
		wan_tx_abort(f->rsp, now);
	forget_requests(f);
	eng_host_put(e, f->host);
	free(f->wait);
	if (f->near)
		eng_unpair(f);
	eng_remove(e, &f->h);
	f->h.close_at = 0;
	f->h.e = NULL;
	if (!f->h.dirty)
		eng_slab_put(&e->far_slab, f);
}

size_t eng_far_open_info(const struct eng_far *f, uint8_t *out)
{
	struct eng_open o = {.type = ENG_OPEN_RSP,
	    .rnr_retry = 255,
	    .retry = 255,
	    .life = f->life,
	    .peer_qpn = f->rqpn,
	    .vni = f->h.ten->cfg.vni,
	    .key = f->h.key};

	return eng_open_encode(out, &o);
}

bool eng_far_need_responses(struct eng_far *f, rwy_time now)
{
	uint8_t info[WAN_OPEN_MAX];
	size_t len;

	if (f->rsp)
		return true;
	len = eng_far_open_info(f, info);
	f->rsp_sent = f->rsp_done = 0;
	if (wan_tx_open(eng_wan(&f->h), &f->rsp, info, len, f, now) != 0)
		return false;
	wan_tx_class(f->rsp, f->h.key.tenant);
	return true;
}

void eng_far_tell(struct eng_far *f, const struct eng_ctrl *c, rwy_time now)
{
	struct rwy_buf *b;

	if (!eng_far_need_responses(f, now))
		return;
	b = eng_ctrl_buf(f->h.e, c);
	if (!b)
		return;
	f->rsp_sent++;
	wan_tx_send(f->rsp, b, now);
}

void eng_far_begin(struct eng_far *f, roce_psn first, uint32_t pmtu, bool probe)
{
	struct roce_reqr_cfg cfg;
	const struct eng_cfg *ec = &f->h.e->cfg;

	forget_requests(f);
	f->questions = 0;
	roce_reqr_cfg_default(&cfg);
	cfg.window_max = ec->host_window;
	cfg.rnr_retry = f->rnr_retry != 255 ? f->rnr_retry : ec->rnr_retry;
	cfg.retry = ec->retry;
	roce_reqr_init(&f->reqr, &cfg, first, pmtu);
	roce_reqr_share(&f->reqr, f->host ? &f->host->reqr : NULL);
	f->reqr.probe = probe;
	eng_far_enter(f, probe ? ENG_Q_PROBING : ENG_Q_RUNNING);
	f->h.error = "";
	eng_log(
	    f->h.e, 4, "far local_qpn=%u starts at psn=%u%s", f->h.key.qpn, first, probe ? " asking" : "");
}

void eng_far_start_cm(struct eng_far *f, uint32_t rqpn, roce_psn psn, uint32_t pmtu, rwy_time now)
{
	if (eng_far_active(f) && f->h.learned == ENG_BY_CM && f->rqpn == rqpn && f->h.close_at == RWY_NEVER)
		return; /* a retransmitted REP */
	eng_learn_leave(f, now);
	if (f->req) {
		wan_rx_reset(f->req, now);
		f->req = NULL;
		f->flow = ENG_FLOW_NONE;
	}
	f->rqpn = rqpn;
	f->h.learned = ENG_BY_CM;
	f->h.close_at = RWY_NEVER;
	f->h.last = now;
	f->done_seq = f->told_seq = 0;
	eng_far_begin(f, psn, pmtu, false);
}

/* Requests that came by an earlier flow have numbers of that flow. They mean nothing in the new one, until
 * the same request comes again (renumber). */
static void forget_numbers(struct eng_far *f)
{
	for (struct rwy_buf *b = eng_far_active(f) ? f->reqr.q.head : NULL; b; b = b->next)
		b->seq = ENG_NO_SEQ;
	f->done_seq = f->told_seq = 0;
	f->wait_head = f->wait_n = 0;
}

void eng_far_open(struct eng_far *f, struct wan_rxflow *rx, const struct eng_open *o, rwy_time now)
{
	/*
	 * The near gateway that is still the same begins the flow anew: it failed the connection, and what of
	 * that one's requests is still here would go to another queue pair with this QPN. After a restart of
	 * that gateway they are this connection's own.
	 */
	if (f->life != o->life && (f->req || f->flow == ENG_FLOW_LEFT) && !eng_far_locating(f) &&
	    f->h.state != ENG_Q_ENDING)
		forget_requests(f);
	if (f->req)
		wan_rx_reset(f->req, now);
	/* Answers of an earlier life are of no use. Nor is their flow: a near gateway that restarted may have
	 * refused it before it knew this connection, and what we add would go down with it. */
	if (f->rsp && f->life != o->life) {
		wan_tx_abort(f->rsp, now);
		f->rsp = NULL;
	}
	f->req = rx;
	f->drain = (struct cc_drain){0};
	f->flow = ENG_FLOW_FIRST;
	f->life = o->life;
	forget_numbers(f);
	f->h.last = now;
	f->h.close_at = RWY_NEVER;
	if (o->rnr_retry != 255)
		f->rnr_retry = o->rnr_retry;
	if (o->retry != 255)
		f->retry = o->retry;
	/* The near gateway may know the requester's QPN (from CM, or from before we restarted): then the two
	 * halves belong together. */
	if (o->peer_qpn && f->rqpn != o->peer_qpn) {
		struct eng_key k = {f->h.key.dst, f->h.key.src, o->peer_qpn, f->h.key.tenant};
		struct eng_near *n = eng_near_get(f->h.e, &k, false, now);

		if (n)
			eng_pair_halves(n, f, ENG_BY_PEER);
	}
	f->open_pmtu = o->pmtu;
	f->told_peer = o->peer_qpn && f->near && f->rqpn == o->peer_qpn;
}

void eng_far_tell_sync(struct eng_far *f, enum eng_ctrl_type type, roce_psn psn, roce_msn msn, rwy_time now)
{
	struct eng_ctrl c = {.type = (uint8_t)type, .life = f->life, .qpn = f->rqpn, .psn = psn, .msn = msn};

	eng_far_tell(f, &c, now);
}

/* Tells the near gateway how far its packets are delivered: never past a READ or ATOMIC whose answer is not
 * yet in its hands. */
void eng_far_report(struct eng_far *f, rwy_time now)
{
	uint64_t upto = f->done_seq;

	while (f->wait_n && f->wait[f->wait_head].idx <= f->rsp_done) {
		f->wait_head = (f->wait_head + 1) & (f->wait_cap - 1);
		f->wait_n--;
	}
	if (f->wait_n && f->wait[f->wait_head].seq < upto)
		upto = f->wait[f->wait_head].seq;
	if (upto > f->told_seq && f->req) {
		f->told_seq = upto;
		wan_rx_delivered(f->req, upto - 1, now);
	}
}

void eng_far_rsp_delivered(struct eng_far *f, rwy_time now)
{
	f->rsp_done++;
	eng_far_report(f, now);
}

bool eng_far_wait_responses(struct eng_far *f, uint64_t seq)
{
	if (f->wait_n == f->wait_cap) {
		uint32_t cap = f->wait_cap ? f->wait_cap * 2 : 16;
		struct eng_rspwait *w = calloc(cap, sizeof(*w));

		if (!w)
			return false;
		for (uint32_t i = 0; i < f->wait_n; i++)
			w[i] = f->wait[(f->wait_head + i) & (f->wait_cap - 1)];
		free(f->wait);
		f->wait = w;
		f->wait_head = 0;
		f->wait_cap = cap;
	}
	f->wait[(f->wait_head + f->wait_n++) & (f->wait_cap - 1)] = (struct eng_rspwait){seq, f->rsp_sent};
	return true;
}

/*
 * The near gateway may begin to acknowledge. The first request counts as delivered only when it knows: else
 * the flow would look idle to it while its host, unacknowledged, sends again, and be taken for a new life.
 */
void eng_far_tell_start(struct eng_far *f, roce_psn psn, roce_msn msn, uint64_t first_seq, rwy_time now)
{
	eng_far_tell_sync(f, ENG_CTRL_SYNC, psn, msn, now);
	if (first_seq != ENG_NO_SEQ && f->rsp)
		eng_far_wait_responses(f, first_seq);
}

void eng_far_fail(struct eng_far *f, roce_psn psn, uint8_t syndrome, enum eng_end end, rwy_time now)
{
	struct eng *e = f->h.e;

	if (f->h.state == ENG_Q_FAILED)
		return;
	eng_learn_leave(f, now);
	f->h.error = eng_end_text(end, syndrome, true);
	e->c.conns_failed++;
	eng_log_half(e, 1, &f->h, f->h.error);
	eng_far_tell(f,
	    &(struct eng_ctrl){.type = ENG_CTRL_FAIL,
	        .life = f->life,
	        .qpn = f->rqpn,
	        .psn = psn,
	        .syndrome = syndrome,
	        .end = (uint8_t)end},
	    now);
	forget_requests(f);
	eng_far_enter(f, ENG_Q_FAILED);
}
