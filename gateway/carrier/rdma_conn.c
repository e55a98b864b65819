/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One RDMA connection: a reliable queue pair, its completion queue and its registered memory. A
 * message is one record; a datagram is copied, or with keys sealed, into a buffer for sending, and
 * copied from one of those for receiving into a packet buffer. A receive is posted again when a
 * worker has the datagram, so a worker that is behind takes the peer's credits away. All receives
 * complete in the order of their buffers, and so do all sends.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "gateway/carrier/rdma.h"

#define INLINE 160u /* datagrams without a host's packet are no longer, mostly */
#define POLL   64   /* completions taken at a time */

/* --- life ------------------------------------------------------------------------------------- */
static uint8_t *receive_slot(const struct gw_rdma_conn *r, uint32_t n)
{
	return r->memory + (size_t)(n & (r->slots - 1)) * GW_RDMA_SLOT;
}

/* The n-th receive of the connection. Returns 0 or a positive errno. */
static int receive_post(struct gw_rdma_conn *r, uint32_t n)
{
	struct ibv_sge s = {
	    .addr = (uintptr_t)receive_slot(r, n), .length = GW_RDMA_SLOT, .lkey = r->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = n, .sg_list = &s, .num_sge = 1}, *bad;

	return ibv_post_recv(r->id->qp, &wr, &bad);
}

static int qp_new(struct gw_rdma_conn *r)
{
	struct ibv_qp_init_attr a = {.send_cq = r->cq,
	    .recv_cq = r->cq,
	    .qp_type = IBV_QPT_RC,
	    .sq_sig_all = 1,
	    .cap = {.max_send_wr = r->slots,
	        .max_recv_wr = r->slots,
	        .max_send_sge = 1,
	        .max_recv_sge = 1,
	        .max_inline_data = INLINE}};

	if (rdma_create_qp(r->id, r->id->pd, &a) != 0) {
		a.cap.max_inline_data = 0; /* a device that cannot */
		if (rdma_create_qp(r->id, r->id->pd, &a) != 0)
			return -1;
	}
	r->inline_max = a.cap.max_inline_data < INLINE ? a.cap.max_inline_data : INLINE;
	return 0;
}

static int channel_new(struct gw_carriers *cs, struct gw_conn *c)
{
	struct gw_rdma_conn *r = c->rdma;
	struct epoll_event ev = {
	    .events = EPOLLIN, .data.u64 = (uint64_t)c->use << 32 | (uint32_t)(c - cs->conn)};

	r->channel = ibv_create_comp_channel(r->id->verbs);
	if (!r->channel)
		return -1;
	(void)!fcntl(r->channel->fd, F_SETFL, O_NONBLOCK);
	return epoll_ctl(cs->epoll_fd, EPOLL_CTL_ADD, r->channel->fd, &ev);
}

const char *gw_rdma_conn_qp(struct gw_carriers *cs, struct gw_conn *c)
{
	struct gw_rdma_conn *r = c->rdma;
	const size_t size = (size_t)2 * r->slots * GW_RDMA_SLOT;

	if (channel_new(cs, c) != 0)
		return "completion channel";
	r->cq = ibv_create_cq(r->id->verbs, (int)(2 * r->slots), NULL, r->channel, 0);
	if (!r->cq || ibv_req_notify_cq(r->cq, 0) != 0)
		return "completion queue";
	r->memory = aligned_alloc(4096, (size + 4095) & ~(size_t)4095);
	r->got = calloc(r->slots, sizeof(*r->got));
	if (!r->memory || !r->got)
		return "memory";
	r->mr = ibv_reg_mr(r->id->pd, r->memory, size, IBV_ACCESS_LOCAL_WRITE);
	if (!r->mr)
		return "registered memory (limit of locked memory?)";
	if (qp_new(r) != 0)
		return "queue pair";
	for (uint32_t n = 0; n < r->slots; n++) {
		int e = receive_post(r, n);

		if (e) {
			errno = e;
			return "receive queue";
		}
	}
	return NULL;
}

void gw_rdma_conn_start(struct gw_conn *c, uint32_t peer_slots)
{
	gw_rdma_flow_init(&c->rdma->flow, c->rdma->slots, peer_slots);
}

static void rdma_close(struct gw_conn *c)
{
	struct gw_rdma_conn *r = c->rdma;

	if (!r)
		return;
	c->rdma = NULL;
	gw_conn_tls_free(c);
	gw_rdma_seal_free(r->seal);
	if (r->id->qp) {
		(void)rdma_disconnect(r->id); /* fails if it was never connected */
		rdma_destroy_qp(r->id);
	}
	if (r->cq)
		ibv_destroy_cq(r->cq);
	if (r->channel)
		ibv_destroy_comp_channel(r->channel);
	if (r->mr)
		ibv_dereg_mr(r->mr);
	rdma_destroy_id(r->id);
	free(r->memory);
	free(r->got);
	free(r);
}

