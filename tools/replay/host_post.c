/* SPDX-License-Identifier: Apache-2.0 */
/* The host's program: what it posts, and when; its packets on their way out. */
#include <string.h>

#include "roce/icrc.h"
#include "rwy/endian.h"
#include "tools/replay/host_int.h"

#define QUEUE_MAX 512u /* packets that the requester has at most */
#define TX_MAX    32

static rwy_dur scaled(const struct rp_host *h, rwy_dur d)
{
	return h->cfg.speed > 0 ? (rwy_dur)((double)d / h->cfg.speed) : 0;
}

/* True when all that the message waited for in the capture is here, or is given up. */
static bool is_free(const struct rp_host *h, const struct rp_msg *m)
{
	return h->rx_msg + h->forgone >= m->peers && h->rd_done >= m->answers;
}

/* Sets h->due once everything that the next message waits for is known. */
static void find_due(struct rp_host *h, rwy_time now)
{
	const struct rp_msg *m = &h->mine->msg[h->msg], *o;
	rwy_time due;

	if (h->due != RWY_NEVER || h->start == RWY_NEVER)
		return;
	if (!is_free(h, m)) {
		if (h->wait_since == RWY_NEVER)
			h->wait_since = now;
		return;
	}
	h->wait_since = RWY_NEVER;
	due = h->msg ? h->last_due + scaled(h, m->at - m[-1].at)
	             : h->start + scaled(h, rwy_since(h->cfg.schedule->first + h->mine->away / 2, m->at));
	if (m->peers && m->peers <= h->rx_msg) {
		o = &h->peer->msg[m->peers - 1];
		due = rwy_time_max(
		    due, h->rx_at[m->peers - 1] + scaled(h, rp_reaction(h->mine, o->arrived, m->at)));
	}
	if (m->answers) {
		o = &h->mine->msg[h->mine->rd[m->answers - 1]];
		due = rwy_time_max(
		    due, h->rd_at[m->answers - 1] + scaled(h, rp_reaction(h->mine, o->served, m->at)));
	}
	h->due = due;
}

/* Whether the next packet may be given to the requester. */
static bool may_push(struct rp_host *h, rwy_time now)
{
	const struct rp_msg *m;

	if (h->failed || h->msg == h->mine->msgs || h->reqr.q.n >= QUEUE_MAX)
		return false;
	m = &h->mine->msg[h->msg];
	if (h->pkt) /* the rest of a message */
		return true;
	find_due(h, now);
	return h->due <= now && (!rp_op_is_rd(m->op) || h->rd_out < h->cfg.conn->read_depth[h->cfg.side]);
}

/* As captured, but for the PSN, and the ICRC where something is not as captured. */
static void packet_copy(const struct rp_host *h, const struct rp_pkt *p, roce_psn psn, struct rwy_buf *b)
{
	struct roce_pkt pkt;

	memcpy(b->data, h->cfg.schedule->bytes + p->off, p->len);
	if (roce_parse(b->data, p->len, &pkt) != ROCE_PARSE_OK)
		return; /* it parsed when it was kept */
	if (pkt.psn == psn && p->captured == p->len)
		return;
	rwy_put24(pkt.bth + 9, psn);
	roce_icrc_store(&pkt);
}

static struct rwy_buf *packet_make(const struct rp_host *h, const struct rp_pkt *p, roce_psn psn)
{
	struct rwy_buf *b = rwy_buf_alloc(&h->bufs, 0, p->len + 64u);
	struct roce_pkt like;

	if (!b)
		return NULL;
	rp_packet_get(h->cfg.schedule, p, &like);
	b->len = p->len;
	if (h->cfg.as_captured)
		packet_copy(h, p, psn, b);
	else
		b->len = roce_build_like(b->data, &h->cfg.to, &like, psn);
	b->opcode = like.opcode;
	b->psn = psn;
	return b;
}

