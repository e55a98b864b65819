/* SPDX-License-Identifier: Apache-2.0 */
/* What the WAN tells the engine: flows that open and close, data, custody coming home, tunnels going up and
 * down. */
#include "engine/pair.h"
#include "engine/port.h"
#include "engine/emit.h"
#include "engine/requester.h"
#include "engine/responder.h"
#include "engine/steer.h"
#include "engine/tenants.h"
#include "rwy/endian.h"

/* A flow's user is a half, or the tunnel itself for its management flow. */
static bool is_tunnel(const struct eng *e, const void *user)
{
	return (const struct eng_tun *)user >= e->tun &&
	       (const struct eng_tun *)user < e->tun + ENG_TUNNELS_MAX;
}

static void *rx_open(void *ctx, struct wan_rxflow *rx, const uint8_t *info, size_t len, rwy_time now)
{
	struct eng_tun *t = ctx;
	struct eng *e = t->e;
	struct eng_open o;
	struct eng_near *n;
	struct eng_far *f;
	int tenant;

	if (t->removing)
		return NULL;
	if (!eng_open_decode(&o, info, len)) {
		e->c.drop_tunnel_msg++;
		return NULL;
	}
	tenant = eng_tenant_by_vni(e, o.vni);
	if (tenant < 0) {
		e->c.drop_unknown_tenant++;
		return NULL;
	}
	o.key.tenant = (uint32_t)tenant;
	switch ((enum eng_open_type)o.type) {
	case ENG_OPEN_MGMT:
		if (t->mgmt_rx)
			wan_rx_reset(t->mgmt_rx, now);
		t->mgmt_rx = rx;
		return t;
	case ENG_OPEN_REQ:
		/* The peer speaks only for hosts behind it. A connection that came by another tunnel goes on
		 * there as long as that one is there. */
		if (!eng_behind(e, o.key.tenant, &o.key.dst, &o.key.src, t->idx) ||
		    !(f = eng_far_get_at(e, &o.key, (int)t->idx, now)) ||
		    (f->h.tunnel != t->idx && (f->req || f->rsp))) {
			e->c.drop_tunnel_msg++;
			return NULL;
		}
		if (f->h.tunnel != t->idx)
			eng_move(&f->h, t->idx);
		eng_far_open(f, rx, &o, now);
		return f;
	case ENG_OPEN_RSP:
		n = (struct eng_near *)eng_find(e, &o.key, false);
		if (!n || n->h.tunnel != t->idx) {
			e->c.drop_tunnel_msg++;
			return NULL;
		}
		/* The flow of an earlier life, which was on its way for long: it must not take this one's
		 * place. */
		if (n->rsp && o.life != n->life) {
			e->c.drop_old_response++;
			return NULL;
		}
		if (n->rsp)
			wan_rx_reset(n->rsp, now);
		n->rsp = rx;
		return n;
	}
	rwy_unreachable();
}

/* CM MADs and datagrams from the other site. */
static void to_lan(struct eng *e, struct rwy_buf *b, bool cm, rwy_time now)
{
	struct roce_pkt pkt;
	enum roce_parse_reason r = ROCE_PARSE_BAD_IP;
	int tenant = eng_untag(e, b);

	if (tenant == ENG_NO_TENANT) {
		eng_drop(e, b, &e->c.drop_unknown_tenant);
		return;
	}
	if (tenant >= 0)
		r = roce_parse(b->data, b->len, &pkt);
	/* The peer speaks only for hosts behind it, to hosts that are here. */
	if (r == ROCE_PARSE_BAD_IP || r == ROCE_PARSE_TRUNCATED ||
	    eng_route_in(e, (uint32_t)tenant, &pkt.dst) >= 0) {
		eng_drop(e, b, &e->c.drop_tunnel_msg);
		return;
	}
	if (cm && r == ROCE_PARSE_OK && !eng_learn_cm(e, (uint32_t)tenant, &pkt, now)) {
		rwy_buf_free(&e->bufs, b);
		return;
	}
	eng_lan_send(e, (uint32_t)tenant, b, true, &pkt.dst, NULL);
}

static void rx_data(void *ctx, void *user, struct rwy_buf *b, rwy_time now)
{
	struct eng_tun *t = ctx;
	struct eng *e = t->e;

	if (is_tunnel(e, user)) {
		uint64_t seq = b->seq;

		to_lan(e, b, true, now);
		wan_rx_delivered(t->mgmt_rx, seq, now);
		return;
	}
	if (((struct eng_half *)user)->is_far)
		eng_far_data(user, b, now);
	else
		eng_near_answer(user, b, now);
}

