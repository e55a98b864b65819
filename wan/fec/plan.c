/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When forward error correction is worth its bytes, and how much of it: statistics of losses,
 * repairs that a block needs, credit. Numbers only; fec.c does the work.
 */
#include "wan/fec/fec.h"

#define MEMORY      65536.0   /* datagrams after which the counts are halved */
#define MEMORY_RARE 8388608.0 /* the same bound when losses are rare */
#define RARE        128
/* The loss has changed: so many runs within so many datagrams, at so many times the rate. */
#define LATE         8192.0
#define LATE_RUNS    16
#define LATE_FACTOR  4
#define RUN_MAX      32     /* a longer run of losses is an outage and does not count */
#define LOSS_MIN     2e-7   /* below this loss nothing is protected */
#define PRIOR        3e-6   /* assumed loss while none was seen */
#define NEW_PATH     2000.0 /* datagrams: before, a path's own losses tell little */
#define FEW          32     /* fewer losses do not show whether they come in bursts */
#define CHEAP_LOSS   2e-4   /* up to this loss a block needs one or two repairs */
#define MESSAGE_FAIL 3e-4   /* accepted probability that a message waits for a round trip */
/* the same for messages longer than an eighth of a round trip: their repairs cost time, too */
#define LARGE_FAIL  6e-3
#define LARGE_PARTS 8
#define SMALL       ((uint64_t)1 << 20)
#define SMALL_SHARE 0.15
#define GROUP_MIN   16 /* fewest datagrams of a full group, however slow the path */
#define TIME_PARTS  4  /* part of a round trip that a group may last, repairs included */
/* without bursts deeper groups gain little, and their repairs leave the cache */
#define DEPTH_PLAIN 16
#define BURSTS      1.5  /* longer losses on average are bursts */
#define MARGIN      0.98 /* of a bound that must be safe whatever is rounded */
#define VAIN_PARTS  2    /* part of a round trip; a group is closed before */

/* --- loss statistics -------------------------------------------------------------------------- */
void wan_fec_forget(struct wan_fec_path *p)
{
	p->est = (struct wan_fec_est){0};
	p->most[0] = p->most[1] = 0;
}

void wan_fec_note_acked(struct wan_fec_path *p, uint32_t n)
{
	struct wan_fec_est *e = &p->est;

	e->n += n;
	e->late_n += n;
	if (e->late_n > LATE) {
		e->late_n /= 2;
		e->late_lost /= 2;
		e->late_runs /= 2;
	}
	if (e->n > MEMORY && (e->runs > RARE || e->n > MEMORY_RARE)) {
		e->n /= 2;
		e->lost /= 2;
		e->runs /= 2;
	}
}

/*
 * The counts remember hundreds of thousands of datagrams, for a loss of 1e-5 to be measured. A path
 * that loses much more all at once is another one, and what was before is forgotten.
 */
static void look_for_change(struct wan_fec_est *e)
{
	if (e->late_runs < LATE_RUNS || e->late_runs * e->n <= LATE_FACTOR * e->runs * e->late_n)
		return;
	e->n = e->late_n;
	e->lost = e->late_lost;
	e->runs = e->late_runs;
}

bool wan_fec_congested(const struct wan_fec_path *p, rwy_time now)
{
	return now < p->est.ce_until || *p->srtt > *p->min_rtt + *p->min_rtt / 4 + 2 * RWY_MS;
}

/* Losses of a full queue do not count: more bytes would cause more of them. */
void wan_fec_note_lost(struct wan_fec_path *p, uint64_t pn, unsigned beside, rwy_time now)
{
	struct wan_fec_est *e = &p->est;

	e->run = e->last_lost == pn ? e->run + 1 : 1; /* last_lost is the packet number + 1 */
	e->last_lost = pn + 1;
	if (e->run > RUN_MAX || wan_fec_congested(p, now))
		return;
	e->lost++;
	e->n++;
	/* Losses are reported out of order: this one may begin a run, extend one, or join two. */
	e->runs += 1.0 - beside;
	if (e->runs < 0)
		e->runs = 0;
	e->late_lost++;
	e->late_n++;
	e->late_runs += 1.0 - beside;
	if (e->late_runs < 0)
		e->late_runs = 0;
	look_for_change(e);
}

void wan_fec_note_spurious(struct wan_fec_path *p)
{
	struct wan_fec_est *e = &p->est;

	e->lost = e->lost > 1 ? e->lost - 1 : 0;
	if (e->runs > e->lost)
		e->runs = e->lost;
	e->late_lost = e->late_lost > 1 ? e->late_lost - 1 : 0;
	if (e->late_runs > e->late_lost)
		e->late_runs = e->late_lost;
}

/* Share of datagrams lost, 0 .. 1. */
static double loss_seen(const struct wan_fec_path *p)
{
	const struct wan_fec_est *e = &p->est;

	/* The first few datagrams prove nothing: one of ten is not a tenth. */
	return e->lost / (e->n > 1000 ? e->n : 1000);
}

