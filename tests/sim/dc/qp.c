/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requester of a queue pair: packets from messages, window, go-back-N, the local ACK timer,
 * DCQCN's reaction point. As in a NIC the timer does not follow the configured timeout: it is
 * `rto`, times `backoff` after each expiry, until `retry` expiries without progress end the queue
 * pair.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/dc/nic.h"

#define OUTSTANDING_MAX (1u << 22)    /* PSNs are compared modulo 2^24 */
#define MIN_RATE        1250000       /* 10 Mbit/s */
#define NIC_RTT         (10 * RWY_US) /* a NIC's DCQCN does not know the distance */

static struct host *home(const struct qp *qp)
{
	return &qp->dc->host[qp->src];
}

/* --- pacing ----------------------------------------------------------------------------------------- */

static void rate_of(struct qp *qp, rwy_time now)
{
	struct cc_cfg cfg = {.rate_Bps = (uint64_t)(qp->dc->s.rate / 8), .min_rate_Bps = MIN_RATE};
	struct cc_answer a;
	rwy_time at;

	cc_guard_ask(&cc_dcqcn, qp->cc, &cfg, &a);
	qp->rate = a.rate_Bps >= cfg.rate_Bps ? 0 : a.rate_Bps;
	at = cc_guard_next(&cc_dcqcn, qp->cc, qp->ticked);
	if (at == RWY_NEVER)
		ev_cancel(&qp->dc->evq, &qp->cc_ev);
	else if (!qp->cc_ev.pos || ev_at(&qp->dc->evq, &qp->cc_ev) > at)
		ev_set(&qp->dc->evq, &qp->cc_ev, rwy_time_max(at, now + 1));
}

static rwy_time may_go_at(const struct qp *qp)
{
	return qp->rate ? qp->sent_at + (uint64_t)qp->sent_wire * RWY_SEC / qp->rate : 0;
}

static void on_cc(struct ev *ev, rwy_time now)
{
	struct qp *qp = EV_OWNER(ev, struct qp, cc_ev);

	qp->ticked = now;
	cc_dcqcn.on_tick(qp->cc, now);
	rate_of(qp, now);
	if (qp->turn == QP_PACED)
		ev_set(&qp->dc->evq, &qp->pace_ev, may_go_at(qp));
}

void qp_cnp(struct qp *qp, rwy_time now)
{
	if (qp->dc->s.dcqcn == SCEN_OFF || qp->failed)
		return;
	qp->tx_cnps++;
	cc_dcqcn.on_cnp(qp->cc, now);
	rate_of(qp, now);
}

/* --- turns on the port ------------------------------------------------------------------------------ */

static bool has_work(const struct qp *qp)
{
	uint64_t out = qp->nxt - qp->una, psn;

	if (qp->failed)
		return false;
	if (qp->sr)
		return sr_next(qp, &psn);
	if (qp->nxt >= qp->end || out >= OUTSTANDING_MAX)
		return false;
	return !qp->window || out < qp->window;
}

static void ready(struct qp *qp, rwy_time now)
{
	struct host *h = home(qp);

	qp->turn = QP_READY;
	qp->ready_next = NULL;
	if (h->ready_tail)
		h->ready_tail->ready_next = qp;
	else
		h->ready = qp;
	h->ready_tail = qp;
}

static void take_turn(struct qp *qp, rwy_time now)
{
	rwy_time at = may_go_at(qp);

	if (!has_work(qp)) {
		qp->turn = QP_IDLE;
		if (qp->once && !qp->head)
			dc_qp_free(qp);
	} else if (at > now) {
		qp->turn = QP_PACED;
		ev_set(&qp->dc->evq, &qp->pace_ev, at);
	} else {
		ready(qp, now);
	}
}

void qp_wake(struct qp *qp, rwy_time now)
{
	if (qp->turn != QP_IDLE)
		return;
	take_turn(qp, now);
	if (qp->turn == QP_READY)
		dc_port_kick(&home(qp)->n.port[0], now);
}

