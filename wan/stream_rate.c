/* SPDX-License-Identifier: Apache-2.0 */
/* The reliable carrier's room, its measured rate, the bytes it has taken, and whether it answers in
 * time. */
#include "wan/tunnel.h"

#define RATE_EVERY (100 * RWY_MS)
/* An answer may take so many native probe timeouts, for detours, and what threads and sockets
 * need. */
#define PATIENCE     4u
#define PATIENCE_MIN (20 * RWY_MS)

void wan_stream_room(struct wan_tunnel *t, uint32_t datagrams, uint64_t bytes)
{
	bool used = t->st.on || t->detour.after;

	/* Room matters to detours only when something waits for it: then the tunnel is awake. */
	if (t->st.on)
		wan_stir(t);
	t->st.room = used ? datagrams : 0;
	t->st.bytes = used ? bytes : 0;
}

bool wan_stream_on(const struct wan_tunnel *t)
{
	return t->st.on;
}

uint64_t wan_stream_inflight(const struct wan_tunnel *t)
{
	return wan_stream_path(t)->inflight;
}

uint64_t wan_stream_rate(const struct wan_tunnel *t)
{
	return t->st.rate_Bps;
}

void wan_stream_on_sent(struct wan_path *p, uint32_t bytes, bool eliciting, rwy_time now)
{
	struct wan_stream_tx *s = &p->t->st;

	p->t->c.stream_sent++;
	s->room -= s->room > 0;
	s->bytes -= bytes < s->bytes ? bytes : s->bytes;
	if (!eliciting || p->inflight_n)
		return;
	s->check_at = now + WAN_STREAM_CHECK;
	s->rate_from = now;
	s->acked = 0;
}

void wan_stream_on_acked(struct wan_tunnel *t, uint64_t bytes, rwy_time now)
{
	struct wan_stream_tx *s = &t->st;
	rwy_dur d = rwy_since(s->rate_from, now);

	s->acked += bytes;
	if (d < RATE_EVERY)
		return;
	s->rate_Bps = (s->rate_Bps + 3 * (s->acked * RWY_SEC / d)) / 4;
	s->acked = 0;
	s->rate_from = now;
}

rwy_dur wan_detour_patience(const struct wan_tunnel *t)
{
	return rwy_time_max(PATIENCE_MIN, PATIENCE * wan_pto_first(t->paths > 1 ? t->first : t->path));
}

void wan_detour_on_answer(struct wan_tunnel *t, rwy_time sent, rwy_time now)
{
	if (now - sent <= wan_detour_patience(t))
		t->detour.proven = true;
}
