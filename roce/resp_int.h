/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the RC responder share and nobody else needs. */
#ifndef ROCE_RESP_INT_H
#define ROCE_RESP_INT_H

#include "roce/resp.h"

/* A requester may have at most half the PSN space outstanding (IBA 9.7.2): all spans stay under it. */
#define ROCE_RESP_SPAN 0x7fffffu

/* Outstanding READ/ATOMIC i, 0 the oldest. rd_cap is a power of two. */
static inline struct roce_resp_rd *roce_resp_rd_at(const struct roce_resp *r, uint16_t i)
{
	return &r->rd[(r->rd_head + i) & (r->rd_cap - 1)];
}

static inline void roce_resp_rd_pop(struct roce_resp *r)
{
	r->rd_head = (uint16_t)((r->rd_head + 1) & (r->rd_cap - 1));
	r->rd_n--;
}

/* The connection ended with an error that is not only the host's own, still to be told. */
static inline bool roce_resp_over(const struct roce_resp *r)
{
	return r->error == ROCE_RESP_REFUSED || r->error == ROCE_RESP_GONE;
}

/* The path MTUs there are (IBA PMTU): 256, 512, 1024, 2048, 4096. */
static inline bool roce_resp_pmtu_ok(uint32_t pmtu)
{
	return pmtu >= 256 && pmtu <= 4096 && !(pmtu & (pmtu - 1));
}

/* A payload of `n` bytes was seen in one packet: the path MTU is not smaller. */
void roce_resp_pmtu_least(struct roce_resp *r, uint32_t n);

/* Moves epsn over `cnt` PSNs and keeps [start, epsn) within half the PSN space. */
void roce_resp_advance(struct roce_resp *r, uint32_t cnt);

/* The count of the READ that pmtu_wait was for is in d->cnt: epsn, checked. */
void roce_resp_read_counted(struct roce_resp *r, struct roce_resp_rd *d);

/* The host made an error at PSN `psn` (IBA 9.7.4.1.3, 9.7.4.1.6: NAK invalid request). */
void roce_resp_host_error(struct roce_resp *r, roce_psn psn);

/* Everything before this may be acknowledged, with *msn: min(watermark, first unanswered READ or ATOMIC). */
roce_psn roce_resp_point(const struct roce_resp *r, roce_msn *msn);

#endif
