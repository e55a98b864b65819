/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Near destination (docs/congestion-control.md): towards a host that receives we are DCQCN's reaction point,
 * one for all flows to that host: we see them all, so they share its rate by taking turns and need not find
 * their shares each by itself. CNPs never cross the WAN. A host that has not asked for less has no state
 * here.
 */
#include <stdlib.h>

#include "cc/dcqcn.h"
#include "cc/guard.h"
#include "engine/eng.h"

#define MIN_RATE 1250000 /* 10 Mbit/s */
#define QUIET                                                                                                \
	(200 * RWY_MS) /* without a CNP for so long, and back at its rate: over; until then alpha stays */
#define BASE_RTT   (20 * RWY_US)
#define MEASURE    (100 * RWY_US) /* what a host takes is the mean over so much at least */
#define TURN       4              /* packets of one flow in a row */
#define LATE       (50 * RWY_US)  /* a late turn makes up for so much, or for LATE_BYTES */
#define LATE_BYTES ((uint64_t)64 << 10)
#define PACE_BITS  26 /* fraction bits of ns a byte, as in wan/pace.c */

struct eng_rp {
	struct rwy_ip host;
	uint32_t tenant;
	struct eng_rp *chain, *next; /* of its bucket; of all */
	struct eng_far *head, *tail; /* flows that have something for it, in turn */
	struct cc_cfg cfg;
	const struct cc_ops *ops;
	rwy_time ticked, last_cnp;
	rwy_time at; /* when the next packet may go */
	uint32_t frac;
	uint64_t ns_fp;
	rwy_dur late;
	uint64_t rate_Bps;
	uint64_t taken; /* bytes the host acknowledged, of all flows, since: */
	rwy_time taken_at;
	_Alignas(64) uint8_t state[CC_STATE_SIZE];
};

static struct eng_rp **bucket(struct eng *e, const struct rwy_ip *host)
{
	return &e->rp[eng_host_hash(host)];
}

static struct eng_rp *find(struct eng *e, uint32_t tenant, const struct rwy_ip *host)
{
	struct eng_rp *p = e->rps ? *bucket(e, host) : NULL;

	while (p && !(p->tenant == tenant && rwy_ip_eq(&p->host, host)))
		p = p->chain;
	return p;
}

/* --- turns -------------------------------------------------------------------------------------- */
static void push(struct eng_rp *p, struct eng_far *f)
{
	f->rp = p;
	f->rp_next = NULL;
	if (p->tail)
		p->tail->rp_next = f;
	else
		p->head = f;
	p->tail = f;
}

static struct eng_far *pop(struct eng_rp *p)
{
	struct eng_far *f = p->head;

	p->head = f->rp_next;
	if (!p->head)
		p->tail = NULL;
	f->rp = NULL;
	return f;
}

void eng_rp_leave(struct eng_far *f)
{
	struct eng_far **at, *last = NULL;

	if (!f->rp)
		return;
	for (at = &f->rp->head; *at != f; at = &(*at)->rp_next)
		last = *at;
	*at = f->rp_next;
	if (f->rp->tail == f)
		f->rp->tail = last;
	f->rp = NULL;
}

/* --- rate --------------------------------------------------------------------------------------- */
static void apply(struct eng_rp *p)
{
	struct cc_answer a;

	cc_guard_ask(p->ops, p->state, &p->cfg, &a);
	if (a.rate_Bps == p->rate_Bps)
		return;
	p->rate_Bps = a.rate_Bps;
	p->ns_fp = (RWY_SEC << PACE_BITS) / a.rate_Bps;
	p->late = LATE_BYTES * p->ns_fp >> PACE_BITS;
	if (p->late < LATE)
		p->late = LATE;
}

static bool over(const struct eng_rp *p, rwy_time now)
{
	return p->rate_Bps >= p->cfg.rate_Bps - p->cfg.rate_Bps / 64 && now - p->last_cnp > QUIET;
}

static void end(struct eng *e, struct eng_rp **at)
{
	struct eng_rp *p = *at, **b = bucket(e, &p->host);

	*at = p->next;
	while (*b != p)
		b = &(*b)->chain;
	*b = p->chain;
	while (p->head)
		eng_dirty(&pop(p)->h); /* as fast as it can from now on */
	e->rps--;
	free(p);
}

/* The rate from which the host asks for less: its port's, if we know it; else some times what this flow can
 * have. */
static uint64_t line_rate(const struct eng_far *f)
{
	const struct roce_reqr *r = &f->reqr;
	rwy_dur rtt = r->srtt > BASE_RTT ? r->srtt : BASE_RTT;
	uint64_t rate = (uint64_t)(r->inflight + 1) * (r->pmtu ? r->pmtu : 1024) * RWY_SEC / rtt;

	/* A little above, so that a host which takes all of it is not at the end of this again and again. */
	if (f->h.e->cfg.lan_Bps)
		return f->h.e->cfg.lan_Bps + f->h.e->cfg.lan_Bps / 4;
	return rate > 2 * MIN_RATE ? rate : 2 * MIN_RATE;
}

