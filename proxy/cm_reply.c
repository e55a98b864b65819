/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/cm_reply.h"

#include "proxy/cm_int.h"
#include "proxy/rewrite.h"
#include "roce/icrc.h"
#include "roce/wire.h"
#include "rwy/checksum.h"

#define HOP_LIMIT 64

/* Copies the REQ's packet with the addresses exchanged and an empty message. NULL: it has options
 * and does not fit. */
static uint8_t *reply_begin(
    struct proxy_act *act, const struct roce_pkt *req, uint16_t attr, struct roce_pkt *out)
{
	uint8_t *ip = act->reply, *body;
	struct roce_mad *mad;

	act->reply_len = 0;
	if (req->len > sizeof(act->reply))
		return NULL;
	memcpy(ip, req->ip, req->len);
	if (req->is6) {
		memcpy(ip + 8, req->ip + 24, 16);
		memcpy(ip + 24, req->ip + 8, 16);
		ip[7] = HOP_LIMIT;
	} else {
		memcpy(ip + 12, req->ip + 16, 4);
		memcpy(ip + 16, req->ip + 12, 4);
		ip[8] = HOP_LIMIT;
		rwy_put16(ip + RWY_IP4_CSUM, 0);
		rwy_put16(ip + RWY_IP4_CSUM, (uint16_t)~rwy_csum(ip, req->ip_hlen));
	}
	rwy_put16(ip + req->ip_hlen + 6, 0); /* no UDP checksum */
	if (roce_parse(ip, req->len, out) != ROCE_PARSE_OK)
		return NULL;
	mad = (struct roce_mad *)out->payload;
	body = out->payload + sizeof(*mad);
	rwy_put16(mad->attr_id, attr);
	memset(body, 0, ROCE_MAD_LEN - sizeof(*mad));
	/* Remote communication ID: the REQ's local one. Ours is 0: the relay has none. */
	memcpy(body + 4, req->payload + sizeof(*mad), 4);
	act->reply_len = req->len;
	return body;
}

void proxy_reply_rej(struct proxy_act *act, const struct roce_pkt *pkt, enum proxy_rej why)
{
	struct roce_pkt out;
	struct roce_cm_rej *rej = (struct roce_cm_rej *)reply_begin(act, pkt, ROCE_CM_REJ, &out);

	if (!rej)
		return;
	rwy_put16(rej->reason, (uint16_t)why); /* message rejected: 0, the REQ */
	roce_icrc_store(&out);
}

void proxy_reply_mra(struct proxy_act *act, const struct roce_pkt *pkt, uint8_t service_timeout)
{
	struct roce_pkt out;
	struct roce_cm_mra *mra = (struct roce_cm_mra *)reply_begin(act, pkt, ROCE_CM_MRA, &out);

	if (!mra)
		return;
	mra->b9 = (uint8_t)(service_timeout << 3); /* message received: 0, the REQ */
	roce_icrc_store(&out);
}

/* Request ID, then the status; the service ID of the request comes back. */
#define SIDR_STATUS      4
#define SIDR_UNSUPPORTED 1
#define SIDR_REP_SERVICE 12
#define SIDR_REQ_SERVICE 8

void proxy_reply_sidr(struct proxy_act *act, const struct roce_pkt *pkt)
{
	const uint8_t *req = pkt->payload + sizeof(struct roce_mad);
	struct roce_pkt out;
	uint8_t *body = reply_begin(act, pkt, ROCE_CM_SIDR_REP, &out);

	if (!body)
		return;
	memset(body, 0, 8);
	memcpy(body, req, 4);
	body[SIDR_STATUS] = SIDR_UNSUPPORTED;
	memcpy(body + SIDR_REP_SERVICE, req + SIDR_REQ_SERVICE, 8);
	roce_icrc_store(&out);
}

void proxy_cm_drop(struct proxy_act *act, uint64_t *counter)
{
	(*counter)++;
	act->verdict = PROXY_DROP;
}

void proxy_cm_pass(struct proxy_edge *e, struct proxy_cm_msg *c, const struct proxy_link *l)
{
	if (c->in)
		proxy_rewrite_dst(c->pkt, &l->remote);
	else
		proxy_rewrite_src(c->pkt, &l->relay);
	e->c.relay_cm_messages++;
	c->act->link = l;
	c->act->verdict = PROXY_PASS;
}
