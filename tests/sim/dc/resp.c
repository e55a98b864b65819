/* SPDX-License-Identifier: Apache-2.0 */
/* The responder of a queue pair: order, acknowledgements, NAKs, and DCQCN's notification point. */
#include "tests/sim/dc/nic.h"

void qp_answer(struct qp *qp, enum dc_kind kind, uint32_t psn24, uint32_t aux, rwy_time now)
{
	struct dc_pkt *p = dc_pkt_get(qp->dc);

	p->kind = (uint8_t)kind;
	p->src = qp->dst;
	p->dst = qp->src;
	p->hash = qp->hash;
	p->dqpn = dc_qpn(qp->id, false);
	p->gen = qp->gen;
	p->psn = psn24 & 0xffffff;
	p->aux = aux;
	p->wire = DC_ACK_WIRE;
	dc_port_send(dc_host_port(qp->dc, qp->dst), p, now);
}

/* A packet in order: checks that it carries what the sender posted. */
void qp_deliver(struct qp *qp, const struct dc_pkt *p, rwy_time now)
{
	struct dc *dc = qp->dc;
	struct dc_msg *m = qp->rx;
	uint64_t at = qp->epsn - (m ? m->first : 0);

	if (!m || p->first != (at == 0) || p->last != (at + 1 == m->pkts) ||
	    p->len != (p->last ? m->bytes - at * (uint64_t)dc->s.pmtu : (uint64_t)dc->s.pmtu) ||
	    (p->first && dc->s.op == OP_WRITE && p->aux != (uint32_t)m->bytes)) {
		dc_violation(dc, "a packet that is not what was posted", qp->id, qp->epsn);
		return;
	}
	qp->epsn++;
	qp->rx_bytes += p->len;
	dc->c.delivered_pkts++;
	dc->c.delivered_bytes += p->len;
	dc_hash(dc, now ^ (uint64_t)qp->id << 40 ^ p->psn);
	if (!p->last)
		return;
	qp->msn++;
	qp->rx = m->next;
	if (m->delivered)
		dc_violation(dc, "a message twice", qp->id, m->first);
	m->delivered = now;
	dc->c.delivered++;
	if (m->on_delivered)
		m->on_delivered(m, now);
}

static void notify(struct qp *qp, rwy_time now)
{
	qp->dc->c.ce++;
	if (now < qp->cnp_at)
		return;
	qp->cnp_at = now + (rwy_dur)qp->dc->s.cnp;
	qp->dc->c.cnps++;
	qp_answer(qp, DC_CNP, 0, 0, now);
}

void qp_data(struct qp *qp, struct dc_pkt *p, rwy_time now)
{
	uint64_t psn = psn_full(qp->epsn, p->psn);

	if (p->ecn == DC_CE && qp->dc->s.dcqcn == SCEN_ON)
		notify(qp, now);
	if (qp->failed)
		return;
	if (qp->sr) {
		sr_data(qp, p, now);
		return;
	}
	if (psn > qp->epsn) {
		qp->dc->c.out_of_order++;
		if (!qp->nak_sent)
			qp_answer(qp, DC_NAK, (uint32_t)qp->epsn, (uint32_t)qp->msn, now);
		qp->nak_sent = true;
		return;
	}
	if (psn == qp->epsn) {
		qp->nak_sent = false;
		qp_deliver(qp, p, now);
	}
	if (p->ackreq)
		qp_answer(qp, DC_ACK, (uint32_t)qp->epsn - 1, (uint32_t)qp->msn, now);
	qp_release(qp);
}
