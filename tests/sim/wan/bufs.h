/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packet memory of a run. A *thin* buffer has its full length but owns only its first bytes; those
 * after them belong to other buffers and may be read but not relied on. So a packet costs two or
 * four cache lines, not four kilobytes. Memory that wan/ allocates (reassembly, parity) is real.
 */
#ifndef SIM_WAN_BUFS_H
#define SIM_WAN_BUFS_H

#include <stdbool.h>

#include "rwy/buf.h"

#define BUF_BIG     (512 + 9216) /* bytes of a real buffer with headroom */
#define THIN_BYTES  64           /* payload bytes that a thin packet owns */
#define TX_SLOT     (sizeof(struct rwy_buf) + THIN_BYTES)
#define RX_SLOT     256
#define RX_THIN_MAX (RX_SLOT - sizeof(struct rwy_buf))

struct slab {
	uint8_t *base;
	size_t slot, used, cap;
	struct rwy_buf *free;
};

struct bufs {
	struct rwy_bufs ops; /* for wan_cfg */
	struct slab tx, rx;
	struct rwy_buf *big;
	void *chunks;
	bool full;
	int64_t live, peak;
};

bool bufs_init(struct bufs *p, uint64_t packets, bool full);
void bufs_fini(struct bufs *p);
/* A packet from a host; NULL: the limit was too small. */
struct rwy_buf *bufs_tx(struct bufs *p, uint32_t len);
/* A datagram from the wire; stored > RX_THIN_MAX: real memory. */
struct rwy_buf *bufs_rx(struct bufs *p, uint32_t len, uint32_t stored);
static inline bool bufs_is_tx(const struct bufs *p, const struct rwy_buf *b)
{
	return (const uint8_t *)b >= p->tx.base && (const uint8_t *)b < p->tx.base + p->tx.cap;
}

#endif