double wan_fec_burst(const struct wan_fec_path *p)
{
	const struct wan_fec_est *e = &p->est;

	return e->runs > 0 && e->lost > e->runs ? e->lost / e->runs : 1;
}

/* A path that has hardly carried anything probably loses as much as the others. */
static double guess(const struct wan_fec_path *p)
{
	const struct wan_fec *x = p->fec;
	double n = 0, lost = 0;

	if (p->est.n >= NEW_PATH)
		return 0;
	for (unsigned i = 0; i < x->paths; i++) {
		n += x->path[i] == p ? 0 : x->path[i]->est.n;
		lost += x->path[i] == p ? 0 : x->path[i]->est.lost;
	}
	return lost / (n > NEW_PATH ? n : NEW_PATH) * (1 - p->est.n / NEW_PATH);
}

static double larger(double a, double b)
{
	return a > b ? a : b;
}

/* The loss to plan for: somewhat above the measured one, the more so the fewer losses there were.
 * Rare losses must be expected before the first one. */
double wan_fec_expect(const struct wan_fec_path *p)
{
	double loss = loss_seen(p) * (1 + 8 / (p->est.runs + 16)), rest = 0.5 / (p->est.n + 0.5 / PRIOR);

	return larger(larger(loss, rest), guess(p));
}

static double interpolate(double x, double x0, double y0, double x1, double y1)
{
	return y0 + (y1 - y0) * (x - x0) / (x1 - x0);
}

/* Share of extra bytes allowed at a loss; more for small messages. */
static double extra_share(const struct wan_fec *x, double loss, bool small)
{
	double max = x->extra_max, s;

	if (loss <= 3e-5)
		s = 0.005;
	else if (loss <= 1.5e-4)
		s = 0.0095;
	else if (loss <= 1e-3)
		s = interpolate(loss, 1.5e-4, 0.0095, 1e-3, 0.037);
	else if (loss <= 1e-2)
		s = interpolate(loss, 1e-3, 0.037, 1e-2, 0.077);
	else
		s = 0.077 + 2 * (loss - 1e-2);
	if (small && s < SMALL_SHARE)
		s = SMALL_SHARE;
	return s < max ? s : max;
}

