/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths that share a bottleneck. Each path has its own congestion control, so several of them
 * behind one queue would take several shares of it. More than one of them brings nothing there. So
 * all but one rest, whatever the algorithm is: together they are then exactly one, and disjoint
 * paths keep the sum of theirs.
 *
 * 1. Suspicion costs nothing. Packets that wait in one queue wait equally long, so round trips of
 *    all its paths become longer and shorter at the same time, by the same amount (RFC 8382
 *    compares such signals, too). Time is cut into bins of two round trips. A change of a path's
 *    mean between two bins that is not small is a move; one that the other path makes as well
 *    counts for the pair, one that it does not make counts twice against it. Moves that fast are
 *    losses of a full queue, drains and probes; slow ones are not compared, as two queues may well
 *    grow alike.
 * 2. A test decides. Equal paths that are probed in step, or that hosts fill at the same time, look
 *    alike, too. So all that are suspected to share with the best path stop, carry and stop in
 *    turns of some round trips. If that one's round trip becomes shorter when they stop and longer
 *    when they carry, so many times more often than not that chance does not explain it, they rest.
 *    If it does not at the beginning, or too often, the test ends, and the next one waits longer.
 *    A queue that stands is needed for that: without one nobody is harmed.
 * 3. A path that has rested for some minutes is tried again, as routes change; each time that it
 *    shares again it rests longer. When the path that carries for it falls silent, it carries at
 *    once.
 *
 * A bottleneck that drops without delay (a policer) is not found. Nothing is compared while hosts
 * have less to send than the paths take.
 */
#include "wan/couple.h"

#include <string.h>

#define BIN_LEAST   (20 * RWY_MS)
#define BIN_RTTS    2
#define SAMPLES     4 /* fewest round trips of a mean */
#define MOVE_LEAST  (RWY_MS / 2)
#define MOVE_PART   32u /* of the round trip: smaller ones are no moves */
#define ENOUGH      6u  /* moves */
#define AGAINST     2u  /* what a move of one alone counts */
#define SURE        12  /* score that proves a shared queue: so many turns react, none does not */
#define DOUBT       2   /* a turn that does not react counts so much against it */
#define TURNS_MOST  32u
#define TURN_LEAST  (40 * RWY_MS)
#define TEST_AGAIN  (5 * RWY_SEC)
#define FAILED_MOST 7u
#define REST        (120 * RWY_SEC)
#define RESTED_MOST 4u

void wan_couple_init(struct wan_couple *c, unsigned paths)
{
	memset(c, 0, sizeof(*c));
	c->paths = paths;
}

static uint8_t *alike(struct wan_couple *c, unsigned a, unsigned b)
{
	return a < b ? &c->alike[a][b] : &c->alike[b][a];
}

static bool carries(const struct wan_couple *c, unsigned i)
{
	return c->path[i].state == WAN_COUPLE_CARRIES;
}

static rwy_dur apart(rwy_dur a, rwy_dur b)
{
	return a > b ? a - b : b - a;
}

/* --- suspicion -------------------------------------------------------------------------------- */
/* A path's means of the last two bins; 0: unknown. */
struct step {
	rwy_dur was, is;
};

static void compare(struct wan_couple *c, unsigned a, unsigned b, const struct step s[])
{
	rwy_dur base = rwy_time_max(c->path[a].base, c->path[b].base);
	rwy_dur least = rwy_time_max(MOVE_LEAST, base / MOVE_PART);
	rwy_dur da = apart(s[a].is, s[a].was), db = apart(s[b].is, s[b].was), most = rwy_time_max(da, db);
	bool same = (s[a].is > s[a].was) == (s[b].is > s[b].was) && apart(da, db) <= most / 2;
	uint8_t *n = alike(c, a, b);

	if (most < least)
		return;
	if (same)
		*n += *n < ENOUGH;
	else
		*n = *n > AGAINST ? *n - AGAINST : 0;
}

