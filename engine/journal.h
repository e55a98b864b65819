/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a near gateway has promised: for each connection, up to which PSN its host was acknowledged. Memory
 * that outlives the process (the gateway maps a file in memory, the simulator keeps an array), so that after
 * a crash the next process can find out, with the far gateway, whether an acknowledged request went down with
 * custody. Without it nobody could tell two idle hosts that something is missing between them.
 *
 * One writer, the engine. An entry is written with plain stores in an order that is safe when the process
 * dies between any two of them; nothing protects against the machine losing power.
 */
#ifndef ENGINE_JOURNAL_H
#define ENGINE_JOURNAL_H

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

#include "rwy/ip.h"

struct eng_journal_entry {
	_Atomic uint32_t used;  /* 0: free. Written last when taken, first when given back */
	_Atomic uint32_t acked; /* everything before this PSN was acknowledged to the host */
	uint32_t qpn;           /* destination QPN of the host's requests */
	uint32_t lqpn;          /* the host's own QPN */
	uint16_t pmtu;          /* 0: not known */
	uint8_t rnr_retry, retry;
	uint32_t vni; /* of the tenant, 0: plain */
	uint32_t reserved[2];
	struct rwy_ip src, dst; /* of the host's requests */
};
static_assert(sizeof(struct eng_journal_entry) == 64, "one cache line");

#endif
