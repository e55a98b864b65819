/* SPDX-License-Identifier: Apache-2.0 */
/* Reads one CM message (IBA 12.6). roce/cm_tab.c and roce/cm_conn.c evaluate sequences of them. */
#include "roce/cm.h"

#include "roce/wire.h"

#define MAD_BASE_VERSION 1
#define MAD_CLASS_CM     0x07
#define MAD_CM_VERSION   2
#define MAD_METHOD_SEND  0x03
#define GSI_QKEY         0x80010000u

/* IBA 12.7.28: 1 = 256 .. 5 = 4096 */
static uint16_t mtu_bytes(uint8_t code)
{
	return code >= 1 && code <= 5 ? (uint16_t)(128u << code) : 0;
}

/* IBA 12.7.23 and annex A14 (extended transport type) */
static uint8_t transport(const struct roce_cm_req *m)
{
	static const uint8_t t[3] = {ROCE_RC, ROCE_UC, ROCE_RD};
	uint8_t code = roce_cm_req_transport(m);

	return code < 3 ? t[code] : ROCE_XRC;
}

static void read_req(const struct roce_cm_req *m, struct roce_cm_msg *msg)
{
	msg->service_id = rwy_get64(m->service_id);
	msg->qpn = rwy_get24(m->qpn);
	msg->eecn = rwy_get24(m->eecn);
	msg->starting_psn = rwy_get24(m->psn);
	msg->pkey = rwy_get16(m->pkey);
	msg->path_mtu = mtu_bytes(roce_cm_req_path_mtu(m));
	msg->transport = transport(m);
	msg->retry_count = roce_cm_req_retry_count(m);
	msg->rnr_retry = roce_cm_req_rnr_retry(m);
	msg->responder_resources = m->resp_res;
	msg->initiator_depth = m->init_depth;
	msg->flow_control = roce_cm_req_flow_control(m);
	msg->srq = roce_cm_req_srq(m);
	msg->local_ack_timeout = roce_cm_path_ack_timeout(&m->primary);
	msg->flow_label = roce_cm_path_flow_label(&m->primary);
	memcpy(msg->local_gid.b, m->primary.local_gid, 16);
	memcpy(msg->remote_gid.b, m->primary.remote_gid, 16);
}

static void read_rep(const struct roce_cm_rep *m, struct roce_cm_msg *msg)
{
	msg->qpn = rwy_get24(m->qpn);
	msg->eecn = rwy_get24(m->eecn);
	msg->starting_psn = rwy_get24(m->psn);
	msg->rnr_retry = roce_cm_rep_rnr_retry(m);
	msg->responder_resources = m->resp_res;
	msg->initiator_depth = m->init_depth;
	msg->ack_delay = roce_cm_rep_ack_delay(m);
	msg->flow_control = roce_cm_rep_flow_control(m);
	msg->srq = roce_cm_rep_srq(m);
}

int roce_cm_parse(const struct roce_pkt *pkt, struct roce_cm_msg *msg)
{
	const struct roce_deth *deth = (const struct roce_deth *)pkt->ext;
	const struct roce_mad *mad = (const struct roce_mad *)pkt->payload;
	const uint8_t *body = pkt->payload + sizeof(*mad);

	if (!roce_is_gsi(pkt) || rwy_get32(deth->qkey) != GSI_QKEY || rwy_get24(deth->sqpn) != ROCE_GSI_QPN)
		return RWY_ENOENT;
	if (pkt->payload_len < sizeof(*mad))
		return RWY_EMALFORMED;
	if (mad->base_version != MAD_BASE_VERSION || mad->mgmt_class != MAD_CLASS_CM ||
	    mad->class_version != MAD_CM_VERSION || mad->method != MAD_METHOD_SEND)
		return RWY_ENOENT;
	if (pkt->payload_len != ROCE_MAD_LEN)
		return RWY_EMALFORMED;

	*msg = (struct roce_cm_msg){.attr = rwy_get16(mad->attr_id), .tid = rwy_get64(mad->tid)};
	/* Every message begins with the sender's ID; all except the REQ have the receiver's next to
	 * it. */
	msg->local_comm_id = rwy_get32(body);
	if (msg->attr != ROCE_CM_REQ)
		msg->remote_comm_id = rwy_get32(body + 4);

	if (msg->attr == ROCE_CM_REQ) {
		read_req((const struct roce_cm_req *)body, msg);
	} else if (msg->attr == ROCE_CM_REP) {
		read_rep((const struct roce_cm_rep *)body, msg);
	} else if (msg->attr == ROCE_CM_REJ) {
		msg->msg = roce_cm_rej_msg((const struct roce_cm_rej *)body);
		msg->rej_reason = rwy_get16(((const struct roce_cm_rej *)body)->reason);
	} else if (msg->attr == ROCE_CM_MRA) {
		msg->msg = roce_cm_mra_msg((const struct roce_cm_mra *)body);
		msg->service_timeout = roce_cm_mra_service_timeout((const struct roce_cm_mra *)body);
	} else if (msg->attr == ROCE_CM_DREQ) {
		msg->qpn = rwy_get24(((const struct roce_cm_dreq *)body)->remote_qpn);
	}
	return 0;
}
