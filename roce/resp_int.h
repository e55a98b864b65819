/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the files of the RC responder. */
#ifndef ROCE_RESP_INT_H
#define ROCE_RESP_INT_H

#include "roce/resp.h"

/*
 * Most PSNs from `start` to epsn: less than half the PSN space, as for a requester (IBA 9.7.2).
 */
#define ROCE_RESP_SPAN 0x7fffffu

/* Returns outstanding READ or ATOMIC i, 0 the oldest. rd_cap is a power of two. */
static inline struct roce_resp_rd *roce_resp_rd_at(const struct roce_resp *r, uint16_t i)
{
	return &r->rd[(r->rd_head + i) & (r->rd_cap - 1)];
}

/* Removes the oldest, which has all its responses. */
static inline void roce_resp_rd_pop(struct roce_resp *r)
{
	r->rd_head = (uint16_t)((r->rd_head + 1) & (r->rd_cap - 1));
	r->rd_n--;
}

/* The connection is over. An error of the host whose NAK still waits does not count. */
static inline bool roce_resp_over(const struct roce_resp *r)
{
	return r->error == ROCE_RESP_REFUSED || r->error == ROCE_RESP_GONE;
}

/* Whether pmtu is a path MTU of IBA: 256, 512, 1024, 2048 or 4096 bytes. */
static inline bool roce_resp_pmtu_ok(uint32_t pmtu)
{
	return pmtu >= 256 && pmtu <= 4096 && !(pmtu & (pmtu - 1));
}

/* A packet had a payload of `n` bytes: the path MTU is at least that. */
void roce_resp_pmtu_least(struct roce_resp *r, uint32_t n);

/* Returns the number of PSNs from the oldest unfinished one to epsn. */
static inline uint32_t roce_resp_outstanding(const struct roce_resp *r)
{
	roce_psn oldest = r->acked;

	if (r->rd_n && roce_psn_before(roce_resp_rd_at(r, 0)->psn, oldest))
		oldest = roce_resp_rd_at(r, 0)->psn;
	return (r->epsn - oldest) & ROCE_PSN_MASK;
}

/* Moves epsn on by `cnt` PSNs and keeps [start, epsn) within half the PSN space. */
static inline void roce_resp_advance(struct roce_resp *r, uint32_t cnt)
{
	uint32_t span = ((r->epsn - r->start) & ROCE_PSN_MASK) + cnt;

	r->epsn = roce_psn_add(r->epsn, cnt);
	r->passed += cnt;
	if (span > ROCE_RESP_SPAN)
		r->start = roce_psn_add(r->epsn, ROCE_PSN_MASK + 1 - ROCE_RESP_SPAN);
}

/* The READ d of pmtu_wait has its count: epsn moves, or the count is an error of the host. */
void roce_resp_read_counted(struct roce_resp *r, struct roce_resp_rd *d);

/* Notes an error of the host at `psn`: NAK invalid request (IBA 9.7.4.1.3, 9.7.4.1.6). */
void roce_resp_host_error(struct roce_resp *r, roce_psn psn);

/* Returns the PSN before which ACKs may cover everything, with *msn: the watermark, or the oldest
 * READ or ATOMIC. */
roce_psn roce_resp_point(const struct roce_resp *r, roce_msn *msn);

#endif
