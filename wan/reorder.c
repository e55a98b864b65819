/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a datagram may be overtaken before it counts as lost (RFC 8985, RACK). On a path that
 * keeps the order, three later arrivals are enough. Once an overtaken datagram arrives, only time
 * counts: a round trip plus a window. The window begins at a quarter of the smallest round trip and
 * grows to the lateness of datagrams that were declared lost and still arrived. It shrinks while
 * there are none, and is dropped when the path has kept the order for some rounds.
 *
 * With jitter the newest datagram acknowledged is the fastest of many, so its round trip does not
 * represent the others'. On a path that reorders much, all datagrams count: round trips are means,
 * with their mean deviation.
 */
#include "wan/tunnel.h"

#define PKT_THRESHOLD 3u
#define CALM_ROUNDS   16u
#define FINE_ROUNDS   16u  /* rounds without a spurious loss before the window shrinks */
#define ROUND_LEAST   16u  /* fewest datagrams of a round: fewer are hardly ever out of order */
#define SPURIOUS_PART 256u /* a smaller part of spurious losses does not lengthen the window */
/* when more than this part of a round came late, the path reorders much */
#define MUCH_PART 8u
#define SAMPLE    16u /* datagrams of an RTT sample */
/* a sample lasts at least this part of a round trip, so that several ACKs contribute */
#define SAMPLE_PARTS 2

/* --- loss ------------------------------------------------------------------------------------- */
uint64_t wan_reorder_behind(const struct wan_path *p, bool repaired)
{
	if (wan_path_reorders(p))
		return UINT64_MAX;
	return repaired ? 0 : PKT_THRESHOLD;
}

/* The largest window. It is longer on a path that reorders much. */
static rwy_dur window_most(const struct wan_path *p)
{
	return wan_path_reorders_much(p) ? 2 * p->srtt : p->srtt;
}

static rwy_dur window(const struct wan_path *p)
{
	rwy_dur w = rwy_time_max(p->reorder.window, p->min_rtt / 4);

	return rwy_time_min(rwy_time_max(w, 4 * p->rttvar), window_most(p));
}

rwy_dur wan_reorder_limit(const struct wan_path *p)
{
	rwy_dur rtt = rwy_time_max(p->latest, p->srtt);

	rtt = rwy_time_max(rtt + rtt / 8, WAN_GRANULARITY);
	return wan_path_reorders(p) ? rwy_time_max(rtt, p->srtt + window(p)) : rtt;
}

/* --- observations ----------------------------------------------------------------------------- */
void wan_reorder_on_late(struct wan_path *p, rwy_dur took)
{
	if (!wan_path_reorders(p))
		p->reorder.order = WAN_ORDER_REORDERS;
	p->reorder.late++;
	p->reorder.late_sum += took;
}

void wan_reorder_on_spurious(struct wan_path *p, rwy_dur took)
{
	struct wan_reorder *r = &p->reorder;
	rwy_dur over = rwy_since(p->srtt, took);

	over = rwy_time_min(over + over / 8, window_most(p));
	if (!wan_path_reorders(p))
		r->order = WAN_ORDER_REORDERS;
	r->spurious++;
	if ((uint64_t)r->spurious * SPURIOUS_PART > (uint64_t)r->n + r->n_before) {
		r->window = rwy_time_max(r->window, over);
		r->fine = 0;
	}
}

/* Decides that the path reorders much: many come late, by enough that the newest one's round trip
 * is not typical. */
static void note_much(struct wan_path *p, rwy_time now)
{
	struct wan_reorder *r = &p->reorder;

	if (wan_path_reorders_much(p) || r->late <= r->n / MUCH_PART)
		return;
	if (r->late_sum / r->late <= p->srtt + p->srtt / 8 + 100 * RWY_US)
		return;
	r->order = WAN_ORDER_MUCH_ANEW;
	r->sum = r->dev = 0;
	r->samples = 0;
	/* The slow ones of the datagrams already sent arrive last: wait for them. */
	r->sampled_at = now + 2 * p->srtt;
}

void wan_reorder_on_ack(struct wan_path *p, uint32_t acked, rwy_time now)
{
	struct wan_reorder *r = &p->reorder;

	r->n += acked;
	if (p->largest_acked < r->round_end || r->n < ROUND_LEAST)
		return;
	note_much(p, now);
	r->calm = r->late || r->spurious ? 0 : r->calm + 1;
	if (r->calm >= CALM_ROUNDS) {
		r->order = WAN_ORDER_KEPT;
		r->window = 0;
		r->calm = 0;
	}
	if (++r->fine >= FINE_ROUNDS) {
		r->window -= r->window / 4;
		r->fine = 0;
	}
	r->round_end = p->next_pn;
	r->n_before = r->n;
	r->n = r->late = r->spurious = 0;
	r->late_sum = 0;
}

/* --- round trips ------------------------------------------------------------------------------ */
void wan_reorder_note(struct wan_path *p, rwy_dur took, rwy_time now)
{
	struct wan_reorder *r = &p->reorder;

	if (r->order == WAN_ORDER_MUCH_ANEW && now < r->sampled_at)
		return;
	r->sum += took;
	r->dev += took > p->srtt ? took - p->srtt : p->srtt - took;
	r->samples++;
}

rwy_dur wan_reorder_sample(struct wan_path *p, rwy_time now)
{
	struct wan_reorder *r = &p->reorder;

	if (!r->samples || rwy_since(r->sampled_at, now) < p->srtt / SAMPLE_PARTS ||
	    (r->samples < SAMPLE && rwy_since(r->sampled_at, now) < p->srtt))
		return 0;
	rwy_dur mean = r->sum / r->samples;
	bool anew = r->order == WAN_ORDER_MUCH_ANEW;

	wan_rtt_mean(p, mean, r->dev / r->samples, anew, now);
	/* Older measurements are of another kind: everything that compares with them restarts. */
	if (anew) {
		wan_congest_rebase(&p->congest, now);
		wan_path_cc_anew(p, now);
	}
	r->order = WAN_ORDER_MUCH;
	r->sampled_at = now;
	r->sum = r->dev = 0;
	r->samples = 0;
	return p->srtt; /* a single mean is as much chance as path */
}
