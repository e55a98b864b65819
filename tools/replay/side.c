/* SPDX-License-Identifier: Apache-2.0 */
/* From the packets of a flow to messages: PSN order, holes, answers of READs, what waited for
 * what. */
#include <string.h>

#include "tools/replay/tape.h"

/* A jump in PSNs that no host has outstanding: another connection, or a long READ is missing. */
#define JUMP ((int64_t)ROCE_OUTSTANDING_MAX)
/* Answers that may be missing in the capture. */
#define ANSWERS_SPARE (1u << 20)

struct maker {
	struct rp_schedule *s;
	struct rp_conn *c;
	struct rp_side *d;
	const struct rp_tape *requests, *answers;
	uint32_t answers_room;
	struct rp_msg open; /* the message under way; psns 0: none */
	bool begun;         /* `next` is set */
	int64_t next, open_psn;
	uint64_t psns, served_seq;
	rwy_time served;
};

static uint64_t max64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static bool is_rd(uint8_t op)
{
	return op == ROCE_OP_READ_REQ || op == ROCE_OP_CMP_SWAP || op == ROCE_OP_FETCH_ADD;
}

/* Whether a response can be one to the message: what answers otherwise cannot be given again. */
static bool answer_fits(const struct maker *m, const struct rp_msg *msg, uint32_t i, const struct rp_raw *r)
{
	const uint32_t at = i * m->c->pmtu;
	struct roce_pkt pkt;

	rp_packet_get(m->s, &r->pkt, &pkt);
	if (msg->op != ROCE_OP_READ_REQ)
		return pkt.info->op == ROCE_OP_ATOMIC_ACK;
	return pkt.info->op == ROCE_OP_READ_RESP &&
	       pkt.payload_len == (msg->len - at < m->c->pmtu ? msg->len - at : m->c->pmtu);
}

/* Takes the answers of the READ or ATOMIC just made. */
static void answers_get(struct maker *m, struct rp_msg *msg)
{
	const struct rp_side *d = m->d;
	bool whole = true;

	msg->answer = d->answers;
	for (uint32_t i = 0; i < msg->psns; i++) {
		const struct rp_raw *r = m->answers ? rp_tape_find(m->answers, m->open_psn + i) : NULL;

		if (r && !answer_fits(m, msg, i, r))
			r = NULL;
		struct rp_pkt *to = &m->d->answer[m->d->answers++];

		*to = r ? r->pkt : (struct rp_pkt){0};
		whole &= r != NULL;
		m->served = rwy_time_max(m->served, r ? r->at : 0);
		m->served_seq = max64(m->served_seq, r ? r->seq : 0);
	}
	m->d->lost.unanswered += !whole;
	if (whole) {
		msg->served = m->served;
		msg->served_seq = m->served_seq;
	}
	m->d->rd[m->d->rds++] = d->msgs;
}

/* The message under way stays without its end. */
static void give_up(struct maker *m)
{
	if (!m->open.psns)
		return;
	m->d->lost.partial += m->open.pkts;
	m->d->pkts -= m->open.pkts;
	m->open.psns = 0;
}

static void commit(struct maker *m)
{
	struct rp_msg *msg = &m->d->msg[m->d->msgs];

	if (is_rd(m->open.op) && m->open.psns > m->answers_room - m->d->answers) {
		give_up(m);
		return;
	}
	*msg = m->open;
	msg->psn = m->psns;
	if (m->d->msgs) { /* in order, whatever was lost or overtaken before the capture */
		msg->at = rwy_time_max(msg->at, msg[-1].at);
		msg->at_seq = max64(msg->at_seq, msg[-1].at_seq);
		msg->arrived = rwy_time_max(msg->arrived, msg[-1].arrived);
		msg->arrived_seq = max64(msg->arrived_seq, msg[-1].arrived_seq);
	} else {
		m->d->first = (uint32_t)m->open_psn & ROCE_PSN_MASK;
	}
	if (is_rd(msg->op))
		answers_get(m, msg);
	m->psns += msg->psns;
	m->d->bytes += msg->len;
	m->d->msgs++;
	m->open.psns = 0;
}

static void begin(struct maker *m, const struct rp_raw *r, const struct roce_pkt *pkt)
{
	give_up(m);
	m->open_psn = r->psn;
	m->open = (struct rp_msg){.at = r->at,
	    .at_seq = r->seq,
	    .op = pkt->info->op,
	    .pkt = m->d->pkts,
	    .psns = 1,
	    .served = RWY_NEVER,
	    .served_seq = UINT64_MAX};
	if (pkt->info->op == ROCE_OP_READ_REQ) {
		m->open.len = roce_reth_len(pkt);
		m->open.psns = roce_read_packets(m->open.len, m->c->pmtu);
	}
	m->next = r->psn + m->open.psns - 1;
}

