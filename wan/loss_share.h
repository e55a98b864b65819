/* SPDX-License-Identifier: Apache-2.0 */
/* The smoothed share of lost datagrams of a path, wan_path.loss_fp, in millionths of 2^-16. */
#ifndef WAN_LOSS_SHARE_H
#define WAN_LOSS_SHARE_H

#include "wan/tunnel.h"

#define WAN_LOSS_MEMORY 12 /* it covers 2^12 datagrams */
#define WAN_LOSS_ALL    ((uint64_t)1000000 << 16)

/* So many more were acknowledged, and lost. */
static inline void wan_loss_share_add(struct wan_path *p, uint32_t acked, uint32_t lost)
{
	uint64_t unit = WAN_LOSS_ALL >> WAN_LOSS_MEMORY;
	uint64_t n = acked + lost;

	if (n > 1u << WAN_LOSS_MEMORY)
		n = 1u << WAN_LOSS_MEMORY;
	p->loss_fp -= (p->loss_fp >> WAN_LOSS_MEMORY) * n;
	p->loss_fp += unit * lost;
	if (p->loss_fp > WAN_LOSS_ALL)
		p->loss_fp = WAN_LOSS_ALL;
}

/* One that counts as lost arrived. */
static inline void wan_loss_share_less(struct wan_path *p)
{
	uint64_t unit = WAN_LOSS_ALL >> WAN_LOSS_MEMORY;

	p->loss_fp = p->loss_fp > unit ? p->loss_fp - unit : 0;
}

#endif
