/* SPDX-License-Identifier: Apache-2.0 */
/* Messages on their way out: each is made in its buffer, sealed if the connection has keys. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "gateway/carrier/rdma.h"

static uint8_t *send_slot(const struct gw_rdma_conn *r, uint32_t n)
{
	return r->memory + (size_t)(r->slots + (n & (r->slots - 1))) * GW_RDMA_SLOT;
}

static const char *seal(
    struct gw_conn *c, uint8_t *to, const struct aead_in *in, uint32_t immediate, rwy_time now)
{
	struct gw_rdma_conn *r = c->rdma;

	if (gw_rdma_seal_put(r->seal, to, in, immediate, now) != 0)
		return "no memory for a key";
	if (c->t)
		c->t->c.key_updates += r->seal->updates_sent - r->updates;
	r->updates = r->seal->updates_sent;
	return NULL;
}

const char *gw_rdma_message_add(
    struct gw_rdma_batch *b, struct gw_conn *c, const struct aead_in *in, rwy_time now)
{
	struct gw_rdma_conn *r = c->rdma;
	const uint32_t n = r->flow.sent, immediate = gw_rdma_flow_send(&r->flow, now);
	uint32_t len = (uint32_t)(in->head_len + in->body_len);
	struct ibv_send_wr *wr = &b->wr[b->n];
	uint8_t *to = send_slot(r, n);
	const char *why;

	if (r->seal) {
		if ((why = seal(c, to, in, immediate, now)))
			return why;
		len += GW_RDMA_EXTRA;
	} else if (len) {
		memcpy(to, in->head, in->head_len);
		if (in->body_len)
			memcpy(to + in->head_len, in->body, in->body_len);
	}
	b->sge[b->n] = (struct ibv_sge){.addr = (uintptr_t)to, .length = len, .lkey = r->mr->lkey};
	*wr = (struct ibv_send_wr){.wr_id = n,
	    .sg_list = &b->sge[b->n],
	    .num_sge = len ? 1 : 0,
	    .opcode = IBV_WR_SEND_WITH_IMM,
	    .send_flags = len && len <= r->inline_max ? IBV_SEND_INLINE : 0,
	    .imm_data = htonl(immediate)};
	if (b->n)
		b->wr[b->n - 1].next = wr;
	b->n++;
	return NULL;
}

const char *gw_rdma_batch_post(struct gw_carriers *cs, struct gw_conn *c, struct gw_rdma_batch *b)
{
	struct ibv_send_wr *bad;
	int e = b->n ? ibv_post_send(c->rdma->id->qp, b->wr, &bad) : 0;

	b->n = 0;
	if (!e)
		return NULL;
	snprintf(cs->why, sizeof(cs->why), "cannot send: %s", strerror(e));
	return cs->why;
}
