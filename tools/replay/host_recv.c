/* SPDX-License-Identifier: Apache-2.0 */
/* The host: packets of the peer. Its requests are executed: compared with the capture; its
 * responses complete messages. */
#include <string.h>

#include "roce/icrc.h"
#include "tools/replay/host_int.h"

static void message_came(struct rp_host *h, rwy_time now)
{
	h->stats.received++;
	if (h->rx_stray) {
		h->rx_stray = false;
		return;
	}
	h->rx_at[h->rx_msg] = now;
	h->stats.received_bytes += h->peer->msg[h->rx_msg].len;
	h->rx_msg++;
	h->rx_pkt = 0;
	if (h->forgone)
		h->forgone--;
}

/* A packet in order. Returns the message that it belongs to; UINT32_MAX: not in the capture. */
static uint32_t execute(struct rp_host *h, const struct roce_pkt *pkt, rwy_time now)
{
	const struct rp_msg *m;
	uint32_t msg = h->rx_msg;

	if (roce_op_starts(pkt->info)) {
		h->rx_pkt = 0;
		h->rx_stray = msg == h->peer->msgs;
		if (h->rx_stray)
			rp_differs(h, &h->stats.differs.more, "message %u is one more than captured", msg);
	}
	if (!h->rx_stray) {
		m = &h->peer->msg[msg];
		if (h->rx_pkt < m->pkts)
			rp_compare_request(h, &h->peer->pkt[m->pkt + h->rx_pkt], pkt);
		else if (h->rx_pkt == m->pkts)
			rp_differs(h, &h->stats.differs.length, "message %u is longer", msg);
		h->rx_pkt++;
	}
	if (h->rx_stray)
		msg = UINT32_MAX;
	if (roce_op_ends(pkt->info))
		message_came(h, now);
	return msg;
}

void rp_host_request(struct rp_host *h, const struct roce_pkt *pkt, rwy_time now)
{
	struct roce_resp_act act;
	uint32_t msg;

	roce_resp_recv(&h->resp, pkt, &act, now);
	switch (act.verdict) {
	case ROCE_RESP_ACCEPT:
		msg = execute(h, pkt, now);
		if (rp_op_is_rd(pkt->info->op))
			rp_host_asked(h, pkt, msg, act.msn);
		roce_resp_allow(&h->resp, h->resp.epsn, h->resp.msn);
		return;
	case ROCE_RESP_DUP:
		h->stats.duplicates++;
		return;
	case ROCE_RESP_DUP_READ:
	case ROCE_RESP_DUP_ATOMIC:
		h->stats.duplicates++;
		rp_host_asked_again(h, pkt);
		return;
	case ROCE_RESP_GAP:
		h->stats.out_of_order++;
		return;
	case ROCE_RESP_BAD_SEQ:
	case ROCE_RESP_BAD_LEN:
	case ROCE_RESP_BAD_OP:
		h->refused = true;
		return;
	case ROCE_RESP_PARK: /* the path MTU is known */
	case ROCE_RESP_TOO_MANY:
	case ROCE_RESP_STALE:
	case ROCE_RESP_FAILED:
	case ROCE_RESP_VERDICT_COUNT:
		return;
	}
}

static void completed(struct rp_host *h, const struct rwy_buf *b, rwy_time now)
{
	const struct rp_msg *m = &h->mine->msg[b->w0];

	if (b->w1 + 1 < m->pkts)
		return;
	if (rp_op_is_rd(m->op)) {
		h->rd_out--;
		h->rd_at[h->rd_done++] = now;
	}
	h->stats.completed++;
	h->stats.bytes += m->len;
	h->stats.last = now;
	an_hist_add(&h->stats.completion, rwy_since(h->sent_at[b->w0], now));
}

void rp_host_acted(struct rp_host *h, struct roce_reqr_act *act, rwy_time now)
{
	struct rwy_buf *b;

	while ((b = rwy_bufq_pop(&act->done))) {
		completed(h, b, now);
		rwy_buf_free(&h->bufs, b);
	}
	if (!act->failed)
		return;
	h->failed = true;
	h->end = act->end;
	h->fail_syndrome = act->fail_syndrome;
}

void rp_host_response(struct rp_host *h, const struct roce_pkt *pkt, rwy_time now)
{
	const uint32_t done = h->rd_done;
	struct roce_reqr_act act;
	const struct rp_msg *m;
	roce_psn first;
	uint32_t i;

	roce_reqr_recv(&h->reqr, pkt, &act, now);
	if (act.forward && done < h->mine->rds) { /* it answers the oldest READ or ATOMIC */
		m = &h->mine->msg[h->mine->rd[done]];
		first = roce_psn_add(h->cfg.sq_psn, (uint32_t)(m->psn & ROCE_PSN_MASK));
		i = (pkt->psn - first) & ROCE_PSN_MASK;
		if (i < m->psns)
			rp_compare_answer(h, &h->mine->answer[m->answer + i], pkt);
	}
	rp_host_acted(h, &act, now);
}