static uint64_t bytes_in(const struct wan_fec_path *p, rwy_dur t)
{
	return (uint64_t)(((unsigned __int128)t << RWY_PACE_BITS) / (*p->ns_fp ? *p->ns_fp : 1));
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Computes the number of groups first, then makes them equal: a last group of few datagrams would
 * be poorly protected. */
static unsigned group_size(const struct wan_fec_path *p, uint64_t total, uint32_t bytes, unsigned depth)
{
	uint64_t most = bytes_in(p, *p->srtt / TIME_PARTS) / bytes;

	if (most < GROUP_MIN)
		most = GROUP_MIN;
	most = least(most, (WAN_FEC_WINDOW + bytes - 1) / bytes);
	most = least(most, (uint64_t)WAN_FEC_K_MAX * depth);
	uint64_t groups = most ? (total - 1) / most + 1 : 1;

	return (unsigned)((total + groups - 1) / groups);
}

/* Chooses the depth so that each block is as long as possible: long blocks average losses. With
 * bursts the group is deeper if that needs fewer repairs: a burst then hits each block less
 * often. */
static void shape(unsigned n, const struct wan_fec_law *law, unsigned most, struct wan_fec_plan *plan)
{
	unsigned depth = (n - 1) / WAN_FEC_K_MAX + 1;

	*plan = (struct wan_fec_plan){.depth = depth, .eps = plan->eps};
	wan_fec_choose((n + depth - 1) / depth, law, most, plan);
	for (depth *= 2; law->burst > 1 && depth <= WAN_FEC_DEPTH_MAX && depth <= n; depth *= 2) {
		struct wan_fec_plan p = {.depth = depth, .eps = plan->eps};

		wan_fec_choose((n + depth - 1) / depth, law, most, &p);
		if (p.m &&
		    (!plan->m || p.fail < plan->fail * 0.9 ||
		        (p.fail <= plan->eps && p.m * p.depth + p.g < plan->m * plan->depth + plan->g)))
			*plan = p;
	}
}

bool wan_fec_plan(const struct wan_fec_path *p, const struct wan_fec_message *y, struct wan_fec_plan *plan)
{
	struct wan_fec_law law = {.loss = wan_fec_expect(p), .burst = wan_fec_burst(p)};
	bool plain = law.burst < BURSTS && p->est.lost >= FEW;

	if (law.loss < LOSS_MIN || !y->left || !y->bytes)
		return false;
	if (law.burst < BURSTS)
		law.burst = 1;
	unsigned n = group_size(p, y->left, y->bytes, plain ? DEPTH_PLAIN : WAN_FEC_DEPTH_MAX);
	double fail = y->own * y->bytes > p->flight / LARGE_PARTS ? LARGE_FAIL : MESSAGE_FAIL;
	double may = extra_share(p->fec, loss_seen(p), y->small) * n + p->fec->credit / y->bytes;

	if (may < 1)
		return false;
	plan->eps = fail * n / (double)(y->total > n ? y->total : n);
	shape(n, &law, may < WAN_FEC_PARITY_MAX ? (unsigned)may : WAN_FEC_PARITY_MAX, plan);
	plan->n = (n + plan->depth - 1) / plan->depth * plan->depth;
	return plan->m;
}

/*
 * An upper bound of the datagrams lost for one that is sent, so that what is below needs no exact
 * plan: blocks may be filled unequally, more so when they are deep against bursts.
 */
static double lost_of_one(const struct wan_fec_path *p)
{
	return wan_fec_expect(p) * (wan_fec_burst(p) < BURSTS ? 1 + 1.0 / WAN_FEC_K_MAX : 2);
}

/* wan_fec_choose would find no repairs needed: as many losses as are accepted are expected. */
bool wan_fec_needless(const struct wan_fec_path *p, uint64_t total, uint32_t bytes)
{
	bool large = total > bytes && total - bytes > p->flight / LARGE_PARTS;

	return (double)(total + bytes) <= p->safe[large] * bytes;
}

/* Counts on twice as many datagrams as the group before had, or as a part of a round trip has. */
bool wan_fec_in_vain(
    const struct wan_fec_path *p, uint64_t waiting, uint32_t bytes, const struct wan_fec_plan *plan)
{
	uint64_t n = *p->inflight / bytes / VAIN_PARTS;

	if (!p->tx || !p->tx->group)
		return false;
	if (n < 2 * (uint64_t)p->tx->n_before)
		n = 2 * (uint64_t)p->tx->n_before;
	n = least(n < waiting ? waiting : n, plan->n);
	return (double)n * lost_of_one(p) <= MARGIN * plan->eps;
}

/* --- when to protect -------------------------------------------------------------------------- */
/* Whether the rest of the flow is sent within a round trip, so that a retransmission would come
 * after it. A host that streams always has only a little waiting, and its end is unknown. For such
 * a flow the draining of the queue counts; or everything is protected, if that costs next to
 * nothing. */
bool wan_fec_near_end(const struct wan_fec_path *p, const struct wan_fec_flow *f)
{
	uint64_t left = f->waiting * f->size;
	uint64_t flight = p->flight;

	if (left > flight)
		return false;
	if (f->sent + left <= flight)
		return true;
	if (left <= flight / 16 && p->cheap)
		return true;
	if (!f->ends)
		return false; /* more of this message follows */
	return f->waiting <= f->peak - f->peak / 4;
}

static void refresh_one(struct wan_fec_path *p)
{
	double loss = loss_seen(p), round = (double)bytes_in(p, *p->srtt + *p->srtt / 4);

	p->est.off = wan_fec_expect(p) < LOSS_MIN;
	p->cheap = loss <= CHEAP_LOSS;
	p->safe[0] = MARGIN * MESSAGE_FAIL / lost_of_one(p);
	p->safe[1] = MARGIN * LARGE_FAIL / lost_of_one(p);
	p->vain.total = 0;
	p->flight = bytes_in(p, *p->srtt + *p->srtt / 8);
	for (unsigned small = 0; small < 2; small++) {
		p->share[small] = extra_share(p->fec, loss, small);
		p->most[small] = p->share[small] * round + 16.0 * p->mtu;
	}
}

/* The most that the paths may save: a round trip's worth of the one that earns most. */
static double most_saved(const struct wan_fec *x, unsigned small, const struct wan_fec_path *without)
{
	double most = 0;

	for (unsigned i = 0; i < x->paths; i++)
		if (x->path[i] != without && x->path[i]->most[small] > most)
			most = x->path[i]->most[small];
	return most;
}

/* New paths are only asked whether they answer: what they expect follows from the others. */
void wan_fec_refresh(struct wan_fec_path *p)
{
	struct wan_fec *x = p->fec;

	refresh_one(p);
	for (unsigned i = 0; i < x->paths; i++)
		if (x->path[i] != p && x->path[i]->est.n < NEW_PATH)
			refresh_one(x->path[i]);
	for (unsigned small = 0; small < 2; small++)
		x->most[small] = most_saved(x, small, NULL);
}

/* --- credit ----------------------------------------------------------------------------------- */
static void bound(struct wan_fec *x, double most)
{
	if (x->credit > most)
		x->credit = most;
}

/*
 * Paths have one credit. With one for each, a path that seldom carries could not protect a message
 * that happens to go by it.
 */
void wan_fec_earn(struct wan_fec_path *p, uint64_t total, uint32_t len)
{
	bool small = total <= SMALL;
	struct wan_fec *x = p->fec;

	if (!x->peer)
		return;
	x->credit += p->share[small] * len;
	bound(x, x->most[small]);
	if (x->credit < -64.0 * p->mtu)
		x->credit = -64.0 * p->mtu;
}

void wan_fec_spend(struct wan_fec_path *p, uint32_t len)
{
	p->fec->credit -= len;
}

void wan_fec_lose_credit(struct wan_fec_path *p)
{
	bound(p->fec, most_saved(p->fec, 1, p));
}
