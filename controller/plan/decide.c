/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decision. It compares the predictions of the carriers by what each is worth to the demand;
 * if they are equal, the order of carriers decides. A tunnel keeps its carrier unless another one
 * promises a gain for some time and the last change is not too recent, or unless its carrier is no
 * longer possible.
 */
#include <string.h>

#include "controller/plan/decide.h"

/* The order of preference. */
static const enum plan_carrier order[PLAN_CARRIER_COUNT] = {PLAN_RDMA, PLAN_NATIVE, PLAN_TCP, PLAN_QUIC};

static unsigned rank(enum plan_carrier c)
{
	unsigned i = 0;

	while (i < PLAN_CARRIER_COUNT && order[i] != c)
		i++;
	return i;
}

void plan_policy_default(struct plan_policy *p)
{
	*p = (struct plan_policy){
	    .gateway_ppm =
	        {[PLAN_NATIVE] = 920000, [PLAN_TCP] = 920000, [PLAN_QUIC] = 900000, [PLAN_RDMA] = 920000},
	    .wan_ppm = PLAN_PPM,
	    .tie_ppm = 20000,
	    .gain_ppm = 100000,
	    .confirm = 6 * RWY_SEC, /* two reports of a gateway, not one */
	    .hold = 10 * RWY_SEC,
	    .home = 60 * RWY_SEC,
	};
}

static bool share_ok(uint32_t ppm)
{
	return ppm >= 1 && ppm <= PLAN_PPM;
}

int plan_policy_check(const struct plan_policy *p)
{
	unsigned c;

	for (c = 0; c < PLAN_CARRIER_COUNT; c++)
		if (!share_ok(p->gateway_ppm[c]))
			return RWY_EINVAL;
	if (!share_ok(p->wan_ppm) || p->tie_ppm > PLAN_PPM || p->gain_ppm > 10 * PLAN_PPM)
		return RWY_EINVAL;
	return 0;
}

/* V / (ppm / 10^6), rounded up, at most PLAN_RATE_MAX. */
static uint64_t over(uint64_t v, uint32_t ppm)
{
	unsigned __int128 x;

	if (ppm == 0)
		ppm = 1;
	if (ppm > PLAN_PPM)
		ppm = PLAN_PPM;
	if (v > PLAN_RATE_MAX)
		v = PLAN_RATE_MAX;
	x = ((unsigned __int128)v * PLAN_PPM + ppm - 1) / ppm;
	return x < PLAN_RATE_MAX ? (uint64_t)x : PLAN_RATE_MAX;
}

uint64_t plan_gateway_bps(uint64_t n_bps, uint32_t a_ppm)
{
	return over(n_bps, a_ppm);
}

uint64_t plan_edge_bps(uint64_t n_bps, uint32_t a_ppm, uint32_t b_ppm)
{
	return over(over(n_bps, a_ppm), b_ppm);
}

/* The worth of a carrier: its rate, but no more than the demand. */
static uint64_t worth(const struct plan_decision *d, enum plan_carrier c)
{
	uint64_t g, n = d->asked.demand_bps;

	if ((unsigned)c >= PLAN_CARRIER_COUNT)
		return 0;
	g = d->alt[c].goodput_bps;
	return n && g > n ? n : g;
}

/* True if a >= b, or if it is less by no more than the share less_ppm. */
static bool at_least(uint64_t a, uint64_t b, uint32_t less_ppm)
{
	return (unsigned __int128)a * PLAN_PPM >= (unsigned __int128)b * (PLAN_PPM - less_ppm);
}

/* The first carrier in order among those as good as the best one. */
static enum plan_carrier best_carrier(const struct plan_decision *d)
{
	uint64_t best = 0;
	unsigned i;

	for (i = 0; i < PLAN_CARRIER_COUNT; i++)
		if (worth(d, order[i]) > best)
			best = worth(d, order[i]);
	if (best == 0)
		return PLAN_ANY;
	for (i = 0; i < PLAN_CARRIER_COUNT - 1; i++)
		if (worth(d, order[i]) && at_least(worth(d, order[i]), best, d->policy.tie_ppm))
			break;
	return order[i];
}

static void predict(struct plan_decision *d)
{
	const struct plan_question *q = &d->asked;
	struct plan_goodput g;
	unsigned c;

	for (c = 0; c < PLAN_CARRIER_COUNT; c++) {
		g = plan_goodput((enum plan_carrier)c, &q->source, &q->destination, &q->path);
		d->alt[c] = (struct plan_alternative){
		    .goodput_bps = g.bps, .limit = g.limit, .enough = g.bps && g.bps >= q->demand_bps};
	}
}

static unsigned possible(const struct plan_decision *d)
{
	unsigned c, n = 0;

	for (c = 0; c < PLAN_CARRIER_COUNT; c++)
		n += d->alt[c].goodput_bps != 0;
	return n;
}

static void decide_for(struct plan_decision *d, struct plan_hyst *h, enum plan_carrier c, enum plan_rule rule)
{
	d->carrier = c;
	d->rule = rule;
	if (c == PLAN_ANY) {
		*h = (struct plan_hyst){0};
		return;
	}
	if (!h->has || h->carrier != c)
		h->changed_at = d->at;
	h->has = true;
	h->carrier = (uint8_t)c;
	h->challenger = (uint8_t)c;
	h->homing = false;
}

static void keep_carrier(struct plan_decision *d, struct plan_hyst *h, enum plan_rule rule, rwy_time again)
{
	d->carrier = (enum plan_carrier)h->carrier;
	d->rule = rule;
	d->again_at = again;
}

static enum plan_carrier first_possible(const struct plan_decision *d)
{
	unsigned i = 0;

