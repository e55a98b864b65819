/* SPDX-License-Identifier: Apache-2.0 */
/* A decision in words: result, rule, alternatives, and inputs with their sources and ages. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "controller/plan/decide.h"

struct text {
	char *buf;
	size_t len, at;
};

__attribute__((format(printf, 2, 3))) static void say(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(t->at < t->len ? t->buf + t->at : NULL, t->at < t->len ? t->len - t->at : 0, fmt, ap);
	va_end(ap);
	if (n > 0)
		t->at += (size_t)n;
}

/* 12 345 678 900 bit/s as "12.346 Gbit/s". */
static void say_rate(struct text *t, uint64_t bps)
{
	static const char *const unit[] = {"bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"};
	unsigned u = 0;
	uint64_t div = 1;

	while (u < 4 && bps / div >= 1000) {
		div *= 1000;
		u++;
	}
	if (u == 0)
		say(t, "%" PRIu64 " %s", bps, unit[u]);
	else
		say(t, "%" PRIu64 ".%03" PRIu64 " %s", bps / div, bps % div / (div / 1000), unit[u]);
}

static void say_age(
    struct text *t, const struct plan_value *v, rwy_time now, plan_source_name_cb *name, void *ctx)
{
	const char *who;

	if (v->source == 0) {
		say(t, " (assumed)\n");
		return;
	}
	who = name ? name(ctx, v->source) : NULL;
	if (who)
		say(t, " (%s", who);
	else
		say(t, " (source %" PRIu32, v->source);
	say(t, ", %" PRIu64 ".%03" PRIu64 " s old)\n", rwy_since(v->at, now) / RWY_SEC,
	    rwy_since(v->at, now) % RWY_SEC / RWY_MS);
}

static void say_caps(struct text *t, const char *who, const struct plan_caps *c)
{
	unsigned i;

	say(t, "  %s:", who);
	for (i = 0; i < PLAN_CARRIER_COUNT; i++) {
		say(t, " %s ", plan_carrier_name((enum plan_carrier)i));
		if (c->bandwidth_bps[i])
			say_rate(t, c->bandwidth_bps[i]);
		else
			say(t, "none");
		say(t, i + 1 < PLAN_CARRIER_COUNT ? "," : "\n");
	}
}

static void say_leg(
    struct text *t, const struct plan_decision *d, enum plan_carrier c, plan_source_name_cb *name, void *ctx)
{
	const struct plan_leg *l = &d->asked.path.by[c];

	say(t, "    bandwidth ");
	if (l->bandwidth_bps.v)
		say_rate(t, l->bandwidth_bps.v);
	else
		say(t, "not known");
	say_age(t, &l->bandwidth_bps, d->at, name, ctx);
	say(t, "    round trip %" PRIu64 " us", l->rtt_us.v);
	say_age(t, &l->rtt_us, d->at, name, ctx);
	say(t, "    jitter %" PRIu64 " us", l->jitter_us.v);
	say_age(t, &l->jitter_us, d->at, name, ctx);
	say(t, "    loss %" PRIu64 " ppm", l->loss_ppm.v);
	say_age(t, &l->loss_ppm, d->at, name, ctx);
	say(t, "    lost in a row %" PRIu64, l->burst.v);
	say_age(t, &l->burst, d->at, name, ctx);
}

size_t plan_explain(
    char *buf, size_t len, const struct plan_decision *d, plan_source_name_cb *name, void *ctx)
{
	struct text t = {buf, len, 0};
	const struct plan_alternative *a;
	unsigned c;

	if (len)
		buf[0] = '\0';
	say(&t, "carrier: %s", d->carrier == PLAN_ANY ? "none" : plan_carrier_name(d->carrier));
	if (d->changed && d->before != PLAN_ANY)
		say(&t, " (before: %s)", plan_carrier_name(d->before));
	say(&t, "\nrule: %s: %s\n", plan_rule_name(d->rule), plan_rule_text(d->rule));
	if (d->carrier != PLAN_ANY) {
		say(&t, "bandwidth: n = ");
		say_rate(&t, d->n_bps);
		say(&t, ", at the gateway n/a = ");
		say_rate(&t, d->gateway_bps);
		say(&t, ", at the WAN's edge n/(a*b) = ");
		say_rate(&t, d->edge_bps);
		say(&t, "; a = %" PRIu32 ".%06" PRIu32 ", b = %" PRIu32 ".%06" PRIu32 "\n",
		    d->a_ppm / PLAN_PPM, d->a_ppm % PLAN_PPM, d->b_ppm / PLAN_PPM, d->b_ppm % PLAN_PPM);
	}
	say(&t, "demand: ");
	if (d->asked.demand_bps)
		say_rate(&t, d->asked.demand_bps);
	else
		say(&t, "not known");
	say(&t, d->carrier == PLAN_ANY || d->enough ? "\n" : ", cut to what fits\n");
	say(&t, "gateways:\n");
	say_caps(&t, "source", &d->asked.source);
	say_caps(&t, "destination", &d->asked.destination);
	say(&t, "path: %s\n", plan_class_name(d->asked.path.cls));
	for (c = 0; c < PLAN_CARRIER_COUNT; c++) {
		a = &d->alt[c];
		say(&t, "  %s: ", plan_carrier_name((enum plan_carrier)c));
		if (a->goodput_bps) {
			say_rate(&t, a->goodput_bps);
			say(&t, "%s; bound by %s\n", a->enough ? "" : ", not enough",
			    plan_limit_text(a->limit));
			say_leg(&t, d, (enum plan_carrier)c, name, ctx);
		} else {
			say(&t, "not possible: %s\n", plan_limit_text(a->limit));
		}
	}
	return t.at;
}
