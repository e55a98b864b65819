/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tunnel of several paths: where a datagram goes, and which paths answer.
 *
 * New data goes where it arrives first: half a round trip, what the pacing makes it wait, and what
 * losses cost on the average. While that path waits for its pacing, another one takes data that
 * would arrive later if it waited, too. So a little data takes the shortest path, and much fills
 * each path at its rate. A change of path has to win a little (STAY): a short message that is
 * spread over equal paths needs repairs on each of them, and gains nothing. Repeats, control
 * frames and best-effort packets take only the first.
 *
 * Granted paths divide data by the rates that the network promised, however little there is. Each
 * has a clock, which a datagram advances by its time at the promised rate; the path whose clock is
 * furthest behind is next.
 *
 * While data is under way, each path is asked every cfg.path_probe: by its datagrams, or by a PING
 * that is not repeated when it is lost. A path is silent when an answer is overdue by three such
 * intervals and nothing arrived in the last three: what it had goes elsewhere at once. A path that
 * answers again carries a few datagrams, and more with each that is acknowledged.
 */
#include "wan/paths.h"
#include "wan/tunnel.h"

#define LONG_SILENCE RWY_SEC /* a path that is silent for longer is asked less often */
#define LESS_OFTEN   16u     /* then each so many intervals */
#define STAY         7       /* a change of path wins a 2^7th of a round trip */
/* Granted paths: datagrams that one may be ahead of its part, as they stay together; what one did
 * not send for longer is not made up for. */
#define AHEAD       4u
#define BEHIND      (20 * RWY_MS)
#define SPARE_ASKED 4u /* a spare path is asked each so many intervals */

/* --- choice ----------------------------------------------------------------------------------- */
/* When a datagram that is given to the path at `now` arrives, on the average. A lost one is sent
 * again after about a round trip. */
static rwy_time arrives(const struct wan_path *p, rwy_time now)
{
	rwy_dur rtt = wan_rtt_base(p), again = (rtt + rtt / 2) * wan_loss_ppm(p) >> 20;

	return rwy_time_max(p->pace.clock.at, now) + rtt / 2 + again;
}

/* The same, and what a change of path costs. */
static rwy_time costs(const struct wan_tunnel *t, const struct wan_path *p, rwy_time now)
{
	return arrives(p, now) + (p == t->last ? 0 : wan_rtt_base(p) >> STAY);
}

/* The time that new data would keep the path busy. */
static rwy_dur backlog(const struct wan_tunnel *t, const struct wan_path *p)
{
	unsigned __int128 ns = (unsigned __int128)(t->tx_bytes - t->tx_sent) * p->pace.clock.ns_fp;

	return (rwy_dur)(ns >> RWY_PACE_BITS);
}

/* The time up to which a granted path has sent its part. */
static rwy_time part_of(const struct wan_path *p)
{
	return p->t->parts > p->part.at + BEHIND ? p->t->parts - BEHIND : p->part.at;
}

void wan_paths_part(struct wan_path *p, uint32_t bytes)
{
	p->part.at = part_of(p);
	rwy_pace_sent(&p->part, bytes);
	p->t->parts = rwy_time_max(p->t->parts, p->part.at);
}

/* All paths that are open are granted: the one that is furthest behind its part. */
static bool choose_granted(const struct wan_tunnel *t, struct wan_choice *c)
{
	for (unsigned i = 0; i < t->paths; i++) {
		struct wan_path *p = &t->path[i];

		if (!wan_path_open(p))
			continue;
		if (p->use != WAN_USE_GRANTED)
			return false;
		if (!c->best || part_of(p) < part_of(c->best))
			c->best = p;
	}
	c->granted = c->best;
	return c->granted;
}

struct wan_choice wan_paths_choose(const struct wan_tunnel *t, rwy_time now)
{
	struct wan_choice c = {.until = RWY_NEVER};

	if (choose_granted(t, &c))
		return c;
	c.best = NULL;

	for (unsigned i = 0; i < t->paths; i++) {
		struct wan_path *p = &t->path[i];

		if (!wan_path_open(p) || costs(t, p, now) >= c.until)
			continue;
		c.best = p;
		c.until = costs(t, p, now);
	}
	if (c.best)
		c.until += backlog(t, c.best);
	return c;
}

bool wan_paths_takes(const struct wan_choice *c, const struct wan_path *p, rwy_time now)
{
	if (c->granted)
		return part_of(p) <= part_of(c->best) + rwy_pace_time(&p->part, (uint64_t)AHEAD * p->mtu);
	return p == c->best || costs(p->t, p, now) < c->until;
}

