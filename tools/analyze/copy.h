/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets that the capture has twice, as one of all interfaces with a bridge, a bond or VLANs, or
 * of both directions of a switch's port. Private to tools/analyze.
 */
#ifndef TOOLS_ANALYZE_COPY_H
#define TOOLS_ANALYZE_COPY_H

#include "tools/analyze/analyze.h"

struct an_copies {
	uint64_t packets;              /* looked at */
	uint64_t requests, of_request; /* looked at; copies of them */
};

/*
 * Whether the packet is a copy of the one before it in flow f: equal from the BTH on, within 100 us
 * and with no answer between them. `captured` bytes of it are known.
 */
bool an_is_copy(
    struct an_copies *c, struct an_flow *f, const struct roce_pkt *pkt, uint32_t captured, rwy_time now);

#endif
