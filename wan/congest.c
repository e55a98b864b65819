/* SPDX-License-Identifier: Apache-2.0 */
/* Sustained congestion of a path; see congest.h. Counting costs a few additions per ACK; divisions
 * run once per slot. */
#include "wan/congest.h"

#include <string.h>

#include "rwy/err.h"

#define ENOUGH       128u /* fewest datagrams for a meaningful share */
#define SLOT_ENOUGH  (ENOUGH / WAN_CONGEST_SLOTS)
#define SLOT_LONGEST 32u /* most slot lengths that a slot with little traffic lasts */
#define SOME_SLOTS   4u  /* fewest slots with losses or marks: a burst is in fewer */
#define HIGH_SLOTS   6u  /* fewest slots with only high round trips */
#define SUSTAINED    8u  /* consecutive findings: bursts of losses exceed chance once, not always */
#define SIGMAS       2.0
#define AGAIN_MAX    6u
/* clear times: congestion that returns sooner makes the next clear time longer */
#define SOON 8u
/* a round trip that stays high without loss or marks is a longer route */
#define BASE_MAX (60 * RWY_SEC)
#define PPM      1000000u

const char *wan_congest_name(enum wan_congest_by by)
{
	switch (by) {
	case WAN_CONGEST_NONE:
		return "none";
	case WAN_CONGEST_LOSS:
		return "loss";
	case WAN_CONGEST_MARKS:
		return "marks";
	case WAN_CONGEST_DELAY:
		return "delay";
	}
	rwy_unreachable();
}

void wan_congest_cfg_default(struct wan_congest_cfg *cfg)
{
	*cfg = (struct wan_congest_cfg){.loss_ppm = 30000,
	    .marks_ppm = 100000,
	    .delay_ppm = 500000,
	    .delay_min = 5 * RWY_MS,
	    .hold = 400 * RWY_MS,
	    .clear = 2 * RWY_SEC};
}

static void slot_reset(struct wan_congest_slot *s)
{
	*s = (struct wan_congest_slot){.rtt = RWY_NEVER};
}

static void calm_begin(struct wan_congest *c, rwy_time now)
{
	slot_reset(&c->calm);
	c->calm_from = now;
	c->calm_slots = c->calm_high = 0;
}

void wan_congest_init(struct wan_congest *c, const struct wan_congest_cfg *cfg, rwy_time now)
{
	memset(c, 0, sizeof(*c));
	c->cfg = *cfg;
	for (unsigned i = 0; i < WAN_CONGEST_SLOTS; i++)
		slot_reset(&c->slot[i]);
	c->slot_from = now;
	calm_begin(c, now);
}

bool wan_congest_cfg_same(const struct wan_congest_cfg *a, const struct wan_congest_cfg *b)
{
	return a->loss_ppm == b->loss_ppm && a->marks_ppm == b->marks_ppm && a->delay_ppm == b->delay_ppm &&
	       a->delay_min == b->delay_min && a->hold == b->hold && a->clear == b->clear;
}

void wan_congest_retune(struct wan_congest *c, const struct wan_congest_cfg *cfg)
{
	c->cfg = *cfg;
}

void wan_congest_rebase(struct wan_congest *c, rwy_time now)
{
	for (unsigned i = 0; i < WAN_CONGEST_SLOTS; i++)
		slot_reset(&c->slot[i]);
	c->base = 0;
	c->slot_from = now;
	c->slots = c->bad = 0;
}

/* --- measures --------------------------------------------------------------------------------- */
/* A round trip this far above the base is congestion. */
static rwy_dur delay_limit(const struct wan_congest *c)
{
	rwy_dur share = (rwy_dur)((double)c->base * c->cfg.delay_ppm / PPM);

	return share > c->cfg.delay_min ? share : c->cfg.delay_min;
}

static rwy_dur above(const struct wan_congest *c, const struct wan_congest_slot *s)
{
	return c->base && s->rtt != RWY_NEVER && s->rtt > c->base ? s->rtt - c->base : 0;
}

/* True when k of n exceeds the threshold by more than chance. `var`: variance of k, from the slots;
 * without bursts it equals the mean. */
static bool too_many(double k, double var, double n, uint32_t ppm)
{
	double usual = n * ppm / PPM;

	if (var < usual)
		var = usual;
	return ppm && n >= ENOUGH && k > usual && (k - usual) * (k - usual) > SIGMAS * SIGMAS * var;
}

static uint32_t share_of(double k, double n)
{
	return n > 0 && k > 0 ? (uint32_t)(k / n * PPM) : 0;
}

struct sums {
	double n, lost, ce;
	double lost_var, ce_var; /* variances of the sums */
	unsigned with_loss, with_ce, high;
};

static double lost_in(const struct wan_congest_slot *s)
{
	return s->lost > 0 ? s->lost : 0;
}

static struct sums add_up(const struct wan_congest *c)
{
	struct sums r = {0};

	for (unsigned i = 0; i < WAN_CONGEST_SLOTS; i++) {
		const struct wan_congest_slot *s = &c->slot[i];

		r.n += s->acked + lost_in(s);
		r.lost += lost_in(s);
		r.ce += s->ce;
		r.with_loss += s->lost > 0;
		r.with_ce += s->ce > 0;
		r.high += s->high;
	}
	for (unsigned i = 0; i < WAN_CONGEST_SLOTS; i++) {
		double lost = lost_in(&c->slot[i]) - r.lost / WAN_CONGEST_SLOTS,
		       ce = c->slot[i].ce - r.ce / WAN_CONGEST_SLOTS;

		r.lost_var += lost * lost * WAN_CONGEST_SLOTS / (WAN_CONGEST_SLOTS - 1);
		r.ce_var += ce * ce * WAN_CONGEST_SLOTS / (WAN_CONGEST_SLOTS - 1);
	}
	return r;
}

