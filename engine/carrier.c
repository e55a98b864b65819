/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of a reliable carrier, passed on to its tunnel; wan/stream.h has their meaning. */
#include "engine/standby.h"

static struct wan_tunnel *wan_of(struct eng *e, unsigned tunnel, rwy_time now)
{
	eng_sb_clock(e, now);
	e->now = now;
	return tunnel < ENG_TUNNELS_MAX ? e->tunnel[tunnel].wan : NULL;
}

void eng_stream_rx(struct eng *e, unsigned tunnel, struct rwy_buf *b, rwy_time now)
{
	struct wan_tunnel *t = wan_of(e, tunnel, now);

	if (t)
		wan_recv_stream(t, b, now);
	else
		rwy_buf_free(&e->bufs, b);
}

int eng_stream_use(struct eng *e, unsigned tunnel, bool on, rwy_time now)
{
	struct wan_tunnel *t = wan_of(e, tunnel, now);

	return t ? wan_stream_use(t, on, now) : RWY_ENOENT;
}

int eng_stream_detour(struct eng *e, unsigned tunnel, unsigned after, rwy_time now)
{
	struct wan_tunnel *t = wan_of(e, tunnel, now);

	return t ? wan_stream_detour(t, after, now) : RWY_ENOENT;
}

void eng_stream_room(struct eng *e, unsigned tunnel, uint32_t datagrams, uint64_t bytes)
{
	if (e->tunnel[tunnel].wan)
		wan_stream_room(e->tunnel[tunnel].wan, datagrams, bytes);
}

void eng_stream_lost(struct eng *e, unsigned tunnel, rwy_time now)
{
	struct wan_tunnel *t = wan_of(e, tunnel, now);

	if (t)
		wan_stream_lost(t, now);
}

uint64_t eng_stream_inflight(const struct eng *e, unsigned tunnel)
{
	return e->tunnel[tunnel].wan ? wan_stream_inflight(e->tunnel[tunnel].wan) : 0;
}

uint64_t eng_stream_rate(const struct eng *e, unsigned tunnel)
{
	return e->tunnel[tunnel].wan ? wan_stream_rate(e->tunnel[tunnel].wan) : 0;
}
