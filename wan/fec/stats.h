/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of forward error correction. */
#ifndef WAN_FEC_STATS_H
#define WAN_FEC_STATS_H

#include <stdint.h>

/* Statistics of one path. Monotonic. */
struct wan_fec_stats {
	uint64_t sent, sent_bytes, received, unused, rebuilt;
	uint64_t reported; /* our datagrams that the peer rebuilt */
};

#endif
