/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sending by a reliable carrier: on and off, its room, its break, what is measured of it. Not here: what it
 * means for loss detection (loss.c), for what goes next (send.c), for acknowledging (ack.c).
 */
#include <stdlib.h>

#include "wan/internal.h"

#define ANEW_AFTER  (10 * RWY_SEC) /* so long away, and what congestion control knew is worth nothing */
#define OLD         (10 * RWY_SEC) /* not acknowledged for so long: sent again */
#define CHECK_EVERY RWY_SEC
#define RATE_EVERY  (100 * RWY_MS)

static void native_again(struct wan_path *p, bool anew, rwy_time now)
{
	p->pto_count = p->probes = 0;
	if (!p->usable)
		p->ping = true; /* data waits until it has shown that it works */
	if (anew)
		wan_path_cc_anew(p, now);
}

int wan_stream_use(struct wan_tunnel *t, bool on, rwy_time now)
{
	struct wan_path *p = wan_stream_path(t);
	struct wan_stream_tx *s = &t->st;
	bool anew = rwy_since(s->since, now) > ANEW_AFTER;

	if (s->on == on)
		return 0;
	if (!p->sent)
		p->sent = calloc(t->cfg.tx_pkts_max, sizeof(*p->sent));
	if (!p->sent)
		return RWY_ENOMEM;
	s->on = on;
	s->room = 0;
	s->bytes = 0;
	s->since = now;
	p->last_rx = now;
	for (unsigned i = 0; i < t->paths; i++) {
		wan_fec_tx_reset(&t->path[i], now);
		wan_rate_app_limited(&t->path[i]);
		if (!on)
			native_again(&t->path[i], anew, now);
	}
	return 0;
}

void wan_stream_room(struct wan_tunnel *t, uint32_t datagrams, uint64_t bytes)
{
	t->st.room = t->st.on ? datagrams : 0;
	t->st.bytes = t->st.on ? bytes : 0;
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

/* --- lost --------------------------------------------------------------------------------------- */
static void take_back(struct wan_tunnel *t, rwy_time sent_before, rwy_time now)
{
	bool all = wan_loss_take_back(wan_stream_path(t), sent_before, now);

	t->st.again = !all;
	t->st.check_at = now + (all ? CHECK_EVERY : RWY_MS);
}

void wan_stream_lost(struct wan_tunnel *t, rwy_time now)
{
	t->c.stream_breaks += wan_stream_path(t)->inflight_n > 0;
	if (t->st.on && wan_stream_use(t, false, now) < 0)
		return; /* cannot be: only turning it on needs memory */
	take_back(t, RWY_NEVER, now);
}

rwy_time wan_stream_next(const struct wan_tunnel *t)
{
	return wan_stream_path(t)->inflight_n ? t->st.check_at : RWY_NEVER;
}

void wan_stream_tick(struct wan_tunnel *t, rwy_time now)
{
	rwy_dur old = rwy_time_max(OLD, 16 * wan_stream_path(t)->srtt);

	if (now < wan_stream_next(t))
		return;
	take_back(t, t->st.again ? RWY_NEVER : now > old ? now - old : 0, now);
}

/* --- sent and acknowledged ---------------------------------------------------------------------- */
void wan_stream_on_sent(struct wan_path *p, uint32_t bytes, bool eliciting, rwy_time now)
{
	struct wan_stream_tx *s = &p->t->st;

	p->t->c.stream_sent++;
	s->room -= s->room > 0;
	s->bytes -= bytes < s->bytes ? bytes : s->bytes;
	if (!eliciting || p->inflight_n)
		return;
	s->check_at = now + CHECK_EVERY;
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
