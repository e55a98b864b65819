/* SPDX-License-Identifier: Apache-2.0 */
/* Merges observations of several sources: which source counts before which, field by field. */
#include <stddef.h>

#include "controller/plan/path.h"

#define RTT_UNKNOWN_US   50000u
#define LOSS_UNKNOWN_PPM 100u

#define FIELDS 5

/* The fields in the order of PLAN_HAS_. */
static struct plan_value *leg_field(struct plan_leg *l, unsigned f)
{
	struct plan_value *const v[FIELDS] = {
	    &l->bandwidth_bps, &l->rtt_us, &l->jitter_us, &l->loss_ppm, &l->burst};

	return v[f];
}

static uint64_t obs_field(const struct plan_obs *o, unsigned f)
{
	static const uint64_t most[FIELDS] = {PLAN_RATE_MAX, PLAN_US_MAX, PLAN_US_MAX, PLAN_PPM, PLAN_PPM};
	const uint64_t v[FIELDS] = {o->bandwidth_bps, o->rtt_us, o->jitter_us, o->loss_ppm, o->burst};
	uint64_t x = v[f];

	if (1u << f == PLAN_HAS_BURST && x == 0)
		x = 1;
	return x < most[f] ? x : most[f];
}

/* Bandwidth is worse when less, every other field when more. */
static bool worse(unsigned f, uint64_t a, uint64_t b)
{
	return 1u << f == PLAN_HAS_BANDWIDTH ? a < b : a > b;
}

static bool counts(const struct plan_obs *o, rwy_time now)
{
	rwy_dur ttl = o->ttl ? o->ttl : PLAN_TTL;

	if (o->source == 0 || o->at > now || (unsigned)o->carrier > PLAN_CARRIER_COUNT)
		return false;
	if (o->pushed && (unsigned)o->cls >= PLAN_CLASS_COUNT)
		return false;
	return now - o->at <= ttl;
}

/* True if the same source has a younger observation of the same thing. Of two with equal time the
 * later in the list is younger. */
static bool outdated(const struct plan_obs *obs, unsigned n, unsigned i, unsigned f, rwy_time now)
{
	const struct plan_obs *o = &obs[i], *x;
	unsigned j;

	for (j = 0; j < n; j++) {
		x = &obs[j];
		if (j != i && x->source == o->source && x->pushed == o->pushed && x->carrier == o->carrier &&
		    (x->has & 1u << f) && counts(x, now) && (x->at > o->at || (x->at == o->at && j > i)))
			return true;
	}
	return false;
}

/* The distance of an observation from a carrier: its own 0, the path's 1, another carrier's 2. */
static unsigned tier(const struct plan_obs *o, enum plan_carrier c)
{
	if (o->carrier == c)
		return 0;
	return o->carrier == PLAN_ANY ? 1 : 2;
}

/* The worst of the sources' latest values of field f for carrier c, within the nearest tier. NULL:
 * there is none. */
static const struct plan_obs *worst_observation(
    const struct plan_obs *obs, unsigned n, unsigned f, enum plan_carrier c, bool pushed, rwy_time now)
{
	const struct plan_obs *best = NULL, *o;
	unsigned i, t, best_tier = 3;
	uint64_t a, b;

	for (i = 0; i < n; i++) {
		o = &obs[i];
		if (!(o->has & 1u << f) || o->pushed != pushed || !counts(o, now))
			continue;
		t = tier(o, c);
		if (t > best_tier || (t == 2 && pushed) || outdated(obs, n, i, f, now))
			continue;
		a = obs_field(o, f);
		b = best ? obs_field(best, f) : 0;
		if (t < best_tier || worse(f, a, b) || (a == b && o->source < best->source)) {
			best = o;
			best_tier = t;
		}
	}
	return best;
}

static bool promised(enum plan_class cls, unsigned f)
{
	switch (cls) {
	case PLAN_DETERMINISTIC:
		return true;
	case PLAN_RESERVED:
		return 1u << f == PLAN_HAS_BANDWIDTH;
	case PLAN_INTERNET:
	case PLAN_CLASS_COUNT:
		return false;
	}
	rwy_unreachable();
}

void plan_path_default(struct plan_path *p)
{
	unsigned c;

	*p = (struct plan_path){.cls = PLAN_INTERNET};
	for (c = 0; c < PLAN_CARRIER_COUNT; c++) {
		p->by[c].rtt_us.v = RTT_UNKNOWN_US;
		p->by[c].loss_ppm.v = LOSS_UNKNOWN_PPM;
		p->by[c].burst.v = 1;
	}
}

/* The class is what a network's controller said last; of two at the same time the better
 * promise. */
static enum plan_class class_of(const struct plan_obs *obs, unsigned n, rwy_time now)
{
	static const uint8_t rank[PLAN_CLASS_COUNT] = {
	    [PLAN_INTERNET] = 0, [PLAN_RESERVED] = 1, [PLAN_DETERMINISTIC] = 2};
	enum plan_class cls = PLAN_INTERNET;
	rwy_time at = 0;
	bool any = false;
	unsigned i;

	for (i = 0; i < n; i++) {
		if (!obs[i].pushed || !counts(&obs[i], now))
			continue;
		if (!any || obs[i].at > at || (obs[i].at == at && rank[obs[i].cls] > rank[cls])) {
			cls = obs[i].cls;
			at = obs[i].at;
			any = true;
		}
	}
	return cls;
}

unsigned plan_path_merge(struct plan_path *out, const struct plan_obs *obs, unsigned n, rwy_time now)
{
	const struct plan_obs *seen, *said, *o;
	struct plan_value *v;
	unsigned c, f, i, used = 0;

	plan_path_default(out);
	out->cls = class_of(obs, n, now);
	for (i = 0; i < n; i++)
		used += counts(&obs[i], now);
	for (c = 0; used && c < PLAN_CARRIER_COUNT; c++) {
		for (f = 0; f < FIELDS; f++) {
			seen = worst_observation(obs, n, f, (enum plan_carrier)c, false, now);
			said = worst_observation(obs, n, f, (enum plan_carrier)c, true, now);
			o = seen ? seen : said;
			if (seen && said && promised(out->cls, f) &&
			    !worse(f, obs_field(seen, f), obs_field(said, f)))
				o = said;
			if (!o)
				continue;
			v = leg_field(&out->by[c], f);
			*v = (struct plan_value){obs_field(o, f), o->at, o->source};
		}
	}
	return used;
}
