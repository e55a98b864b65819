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

struct rwy_buf *wan_run_packet(struct wan_tunnel *t, const uint8_t *p, uint32_t len)
{
	struct rwy_buf *b =
	    rwy_buf_alloc(&t->cfg.bufs, WAN_REASM_ROOM, len > PACKET_ROOM ? len : PACKET_ROOM);

	if (!b)
		return NULL;
	memcpy(b->data, p, len);
	b->len = len;
	return b;
}

/* Buffers are taken so many at a time: they are not in the cache, and are fetched side by side. */
#define AHEAD 16

/* The packets that are left of a run. */
struct rest {
	const uint8_t *p; /* the next packet, */
	uint32_t len;     /* and its length */
	unsigned n;
};

/* Gives up to AHEAD packets a buffer each. Returns how many got one. */
static unsigned split(struct wan_tunnel *t, struct rest *x, struct rwy_buf *out[AHEAD])
{
	unsigned n = 0;

	for (; n < AHEAD && x->n; n++) {
		struct rwy_buf *b = wan_run_packet(t, x->p, x->len);

		if (!b)
			return n;
		out[n] = b;
		if (--x->n)
			x->p = wan_f_run_next(x->p, &x->len);
	}
	return n;
}

enum wan_accept wan_run_rx(struct wan_tunnel *t, const struct wan_f_data *run, const uint8_t *p, rwy_time now)
{
	struct wan_f_data d = {.kind = run->kind, .pcp = run->pcp, .flow = run->flow, .seq = run->seq};
	struct rest x = {p, run->first, run->run};
	enum wan_accept r = WAN_ACCEPT;

	while (x.n && r == WAN_ACCEPT) {
		struct rwy_buf *b[AHEAD];
		unsigned n = split(t, &x, b);

		for (unsigned i = 0; i < n; i++, d.seq++) {
			if (r == WAN_ACCEPT)
				r = wan_rx_data(t, &d, b[i], now);
			else
				rwy_buf_free(&t->cfg.bufs, b[i]);
		}
		if (n < AHEAD && x.n) {
			t->c.drop_no_buffer++;
			return WAN_ACCEPT_RETRY;
		}
	}
	return r;
}