static void on_pace(struct ev *ev, rwy_time now)
{
	struct qp *qp = EV_OWNER(ev, struct qp, pace_ev);

	qp->turn = QP_IDLE;
	qp_wake(qp, now);
}

/* --- packets ---------------------------------------------------------------------------------------- */

static struct dc_msg *message_of(struct qp *qp, uint64_t psn)
{
	struct dc_msg *m = qp->cur;

	if (!m || psn < m->first)
		m = qp->open;
	while (m && psn >= m->first + m->pkts)
		m = m->next;
	return qp->cur = m;
}

static void arm_rto(struct qp *qp, rwy_time now)
{
	qp->rto_at = now + qp->rto;
	if (!qp->rto_ev.pos || ev_at(&qp->dc->evq, &qp->rto_ev) > qp->rto_at)
		ev_set(&qp->dc->evq, &qp->rto_ev, qp->rto_at);
}

static struct dc_pkt *make(struct qp *qp, uint64_t psn, rwy_time now)
{
	const struct scen *s = &qp->dc->s;
	struct dc_msg *m = message_of(qp, psn);
	struct dc_pkt *p = dc_pkt_get(qp->dc);
	uint64_t at = psn - m->first;

	p->kind = DC_DATA;
	p->ecn = DC_ECT;
	p->src = qp->src;
	p->dst = qp->dst;
	p->hash = qp->hash;
	p->dqpn = dc_qpn(qp->id, true);
	p->gen = qp->gen;
	p->psn = (uint32_t)psn & 0xffffff;
	p->first = at == 0;
	p->last = at + 1 == m->pkts;
	p->len = (uint16_t)(p->last ? m->bytes - at * (uint64_t)s->pmtu : (uint64_t)s->pmtu);
	p->aux = p->first ? (uint32_t)m->bytes : 0;
	p->wire = p->len + DC_OVERHEAD + (p->first && s->op == OP_WRITE ? 16 : 0);
	/* Also at the end of the window, since no later packet would ask. */
	p->ackreq = p->last || ++qp->since_req >= (unsigned)s->ackreq ||
	            (qp->window && psn + 1 - qp->una >= qp->window);
	if (p->ackreq)
		qp->since_req = 0;
	if (psn < qp->high) {
		qp->tx_resent++;
		if (qp->dc->warm)
			qp->dc->c.resent_warm++;
		else
			qp->dc->c.resent++;
	} else {
		qp->high = psn + 1;
	}
	if (p->ackreq) { /* the timer belongs to packets with AckReq (IBA 9.7.6.1.3) */
		if (qp->rto_at == RWY_NEVER || qp->req_end <= qp->una)
			arm_rto(qp, now);
		qp->req_end = psn + 1 > qp->req_end ? psn + 1 : qp->req_end;
	}
	return p;
}

struct dc_pkt *qp_pull(struct host *h, rwy_time now)
{
	struct qp *qp;
	struct dc_pkt *p;
	uint64_t psn;

	while ((qp = h->ready)) {
		h->ready = qp->ready_next;
		if (!h->ready)
			h->ready_tail = NULL;
		take_turn(qp, now); /* to the end of the line, if it may send */
		if (qp->turn != QP_READY)
			continue;
		psn = qp->nxt;
		if (qp->sr)
			sr_next(qp, &psn);
		p = make(qp, psn, now);
		if (qp->sr)
			sr_sent(qp, psn);
		if (psn == qp->nxt)
			qp->nxt++;
		qp->sent_at = now;
		qp->sent_wire = p->wire;
		qp->tx_bytes += p->len;
		if (qp->rate) {
			cc_dcqcn.on_sent(qp->cc, p->wire, 0, now);
			rate_of(qp, now);
		}
		return p;
	}
	return NULL;
}

/* --- answers ---------------------------------------------------------------------------------------- */

