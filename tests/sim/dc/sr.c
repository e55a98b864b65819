/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A baseline: selective repeat after IRN (Mittal et al., SIGCOMM 2018). The responder keeps packets
 * out of order and names each in a NAK together with the PSN it expects. The requester repeats
 * missing packets, each once per recovery, and has at most a bandwidth-delay product in flight. Its
 * timer is never shorter than three round trips of the path, since IRN knows its network. In a NAK
 * psn is the expected PSN, aux the one that arrived.
 */
#include <math.h>
#include <stdlib.h>

#include "tests/sim/dc/nic.h"

#define BASE_HOPS 8 /* links of a round trip within a site */

struct kept { /* a packet that the responder has out of order */
	uint32_t aux;
	uint16_t len;
	bool here, first, last;
};

struct sr {
	uint64_t mask; /* ring size - 1 */
	/* The requester. */
	uint8_t *sacked;
	bool recovering;
	/* end of the recovery; end of the PSNs named; next PSN to examine */
	uint64_t recover, high_sack, retx;
	/* The responder. */
	struct kept *kept;
};

void sr_new(struct qp *qp)
{
	const struct scen *s = &qp->dc->s;
	double wire = s->pmtu + DC_OVERHEAD, hop = s->delay + wire * 8e9 / s->rate,
	       rtt = BASE_HOPS * hop + (qp->inter ? s->rtt : 0);
	struct sr *r = calloc(1, sizeof(*r));
	uint64_t ring = 64;

	if (!r)
		abort();
	qp->window = (uint64_t)ceil(fmin(s->rate, qp->inter ? s->wan : s->rate) / 8e9 * rtt / wire) + 1;
	while (ring < 2 * qp->window)
		ring <<= 1;
	r->mask = ring - 1;
	r->sacked = calloc(ring, 1);
	r->kept = calloc(ring, sizeof(*r->kept));
	if (!r->sacked || !r->kept)
		abort();
	if (qp->rto < (rwy_dur)(3 * rtt))
		qp->rto = (rwy_dur)(3 * rtt);
	qp->rto_least = qp->rto;
	qp->sr = r;
}

void sr_free(struct qp *qp)
{
	if (!qp->sr)
		return;
	free(qp->sr->sacked);
	free(qp->sr->kept);
	free(qp->sr);
	qp->sr = NULL;
}

bool sr_next(const struct qp *qp, uint64_t *psn)
{
	const struct sr *r = qp->sr;

	if (r->recovering && r->retx < r->high_sack) {
		*psn = r->retx;
		return true;
	}
	*psn = qp->nxt;
	return qp->nxt < qp->end && qp->nxt - qp->una < qp->window;
}

/* Advances to the next missing packet. */
static void skip(struct sr *r)
{
	while (r->retx < r->high_sack && r->sacked[r->retx & r->mask])
		r->retx++;
}

void sr_sent(struct qp *qp, uint64_t psn)
{
	struct sr *r = qp->sr;

	if (psn == qp->nxt) {
		r->sacked[psn & r->mask] = 0;
		return;
	}
	r->retx = psn + 1;
	skip(r);
}

static void recovery(struct qp *qp)
{
	struct sr *r = qp->sr;

	r->recovering = true;
	r->recover = qp->nxt;
	r->retx = qp->una;
}

void sr_acked(struct qp *qp, const struct dc_pkt *p, rwy_time now)
{
	struct sr *r = qp->sr;
	bool nak = p->kind == DC_NAK;
	uint64_t una = psn_full(qp->una, p->psn) + !nak, got = psn_full(qp->una, p->aux);

	if (qp->failed || una > qp->high)
		return;
	if (una > qp->una) {
		uint8_t gen = qp->gen;

		qp_progress(qp, una, now);
		if (qp->gen != gen)
			return; /* the queue pair is freed */
	}
	if (nak && got >= qp->una && got < qp->nxt) {
		qp->dc->c.naks++;
		r->sacked[got & r->mask] = 1;
		if (got + 1 > r->high_sack)
			r->high_sack = got + 1;
		if (!r->recovering)
			recovery(qp);
	}
	if (r->recovering && qp->una >= r->recover)
		r->recovering = false;
	if (r->retx < qp->una)
		r->retx = qp->una;
	skip(r);
	qp_wake(qp, now);
}

void sr_timeout(struct qp *qp, rwy_time now)
{
	struct sr *r = qp->sr;

	if (r->high_sack <= qp->una)
		r->high_sack = qp->una + 1;
	recovery(qp);
	skip(r);
}

static void deliver(struct qp *qp, const struct dc_pkt *p, rwy_time now)
{
	struct sr *r = qp->sr;

	qp_deliver(qp, p, now);
	for (struct kept *k; (k = &r->kept[qp->epsn & r->mask])->here;) {
		struct dc_pkt again = {.psn = (uint32_t)qp->epsn & 0xffffff,
		    .len = k->len,
		    .aux = k->aux,
		    .first = k->first,
		    .last = k->last};

		k->here = false;
		qp_deliver(qp, &again, now);
	}
}

void sr_data(struct qp *qp, struct dc_pkt *p, rwy_time now)
{
	struct sr *r = qp->sr;
	uint64_t psn = psn_full(qp->epsn, p->psn);

	if (psn > qp->epsn) {
		qp->dc->c.out_of_order++;
		if (psn - qp->epsn <= r->mask)
			r->kept[psn & r->mask] = (struct kept){p->aux, p->len, true, p->first, p->last};
		qp_answer(qp, DC_NAK, (uint32_t)qp->epsn, p->psn, now);
		return;
	}
	if (psn == qp->epsn)
		deliver(qp, p, now);
	if (p->ackreq || psn < qp->epsn - 1)
		qp_answer(qp, DC_ACK, (uint32_t)qp->epsn - 1, (uint32_t)qp->msn, now);
	qp_release(qp);
}
