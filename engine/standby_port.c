/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pair's own tunnel: its callbacks. A flow of copies has the responder side as its user at the
 * active gateway, and what is stored at the standby; the management flow has the tunnel itself.
 */
#include "engine/copy.h"
#include "engine/emit.h"
#include "engine/mgmt.h"
#include "engine/port.h"
#include "engine/responder.h"
#include "engine/store.h"

/* Both gateways have the same number of workers, or the standby gets no copies. */
static void hear_workers(struct eng_tunnel *t, uint8_t workers)
{
	struct eng *e = t->e;

	t->peer_workers = workers;
	if (workers != eng_sb_workers(e) && !e->cfg.worker)
		eng_log(e, 0,
		    "event=\"the other gateway of the pair has another number of workers: there is no "
		    "standby\" workers=%u other=%u",
		    eng_sb_workers(e) ? eng_sb_workers(e) : 1, workers ? workers : 1);
}

static void *rx_open(void *ctx, struct wan_rxflow *rx, const uint8_t *info, size_t len, rwy_time now)
{
	struct eng_tunnel *t = ctx;
	struct eng_open o;

	if (eng_open_decode(&o, info, len)) {
		if (o.type == ENG_OPEN_COPY)
			return eng_store_open(t->e, rx, &o);
		if (o.type == ENG_OPEN_MGMT) {
			if (t->mgmt_rx)
				wan_rx_reset(t->mgmt_rx, now);
			t->mgmt_rx = rx;
			hear_workers(t, o.workers);
			return t;
		}
	}
	t->e->c.drop_tunnel_msg++;
	return NULL;
}

static void rx_data(void *ctx, void *user, struct rwy_buf *b, rwy_time now)
{
	struct eng_tunnel *t = ctx;
	uint64_t seq = b->seq;

	if (user != t) {
		eng_store_message(user, b, now);
		return;
	}
	wan_rx_delivered(t->mgmt_rx, seq, now);
	eng_sb_message(t->e, b, now);
}

static void rx_close(void *ctx, void *user, enum wan_close_reason reason, rwy_time now)
{
	struct eng_tunnel *t = ctx;
	struct eng_stored *s = user;

	if (user == t) {
		t->mgmt_rx = NULL;
		return;
	}
	s->flow = NULL;
	/* Copies of a gateway that is gone are kept: this one may have to take over. */
	if (reason == WAN_CLOSE_BY_SENDER)
		eng_store_free(s, now);
}

static void tx_acked(void *ctx, void *user, const struct rwy_buf *b, rwy_time now)
{
	if (user == ctx)
		return;
	eng_copy_received(user, b, now);
	eng_sb_copied(user, now);
}

/* The standby has this buffer. When it has several, tx_acked named the last one only. */
static void tx_delivered(void *ctx, void *user, const struct rwy_buf *b, rwy_time now)
{
	if (user == ctx)
		return;
	eng_copy_received(user, b, now);
	eng_copy_freed(user, b);
}

static size_t tx_reopen(void *ctx, void *user, uint8_t info[WAN_OPEN_MAX], rwy_time now)
{
	return user == ctx ? eng_mgmt_open_info(eng_sb_workers(((struct eng_tunnel *)ctx)->e), info)
	                   : eng_copy_open_info(user, info);
}

static void tx_reset(void *ctx, void *user, rwy_time now)
{
	if (user == ctx)
		eng_mgmt_ended(ctx);
	else
		eng_copy_refused(user, now);
}

static void rx_dgram(void *ctx, struct rwy_buf *b, rwy_time now)
{
	struct eng_tunnel *t = ctx;

	eng_drop(t->e, b, &t->e->c.drop_tunnel_msg);
}

static void state(void *ctx, bool up, bool restarted, rwy_time now)
{
	struct eng_tunnel *t = ctx;

	/* A standby that has just started has no copies, even if the process before it had them. */
	if (restarted)
		eng_sb_link(t->e, false, now);
	t->up = up;
	eng_lanes_tell(t);
	eng_sb_link(t->e, up, now);
	if (t->e->ops->tunnel_state)
		t->e->ops->tunnel_state(t->e->ctx, t->idx, up, now);
}

const struct wan_ops eng_standby_ops = {
    .rx_open = rx_open,
    .rx_data = rx_data,
    .rx_close = rx_close,
    .tx_acked = tx_acked,
    .tx_delivered = tx_delivered,
    .tx_reopen = tx_reopen,
    .tx_reset = tx_reset,
    .rx_dgram = rx_dgram,
    .state = state,
};