static struct eng_rp *start(struct eng_far *f, rwy_time now)
{
	struct eng *e = f->h.e;
	struct eng_rp *p, **b = bucket(e, &f->h.key.dst);

	if (e->rps >= ENG_RPS_MAX || !(p = aligned_alloc(64, (sizeof(*p) + 63) & ~(size_t)63)))
		return NULL;
	memset(p, 0, sizeof(*p));
	p->host = f->h.key.dst;
	p->tenant = f->h.key.tenant;
	p->ops = &cc_dcqcn;
	p->cfg = (struct cc_cfg){.rate_Bps = line_rate(f),
	    .min_rate_Bps = MIN_RATE,
	    .mtu = f->reqr.pmtu ? f->reqr.pmtu : 1024,
	    .initial_rtt = f->reqr.srtt ? f->reqr.srtt : BASE_RTT};
	p->ops->init(p->state, &p->cfg, now);
	p->ticked = p->at = p->taken_at = now;
	p->chain = *b;
	*b = p;
	p->next = e->rp_list;
	e->rp_list = p;
	e->rps++;
	return p;
}

/* What it takes while it asks for less is what it can take: our share of its port. */
static void measure(struct eng_rp *p, rwy_time now)
{
	rwy_dur t = now - p->taken_at;

	if (t < MEASURE)
		return;
	cc_dcqcn_taken(p->state, (uint64_t)((unsigned __int128)p->taken * RWY_SEC / t));
	p->taken = 0;
	p->taken_at = now;
}

void eng_rp_taken(struct eng_far *f, uint64_t bytes)
{
	struct eng_rp *p = find(f->h.e, f->h.key.tenant, &f->h.key.dst);

	if (p)
		p->taken += bytes;
}

void eng_rp_cnp(struct eng_far *f, rwy_time now)
{
	struct eng *e = f->h.e;
	struct eng_rp *p = find(e, f->h.key.tenant, &f->h.key.dst);

	if (!f->active || !e->cfg.rp)
		return;
	/* Nobody knows yet what it takes: the first one only begins to look, more of them follow where it is
	 * meant. */
	if (!p) {
		p = start(f, now);
		if (p)
			p->last_cnp = now;
		return;
	}
	measure(p, now);
	p->last_cnp = now;
	p->ops->on_cnp(p->state, now);
	apply(p);
}

/* --- sending ------------------------------------------------------------------------------------ */
static void run(struct eng_rp *p, rwy_time now)
{
	struct eng_far *f;

	if (p->at + p->late < now)
		p->at = now - p->late;
	while (p->head && p->at <= now) {
		uint32_t bytes;
		uint64_t ns;

		f = pop(p);
		bytes = eng_far_send(f, TURN, now);
		if (!bytes)
			continue;
		push(p, f);
		ns = bytes * p->ns_fp + p->frac;
		p->at += ns >> PACE_BITS;
		p->frac = ns & (((uint32_t)1 << PACE_BITS) - 1);
		p->ops->on_sent(p->state, bytes, 0, now);
		apply(p);
	}
}

bool eng_rp_send(struct eng_far *f, rwy_time now)
{
	struct eng_rp *p = find(f->h.e, f->h.key.tenant, &f->h.key.dst);

	if (!p)
		return false;
	if (!f->rp)
		push(p, f);
	run(p, now);
	return true;
}

void eng_rp_poll(struct eng *e, rwy_time now)
{
	struct eng_rp **at = &e->rp_list, *p;

	while ((p = *at)) {
		if (cc_guard_next(p->ops, p->state, p->ticked) <= now) {
			p->ticked = now;
			p->ops->on_tick(p->state, now);
			apply(p);
		}
		if (over(p, now)) {
			end(e, at);
			continue;
		}
		if (p->head && p->at <= now)
			run(p, now);
		at = &p->next;
	}
}

rwy_time eng_rp_next(const struct eng *e)
{
	rwy_time at = RWY_NEVER;

	for (const struct eng_rp *p = e->rp_list; p; p = p->next) {
		at = rwy_time_min(at, cc_guard_next(p->ops, p->state, p->ticked));
		if (p->head)
			at = rwy_time_min(at, p->at);
	}
	return at;
}

uint64_t eng_rp_rate(const struct eng_far *f)
{
	const struct eng_rp *p = find(f->h.e, f->h.key.tenant, &f->h.key.dst);

	return p ? p->rate_Bps : 0;
}

void eng_rp_fini(struct eng *e)
{
	while (e->rp_list)
		end(e, &e->rp_list);
}
