/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Causal order across the queue pairs of two hosts: what was acknowledged to a host before it sent
 * a request is executed at the other host before that request. Programs rely on it when they write
 * on one queue pair and signal on another. It is checked where the ack mode promises it, and with
 * F_CAUSAL.
 */
#include <stdlib.h>

#include "tests/sim/explore.h"

/*
 * Not after a crash of both gateways: the far one asks the host where it stands, with a WRITE of no bytes that
 * counts as a message if it is the one that the host expects.
 */
static bool promised(const struct run *r)
{
	if (r->faults & (F_CRASH_BOTH | F_HEAP)) /* connections end, and hosts hear of it later */
		return false;
	if (r->faults & F_CAUSAL)
		return !(r->faults & F_CHANGES); /* which change the mode */
	switch (r->cfg.ack_mode) {
	case ENG_ACK_NEAR:
	case ENG_ACK_FAR:
	case ENG_ACK_SITE:
		return false;
	case ENG_ACK_END:
	case ENG_ACK_CAUSAL:
		return !(r->faults & F_CHANGES); /* they change the mode */
	}
	abort();
}

/* Completions of queue pair `of` when its host sent the first packet of message `msg` on queue pair
 * qp. */
static uint16_t *cause(unsigned qp, unsigned site, unsigned msg, unsigned of)
{
	static uint16_t(*kept)[2][MASS_MAX][QPS_MAX];

	if (!kept && !(kept = calloc(QPS_MAX, sizeof(*kept))))
		abort();
	return &kept[qp][site][msg][of];
}

static bool same_hosts(const struct run *r, unsigned a, unsigned b)
{
	const struct side *x = r->qp[a], *y = r->qp[b];

	return x[0].host == y[0].host && x[1].host == y[1].host && x[0].tenant == y[0].tenant;
}

void sim_causal_sent(struct run *r, struct side *s)
{
	unsigned qp = s->idx, n = s->h.send_i + (s->h.send_k ? 1 : 0);

	if (n <= s->begun || !promised(r))
		return;
	for (; s->begun < n; s->begun++)
		for (unsigned i = 0; i < r->qps; i++)
			*cause(qp, s->site, s->begun, i) = (uint16_t)r->qp[i][s->site].done;
}

/* p has executed a packet of message `msg` of its peer. */
void sim_causal_executed(struct run *r, const struct side *p, roce_msn msg)
{
	unsigned from = !p->site;

	/* Of no operation that there is: a question of the gateway, after a crash. */
	if (!promised(r) || msg >= r->qp[p->idx][from].begun)
		return;
	for (unsigned i = 0; i < r->qps; i++) {
		const struct side *q = &r->qp[i][p->site], *s = &r->qp[i][from];

		if (i == p->idx || !same_hosts(r, i, p->idx) || q->gone || side_dead(q) || side_dead(s))
			continue;
		if (q->h.msn < *cause(p->idx, from, msg, i))
			sim_fail(r, "executed before what its host had been told is done", p, msg);
	}
}

/* --- programs that post the next operation when one on another queue pair is complete ---------- */

void sim_chain_begin(struct run *r)
{
	for (unsigned i = 0; i < r->qps; i++)
		for (unsigned j = 0; j < 2; j++) {
			struct side *s = &r->qp[i][j];

			s->posted = s->wrs ? 1 : 0;
			if (s->wrs)
				rc_host_post(&s->h, &s->wr[0]);
			sim_pump(r, s);
		}
}

/* s has a completion: the next queue pair of its host with work left posts an operation. */
static void post_next(struct run *r, const struct side *s)
{
	for (unsigned k = 1; k <= r->qps; k++) {
		struct side *n = &r->qp[(s->idx + k) % r->qps][s->site];

		if (n->posted == n->wrs)
			continue;
		rc_host_post(&n->h, &n->wr[n->posted++]);
		sim_pump(r, n);
		return;
	}
}

void sim_chain_tick(struct run *r)
{
	for (unsigned i = 0; i < r->qps; i++)
		for (unsigned j = 0; j < 2; j++) {
			struct side *s = &r->qp[i][j];

			for (; s->chained < s->completed; s->chained++)
				post_next(r, s);
		}
}