void qp_release(struct qp *qp)
{
	struct dc *dc = qp->dc;
	struct dc_msg *m;

	while ((m = qp->head) && m->delivered && m->completed) {
		qp->head = m->next;
		if (!qp->head)
			qp->tail = NULL;
		if (qp->cur == m)
			qp->cur = NULL;
		m->next = dc->msg_free;
		dc->msg_free = m;
		dc->msgs_live--;
	}
	if (qp->once && !qp->head)
		dc_qp_free(qp);
}

void qp_progress(struct qp *qp, uint64_t una, rwy_time now)
{
	struct dc *dc = qp->dc;

	qp->una = una;
	if (qp->nxt < una)
		qp->nxt = una;
	qp->retries = 0;
	qp->rto = qp->rto_least;
	qp->rto_at = una < qp->req_end ? now + qp->rto : RWY_NEVER;
	for (struct dc_msg *m; (m = qp->open) && m->first + m->pkts <= una;) {
		qp->open = m->next;
		m->completed = now;
		dc->c.completed++;
		if (m->on_complete)
			m->on_complete(m, false, now);
	}
	qp_release(qp);
}

void qp_acked(struct qp *qp, uint32_t psn24, uint32_t msn, bool nak, rwy_time now)
{
	uint64_t una = psn_full(qp->una, psn24) + !nak;

	if (qp->failed)
		return;
	if (una > qp->high) {
		dc_violation(qp->dc, "acknowledged what was not sent", una, qp->high);
		return;
	}
	if (nak)
		qp->dc->c.naks++;
	if (una > qp->una)
		qp_progress(qp, una, now);
	if (nak && una == qp->una && qp->nxt > una) {
		qp->nxt = una;
		qp->cur = NULL;
	}
	qp_wake(qp, now);
}

void qp_fail(struct qp *qp, rwy_time now)
{
	struct dc *dc = qp->dc;

	qp->failed = true;
	dc->c.qp_errors++;
	ev_cancel(&dc->evq, &qp->rto_ev);
	ev_cancel(&dc->evq, &qp->cc_ev);
	ev_cancel(&dc->evq, &qp->pace_ev);
	if (qp->turn == QP_PACED)
		qp->turn = QP_IDLE;
	for (struct dc_msg *m = qp->head; m; m = m->next) {
		if (m->completed)
			continue;
		m->completed = now;
		if (!m->delivered)
			m->delivered = RWY_NEVER; /* it will not be delivered */
		dc->c.failed++;
		if (m->on_complete)
			m->on_complete(m, true, now);
	}
	qp->rx = qp->open = NULL;
	qp_release(qp);
}

static void on_rto(struct ev *ev, rwy_time now)
{
	struct qp *qp = EV_OWNER(ev, struct qp, rto_ev);

	if (qp->rto_at == RWY_NEVER)
		return;
	if (now < qp->rto_at) {
		ev_set(&qp->dc->evq, &qp->rto_ev, qp->rto_at);
		return;
	}
	qp->dc->c.timeouts++;
	qp->tx_timeouts++;
	if (!qp->deaf && ++qp->retries > (unsigned)qp->dc->s.retry) {
		qp_fail(qp, now);
		return;
	}
	if (!qp->deaf)
		qp->rto = (rwy_dur)((double)qp->rto * qp->dc->s.backoff);
	if (qp->sr) {
		sr_timeout(qp, now);
	} else {
		qp->nxt = qp->una;
		qp->cur = NULL;
	}
	arm_rto(qp, now);
	qp_wake(qp, now);
}

/* --- making and freeing ----------------------------------------------------------------------- */

static uint32_t mix(uint32_t x)
{
	x = (x ^ x >> 16) * 0x7feb352du;
	x = (x ^ x >> 15) * 0x846ca68bu;
	return x ^ x >> 16;
}

static struct qp *take(struct dc *dc)
{
	struct qp *qp = dc->qp_free;