/* --- the test --------------------------------------------------------------------------------- */
static rwy_dur longest(const struct wan_couple *c)
{
	rwy_dur most = 0;

	for (unsigned i = 0; i < c->paths; i++)
		if (carries(c, i))
			most = rwy_time_max(most, rwy_time_max(c->path[i].mean, c->path[i].base));
	return most;
}

static rwy_dur bin_len(const struct wan_couple *c)
{
	return rwy_time_max(BIN_LEAST, BIN_RTTS * longest(c));
}

/* A path that is to stop while `best` is watched. */
static bool is_suspect(struct wan_couple *c, unsigned i, unsigned best)
{
	return i != best && carries(c, i) && *alike(c, i, best) >= ENOUGH / 2;
}

/* The shortest of those that another one surely seems to share with; c->paths: there is none. */
static unsigned suspect(struct wan_couple *c)
{
	unsigned best = c->paths;

	for (unsigned a = 0; a < c->paths; a++)
		for (unsigned b = 0; b < c->paths; b++)
			if (a != b && carries(c, a) && carries(c, b) && *alike(c, a, b) >= ENOUGH &&
			    (best == c->paths || c->path[a].base < c->path[best].base))
				best = a;
	for (unsigned i = 0; best < c->paths && i < c->paths; i++)
		if (is_suspect(c, i, best) && c->path[i].base < c->path[best].base)
			best = i;
	return best;
}

/* Round trips of a turn. Probes of an algorithm come in turns, too, of equal length. */
static rwy_dur turn_len(const struct wan_couple *c, unsigned turn)
{
	static const uint8_t rtts[] = {3, 5, 4};

	return rwy_time_max(TURN_LEAST, c->turn_rtt * rtts[(turn + c->tests) % sizeof(rtts)]);
}

static void turn_begin(struct wan_couple *c, unsigned turn, rwy_time now)
{
	c->turn = (uint8_t)turn;
	c->turn_end = now + turn_len(c, turn);
	/* by then what was under way has arrived, and the queue is another */
	c->turn_from = now + turn_len(c, turn) / 2;
	c->turn_sum = 0;
	c->turn_n = 0;
	for (unsigned i = 0; i < c->paths; i++)
		if (c->path[i].tested)
			c->path[i].state = turn % 2 ? WAN_COUPLE_CARRIES : WAN_COUPLE_HELD;
}

static void test_begin(struct wan_couple *c, unsigned best, rwy_time now)
{
	c->testing = true;
	c->tests++;
	c->score = 0;
	c->watched = (uint8_t)best;
	c->turn_rtt = longest(c);
	c->turn_before = c->path[best].mean;
	for (unsigned i = 0; i < c->paths; i++) {
		struct wan_couple_path *p = &c->path[i];

		p->tested = is_suspect(c, i, best);
		p->carrier = p->tested ? (uint8_t)best : p->carrier;
	}
	turn_begin(c, 0, now);
}

static void release(struct wan_couple *c, unsigned i)
{
	c->path[i].state = WAN_COUPLE_CARRIES;
	c->path[i].tested = false;
	c->path[i].mean = 0;
}

static void rest(struct wan_couple *c, unsigned i, rwy_time now)
{
	struct wan_couple_path *p = &c->path[i];

	p->state = WAN_COUPLE_RESTS;
	p->tested = false;
	p->until = now + (REST << p->rested);
	p->rested += p->rested < RESTED_MOST;
}

static void test_end(struct wan_couple *c, bool shared, rwy_time now)
{
	c->testing = false;
	c->found += shared;
	c->failed = shared ? 0 : (uint8_t)(c->failed + (c->failed < FAILED_MOST));
	c->test_not_before = shared ? now : now + (TEST_AGAIN << c->failed);
	for (unsigned i = 0; i < c->paths; i++) {
		if (!c->path[i].tested)
			continue;
		/* When it is tried again, half as many moves are enough. */
		*alike(c, i, c->watched) = shared ? ENOUGH / 2 : 0;
		if (shared)
			rest(c, i, now);
		else
			release(c, i);
	}
}

