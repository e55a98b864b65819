/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs of gateways as the API shows them: see pair.h. */
#include <stdlib.h>

#include "controller/fleet/pair.h"

static json_t *event_json(const char *by, const char *text, uint64_t at_ms)
{
	return json_pack("{s:s, s:s, s:I}", "by", by, "text", text, "at_ms", (json_int_t)at_ms);
}

static json_t *member_json(const struct ctlr *c, const struct ctlr_pair *p, unsigned k)
{
	const struct plan_member *it = &p->p.m[k];
	const struct plan_standby_status *s = &it->st;
	const struct ctlr_member *m = &p->member[k];
	json_t *j =
	    json_pack("{s:s, s:s, s:s, s:s, s:I, s:I}", "member", it->name, "lease", it->up ? "up" : "lost",
	        "version", m->reg.version, "owner", m->owner, "generation_running", (json_int_t)m->running,
	        "age_ms", (json_int_t)(rwy_since(m->heard ? m->heard : c->started, ctlr_now()) / RWY_MS));

	if (m->refused)
		json_object_update_new(j, json_pack("{s:I, s:s}", "generation_refused",
		                              (json_int_t)m->refused, "refusal", m->refusal));
	if (!it->said)
		return j;
	json_object_update_new(
	    j, json_pack("{s:s, s:s, s:I, s:I}", "state", plan_standby_state_name(s->state), "meaning",
	           plan_standby_state_text(s->state), "epoch", (json_int_t)s->epoch, "since_ms",
	           (json_int_t)s->since_ms));
	if (s->has_other)
		json_object_set_new(j, "other", json_string(plan_standby_state_name(s->other)));
	if (s->has_served)
		json_object_set_new(j, "served",
		    event_json(plan_standby_event_name(s->served_by), plan_standby_served_text(s->served_by),
		        s->served_ms));
	if (s->has_lost)
		json_object_set_new(j, "lost",
		    event_json(
		        plan_standby_event_name(s->lost_by), plan_standby_lost_text(s->lost_by), s->lost_ms));
	return j;
}

void ctlr_pair_add(struct ctlr *c, const struct ctlr_gateway *g, json_t *j)
{
	const struct ctlr_pair *p = ctlr_pair_of(c, g->name);
	const int serves = p ? ctlr_pair_serving(p) : -1;
	json_t *members = json_array(), *out;

	for (unsigned k = 0; p && k < PLAN_MEMBERS; k++)
		if (*p->p.m[k].name)
			json_array_append_new(members, member_json(c, p, k));
	if (!p) {
		json_decref(members);
		return;
	}
	out = json_pack("{s:o, s:o, s:I, s:I, s:b, s:s, s:s}", "members", members, "serves",
	    serves >= 0 ? json_string(p->p.m[serves].name) : json_null(), "epoch", (json_int_t)p->p.epoch,
	    "since_ms", (json_int_t)p->p.since_ms, "protected", p->verdict.why == PLAN_STANDBY_PROTECTED,
	    "reason", plan_standby_why_name(p->verdict.why), "why", p->verdict.text);
	if (*p->differ)
		json_object_set_new(out, "differ", json_string(p->differ));
	json_object_set_new(j, "pair", out);
	if (serves >= 0)
		json_object_set_new(j, "version", json_string(p->member[serves].reg.version));
}