struct wan_path *wan_paths_pick(const struct wan_tunnel *t, const struct wan_choice *c, rwy_time now)
{
	struct wan_path *best = NULL;

	for (unsigned i = 0; i < t->paths; i++) {
		struct wan_path *p = &t->path[i];

		if (!wan_path_open(p) || !wan_pace_ok(&p->pace, now))
			continue;
		if (wan_fec_pending(&p->fec))
			return p;
		if (wan_paths_takes(c, p, now) && (!best || costs(t, p, now) < costs(t, best, now)))
			best = p;
	}
	return best;
}

uint32_t wan_paths_share(
    const struct wan_tunnel *t, const struct wan_choice *c, const struct wan_path *p, rwy_time now)
{
	uint64_t all = 0;

	for (unsigned i = 0; i < t->paths; i++) {
		const struct wan_path *q = &t->path[i];

		if (q == p || (wan_path_open(q) && wan_paths_takes(c, q, now)))
			all += q->rate_Bps;
	}
	/* Rates are below 2^48 bytes a second. */
	return all ? (uint32_t)((p->rate_Bps << 16) / all) : WAN_FEC_ALL;
}

/* The usable path other than `but` where a datagram arrives first; NULL: none. A spare one is for
 * what has no other. */
static struct wan_path *soonest(const struct wan_tunnel *t, const struct wan_path *but, rwy_time now)
{
	struct wan_path *best = NULL;

	for (unsigned i = 0; i < t->paths; i++) {
		struct wan_path *p = &t->path[i];

		if (p != but && wan_path_usable(p) && (but || !p->spared) && wan_sent_room(p) &&
		    (!best || arrives(p, now) < arrives(best, now)))
			best = p;
	}
	return best;
}

void wan_paths_first(struct wan_tunnel *t, rwy_time now)
{
	struct wan_path *p = soonest(t, NULL, now);

	t->first = p ? p : t->path;
}

struct wan_path *wan_paths_beside(const struct wan_path *p, rwy_time now)
{
	return soonest(p->t, p, now);
}

/* --- questions -------------------------------------------------------------------------------- */
/* Something is under way, or waits. */
static bool busy(const struct wan_tunnel *t)
{
	bool any = t->tx_bytes || t->dgrams.n;

	for (unsigned i = 0; i < t->paths && !any; i++)
		any = t->path[i].inflight_n;
	return any;
}

/*
 * Without a round trip a dead path is missed only after the first probe timeout, and one that never
 * answered does not replace it. So all are asked before data comes, unless they do not answer soon.
 */
static bool learns(const struct wan_path *p)
{
	return !wan_path_has_rtt(p) && p->asked_last < rwy_time_max(p->t->since, p->since) + LONG_SILENCE;
}

static rwy_time ask_at(const struct wan_path *p, bool busy)
{
	rwy_dur each = p->t->cfg.path_probe;

	if (p->state == WAN_PATH_OFF || p->ping || !(busy || learns(p)))
		return RWY_NEVER;
	if (p->spared)
		each *= SPARE_ASKED;
	if (!wan_path_usable(p) && p->asked_last > p->state_at + LONG_SILENCE)
		each *= LESS_OFTEN;
	return p->asked_last + each;
}

static void look(struct wan_path *p, rwy_time now)
{
	rwy_time at = wan_path_silent_at(p);

	if (now < at)
		return;
	/* A process that is late may have unread answers. */
	if (!p->silent_not_before && now - at > WAN_GRANULARITY)
		p->silent_not_before = now + WAN_GRANULARITY;
	else if (wan_path_another(p, now))
		wan_loss_abandon(p, now);
	else
		p->silent_not_before = now + p->t->cfg.path_probe;
}

void wan_paths_tick(struct wan_tunnel *t, rwy_time now)
{
	bool ask;

	wan_use_tick(t, now);
	if (!wan_hs_session(t) || t->st.on)
		return;
	for (unsigned i = 0; i < t->paths; i++)
		look(&t->path[i], now);
	ask = busy(t);
	for (unsigned i = 0; i < t->paths; i++)
		if (now >= ask_at(&t->path[i], ask))
			t->path[i].ping = true;
}

rwy_time wan_paths_next(const struct wan_tunnel *t)
{
	rwy_time next = RWY_NEVER;
	bool ask;

	if (!wan_hs_session(t) || t->st.on)
		return RWY_NEVER;
	ask = busy(t);
	for (unsigned i = 0; i < t->paths; i++) {
		next = rwy_time_min(next, wan_path_silent_at(&t->path[i]));
		next = rwy_time_min(next, ask_at(&t->path[i], ask));
	}
	return next;
}
