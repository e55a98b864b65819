/* SPDX-License-Identifier: Apache-2.0 */
/* The host that plays a side again: beginning, end, timers. */
#include "tools/replay/host.h"

#include <stdlib.h>
#include <string.h>

#include "tools/replay/host_int.h"

static struct rwy_buf *buf_alloc(void *ctx, uint32_t headroom, uint32_t len)
{
	struct rwy_buf *b = calloc(1, sizeof(*b) + headroom + len);

	if (!b)
		return NULL;
	b->data = (uint8_t *)(b + 1) + headroom;
	b->len = len;
	b->headroom = (uint16_t)headroom;
	return b;
}

static void buf_free(void *ctx, struct rwy_buf *b)
{
	free(b);
}

static const struct rwy_buf_ops heap = {buf_alloc, buf_free};

void rp_host_cfg_default(struct rp_host_cfg *cfg)
{
	*cfg = (struct rp_host_cfg){.speed = 1, .as_captured = true, .patience = 10 * RWY_SEC};
	roce_reqr_cfg_default(&cfg->reqr);
}

static rwy_time *times(uint32_t n)
{
	return calloc(n + 1u, sizeof(rwy_time));
}

int rp_host_init(struct rp_host *h, const struct rp_host_cfg *cfg, rwy_time start)
{
	memset(h, 0, sizeof(*h));
	h->cfg = *cfg;
	h->mine = &cfg->conn->side[cfg->side];
	h->peer = &cfg->conn->side[!cfg->side];
	h->bufs = (struct rwy_bufs){&heap, NULL};
	h->start = start;
	h->due = RWY_NEVER;
	h->wait_since = RWY_NEVER;
	h->stats.first = RWY_NEVER;
	roce_reqr_init(&h->reqr, &cfg->reqr, cfg->sq_psn, cfg->conn->pmtu);
	roce_resp_init(&h->resp, cfg->rq_psn, cfg->conn->pmtu);
	roce_resp_go(&h->resp, 0);
	h->sent_at = times(h->mine->msgs);
	h->due_at = times(h->mine->msgs);
	h->rx_at = times(h->peer->msgs);
	h->rd_at = times(h->mine->rds);
	if (h->sent_at && h->due_at && h->rx_at && h->rd_at)
		return 0;
	rp_host_fini(h);
	return RWY_ENOMEM;
}

void rp_host_fini(struct rp_host *h)
{
	roce_reqr_fini(&h->reqr, &h->bufs);
	roce_resp_fini(&h->resp);
	free(h->sent_at);
	free(h->due_at);
	free(h->rx_at);
	free(h->rd_at);
	h->sent_at = h->due_at = h->rx_at = h->rd_at = NULL;
}

void rp_host_recv(struct rp_host *h, const struct roce_pkt *pkt, rwy_time now)
{
	if (pkt->info->transport != ROCE_RC)
		return;
	if (roce_op_is_request(pkt->info))
		rp_host_request(h, pkt, now);
	else
		rp_host_response(h, pkt, now);
}

bool rp_host_poll(struct rp_host *h, unsigned burst, rwy_time now)
{
	struct roce_reqr_act act;
	unsigned n;

	if (roce_reqr_next(&h->reqr) <= now) {
		roce_reqr_tick(&h->reqr, &act, now);
		rp_host_acted(h, &act, now);
	}
	n = rp_host_answer(h, burst, now);
	if (n < burst)
		n += rp_host_post(h, burst - n, now);
	return n >= burst;
}

rwy_time rp_host_next(const struct rp_host *h)
{
	return rwy_time_min(roce_reqr_next(&h->reqr), rp_host_due(h));
}

bool rp_host_sent_all(const struct rp_host *h)
{
	return h->failed || (h->msg == h->mine->msgs && !h->reqr.q.n);
}

bool rp_host_got_all(const struct rp_host *h)
{
	return !h->answers && h->stats.received >= h->peer->msgs;
}

void rp_host_end(struct rp_host *h)
{
	if (h->rx_msg < h->peer->msgs)
		rp_differs(h, NULL, "%u messages of the peer did not come", h->peer->msgs - h->rx_msg);
	h->stats.differs.fewer = h->peer->msgs - h->rx_msg;
}

uint64_t rp_host_differences(const struct rp_host *h)
{
	uint64_t sum = 0;

#define X(f, s) sum += h->stats.differs.f;
	RP_DIFFERENCES(X)
#undef X
	return sum;
}
