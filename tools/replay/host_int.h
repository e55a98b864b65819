/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the host: host.c, host_post.c, host_recv.c, host_answer.c. */
#ifndef TOOLS_REPLAY_HOST_INT_H
#define TOOLS_REPLAY_HOST_INT_H

#include "tools/replay/host.h"

/* Room for any packet: 4096 bytes of payload, and the longest captured IP header. */
#define RP_PACKET_MAX (65535u + 64u)

static inline bool rp_op_is_rd(uint8_t op)
{
	return op == ROCE_OP_READ_REQ || op == ROCE_OP_CMP_SWAP || op == ROCE_OP_FETCH_ADD;
}

/* host_post.c: gives the requester what is due, and sends up to `burst` packets of it. */
unsigned rp_host_post(struct rp_host *h, unsigned burst, rwy_time now);
/* When the next message is due; RWY_NEVER: after something else. */
rwy_time rp_host_due(const struct rp_host *h);

/* host_recv.c */
void rp_host_request(struct rp_host *h, const struct roce_pkt *pkt, rwy_time now);
void rp_host_response(struct rp_host *h, const struct roce_pkt *pkt, rwy_time now);
void rp_host_acted(struct rp_host *h, struct roce_reqr_act *act, rwy_time now);

/* host_answer.c: READs and ATOMICs of the peer. msn: after the request. */
void rp_host_asked(struct rp_host *h, const struct roce_pkt *pkt, uint32_t msg, roce_msn msn);
void rp_host_asked_again(struct rp_host *h, const struct roce_pkt *pkt);
/* Sends up to `burst` answers, and the ACKs that may go. Returns how many packets. */
unsigned rp_host_answer(struct rp_host *h, unsigned burst, rwy_time now);

/* host_compare.c: counts and describes what differs. */
void rp_compare_request(struct rp_host *h, const struct rp_pkt *want, const struct roce_pkt *got);
void rp_compare_answer(struct rp_host *h, const struct rp_pkt *want, const struct roce_pkt *got);
void rp_differs(struct rp_host *h, uint64_t *count, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
