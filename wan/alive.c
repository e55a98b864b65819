/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a path answers: its states, and when it counts as silent. paths.c asks, loss.c hears the
 * answers. */
#include "wan/tunnel.h"

#define SILENCES   3u      /* intervals without an answer */
#define TRY_ENOUGH 64u     /* datagrams in flight that make a tried path as good as any, */
#define TRY_LONG   RWY_SEC /* or has been back for this long */

rwy_time wan_path_silent_at(const struct wan_path *p)
{
	rwy_time due;

	if (!wan_path_usable(p) || !wan_path_has_rtt(p) || p->asked == RWY_NEVER)
		return RWY_NEVER;
	due = rwy_time_max(p->asked + wan_pto_first(p), p->answered);
	return rwy_time_max(due + SILENCES * p->t->cfg.path_probe, p->silent_not_before);
}

bool wan_path_another(const struct wan_path *p, rwy_time now)
{
	for (unsigned i = 0; i < p->t->paths; i++) {
		const struct wan_path *q = &p->t->path[i];

		if (q != p && wan_path_usable(q) && !q->pto_count && now < wan_path_silent_at(q))
			return true;
	}
	return false;
}

void wan_path_on_answer(struct wan_path *p, rwy_time sent, uint32_t acked, uint32_t lost, rwy_time now)
{
	p->answered = now;
	p->silent_not_before = 0;
	if (p->asked != RWY_NEVER)
		p->asked = sent >= p->asked_last ? RWY_NEVER : rwy_time_max(p->asked, sent);
	switch (p->state) {
	case WAN_PATH_OFF:
		return;
	case WAN_PATH_UNPROVEN:
		if (sent < p->since)
			return; /* it led elsewhere then */
		wan_path_enter(p, WAN_PATH_USABLE, now);
		return;
	case WAN_PATH_SILENT:
		if (p->t->paths > 1)
			wan_path_try(p, now);
		else
			wan_path_enter(p, WAN_PATH_USABLE, now);
		return;
	case WAN_PATH_TRIED:
		/* without data an answer to a probe counts */
		p->trial = lost ? WAN_TRY_FIRST : p->trial + (acked ? acked : 1);
		wan_rate_app_limited(p); /* what it carries says little of what it can */
		if (p->trial >= TRY_ENOUGH || (!lost && now - p->state_at >= TRY_LONG))
			wan_path_enter(p, WAN_PATH_USABLE, now);
		return;
	case WAN_PATH_USABLE:
		return;
	}
	rwy_unreachable();
}
