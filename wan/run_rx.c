/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A received run: its packets get buffers of their own, since each is delivered and freed on its
 * own. Nothing here knows in which datagram a packet came.
 */
#include <string.h>

#include "wan/tunnel.h"

/*
 * Room that is asked for each packet of a run. A packet in custody takes a buffer as large as one
 * that was received: the pool of small ones is for what gateways make themselves, and is charged to
 * nobody.
 */
#define PACKET_ROOM 512

enum wan_accept wan_run_rx(struct wan_tunnel *t, const struct wan_f_data *run, const uint8_t *p, rwy_time now)
{
	struct wan_f_data d = {.kind = run->kind, .pcp = run->pcp, .flow = run->flow, .seq = run->seq};
	uint32_t len = run->first;

	for (unsigned i = 0; i < run->run; i++, d.seq++) {
		struct rwy_buf *b;

		if (i)
			p = wan_f_run_next(p, &len);
		b = rwy_buf_alloc(&t->cfg.bufs, WAN_REASM_ROOM, len > PACKET_ROOM ? len : PACKET_ROOM);
		if (!b) {
			t->c.drop_no_buffer++;
			return WAN_ACCEPT_RETRY;
		}
		memcpy(b->data, p, len);
		b->len = len;
		if (wan_rx_data(t, &d, b, now) == WAN_ACCEPT_RETRY)
			return WAN_ACCEPT_RETRY;
	}
	return WAN_ACCEPT;
}
