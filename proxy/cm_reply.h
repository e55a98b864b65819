/* SPDX-License-Identifier: Apache-2.0 */
/* CM messages that the relay makes: answers to the REQ that just came. Inside proxy/ only. */
#ifndef PROXY_CM_REPLY_H
#define PROXY_CM_REPLY_H

#include "proxy/edge.h"
#include "roce/cm.h"

/* REJ reasons (IBA 12.6.7.2) that the relay gives. */
enum proxy_rej {
	PROXY_REJ_NO_QP = 1,
	PROXY_REJ_NO_RESOURCES = 3,
	PROXY_REJ_SERVICE_ID = 8, /* as a host without listener says */
	PROXY_REJ_TRANSPORT = 9,
};

/* Writes a REJ of the REQ in pkt to the action, from its destination to its source. */
void proxy_reply_rej(struct proxy_act *act, const struct roce_pkt *pkt, enum proxy_rej why);
/*
 * The same for a SIDR_REP to a SIDR_REQ (IBA 12.11.2): its service is not supported, as a host
 * without a listener says.
 */
void proxy_reply_sidr(struct proxy_act *act, const struct roce_pkt *pkt);
/* The same for an MRA; service_timeout: 4.096 us * 2^n, 0..31. */
void proxy_reply_mra(struct proxy_act *act, const struct roce_pkt *pkt, uint8_t service_timeout);

#endif