/* The near gateway took back what it sent, or is gone. What the host has never answered is of no use then,
 * and must not stand in the way of others. */
static void requests_end(struct eng_far *f, enum wan_close_reason reason, rwy_time now)
{
	f->req = NULL;
	f->flow = reason == WAN_CLOSE_BY_SENDER ? ENG_FLOW_LEFT : ENG_FLOW_NONE;
	if (!f->near && f->turn != ENG_TURN_NONE)
		eng_far_free(f, now);
}

static void rx_close(void *ctx, void *user, enum wan_close_reason reason, rwy_time now)
{
	struct eng_tun *t = ctx;

	if (is_tunnel(t->e, user))
		t->mgmt_rx = NULL;
	else if (((struct eng_half *)user)->is_far)
		requests_end(user, reason, now);
	else
		((struct eng_near *)user)->rsp = NULL;
}

static void tx_acked(void *ctx, void *user, const struct rwy_buf *b, rwy_time now)
{
	struct eng_tun *t = ctx;
	struct eng_near *n = user;

	if (!is_tunnel(t->e, user) && !n->h.is_far)
		eng_ack_at_far_gateway(n, b);
}

static void tx_delivered(void *ctx, void *user, const struct rwy_buf *b, rwy_time now)
{
	struct eng_tun *t = ctx;

	if (is_tunnel(t->e, user))
		return;
	if (((struct eng_half *)user)->is_far)
		eng_far_rsp_delivered(user, now);
	else
		eng_near_delivered(user, b, now);
}

static size_t tx_reopen(void *ctx, void *user, uint8_t info[WAN_OPEN_MAX], rwy_time now)
{
	struct eng_tun *t = ctx;
	struct eng_open o = {.type = ENG_OPEN_MGMT, .rnr_retry = 255, .retry = 255};

	(void)now;
	if (is_tunnel(t->e, user))
		return eng_open_encode(info, &o);
	return ((struct eng_half *)user)->is_far ? eng_far_open_info(user, info)
	                                         : eng_near_open_info(user, info);
}

static void tx_reset(void *ctx, void *user, rwy_time now)
{
	struct eng_tun *t = ctx;
	struct eng_near *n = user;

	if (is_tunnel(t->e, user)) {
		t->mgmt = NULL;
		return;
	}
	if (n->h.is_far) {
		struct eng_far *f = user;

		/* The near gateway knows nothing of this connection (any more): nobody waits for the answers.
		 */
		f->rsp = NULL;
		f->rsp_sent = f->rsp_done = 0;
		f->wait_n = 0;
		return;
	}
	eng_near_reset(n, now);
}

static void rx_dgram(void *ctx, struct rwy_buf *b, rwy_time now)
{
	struct eng_tun *t = ctx;

	to_lan(t->e, b, false, now);
}

static void state(void *ctx, bool up, bool restarted, rwy_time now)
{
	struct eng_tun *t = ctx;
	struct eng *e = t->e;

	if (restarted)
		eng_log(e, 2, "tunnel=%s peer=restarted", e->cfg.tunnel[t->idx].name);
	if (e->ops->tunnel_state)
		e->ops->tunnel_state(e->ctx, t->idx, up, now);
}

static void congested(void *ctx, uint8_t path, const struct wan_congest_state *s, rwy_time now)
{
	struct eng_tun *t = ctx;
	struct eng *e = t->e;
	const char *name = e->cfg.tunnel[t->idx].name;

	(void)now;
	if (s->by == WAN_CONGEST_NONE)
		eng_log(e, 2, "tunnel=%s path=%u event=\"congested no more\"", name, path);
	else
		eng_log(e, 1, "tunnel=%s path=%u event=congested by=%s loss=%.2f%% marks=%.2f%% delay=%.1fms",
		    name, path, wan_congest_name(s->by), s->loss_ppm / 1e4, s->marks_ppm / 1e4,
		    (double)s->delay / 1e6);
	if (e->ops->path_congested)
		e->ops->path_congested(e->ctx, t->idx, path, s);
}

const struct wan_ops eng_wan_ops = {
    .rx_open = rx_open,
    .rx_data = rx_data,
    .rx_close = rx_close,
    .tx_acked = tx_acked,
    .tx_delivered = tx_delivered,
    .tx_reopen = tx_reopen,
    .tx_reset = tx_reset,
    .rx_dgram = rx_dgram,
    .congested = congested,
    .state = state,
};
