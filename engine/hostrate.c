/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Near destination (docs/congestion-control.md): DCQCN's reaction point towards a host that
 * receives, one for all flows to it. This gateway sees all of them, so they take turns at the
 * host's rate and need no rate each. CNPs never cross the WAN. A host that sent no CNP has no state
 * here.
 */
#include <stdlib.h>

#include "cc/dcqcn.h"
#include "cc/guard.h"
#include "engine/hostrate.h"
#include "engine/emit.h"

#define MIN_RATE   1250000        /* 10 Mbit/s */
#define QUIET      (200 * RWY_MS) /* time at full rate without a CNP after which it ends */
#define BASE_RTT   (20 * RWY_US)
#define MEASURE    (100 * RWY_US) /* shortest time over which the host's rate is averaged */
#define LATE       (50 * RWY_US)  /* a late turn makes up for this time, or for LATE_BYTES */
#define LATE_BYTES ((uint64_t)64 << 10)

static struct eng_rp **rp_bucket(struct eng *e, const struct rwy_ip *host)
{
	return &e->rp[eng_host_hash(host)];
}

struct eng_rp *eng_rp_find(struct eng *e, uint32_t tenant, const struct rwy_ip *host)
{
	struct eng_rp *p = e->rps ? *rp_bucket(e, host) : NULL;

	while (p && !(p->tenant == tenant && rwy_ip_eq(&p->host, host)))
		p = p->chain;
	return p;
}

/* --- turns --- */
void eng_rp_push(struct eng_rp *p, struct eng_requester *rq)
{
	rq->rp = p;
	rq->rp_next = NULL;
	if (p->tail)
		p->tail->rp_next = rq;
	else
		p->head = rq;
	p->tail = rq;
}

struct eng_requester *eng_rp_pop(struct eng_rp *p)
{
	struct eng_requester *rq = p->head;

	p->head = rq->rp_next;
	if (!p->head)
		p->tail = NULL;
	rq->rp = NULL;
	return rq;
}

void eng_rp_leave(struct eng_requester *rq)
{
	struct eng_requester **at, *last = NULL;

	if (!rq->rp)
		return;
	for (at = &rq->rp->head; *at != rq; at = &(*at)->rp_next)
		last = *at;
	*at = rq->rp_next;
	if (rq->rp->tail == rq)
		rq->rp->tail = last;
	rq->rp = NULL;
}

/* --- rate --- */
void eng_rp_apply(struct eng_rp *p)
{
	struct cc_answer a;

	cc_guard_ask(p->ops, p->state, &p->cfg, &a);
	if (a.rate_Bps == p->rate_Bps)
		return;
	p->rate_Bps = a.rate_Bps;
	rwy_pace_set(&p->pace, a.rate_Bps);
	p->late = rwy_pace_time(&p->pace, LATE_BYTES);
	if (p->late < LATE)
		p->late = LATE;
}

bool eng_rp_over(const struct eng_rp *p, rwy_time now)
{
	return p->rate_Bps >= p->cfg.rate_Bps - p->cfg.rate_Bps / 64 && now - p->last_cnp > QUIET;
}

void eng_rp_end(struct eng *e, struct eng_rp **at)
{
	struct eng_rp *p = *at, **b = rp_bucket(e, &p->host);

	*at = p->next;
	while (*b != p)
		b = &(*b)->chain;
	*b = p->chain;
	while (p->head)
		eng_dirty(&eng_rp_pop(p)->side); /* it continues without pacing */
	e->rps--;
	free(p);
}

/* The rate at which the reaction point begins: the port's if known, else that of this flow. */
static uint64_t line_rate(const struct eng_requester *rq)
{
	const struct roce_reqr *r = &rq->reqr;
	rwy_dur rtt = r->srtt > BASE_RTT ? r->srtt : BASE_RTT;
	uint64_t rate = (uint64_t)(r->inflight + 1) * (r->pmtu ? r->pmtu : 1024) * RWY_SEC / rtt;

	/* A quarter above: a host at full rate must not end and begin this all the time. */
	if (rq->side.e->cfg.lan_Bps)
		return rq->side.e->cfg.lan_Bps + rq->side.e->cfg.lan_Bps / 4;
	return rate > 2 * MIN_RATE ? rate : 2 * MIN_RATE;
}

static struct eng_rp *rp_start(struct eng_requester *rq, rwy_time now)
{
	struct eng *e = rq->side.e;
	struct eng_rp *p, **b = rp_bucket(e, &rq->side.key.dst);

	if (e->rps >= ENG_RPS_MAX || !(p = aligned_alloc(64, (sizeof(*p) + 63) & ~(size_t)63)))
		return NULL;
	memset(p, 0, sizeof(*p));
	p->host = rq->side.key.dst;
	p->tenant = rq->side.key.tenant;
	p->ops = &cc_dcqcn;
	p->cfg = (struct cc_cfg){.rate_Bps = line_rate(rq),
	    .min_rate_Bps = MIN_RATE,
	    .mtu = rq->reqr.pmtu ? rq->reqr.pmtu : 1024,
	    .initial_rtt = rq->reqr.srtt ? rq->reqr.srtt : BASE_RTT};
	p->ops->init(p->state, &p->cfg, now);
	p->ticked = p->pace.at = p->taken_at = now;
	p->chain = *b;
	*b = p;
	p->next = e->rp_list;
	e->rp_list = p;
	e->rps++;
	return p;
}

/* The rate at which the host acknowledges while it sends CNPs: this gateway's share of its port. */
static void measure_taken(struct eng_rp *p, rwy_time now)
{
	rwy_dur t = now - p->taken_at;

	if (t < MEASURE)
		return;
	cc_dcqcn_taken(p->state, (uint64_t)((unsigned __int128)p->taken * RWY_SEC / t));
	p->taken = 0;
	p->taken_at = now;
}

void eng_rp_taken(struct eng_requester *rq, uint64_t bytes)
{
	struct eng_rp *p = eng_rp_find(rq->side.e, rq->side.key.tenant, &rq->side.key.dst);

	if (p)
		p->taken += bytes;
}

void eng_rp_cnp(struct eng_requester *rq, rwy_time now)
{
	struct eng *e = rq->side.e;
	struct eng_rp *p = eng_rp_find(e, rq->side.key.tenant, &rq->side.key.dst);

	if (!eng_requester_active(rq) || !e->cfg.rp)
		return;
	/* The host's rate is not known: the first CNP begins the measurement, the next ones act. */
	if (!p) {
		p = rp_start(rq, now);
		if (p)
			p->last_cnp = now;
		return;
	}
	measure_taken(p, now);
	p->last_cnp = now;
	p->ops->on_cnp(p->state, now);
	eng_rp_apply(p);
}

rwy_time eng_rp_next(const struct eng *e)
{
	rwy_time at = RWY_NEVER;

	for (const struct eng_rp *p = e->rp_list; p; p = p->next) {
		at = rwy_time_min(at, cc_guard_next(p->ops, p->state, p->ticked));
		if (p->head)
			at = rwy_time_min(at, p->pace.at);
	}
	return at;
}

uint64_t eng_rp_rate(const struct eng_requester *rq)
{
	const struct eng_rp *p = eng_rp_find(rq->side.e, rq->side.key.tenant, &rq->side.key.dst);

	return p ? p->rate_Bps : 0;
}

void eng_rp_fini(struct eng *e)
{
	while (e->rp_list)
		eng_rp_end(e, &e->rp_list);
}
