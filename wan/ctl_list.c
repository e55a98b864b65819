/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of flows with something to report, emptied by ctl.c. A flow is on each list at most once.
 */
#include "wan/tunnel.h"

#define DELIVERED_DELAY_MAX (2 * RWY_MS)
#define RESETS_WAIT         (100 * RWY_MS) /* a round trip that is not known */
#define DELIVERED_BATCH     ((WAN_HDR_MAX - WAN_PKT_HDR - WAN_DELIVERED_HEAD) / WAN_DELIVERED_ENTRY)

static rwy_dur delivered_delay(const struct wan_tunnel *t)
{
	const struct wan_path *p = &t->path[0];

	return wan_path_has_rtt(p) ? rwy_time_min(p->srtt / 16, DELIVERED_DELAY_MAX) : DELIVERED_DELAY_MAX;
}

void wan_ctl_rx_dirty(struct wan_rxflow *f, rwy_time now)
{
	struct wan_tunnel *t = f->t;

	if (f->dirty)
		return;
	f->dirty = true;
	f->dirty_next = NULL;
	if (t->dirty_tail)
		t->dirty_tail->dirty_next = f;
	else
		t->dirty_head = f;
	t->dirty_tail = f;
	if (t->dirty_n++ == 0)
		t->dirty_at = RWY_NEVER;
	/* A sender that waits for room gets its report sooner: late reports make it send bursts. */
	t->dirty_at = rwy_time_min(t->dirty_at, now + delivered_delay(t) / (f->window ? 4 : 1));
	if (t->dirty_n >= DELIVERED_BATCH)
		t->dirty_at = now;
}

void wan_ctl_tx_dirty(struct wan_txflow *f)
{
	struct wan_tunnel *t = f->t;

	if (f->ctl_dirty || f->dead)
		return;
	f->ctl_dirty = true;
	f->ctl_next = NULL;
	if (t->ctl_tail)
		t->ctl_tail->ctl_next = f;
	else
		t->ctl_head = f;
	t->ctl_tail = f;
}

void wan_ctl_rate_dirty(struct wan_rxflow *f)
{
	if (f->rate_dirty || f->dead)
		return;
	f->rate_dirty = true;
	f->rate_next = f->t->rate_head;
	f->t->rate_head = f;
}

void wan_ctl_resets_begin(struct wan_tunnel *t)
{
	t->resets_from = 0;
	t->resets_left = true;
}

void wan_ctl_reset(struct wan_tunnel *t, uint32_t id)
{
	struct wan_rxslot *s = &t->rx[WAN_SLOT(id)];

	if (s->reset_due)
		return;
	if (t->resets_n == WAN_RESETS_MAX) {
		wan_ctl_resets_begin(t);
		return;
	}
	s->reset_due = true;
	t->resets[t->resets_n++] = id;
}

/* At most a part of the log for each round trip, or the log laps before their ACKs come. */
void wan_ctl_resets_find(struct wan_tunnel *t)
{
	const uint32_t most = (t->log_mask + 1) / 4;

	for (; t->resets_from < t->rx_cap && t->resets_n < WAN_RESETS_MAX && t->resets_round < most;
	     t->resets_from++) {
		struct wan_rxslot *s = &t->rx[t->resets_from];

		if (!s->refused || s->reset_told)
			continue;
		wan_ctl_reset(t, t->resets_from | (uint32_t)s->use << WAN_SLOT_BITS);
		t->resets_round++;
	}
	t->resets_left = t->resets_from < t->rx_cap;
	if (t->resets_round < most)
		return;
	t->resets_round = 0;
	t->resets_at = t->polled + (wan_path_has_rtt(t->first) ? t->first->srtt : RESETS_WAIT);
}