/* Judges a turn: while others are held the queue must be shorter than in the turn before, and
 * longer when they carry. */
static void turn_over(struct wan_couple *c, rwy_time now)
{
	rwy_dur is = c->turn_n >= SAMPLES ? c->turn_sum / c->turn_n : 0, was = c->turn_before;
	rwy_dur least = rwy_time_max(MOVE_LEAST, c->path[c->watched].base / MOVE_PART) / 2;
	bool reacts = c->turn % 2 ? is >= was + least : is && is + least <= was;

	c->score += reacts ? 1 : -DOUBT;
	if (c->score < 0 || c->score == SURE || c->turn + 1 == TURNS_MOST) {
		test_end(c, c->score == SURE, now);
		return;
	}
	c->turn_before = is;
	turn_begin(c, c->turn + 1u, now);
}

/* An acknowledgement of the watched path. True: something changed. */
static bool test_note(struct wan_couple *c, const struct wan_couple_sample *s, rwy_time now)
{
	if (s->limited) {
		test_end(c, false, now);
		return true;
	}
	if (s->rtt && now >= c->turn_from) {
		c->turn_sum += s->rtt;
		c->turn_n++;
	}
	if (now < c->turn_end)
		return false;
	turn_over(c, now);
	return true;
}

/* --- bins ------------------------------------------------------------------------------------- */
static struct step turn(struct wan_couple_path *p)
{
	bool good = p->n >= SAMPLES && !p->limited;
	struct step s = {.was = p->mean, .is = good ? p->sum / p->n : 0};

	p->mean = s.is;
	p->sum = 0;
	p->n = 0;
	p->limited = false;
	return s;
}

static void bin_over(struct wan_couple *c, rwy_time now)
{
	struct step s[WAN_PATHS_MAX];

	for (unsigned i = 0; i < c->paths; i++)
		s[i] = turn(&c->path[i]);
	if (c->testing)
		return;
	for (unsigned a = 0; a < c->paths; a++)
		for (unsigned b = a + 1; b < c->paths; b++)
			if (s[a].was && s[a].is && s[b].was && s[b].is && carries(c, a) && carries(c, b))
				compare(c, a, b, s);
	unsigned best = now < c->test_not_before ? c->paths : suspect(c);

	if (best < c->paths && c->path[best].mean)
		test_begin(c, best, now);
}

static bool tried_again(struct wan_couple *c, rwy_time now)
{
	bool any = false;

	for (unsigned i = 0; i < c->paths; i++)
		if (c->path[i].state == WAN_COUPLE_RESTS && now >= c->path[i].until) {
			release(c, i);
			any = true;
		}
	return any;
}

bool wan_couple_note(struct wan_couple *c, unsigned path, const struct wan_couple_sample *s, rwy_time now)
{
	struct wan_couple_path *p = &c->path[path];
	bool changed = false;

	if (s->rtt) {
		p->sum += s->rtt;
		p->n++;
		p->base = s->base;
	}
	p->limited |= s->limited;
	if (c->testing && path == c->watched)
		changed = test_note(c, s, now);
	if (now < c->bin_end)
		return changed;
	if (c->bin_end) {
		bool before = c->testing;

		bin_over(c, now);
		changed |= tried_again(c, now) || before != c->testing;
	}
	c->bin_end = now + bin_len(c);
	return changed;
}

void wan_couple_gone(struct wan_couple *c, unsigned path)
{
	if (c->testing && c->watched == path)
		c->testing = false;
	for (unsigned i = 0; i < c->paths; i++) {
		if (i != path)
			*alike(c, i, path) = 0;
		if ((c->path[i].tested || !carries(c, i)) && c->path[i].carrier == path)
			release(c, i);
	}
	release(c, path);
	c->path[path].n = 0;
	c->path[path].sum = 0;
}
