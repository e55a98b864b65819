/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes and a time in jobs: see shape.h. */
#include "controller/job/shape.h"

#include <inttypes.h>
#include <stdio.h>

#include "controller/plan/shape.h"

#define US_PER_MS    1000u
#define DEADLINE_MAX 31536000000u /* ms from now: a year, as within_ms */

/* --- as posted -------------------------------------------------------------------------------- */

/* The fields of a pair, or of the demand of ranks. */
struct asked {
	uint64_t bandwidth_bps, bytes, period_us, window_us;
};

static struct asked asked_of(const struct model_job *m, unsigned i)
{
	const struct model_pair *p = m->pairs.at;
	const struct model_demand *d = &m->demand;

	if (m->pairs.n)
		return (struct asked){p[i].bandwidth_bps, p[i].bytes, p[i].period_us, p[i].window_us};
	return (struct asked){d->bandwidth_bps, d->bytes, d->period_us, d->window_us};
}

static bool is_transfer(const struct asked *a)
{
	return a->bytes && !a->period_us;
}

uint64_t ctlr_shape_deadline(const struct model_job *m, uint64_t since_ms)
{
	return m->within_ms ? since_ms + m->within_ms : m->deadline_ms;
}

static uint64_t us_of(const struct model_job *m, const struct asked *a, uint64_t since_ms)
{
	const uint64_t deadline = ctlr_shape_deadline(m, since_ms);

	if (!is_transfer(a))
		return a->window_us ? a->window_us : a->period_us;
	return deadline > since_ms ? (deadline - since_ms) * US_PER_MS : 0;
}

struct ctlr_shape ctlr_shape_of(const struct model_job *m, unsigned i, uint64_t since_ms)
{
	const struct asked a = asked_of(m, i);
	struct ctlr_shape s = {
	    .bandwidth_bps = a.bandwidth_bps, .bytes = a.bytes, .burst = a.bytes && a.period_us};

	if (!a.bytes)
		return s;
	s.us = us_of(m, &a, since_ms);
	/* A record was checked when it was posted; a foreign one is cut to the largest rate. */
	if (plan_shape_bps(&s.bandwidth_bps, s.bytes, s.us ? s.us : 1, MODEL_BPS_MAX))
		s.bandwidth_bps = MODEL_BPS_MAX;
	return s;
}

/* --- checks ----------------------------------------------------------------------------------- */

static bool wrong(struct ctlr_req *r, const char *where, const char *field, const char *what)
{
	char name[64];

	snprintf(name, sizeof(name), "%s%s", where, field);
	ctlr_req_fail(r, 400, name, "%s: %s", name, what);
	return false;
}

static bool asked_sensible(
    struct ctlr_req *r, const struct model_job *m, const struct asked *a, const char *where)
{
	uint64_t bps;

	if (!a->bandwidth_bps == !a->bytes)
		return wrong(
		    r, where, a->bytes ? "bytes" : "bandwidth_bps", "expected either bandwidth_bps or bytes");
	if (!a->bytes && (a->period_us || a->window_us))
		return wrong(r, where, a->period_us ? "period_us" : "window_us", "is for bytes");
	if (!a->bytes)
		return true;
	if (is_transfer(a) && !m->deadline_ms && !m->within_ms)
		return wrong(
		    r, where, "bytes", "expected a period_us, or within_ms or deadline_ms of the job");
	if (a->window_us && (!a->period_us || a->window_us > a->period_us))
		return wrong(r, where, "window_us", "expected at most period_us");
	if (plan_shape_bps(&bps, a->bytes, us_of(m, a, ctlr_shape_since(r)), MODEL_BPS_MAX))
		return wrong(r, where, "bytes", "no rate carries as much in this time");
	return true;
}

bool ctlr_shape_sensible(struct ctlr_req *r, const struct model_job *m)
{
	const unsigned n = m->pairs.n ? m->pairs.n : m->has_demand;
	bool transfers = false;
	char where[32] = "demand.";

	if (m->deadline_ms && m->within_ms)
		return wrong(r, "", "within_ms", "expected either within_ms or deadline_ms");
	if (m->deadline_ms && m->deadline_ms <= ctlr_shape_since(r))
		return wrong(r, "", "deadline_ms", "it is over");
	if (m->deadline_ms > ctlr_shape_since(r) + DEADLINE_MAX)
		return wrong(r, "", "deadline_ms", "it is more than a year away");
	for (unsigned i = 0; i < n; i++) {
		const struct asked a = asked_of(m, i);

		if (m->pairs.n)
			snprintf(where, sizeof(where), "pairs[%u].", i);
		if (!asked_sensible(r, m, &a, where))
			return false;
		transfers |= is_transfer(&a);
	}
	if (!transfers && (m->deadline_ms || m->within_ms))
		return wrong(r, "", m->within_ms ? "within_ms" : "deadline_ms", "is for bytes");
	if (transfers && m->duration_ms)
		return wrong(r, "", "duration_ms", "a job with a deadline ends with it");
	return true;
}

/* --- time ------------------------------------------------------------------------------------- */

uint64_t ctlr_shape_since(struct ctlr_req *r)
{
	if (!r->since_ms)
		r->since_ms = ctlr_wall_ms();
	return r->since_ms;
}

void ctlr_shape_put(json_t *record, const struct model_job *m, uint64_t since_ms)
{
	const uint64_t deadline = ctlr_shape_deadline(m, since_ms);

	if (!record || !deadline)
		return;
	json_object_set_new(record, "since_ms", json_integer((json_int_t)since_ms));
	json_object_set_new(record, "deadline_ms", json_integer((json_int_t)deadline));
	json_object_set_new(record, "until_ms", json_integer((json_int_t)deadline));
}

void ctlr_shape_keep(json_t *record, const json_t *old)
{
	static const char *const keys[] = {"since_ms", "deadline_ms", "until_ms"};

	for (unsigned i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (json_object_get(old, keys[i]))
			json_object_set(record, keys[i], json_object_get(old, keys[i]));
}

void ctlr_shape_fits(json_t *fits, const struct ctlr_shape *s, uint64_t asked_bps, uint64_t fits_bps)
{
	const uint64_t bps =
	    asked_bps ? (uint64_t)((unsigned __int128)s->bandwidth_bps * fits_bps / asked_bps) : 0;
	const uint64_t us = s->bytes ? plan_shape_us(s->bytes, bps) : 0;

	if (us && s->burst)
		json_object_set_new(fits, "window_us", json_integer((json_int_t)us));
	else if (us)
		json_object_set_new(
		    fits, "within_ms", json_integer((json_int_t)((us + US_PER_MS - 1) / US_PER_MS)));
}