/* Between two connections nothing is answered. */
static bool is_answered(const struct maker *m, int64_t from, int64_t to)
{
	const struct rp_raw *r = m->answers ? rp_tape_from(m->answers, from) : NULL;

	return r && r->psn < to;
}

/* The next packet in the order of PSNs. False: what follows belongs to another connection. */
static bool take(struct maker *m, const struct rp_raw *r)
{
	struct roce_pkt pkt;

	if (m->begun && r->psn < m->next) /* the rest of a READ, asked for again */
		return true;
	if (m->begun && r->psn > m->next) {
		if (r->psn - m->next > JUMP && !is_answered(m, m->next, r->psn))
			return false;
		m->d->lost.missing += (uint64_t)(r->psn - m->next);
		give_up(m);
	}
	m->begun = true;
	m->next = r->psn;
	rp_packet_get(m->s, &r->pkt, &pkt);
	if (roce_op_starts(pkt.info)) {
		begin(m, r, &pkt);
	} else if (!m->open.psns || pkt.info->op != m->open.op) {
		give_up(m);
		m->d->lost.partial++;
		m->next++;
		return true;
	} else {
		m->open.psns++;
	}
	m->next++;
	m->d->pkt[m->d->pkts++] = r->pkt;
	m->open.pkts++;
	m->open.len += pkt.payload_len;
	m->open.arrived = rwy_time_max(m->open.arrived, r->at);
	m->open.arrived_seq = max64(m->open.arrived_seq, r->seq);
	if (roce_op_ends(pkt.info))
		commit(m);
	return true;
}

static int rooms(struct maker *m)
{
	/* Whatever READs ask for, memory follows what was captured. */
	const uint64_t most = ANSWERS_SPARE + 2ull * (m->answers ? m->answers->n : 0);
	uint64_t answers = 0;
	struct rp_side *d = m->d;
	struct roce_pkt pkt;

	for (uint32_t i = 0; i < m->requests->n; i++) {
		rp_packet_get(m->s, &m->requests->v[i].pkt, &pkt);
		if (is_rd(pkt.info->op))
			answers += pkt.info->op == ROCE_OP_READ_REQ
			               ? roce_read_packets(roce_reth_len(&pkt), m->c->pmtu)
			               : 1;
	}
	m->answers_room = (uint32_t)(answers < most ? answers : most);
	d->pkt = calloc(m->requests->n + 1ull, sizeof(*d->pkt));
	d->msg = calloc(m->requests->n + 1ull, sizeof(*d->msg));
	d->rd = calloc(m->requests->n + 1ull, sizeof(*d->rd));
	d->answer = calloc(m->answers_room + 1ull, sizeof(*d->answer));
	return d->pkt && d->msg && d->rd && d->answer ? 0 : RWY_ENOMEM;
}

int rp_side_make(
    struct rp_schedule *s, struct rp_conn *c, unsigned i, struct rp_tape *requests, struct rp_tape *answers)
{
	struct maker m = {.s = s, .c = c, .d = &c->side[i], .requests = requests, .answers = answers};
	int rc;

	if (!requests || !requests->n)
		return 0;
	rp_tapes_sort(requests, answers);
	rc = rooms(&m);
	if (rc)
		return rc;
	for (uint32_t k = 0; k < requests->n; k++)
		if (!take(&m, &requests->v[k])) {
			m.d->lost.reused += requests->n - k;
			break;
		}
	give_up(&m);
	return 0;
}

/*
 * True if the packet at `seq` and `at` may be the cause of m, a message of d's host. A packet takes
 * time to a host that is far away; a sixteenth is left for a path that is not always as long. One
 * that is too late to be the cause, and counts as it, makes m late, and all that waits for m.
 */
static bool may_cause(const struct rp_side *d, const struct rp_msg *m, uint64_t seq, rwy_time at)
{
	return seq < m->at_seq && (!d->away || rwy_since(at, m->at) >= d->away / 16 * 15);
}

/*
 * By place in the capture, for equal times would let two messages wait for each other: whatever a
 * message waits for is whole before its own first packet.
 */
void rp_conn_order(struct rp_conn *c)
{
	for (unsigned i = 0; i < 2; i++) {
		struct rp_side *d = &c->side[i];
		const struct rp_side *o = &c->side[!i];
		uint32_t peers = 0, answers = 0;

		for (uint32_t k = 0; k < d->msgs; k++) {
			struct rp_msg *m = &d->msg[k];

			while (peers < o->msgs &&
			       may_cause(d, m, o->msg[peers].arrived_seq, o->msg[peers].arrived))
				peers++;
			while (
			    answers < d->rds && d->rd[answers] < k &&
			    may_cause(d, m, d->msg[d->rd[answers]].served_seq, d->msg[d->rd[answers]].served))
				answers++;
			m->peers = peers;
			m->answers = answers;
		}
	}
}