static enum wan_congest_by why(const struct wan_congest *c, const struct sums *r)
{
	if (c->slots < WAN_CONGEST_SLOTS)
		return WAN_CONGEST_NONE;
	if (r->with_loss >= SOME_SLOTS && too_many(r->lost, r->lost_var, r->n, c->cfg.loss_ppm))
		return WAN_CONGEST_LOSS;
	if (r->with_ce >= SOME_SLOTS && too_many(r->ce, r->ce_var, r->n, c->cfg.marks_ppm))
		return WAN_CONGEST_MARKS;
	return r->high >= HIGH_SLOTS ? WAN_CONGEST_DELAY : WAN_CONGEST_NONE;
}

/* --- time ------------------------------------------------------------------------------------- */
static rwy_dur slot_len(const struct wan_congest *c)
{
	rwy_dur hold = c->cfg.hold > 4 * c->base ? c->cfg.hold : 4 * c->base;

	return hold / (WAN_CONGEST_SLOTS + SUSTAINED) + 1;
}

static rwy_dur clear_len(const struct wan_congest *c)
{
	rwy_dur clear = c->cfg.clear > 8 * c->base ? c->cfg.clear : 8 * c->base;

	return clear << c->again;
}

/* The base follows the path's minimum while no queue stands, and never rises while one does. */
static void follow(struct wan_congest *c, rwy_dur min_rtt, rwy_time now)
{
	const struct wan_congest_slot *s = &c->slot[c->at];

	if (!c->base || min_rtt <= c->base || (s->rtt != RWY_NEVER && s->rtt <= c->base)) {
		c->base = min_rtt < s->rtt ? min_rtt : s->rtt;
		c->base_at = now;
	} else if (now - c->base_at > BASE_MAX && s->lost <= 0 && !s->ce) {
		c->base = min_rtt;
		c->base_at = now;
	}
}

static bool begin(struct wan_congest *c, enum wan_congest_by by, rwy_time now)
{
	bool soon = c->st.begins && now - c->ended < SOON * clear_len(c);

	c->again = !soon ? 0 : c->again < AGAIN_MAX ? c->again + 1 : c->again;
	c->st.by = by;
	c->st.since = now;
	c->st.begins++;
	c->bad = 0;
	calm_begin(c, now);
	return true;
}

/* True when the calm time is over and was calm. */
static bool end(struct wan_congest *c, rwy_time now)
{
	double lost = c->calm.lost > 0 ? c->calm.lost : 0, n = c->calm.acked + lost;
	bool calm = lost * 2 * PPM <= n * c->cfg.loss_ppm || !c->cfg.loss_ppm;

	if (now - c->calm_from < clear_len(c) || (n < ENOUGH && now - c->calm_from < SOON * clear_len(c)))
		return false;
	calm &= c->calm.ce * 2.0 * PPM <= n * c->cfg.marks_ppm || !c->cfg.marks_ppm;
	calm &= c->calm_high * 4 <= c->calm_slots;
	calm_begin(c, now);
	if (!calm)
		return false;
	c->st.by = WAN_CONGEST_NONE;
	c->st.since = c->ended = now;
	return true;
}

static bool slot_over(struct wan_congest *c, rwy_dur min_rtt, rwy_time now)
{
	struct wan_congest_slot *s = &c->slot[c->at];
	enum wan_congest_by by;
	struct sums r;
	bool changed = false;

	follow(c, min_rtt, now);
	s->high = c->cfg.delay_ppm && above(c, s) > delay_limit(c);
	c->slots += c->slots < WAN_CONGEST_SLOTS;
	r = add_up(c);
	c->st.loss_ppm = share_of(r.lost, r.n);
	c->st.marks_ppm = share_of(r.ce, r.n);
	c->st.delay = above(c, s);
	by = why(c, &r);
	if (c->st.by == WAN_CONGEST_NONE) {
		c->bad = by != WAN_CONGEST_NONE ? c->bad + 1 : 0;
		if (c->bad >= SUSTAINED)
			changed = begin(c, by, now);
	} else {
		c->calm.acked += s->acked;
		c->calm.lost += s->lost;
		c->calm.ce += s->ce;
		c->calm_slots++;
		c->calm_high += c->cfg.delay_ppm && above(c, s) > delay_limit(c) / 2;
		changed = end(c, now);
	}
	c->at = (c->at + 1) % WAN_CONGEST_SLOTS;
	slot_reset(&c->slot[c->at]);
	c->slot_from = now;
	return changed;
}

bool wan_congest_note(struct wan_congest *c, uint32_t acked, int32_t lost, uint32_t ce, rwy_dur rtt,
    rwy_dur min_rtt, rwy_time now)
{
	struct wan_congest_slot *s = &c->slot[c->at];
	rwy_dur len = slot_len(c), age = now - c->slot_from;

	s->acked += acked;
	s->lost += lost;
	s->ce += ce;
	if (rtt && rtt < s->rtt)
		s->rtt = rtt;
	if (age < len || !min_rtt)
		return false;
	if (age < SLOT_LONGEST * len && s->acked + (uint32_t)(s->lost > 0 ? s->lost : 0) < SLOT_ENOUGH)
		return false;
	return slot_over(c, min_rtt, now);
}
