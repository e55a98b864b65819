/* SPDX-License-Identifier: Apache-2.0 */
/* Private to cm.c, cm_req.c, cm_reply.c and onward.c. */
#ifndef PROXY_CM_INT_H
#define PROXY_CM_INT_H

#include "proxy/cm.h"
#include "roce/cm.h"

/* A message on its way through the splice. */
struct proxy_cm_msg {
	struct roce_pkt *pkt;
	uint8_t *body; /* behind the MAD header */
	struct roce_cm_msg m;
	struct proxy_act *act;
	bool in; /* from a local host */
};

/* Whether relays carry CM messages of this attribute. */
bool proxy_cm_is_carried(uint16_t attr);

/* A REQ: finds or makes its link, rewrites it or answers it with a REJ. */
void proxy_cm_req(struct proxy_edge *e, struct proxy_cm_msg *c, rwy_time now);

/* The outcomes of a message: drop and count it, or pass it on (cm_reply.c). */
void proxy_cm_drop(struct proxy_act *act, uint64_t *counter);
/* Rewrites the address of the other segment, last. */
void proxy_cm_pass(struct proxy_edge *e, struct proxy_cm_msg *c, const struct proxy_link *l);

#endif