	if (qp) {
		dc->qp_free = qp->ready_next;
		return qp;
	}
	if (dc->qp_n == dc->qp_cap) {
		dc->qp_cap = dc->qp_cap ? dc->qp_cap * 2 : 1024;
		dc->qps =
		    realloc(dc->qps, dc->qp_cap * sizeof(*dc->qps)); /* NOLINT(bugprone-sizeof-expression) */
		if (!dc->qps)
			abort();
	}
	qp = dc_alloc(dc, sizeof(*qp));
	qp->id = dc->qp_n;
	dc->qps[dc->qp_n++] = qp;
	return qp;
}

struct qp *dc_qp_new(struct dc *dc, unsigned src, unsigned dst)
{
	struct cc_cfg cfg = {.rate_Bps = (uint64_t)(dc->s.rate / 8),
	    .min_rate_Bps = MIN_RATE,
	    .mtu = (uint32_t)dc->s.pmtu,
	    .initial_rtt = NIC_RTT};
	struct qp *qp = take(dc);
	uint32_t id = qp->id;
	uint8_t gen = (uint8_t)(qp->gen + 1);

	memset(qp, 0, sizeof(*qp));
	qp->dc = dc;
	qp->id = id;
	qp->gen = gen;
	qp->src = (uint16_t)src;
	qp->dst = (uint16_t)dst;
	qp->inter = dc_site(dc, src) != dc_site(dc, dst);
	qp->window = (uint64_t)((dc->s.window + dc->s.pmtu - 1) / dc->s.pmtu);
	qp->hash = mix(id * 256 + gen + (uint32_t)dc->s.seed * 0x9e3779b9u);
	qp->rto = qp->rto_least = (rwy_dur)dc->s.rto;
	qp->rto_at = RWY_NEVER;
	qp->rto_ev.fn = on_rto;
	qp->pace_ev.fn = on_pace;
	qp->cc_ev.fn = on_cc;
	cc_dcqcn.init(qp->cc, &cfg, dc->evq.now);
	if (dc->s.host == HOST_SR)
		sr_new(qp);
	dc->qps_live++;
	return qp;
}

void dc_qp_free(struct qp *qp)
{
	struct dc *dc = qp->dc;

	if (qp->inter || qp->head || qp->turn != QP_IDLE) {
		qp->once = true; /* freed as soon as possible */
		return;
	}
	qp->once = false;
	ev_cancel(&dc->evq, &qp->rto_ev);
	ev_cancel(&dc->evq, &qp->cc_ev);
	sr_free(qp);
	qp->gen++;
	qp->ready_next = dc->qp_free;
	dc->qp_free = qp;
	dc->qps_live--;
}

bool dc_qp_failed(const struct qp *qp)
{
	return qp->failed;
}

static struct dc_msg *msg_take(struct dc *dc)
{
	struct dc_msg *m = dc->msg_free;

	if (m)
		dc->msg_free = m->next;
	else
		m = dc_alloc(dc, sizeof(*m));
	dc->msgs_live++;
	return m;
}

struct dc_msg *dc_post(struct qp *qp, uint64_t bytes, void (*on_delivered)(struct dc_msg *, rwy_time),
    void (*on_complete)(struct dc_msg *, bool, rwy_time), void *ctx, rwy_time now)
{
	uint64_t pmtu = (uint64_t)qp->dc->s.pmtu;
	struct dc_msg *m;

	if (qp->failed)
		return NULL;
	m = msg_take(qp->dc);
	*m = (struct dc_msg){.qp = qp,
	    .bytes = bytes,
	    .pkts = (bytes + pmtu - 1) / pmtu,
	    .first = qp->end,
	    .posted = now,
	    .on_delivered = on_delivered,
	    .on_complete = on_complete,
	    .ctx = ctx};
	if (qp->tail)
		qp->tail->next = m;
	else
		qp->head = m;
	qp->tail = m;
	if (!qp->rx)
		qp->rx = m;
	if (!qp->open)
		qp->open = m;
	qp->end += m->pkts;
	qp->dc->c.posted++;
	qp_wake(qp, now);
	return m;
}
