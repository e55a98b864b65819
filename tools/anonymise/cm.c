/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CM messages (IBA 12.6): a new message is made of the fields that describe a connection, so that
 * nothing gets through that this file does not name.
 */
#include "tools/anonymise/cm.h"

#include <string.h>

#include "roce/cm.h"
#include "roce/wire.h"
#include "rwy/endian.h"

#define CLASS_CM   0x07 /* IBA table 108 */
#define RDMA_IP_CM 0x01 /* IBA A11.2: the service ID's first 32 bits are this ... */
#define RATE_BITS  0x3f

static void qpn(const struct anon_key *key, uint8_t to[3], const uint8_t from[3])
{
	uint32_t v = anon_qpn(key, (uint32_t)from[0] << 16 | rwy_get16(from + 1));

	to[0] = (uint8_t)(v >> 16);
	rwy_put16(to + 1, (uint16_t)v);
}

static void comm_id(const struct anon_key *key, uint8_t to[4], const uint8_t from[4])
{
	uint32_t v = rwy_get32(from);

	rwy_put32(to, v ? anon_32(key, ANON_COMM_ID, v) : 0);
}

static void path(const struct anon_key *key, struct roce_cm_path *to, const struct roce_cm_path *from)
{
	memcpy(to->local_gid, from->local_gid, sizeof(to->local_gid));
	memcpy(to->remote_gid, from->remote_gid, sizeof(to->remote_gid));
	anon_gid(key, to->local_gid);
	anon_gid(key, to->remote_gid);
	to->flow_rate[3] = from->flow_rate[3] & RATE_BITS;
	to->tclass = from->tclass;
	to->hop_limit = from->hop_limit;
	to->sl = from->sl;
	to->ack_timeout = from->ack_timeout;
}

static void req(const struct anon_key *key, struct roce_cm_req *to, const struct roce_cm_req *from)
{
	comm_id(key, to->local_comm_id, from->local_comm_id);
	if (rwy_get32(from->service_id) == 0 && from->service_id[4] == RDMA_IP_CM)
		memcpy(to->service_id, from->service_id, sizeof(to->service_id));
	qpn(key, to->qpn, from->qpn);
	qpn(key, to->eecn, from->eecn);
	qpn(key, to->remote_eecn, from->remote_eecn);
	to->resp_res = from->resp_res;
	to->init_depth = from->init_depth;
	to->b43 = from->b43;
	memcpy(to->psn, from->psn, sizeof(to->psn));
	to->b47 = from->b47;
	memcpy(to->pkey, from->pkey, sizeof(to->pkey));
	to->b50 = from->b50;
	to->b51 = from->b51;
	path(key, &to->primary, &from->primary);
	path(key, &to->alternate, &from->alternate);
}

static void rep(const struct anon_key *key, struct roce_cm_rep *to, const struct roce_cm_rep *from)
{
	qpn(key, to->qpn, from->qpn);
	qpn(key, to->eecn, from->eecn);
	memcpy(to->psn, from->psn, sizeof(to->psn));
	to->resp_res = from->resp_res;
	to->init_depth = from->init_depth;
	to->b26 = from->b26;
	to->b27 = from->b27;
}

static void rej(struct roce_cm_rej *to, const struct roce_cm_rej *from)
{
	to->b8 = from->b8;
	memcpy(to->reason, from->reason, sizeof(to->reason));
}

static void mra(struct roce_cm_mra *to, const struct roce_cm_mra *from)
{
	to->b8 = from->b8;
	to->b9 = from->b9;
}

/* All but REQ begin with the identifiers of both sides. */
static void message(const struct anon_key *key, uint16_t attr, uint8_t *to, const uint8_t *from)
{
	if (attr == ROCE_CM_REQ) {
		req(key, (struct roce_cm_req *)to, (const struct roce_cm_req *)from);
		return;
	}
	comm_id(key, to, from);
	comm_id(key, to + 4, from + 4);
	if (attr == ROCE_CM_REP)
		rep(key, (struct roce_cm_rep *)to, (const struct roce_cm_rep *)from);
	else if (attr == ROCE_CM_REJ)
		rej((struct roce_cm_rej *)to, (const struct roce_cm_rej *)from);
	else if (attr == ROCE_CM_MRA)
		mra((struct roce_cm_mra *)to, (const struct roce_cm_mra *)from);
	else if (attr == ROCE_CM_DREQ)
		qpn(key, ((struct roce_cm_dreq *)to)->remote_qpn,
		    ((const struct roce_cm_dreq *)from)->remote_qpn);
}

void anon_mad(const struct anon_key *key, uint8_t *mad)
{
	uint8_t old[ROCE_MAD_LEN];
	const struct roce_mad *from = (const struct roce_mad *)old;
	struct roce_mad *to = (struct roce_mad *)mad;
	uint16_t attr;

	memcpy(old, mad, sizeof(old));
	memset(mad, 0, sizeof(old));
	to->base_version = from->base_version;
	to->mgmt_class = from->mgmt_class;
	to->class_version = from->class_version;
	to->method = from->method;
	memcpy(to->status, from->status, sizeof(to->status));
	memcpy(to->attr_id, from->attr_id, sizeof(to->attr_id));
	rwy_put64(to->tid, anon_64(key, ANON_TID, rwy_get64(from->tid)));
	attr = rwy_get16(from->attr_id);
	if (from->mgmt_class == CLASS_CM && attr >= ROCE_CM_REQ && attr <= ROCE_CM_DREP)
		message(key, attr, mad + sizeof(*to), old + sizeof(*from));
}
