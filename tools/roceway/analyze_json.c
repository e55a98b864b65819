/* SPDX-License-Identifier: Apache-2.0 */
/* roceway analyze --json. Times are seconds, sizes bytes. */
#include "tools/roceway/analyze.h"

#define CM_TIME 4.096e-6 /* s: unit of a local ACK timeout (IBA 12.7.34) */

static double seconds(rwy_dur d)
{
	return (double)d / 1e9;
}

static json_t *hist_json(const struct an_hist *h)
{
	if (!h->n)
		return json_null();
	return json_pack("{sI, sf, sf, sf, sf, sf, sf}", "count", (json_int_t)h->n, "min", seconds(h->min),
	    "mean", seconds(an_hist_mean(h)), "p50", seconds(an_hist_quantile(h, 0.5)), "p99",
	    seconds(an_hist_quantile(h, 0.99)), "p999", seconds(an_hist_quantile(h, 0.999)), "max",
	    seconds(h->max));
}

static json_t *phases_json(const struct an_flow *f)
{
	json_t *o = json_object();

	for (unsigned p = 0; p < AN_PHASE_COUNT; p++)
		json_object_set_new(o, an_phase_name((enum an_phase)p), json_real(seconds(f->phase[p])));
	return o;
}

static json_t *counters_json(const struct an_counters *c)
{
	json_t *o = json_object();

#define X(field, s) json_object_set_new(o, #field, json_integer((json_int_t)c->field));
	AN_COUNTERS(X)
#undef X
	return o;
}

static json_t *findings_json(const struct an_flow *f)
{
	json_t *a = json_array();

	for (unsigned i = 0; i < f->findings; i++)
		json_array_append_new(
		    a, json_pack("{ss, ss}", "word", f->finding[i].word, "text", f->finding[i].text));
	return a;
}

static json_t *flow_json(const struct an_flow *f)
{
	char name[ANALYZE_NAME_MAX];
	json_t *o;

	analyze_name(f, name);
	o = json_pack("{ss, sI, sI, sf, sf, sf, sI, sI, sI, sI, sb}", "flow", name, "qpn",
	    (json_int_t)f->key.dqpn, "vni", (json_int_t)f->key.vni, "first_seconds", seconds(f->first),
	    "seconds", seconds(rwy_since(f->first, f->last)), "bytes_per_second", analyze_rate(f), "path_mtu",
	    (json_int_t)f->pmtu, "outstanding_bytes", (json_int_t)f->most_bytes, "outstanding_messages",
	    (json_int_t)f->most_messages, "outstanding_reads", (json_int_t)f->most_reads, "stalled",
	    f->stalled);
	if (f->cm.known)
		json_object_set_new(o, "cm",
		    json_pack("{si, si, si, sf}", "retry_count", f->cm.retry_count, "rnr_retry",
		        f->cm.rnr_retry, "read_depth", f->cm.read_depth, "ack_timeout",
		        CM_TIME * (double)(1ull << (f->cm.ack_timeout & 31))));
	json_object_set_new(o, "counters", counters_json(&f->c));
	json_object_set_new(o, "phases_seconds", phases_json(f));
	json_object_set_new(o, "rtt", hist_json(&f->rtt));
	json_object_set_new(o, "completion", hist_json(&f->completion));
	json_object_set_new(o, "reaction", hist_json(&f->reaction));
	json_object_set_new(o, "timer", hist_json(&f->timer));
	json_object_set_new(o, "findings", findings_json(f));
	return o;
}

json_t *analyze_json(const struct an_totals *t, const struct an_flow *const *flow, size_t flows)
{
	json_t *a = json_array(), *o;

	for (size_t i = 0; i < flows; i++)
		json_array_append_new(a, flow_json(flow[i]));
	o = json_pack("{sI, sI, sI, sI, sI, sI, sI, sI, sf}", "packets", (json_int_t)t->packets, "roce",
	    (json_int_t)t->roce, "malformed", (json_int_t)t->malformed, "cut", (json_int_t)t->cut, "other",
	    (json_int_t)t->other, "copies", (json_int_t)t->copies, "unpaired", (json_int_t)t->unpaired,
	    "backwards", (json_int_t)t->backwards, "seconds", seconds(rwy_since(t->first, t->last)));
	json_object_set_new(o, "flows", a);
	return o;
}
