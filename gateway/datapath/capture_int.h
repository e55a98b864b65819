/* SPDX-License-Identifier: Apache-2.0 */
/* Inside a worker's side of a capture: capture.c, capture_watch.c. Worker's thread only. */
#ifndef GATEWAY_DATAPATH_CAPTURE_INT_H
#define GATEWAY_DATAPATH_CAPTURE_INT_H

#include "gateway/datapath/capture.h"

/* The capture's part of this worker, ready for use. */
struct gw_cap_worker *gw_cap_part(struct gw_worker *w);

/* Looks at all counters but tunnels', at the beginning of a burst. */
void gw_cap_watch_begin(struct gw_worker *w, struct gw_cap_worker *cw);
/* Looks at those of a tunnel, before each of its datagrams: they count other frames, too. -1:
 * none. */
void gw_cap_watch_tunnel(struct gw_worker *w, struct gw_cap_worker *cw, int tunnel);
/*
 * Looks which counters changed since the last look: the first drop, else the first of the others.
 * *reason: which one; 0 with GW_CAP_SAYS_NOTHING. tunnel: the datagram's; -1: it was no datagram.
 */
enum gw_cap_says gw_cap_watch_read(
    struct gw_worker *w, struct gw_cap_worker *cw, int tunnel, uint16_t *reason);

#endif
