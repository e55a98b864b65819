/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a path, and which paths rest because they share a bottleneck (couple.h), or because
 * they are spare. alive.c hears the answers. */
#include "wan/tunnel.h"

#define LOSS_MOST 50000u /* ppm: who loses more carries for nobody */

static void take_rests(struct wan_tunnel *t, rwy_time now)
{
	for (unsigned i = 0; i < t->paths; i++) {
		struct wan_path *p = &t->path[i];
		enum wan_couple_state is = t->couple.path[i].state;

		if (p->rests == WAN_COUPLE_RESTS && is == WAN_COUPLE_CARRIES && wan_path_usable(p))
			wan_path_try(p, now);
		if (is != WAN_COUPLE_CARRIES)
			wan_rate_app_limited(p);
		p->rests = (uint8_t)is;
	}
	wan_rest_spare(t, now);
}

/* A path carries that is always used, and is not only tried: until then a spare goes on. */
static bool carried(const struct wan_tunnel *t)
{
	bool any = false;

	for (unsigned i = 0; i < t->paths; i++)
		any |= wan_use_carries(t->path[i].use) && t->path[i].state == WAN_PATH_USABLE &&
		       !t->path[i].rests;
	return any;
}

/* Paths that are tried carry a little: where no other one carries, that would be all. */
static void trust_the_last(struct wan_tunnel *t, rwy_time now)
{
	for (unsigned i = 0; i < t->paths; i++)
		if (t->path[i].state == WAN_PATH_USABLE && !t->path[i].rests && !t->path[i].spared)
			return;
	for (unsigned i = 0; i < t->paths; i++)
		if (t->path[i].state == WAN_PATH_TRIED)
			wan_path_enter(&t->path[i], WAN_PATH_USABLE, now);
}

void wan_rest_spare(struct wan_tunnel *t, rwy_time now)
{
	const bool spared = carried(t);
	bool gone = false;

	for (unsigned i = 0; i < t->paths; i++) {
		struct wan_path *p = &t->path[i];
		const bool was = p->spared;

		p->spared = spared && p->use == WAN_USE_SPARE;
		if (was && !p->spared)
			wan_rate_app_limited(p); /* what it carried says little of what it can */
		if (was || !p->spared)
			continue;
		wan_couple_gone(&t->couple, i); /* wan_rest_on_ack tells nothing of it now */
		gone = true;
	}
	if (gone)
		take_rests(t, now);
	trust_the_last(t, now);
}

void wan_path_enter(struct wan_path *p, enum wan_path_state to, rwy_time now)
{
	if (p->state == to)
		return;
	p->state = to;
	p->state_at = now;
	if (to == WAN_PATH_SILENT || to == WAN_PATH_OFF)
		wan_rest_gone(p, now);
	if (!wan_path_is_stream(p))
		wan_rest_spare(p->t, now);
}

void wan_path_try(struct wan_path *p, rwy_time now)
{
	wan_rate_app_limited(p);
	p->trial = WAN_TRY_FIRST;
	wan_path_enter(p, WAN_PATH_TRIED, now);
}

/* A path rests for this one, which has become much worse: it loses, or is twice as long. Or it is a
 * spare, which carries only where no path does that is always used. */
static bool is_worse(const struct wan_path *p)
{
	for (unsigned i = 0; i < p->t->paths; i++) {
		const struct wan_path *q = &p->t->path[i];

		if (q->rests == WAN_COUPLE_RESTS && p->t->couple.path[i].carrier == p->id &&
		    (wan_loss_ppm(p) > LOSS_MOST || p->min_rtt > 2 * q->min_rtt ||
		        (p->use == WAN_USE_SPARE && wan_use_carries(q->use))))
			return true;
	}
	return false;
}

void wan_rest_on_ack(struct wan_path *p, const struct cc_ack *ack, rwy_time now)
{
	const struct wan_couple_sample s = {
	    .rtt = ack->rtt ? ack->rtt - ack->reverse : 0, .base = ack->min_rtt, .limited = ack->app_limited};

	if (is_worse(p))
		wan_rest_gone(p, now);
	/* A fixed rate is what the operator promised, a granted one what the network did; a spare
	 * path carries nothing. */
	if (p->t->cfg.cc != &cc_fixed && p->use != WAN_USE_GRANTED && !p->spared &&
	    wan_couple_note(&p->t->couple, p->id, &s, now))
		take_rests(p->t, now);
}

void wan_rest_gone(struct wan_path *p, rwy_time now)
{
	wan_couple_gone(&p->t->couple, p->id);
	take_rests(p->t, now);
}