static bool push(struct rp_host *h, rwy_time now)
{
	const struct rp_msg *m = &h->mine->msg[h->msg];
	roce_psn psn = roce_psn_add(h->cfg.sq_psn, (uint32_t)((m->psn + h->pkt) & ROCE_PSN_MASK));
	struct rwy_buf *b = packet_make(h, &h->mine->pkt[m->pkt + h->pkt], psn);

	if (!b)
		return false;
	b->w0 = h->msg;
	b->w1 = h->pkt;
	b->psn_cnt = m->op == ROCE_OP_READ_REQ ? m->psns : 1;
	if (roce_reqr_push(&h->reqr, b) != ROCE_REQR_PUSHED) {
		rwy_buf_free(&h->bufs, b);
		return false;
	}
	if (!h->pkt) {
		h->stats.posted++;
		h->due_at[h->msg] = h->due;
		h->rd_out += rp_op_is_rd(m->op);
	}
	if (++h->pkt < m->pkts)
		return true;
	h->pkt = 0;
	h->msg++;
	h->last_due = h->due;
	h->due = RWY_NEVER;
	return true;
}

/* A READ whose first responses came is asked for the rest. */
static void send_rest(struct rp_host *h, const struct roce_reqr_tx *tx)
{
	const struct rp_msg *m = &h->mine->msg[tx->b->w0];
	uint32_t skip = tx->skip * h->cfg.conn->pmtu;
	uint8_t out[ROCE_BUILD_MAX];
	struct roce_addr to = h->cfg.to;
	struct roce_pkt pkt;

	if (roce_parse(tx->b->data, tx->b->len, &pkt) != ROCE_PARSE_OK)
		return;
	if (h->cfg.as_captured)
		to = (struct roce_addr){.src = pkt.src,
		    .dst = pkt.dst,
		    .dqpn = pkt.dqpn,
		    .sport = pkt.sport,
		    .pkey = pkt.pkey,
		    .tos = roce_pkt_tos(&pkt),
		    .ttl = 64,
		    .migreq = pkt.migreq};
	h->cfg.send(h->cfg.ctx, out,
	    roce_build_read_req(out, &to, roce_psn_add(tx->b->psn, tx->skip), roce_reth_va(&pkt) + skip,
	        roce_reth_rkey(&pkt), m->len - skip));
}

static void send_one(struct rp_host *h, const struct roce_reqr_tx *tx, rwy_time now)
{
	struct rwy_buf *b = tx->b;
	struct roce_pkt pkt;

	if (!tx->again && !b->w1) {
		h->sent_at[b->w0] = now;
		h->stats.first = rwy_time_min(h->stats.first, now);
		h->stats.sent = now;
		an_hist_add(&h->stats.late, rwy_since(h->due_at[b->w0], now));
	}
	if (tx->skip) {
		send_rest(h, tx);
		return;
	}
	if (tx->ack_req && roce_parse(b->data, b->len, &pkt) == ROCE_PARSE_OK && !pkt.ack_req)
		roce_icrc_set_ackreq(&pkt, true);
	h->cfg.send(h->cfg.ctx, b->data, b->len);
}

/* A message of the peer that does not come: the program goes on without it. */
static void lose_patience(struct rp_host *h, rwy_time now)
{
	const struct rp_msg *m;

	if (h->wait_since == RWY_NEVER || rwy_since(h->wait_since, now) < h->cfg.patience)
		return;
	m = &h->mine->msg[h->msg];
	if (h->rx_msg + h->forgone < m->peers)
		h->forgone = m->peers - h->rx_msg;
	h->wait_since = RWY_NEVER;
}

unsigned rp_host_post(struct rp_host *h, unsigned burst, rwy_time now)
{
	struct roce_reqr_tx tx[TX_MAX];
	unsigned n, sent = 0;

	lose_patience(h, now);
	do {
		while (may_push(h, now) && push(h, now))
			;
		n = roce_reqr_send(&h->reqr, tx, burst - sent < TX_MAX ? burst - sent : TX_MAX, now);
		for (unsigned i = 0; i < n; i++)
			send_one(h, &tx[i], now);
		sent += n;
	} while (n && sent < burst);
	return sent;
}

rwy_time rp_host_due(const struct rp_host *h)
{
	if (h->failed || h->msg == h->mine->msgs || h->reqr.q.n >= QUEUE_MAX)
		return RWY_NEVER;
	if (h->wait_since != RWY_NEVER)
		return h->cfg.patience == RWY_NEVER ? RWY_NEVER : h->wait_since + h->cfg.patience;
	if (rp_op_is_rd(h->mine->msg[h->msg].op) && h->rd_out >= h->cfg.conn->read_depth[h->cfg.side])
		return RWY_NEVER;
	return h->due;
}
