/* SPDX-License-Identifier: Apache-2.0 */
/* What forward error correction counts. */
#ifndef WAN_FEC_STATS_H
#define WAN_FEC_STATS_H

#include <stdint.h>

/* Of one path. Monotonic. */
struct wan_fec_stats {
	uint64_t sent, sent_bytes, received, unused, rebuilt;
	uint64_t reported; /* datagrams of ours that the peer rebuilt */
};

#endif
