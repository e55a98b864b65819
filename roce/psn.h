/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 24-bit packet sequence numbers (IBA 9.7.2) and message sequence numbers (IBA 9.7.7). They wrap;
 * compare them only with these helpers. A value less than 2^23 ahead counts as after, any other as
 * before (IBA C9-67: the valid duplicate region).
 */
#ifndef ROCE_PSN_H
#define ROCE_PSN_H

#include <stdbool.h>
#include <stdint.h>

typedef uint32_t roce_psn; /* 0 .. 0xffffff */
typedef uint32_t roce_msn; /* 0 .. 0xffffff */

#define ROCE_PSN_MASK        0xffffffu
#define ROCE_OUTSTANDING_MAX (1u << 16) /* bound above the PSNs that a host has outstanding */

/* a + n, wrapped; n may be a negative number as uint32_t. */
static inline roce_psn roce_psn_add(roce_psn a, uint32_t n)
{
	return (a + n) & ROCE_PSN_MASK;
}

/* Signed distance a - b, -2^23 .. 2^23 - 1. */
static inline int32_t roce_psn_diff(roce_psn a, roce_psn b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

/* a is before b: up to 2^23 behind it. */
static inline bool roce_psn_before(roce_psn a, roce_psn b)
{
	return roce_psn_diff(a, b) < 0;
}

/* a is after b: less than 2^23 ahead of it. Neither is true of equal ones. */
static inline bool roce_psn_after(roce_psn a, roce_psn b)
{
	return roce_psn_diff(a, b) > 0;
}

#endif
