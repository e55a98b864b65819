/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sending by a reliable carrier: switching on and off, and its break. Room and rate are in
 * stream_rate.c. Its effects are elsewhere: on loss detection in loss.c, on sending in send.c, on
 * acknowledging in ack.c.
 */
#include "wan/tunnel.h"

#define ANEW_AFTER (10 * RWY_SEC) /* congestion control that was unused for this long restarts */
#define OLD        (10 * RWY_SEC) /* retransmit what is unacknowledged for this long */

static void native_again(struct wan_path *p, bool anew, rwy_time now)
{
	p->pto_count = p->probes = 0;
	if (!wan_path_usable(p))
		p->ping = true; /* data waits until the path has answered */
	if (anew)
		wan_path_cc_anew(p, now);
}

int wan_stream_use(struct wan_tunnel *t, bool on, rwy_time now)
{
	struct wan_path *p = wan_stream_path(t);
	struct wan_stream_tx *s = &t->st;
	bool anew = rwy_since(s->since, now) > ANEW_AFTER;

	wan_stir(t);
	if (s->on == on)
		return 0;
	if (!p->sent && wan_path_map_new(p) < 0)
		return RWY_ENOMEM;
	s->on = on;
	s->room = 0;
	s->bytes = 0;
	s->since = now;
	p->last_rx = now;
	wan_detour_restart(t, now);
	t->fec.credit = 0;
	for (unsigned i = 0; i < t->paths; i++) {
		wan_fec_tx_reset(&t->path[i].fec, now);
		wan_rate_app_limited(&t->path[i]);
		if (!on)
			native_again(&t->path[i], anew, now);
	}
	return 0;
}

/* --- lost ------------------------------------------------------------------------------------- */
static void take_back(struct wan_tunnel *t, rwy_time sent_before, rwy_time now)
{
	struct wan_lost l = {0};
	bool all = wan_loss_take_back(wan_stream_path(t), sent_before, &l, now);

	t->c.stream_lost += l.n;
	t->c.lost -= l.n;
	t->st.again = !all;
	t->st.check_at = now + (all ? WAN_STREAM_CHECK : RWY_MS);
}

void wan_stream_lost(struct wan_tunnel *t, rwy_time now)
{
	wan_stir(t);
	t->c.stream_breaks += wan_stream_path(t)->inflight_n > 0;
	t->detour.after = 0;
	if (t->st.on && wan_stream_use(t, false, now) < 0)
		return; /* impossible: only switching it on needs memory */
	take_back(t, RWY_NEVER, now);
}

static rwy_time check_at(const struct wan_tunnel *t)
{
	return wan_stream_path(t)->inflight_n ? t->st.check_at : RWY_NEVER;
}

rwy_time wan_stream_next(const struct wan_tunnel *t)
{
	return rwy_time_min(check_at(t), t->detour.used ? wan_detour_next(t) : RWY_NEVER);
}

void wan_stream_tick(struct wan_tunnel *t, rwy_time now)
{
	rwy_dur old = rwy_time_max(OLD, 16 * wan_stream_path(t)->srtt);

	if (t->detour.used)
		wan_detour_tick(t, now);
	if (now < check_at(t))
		return;
	take_back(t, t->st.again ? RWY_NEVER : now > old ? now - old : 0, now);
}