/* --- sending ---------------------------------------------------------------------------------- */
static bool is_up(const struct gw_rdma_conn *r)
{
	return r->state == GW_RDMA_ACCEPTED || r->state == GW_RDMA_UP;
}

/* Records may be sent: TLS is over, if the connection has it. */
static uint32_t room(const struct gw_conn *c)
{
	const struct gw_rdma_conn *r = c->rdma;

	return is_up(r) && !r->ending && (!c->tls || r->seal) ? gw_rdma_flow_room(&r->flow) : 0;
}

static const char *control_write(struct gw_carriers *cs, struct gw_conn *c, rwy_time now)
{
	struct gw_rdma_batch b = {.n = 0};
	struct wan_rec rec;
	const char *why = NULL;

	while (!why && c->ctl_n && room(c) && b.n < GW_CONN_RUN) {
		const int n = wan_rec_get(c->ctl, c->ctl_n, &rec);

		if (n <= 0)
			return "no record"; /* not ours */
		why =
		    gw_rdma_message_add(&b, c, &(struct aead_in){.head = c->ctl, .head_len = (size_t)n}, now);
		c->ctl_n -= (unsigned)n;
		memmove(c->ctl, c->ctl + n, c->ctl_n);
	}
	return why ? why : gw_rdma_batch_post(cs, c, &b);
}

/* A worker's datagram is in one packet buffer, or has its head in one and its body in another. */
static const char *datagram_add(
    struct gw_rdma_batch *b, struct gw_conn *c, const struct rte_mbuf *m, rwy_time now)
{
	const struct rte_mbuf *body = m->next;
	const struct aead_in in = {.head = rte_pktmbuf_mtod(m, void *),
	    .head_len = m->data_len,
	    .body = body ? rte_pktmbuf_mtod(body, void *) : NULL,
	    .body_len = body ? body->data_len : 0};

	c->t->c.tx_datagrams++;
	c->t->c.tx_bytes += m->pkt_len;
	return gw_rdma_message_add(b, c, &in, now);
}

static const char *rdma_write(struct gw_carriers *cs, struct gw_conn *c)
{
	const rwy_time now = gw_now();
	const char *why = control_write(cs, c, now);
	struct gw_rdma_batch b = {.n = 0};
	uint32_t n;

	while (!why && (n = room(c)) > 0 && gw_conn_fill(cs, c, n < GW_CONN_RUN ? n : GW_CONN_RUN)) {
		for (unsigned i = 0; i < c->out_n && !why; i++)
			why = datagram_add(&b, c, c->out[i], now);
		rte_pktmbuf_free_bulk(c->out, c->out_n);
		c->out_n = 0;
		if (!why)
			why = gw_rdma_batch_post(cs, c, &b);
	}
	return why;
}

static bool rdma_room(const struct gw_conn *c)
{
	return room(c) > 0;
}

/* --- receiving -------------------------------------------------------------------------------- */
static const char *impossible(struct gw_conn *c)
{
	if (c->t)
		c->t->c.refused_malformed++;
	return "credits that cannot be";
}

static const char *completion(
    struct gw_carriers *cs, struct gw_conn *c, const struct ibv_wc *wc, rwy_time now)
{
	struct gw_rdma_conn *r = c->rdma;

	if (wc->status != IBV_WC_SUCCESS) {
		snprintf(cs->why, sizeof(cs->why), "%s", ibv_wc_status_str(wc->status));
		return cs->why;
	}
	if (wc->opcode == IBV_WC_SEND) {
		gw_rdma_flow_done(&r->flow, now);
		return NULL;
	}
	if (!(wc->wc_flags & IBV_WC_WITH_IMM))
		return impossible(c);
	r->got[r->arrived++ & (r->slots - 1)] = (struct gw_rdma_got){wc->byte_len, ntohl(wc->imm_data)};
	return NULL;
}

/* Takes all completions. There are at most two for each buffer before receives are posted again. */
static const char *completions(struct gw_carriers *cs, struct gw_conn *c, rwy_time now)
{
	struct ibv_cq *cq;
	struct ibv_wc wc[POLL];
	const char *why = NULL;
	void *ctx;
	int n;

	while (ibv_get_cq_event(c->rdma->channel, &cq, &ctx) == 0)
		ibv_ack_cq_events(cq, 1);
	if (ibv_req_notify_cq(c->rdma->cq, 0) != 0)
		return "completion queue";
	while (!why && (n = ibv_poll_cq(c->rdma->cq, POLL, wc)) != 0) {
		if (n < 0)
			return "completion queue";
		for (int i = 0; i < n && !why; i++)
			why = completion(cs, c, &wc[i], now);
	}
	return why;
}

/* Opens messages in the order in which they came. What one says counts when it is known to be the
 * peer's. */
static const char *messages_open(struct gw_carriers *cs, struct gw_conn *c, rwy_time now)
{
	struct gw_rdma_conn *r = c->rdma;
	const char *why = NULL;

	while (!why && !r->ending && r->opened != r->arrived) {
		struct gw_rdma_got *g = &r->got[r->opened & (r->slots - 1)];

		if (c->tls)
			why = gw_rdma_tls_open(
			    cs, c, receive_slot(r, r->opened), g->len, g->immediate, &g->len, now);
		if (!why && gw_rdma_flow_recv(&r->flow, g->immediate) != 0)
			why = impossible(c);
		r->opened++;
	}
	return why;
}