	while (i < PLAN_CARRIER_COUNT && d->alt[order[i]].goodput_bps == 0)
		i++;
	return i < PLAN_CARRIER_COUNT ? order[i] : PLAN_ANY;
}

/* Decides where no carrier is in use yet: by the rules that need no memory. */
static void decide_first(struct plan_decision *d, struct plan_hyst *h, enum plan_rule rule)
{
	enum plan_carrier c = best_carrier(d);

	if (c == PLAN_ANY)
		decide_for(d, h, c, PLAN_RULE_NONE);
	else if (possible(d) == 1)
		decide_for(d, h, first_possible(d), rule == PLAN_RULE_FAILED ? rule : PLAN_RULE_ONLY);
	else if (rule == PLAN_RULE_FIRST && d->asked.demand_bps && d->alt[c].enough)
		decide_for(d, h, c, PLAN_RULE_ENOUGH);
	else
		decide_for(d, h, c, rule);
}

/* The time since which a condition holds: `now` where it did not hold before, or where time went
 * back. */
static rwy_time since(bool held, rwy_time at, rwy_time now)
{
	return held && at <= now ? at : now;
}

/* An earlier carrier in order is as good as the one in use: the tunnel returns to it after
 * `home`. */
static void decide_home(struct plan_decision *d, struct plan_hyst *h, enum plan_carrier c, rwy_time now)
{
	rwy_time due;

	h->challenger = h->carrier;
	if (rank(c) > rank((enum plan_carrier)h->carrier) ||
	    !at_least(worth(d, c), worth(d, (enum plan_carrier)h->carrier), d->policy.tie_ppm)) {
		h->homing = false;
		keep_carrier(d, h, PLAN_RULE_STAYS, RWY_NEVER);
		return;
	}
	h->home_at = since(h->homing, h->home_at, now);
	h->homing = true;
	due = h->home_at + rwy_time_max(d->policy.home, d->policy.hold);
	if (now < due)
		keep_carrier(d, h, PLAN_RULE_STAYS, due);
	else
		decide_for(d, h, c, PLAN_RULE_HOME);
}

/* Decides where the carrier in use is still possible. */
static void decide_change(struct plan_decision *d, struct plan_hyst *h, rwy_time now)
{
	const enum plan_carrier c = best_carrier(d), mine = (enum plan_carrier)h->carrier;
	rwy_time confirmed, free;

	if (c == mine) {
		h->challenger = h->carrier;
		h->homing = false;
		keep_carrier(d, h, PLAN_RULE_STAYS, RWY_NEVER);
		return;
	}
	if ((unsigned __int128)worth(d, c) * PLAN_PPM <
	    (unsigned __int128)worth(d, mine) * ((uint64_t)PLAN_PPM + d->policy.gain_ppm)) {
		decide_home(d, h, c, now);
		return;
	}
	/* The best carrier may change while the gain is confirmed; confirmation goes on. */
	h->better_at = since(h->challenger != h->carrier, h->better_at, now);
	h->challenger = (uint8_t)c;
	h->homing = false;
	confirmed = h->better_at + d->policy.confirm;
	free = since(true, h->changed_at, now) + d->policy.hold;
	if (now < confirmed)
		keep_carrier(d, h, PLAN_RULE_CONFIRM, rwy_time_max(confirmed, free));
	else if (now < free)
		keep_carrier(d, h, PLAN_RULE_HELD, free);
	else
		decide_for(d, h, c, PLAN_RULE_MOVED);
}

/* Fills the rates n, n/a and n/(a*b) of the carrier. */
static void rates(struct plan_decision *d)
{
	const struct plan_alternative *a;
	uint64_t loss;

	if (d->carrier == PLAN_ANY)
		return;
	a = &d->alt[d->carrier];
	d->enough = a->enough;
	d->n_bps = worth(d, d->carrier);
	d->a_ppm = d->policy.gateway_ppm[d->carrier];
	loss = d->asked.path.by[d->carrier].loss_ppm.v;
	if (loss > PLAN_PPM)
		loss = PLAN_PPM;
	d->b_ppm = (uint32_t)((uint64_t)d->policy.wan_ppm * (PLAN_PPM - loss) / PLAN_PPM);
	if (d->b_ppm == 0)
		d->b_ppm = 1;
	d->gateway_bps = plan_gateway_bps(d->n_bps, d->a_ppm);
	d->edge_bps = plan_edge_bps(d->n_bps, d->a_ppm, d->b_ppm);
}

void plan_decide(struct plan_decision *out, const struct plan_question *q, const struct plan_policy *p,
    struct plan_hyst *h, rwy_time now)
{
	memset(out, 0, sizeof(*out));
	out->asked = *q;
	out->at = now;
	out->again_at = RWY_NEVER;
	if (plan_policy_check(p))
		plan_policy_default(&out->policy);
	else
		out->policy = *p;
	if (h->has && h->carrier >= PLAN_CARRIER_COUNT)
		*h = (struct plan_hyst){0};
	out->before = h->has ? (enum plan_carrier)h->carrier : PLAN_ANY;
	predict(out);
	if ((unsigned)q->pinned < PLAN_CARRIER_COUNT)
		decide_for(out, h, out->alt[q->pinned].goodput_bps ? q->pinned : PLAN_ANY,
		    out->alt[q->pinned].goodput_bps ? PLAN_RULE_PINNED : PLAN_RULE_NONE);
	else if (!h->has)
		decide_first(out, h, PLAN_RULE_FIRST);
	else if (out->alt[h->carrier].goodput_bps == 0)
		decide_first(out, h, PLAN_RULE_FAILED);
	else
		decide_change(out, h, now);
	out->changed = out->carrier != out->before;
	rates(out);
}