const char *gw_rdma_conn_take(struct gw_carriers *cs, struct gw_conn *c, rwy_time now)
{
	const char *why, *said;

	if (!is_up(c->rdma))
		return NULL;
	why = completions(cs, c, now);
	said = messages_open(cs, c, now); /* what the peer said at last tells more */
	return said ? said : why;
}

/* Processes messages that were opened. *all: none has to wait. */
static const char *messages(struct gw_carriers *cs, struct gw_conn *c, bool *all, rwy_time now)
{
	const uint32_t use = c->use;
	const char *why = NULL;

	while (c->rdma->taken != c->rdma->opened) {
		struct gw_rdma_conn *r = c->rdma;
		struct gw_input in = {
		    .p = receive_slot(r, r->taken) + (c->tls ? GW_RDMA_HEAD : 0), .cap = GW_RDMA_SLOT};
		uint32_t len = r->got[r->taken & (r->slots - 1)].len;
		int e;

		in.n = len;
		if (len && !gw_conn_records(cs, c, &in, &why, now) && !why) {
			*all = false;
			return NULL;
		}
		if (c->use != use || c->state == GW_CONN_FREE)
			return NULL;
		if (!why && in.n) {
			why = "a message that is no record";
			if (c->t)
				c->t->c.refused_malformed++;
		}
		if (why)
			return why;
		if (c->t)
			c->t->c.rx_bytes += len;
		/* its buffer is that of the receive `slots` later */
		if ((e = receive_post(r, r->taken++ + r->slots)) != 0)
			return strerror(e);
		gw_rdma_flow_post(&r->flow);
	}
	return NULL;
}

/* Not while TLS goes on: the peer's handshake leaves enough receives. */
static const char *owed_write(struct gw_carriers *cs, struct gw_conn *c, rwy_time now)
{
	struct gw_rdma_batch b = {.n = 0};
	const char *why;

	if (!is_up(c->rdma) || (c->tls && !c->rdma->seal) || !gw_rdma_flow_owes(&c->rdma->flow))
		return NULL;
	why = gw_rdma_message_add(&b, c, &(struct aead_in){.head = ""}, now);
	if (c->t)
		c->t->c.tx_credits++;
	return why ? why : gw_rdma_batch_post(cs, c, &b);
}

static const char *rdma_read(struct gw_carriers *cs, struct gw_conn *c, rwy_time now)
{
	const uint32_t use = c->use;
	const char *why = gw_rdma_conn_take(cs, c, now);
	bool all = true;

	if (!why && c->rdma->ending) {
		snprintf(cs->why, sizeof(cs->why), "%s", c->rdma->why);
		return c->rdma->flow.sent == c->rdma->flow.done ? cs->why : NULL;
	}
	if (!why && is_up(c->rdma))
		why = messages(cs, c, &all, now);
	if (c->use != use || c->state == GW_CONN_FREE || why)
		return why;
	if (c->state == GW_CONN_OPEN)
		gw_conn_stall(cs, c, !all);
	return owed_write(cs, c, now);
}

/* --- the table -------------------------------------------------------------------------------- */
static void rdma_watch(struct gw_carriers *cs, struct gw_conn *c)
{
	struct gw_rdma_conn *r = c->rdma;
	struct epoll_event ev = {
	    .events = EPOLLIN, .data.u64 = (uint64_t)c->use << 32 | (uint32_t)(c - cs->conn)};

	/* While it waits for a worker the thread comes by itself, and takes completions. */
	if (c->stalled)
		ev.events = 0;
	(void)!epoll_ctl(cs->epoll_fd, EPOLL_CTL_MOD, r->channel->fd, &ev);
}

static const char *rdma_tick(const struct gw_conn *c, rwy_time now)
{
	const bool dead = is_up(c->rdma) && gw_rdma_flow_dead(&c->rdma->flow, now);

	return dead ? "no acknowledgement for 4 s" : NULL;
}

static const struct gw_conn_kind kind_rdma = {
    WAN_CARRIER_RDMA, rdma_read, rdma_write, rdma_room, rdma_watch, rdma_close, rdma_tick};

struct gw_conn *gw_rdma_conn_new(struct gw_carriers *cs, struct rdma_cm_id *id, bool accepted, uint32_t slots)
{
	struct gw_rdma_conn *r = calloc(1, sizeof(*r));
	struct gw_conn *c = r ? gw_conn_new(cs, &kind_rdma, -1, accepted) : NULL;

	if (!c) {
		free(r);
		return NULL;
	}
	r->id = id;
	r->slots = slots;
	r->state = accepted ? GW_RDMA_ACCEPTED : GW_RDMA_ADDRESS;
	id->context = c;
	c->rdma = r;
	return c;
}
