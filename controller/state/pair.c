/* SPDX-License-Identifier: Apache-2.0 */
/* The records of pairs of gateways, and the events that their changes are: see pair.h. */
#include "controller/state/pair.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "controller/state/event.h"

#define PROBLEMS 16

struct ctlr_pair *ctlr_pair_of(const struct ctlr *c, const char *gateway)
{
	return ctlr_map_find(&c->pairs, gateway);
}

int ctlr_pair_member(const struct ctlr_pair *p, const char *member)
{
	for (unsigned k = 0; p && k < PLAN_MEMBERS; k++)
		if (*member && !strcmp(p->p.m[k].name, member))
			return (int)k;
	return -1;
}

int ctlr_pair_by_lease(const struct ctlr_pair *p, uint64_t lease)
{
	for (unsigned k = 0; k < PLAN_MEMBERS; k++)
		if (p->p.m[k].up && p->member[k].lease == lease)
			return (int)k;
	return -1;
}

int ctlr_pair_serving(const struct ctlr_pair *p)
{
	return p->p.serves >= 0 && plan_member_claims(&p->p.m[p->p.serves]) ? p->p.serves : -1;
}

/* --- differences ------------------------------------------------------------------------------ */

static void add_word(char out[96], const char *word)
{
	const size_t n = strlen(out);

	snprintf(out + n, 96 - n, "%s%s", n ? ", " : "", word);
}

json_t *ctlr_pair_common(const struct model_registration *reg)
{
	json_t *j = mdl_write(&model_registration_table, reg);

	json_object_del(j, "boot_id");
	json_object_del(j, "version");
	json_object_del(j, "pair");
	json_object_del(json_object_get(json_object_get(j, "capabilities"), "quic"), "bandwidth_bps");
	return j;
}

/* In what the members differ: "wan, version"; `bars`: only what keeps one from taking over. */
static void differ(const struct ctlr_pair *p, char all[96], char bars[96])
{
	static const char *const words[] = {"site", "lan", "wan", "capabilities"};
	const struct model_registration *a = &p->member[0].reg, *b = &p->member[1].reg;
	const struct plan_member *m = p->p.m;
	json_t *x, *y;
	bool version;

	*all = *bars = 0;
	if (!m[0].up || !m[1].up)
		return;
	x = ctlr_pair_common(a);
	y = ctlr_pair_common(b);
	for (unsigned i = 0; x && y && i < sizeof(words) / sizeof(words[0]); i++)
		if (!json_equal(json_object_get(x, words[i]), json_object_get(y, words[i])))
			add_word(bars, words[i]);
	json_decref(x);
	json_decref(y);
	version = strcmp(a->version, b->version) != 0;
	/* Two versions may make two digests of one file. */
	if (!version && m[0].said && m[1].said && m[0].st.configuration != m[1].st.configuration)
		add_word(bars, "configuration");
	memcpy(all, bars, 96);
	if (version)
		add_word(all, "version");
}

/* --- writing ---------------------------------------------------------------------------------- */

static json_t *status_json(const struct plan_standby_status *s)
{
	json_t *j = json_pack("{s:s, s:o, s:I, s:I, s:I, s:b}", "state", plan_standby_state_name(s->state),
	    "configuration", json_sprintf("%016" PRIx64, s->configuration), "epoch", (json_int_t)s->epoch,
	    "after", (json_int_t)s->after, "since_ms", (json_int_t)s->since_ms, "refuses", s->refuses);

	if (s->has_other)
		json_object_set_new(j, "other", json_string(plan_standby_state_name(s->other)));
	if (s->has_served)
		json_object_update_new(
		    j, json_pack("{s:s, s:I}", "served_by", plan_standby_event_name(s->served_by),
		           "served_ms", (json_int_t)s->served_ms));
	if (s->has_lost)
		json_object_update_new(
		    j, json_pack("{s:s, s:I}", "lost_by", plan_standby_event_name(s->lost_by), "lost_ms",
		           (json_int_t)s->lost_ms));
	return j;
}

json_t *ctlr_pair_json(const struct ctlr_pair *p)
{
	json_t *members = json_array();

	for (unsigned k = 0; k < PLAN_MEMBERS; k++) {
		const struct plan_member *m = &p->p.m[k];
		const struct ctlr_member *it = &p->member[k];
		json_t *j;

		if (!*m->name)
			continue;
		j = json_pack("{s:o, s:o, s:s, s:s, s:s}", "registration",
		    mdl_write(&model_registration_table, &it->reg), "lease",
		    json_sprintf("%016" PRIx64, it->lease), "owner", it->owner, "state",
		    m->up ? "up" : "lost", "was_boot", it->was_boot);
		if (m->said)
			json_object_set_new(j, "status", status_json(&m->st));
		json_array_append_new(members, j);
	}
	return json_pack("{s:o, s:s, s:I, s:I}", "members", members, "serves",
	    p->p.serves >= 0 ? p->p.m[p->p.serves].name : "", "epoch", (json_int_t)p->p.epoch, "since_ms",
	    (json_int_t)p->p.since_ms);
}

/* --- reading ---------------------------------------------------------------------------------- */

static bool word_of(const json_t *j, const char *key, const char *(*name)(uint8_t), uint8_t *out)
{
	const char *w = mdl_text_of(j, key);

	for (uint8_t i = 0; *w && *name(i); i++)
		if (!strcmp(name(i), w)) {
			*out = i;
			return true;
		}
	return false;
}

static bool status_read(const json_t *j, struct plan_standby_status *s)
{
	*s =
	    (struct plan_standby_status){.configuration = strtoull(mdl_text_of(j, "configuration"), NULL, 16),
	        .epoch = mdl_number_of(j, "epoch"),
	        .after = mdl_number_of(j, "after"),
	        .since_ms = mdl_number_of(j, "since_ms"),
	        .served_ms = mdl_number_of(j, "served_ms"),
	        .lost_ms = mdl_number_of(j, "lost_ms"),
	        .refuses = json_is_true(json_object_get(j, "refuses"))};
	s->has_other = word_of(j, "other", plan_standby_state_name, &s->other);
	s->has_served = word_of(j, "served_by", plan_standby_event_name, &s->served_by);
	s->has_lost = word_of(j, "lost_by", plan_standby_event_name, &s->lost_by);
	return word_of(j, "state", plan_standby_state_name, &s->state);
}

static void members_free(struct ctlr_pair *p)
{
	for (unsigned k = 0; k < PLAN_MEMBERS; k++)
		mdl_free(&model_registration_table, &p->member[k].reg);
}

/* Reads a record into p, which is all 0 but for its name. False: *err says what is wrong. */
static bool pair_read(const json_t *j, struct ctlr_pair *p, struct mdl_error *err)
{
	const json_t *members = json_object_get(j, "members"), *m;
	size_t k;

	p->p.serves = -1;
	json_array_foreach((json_t *)(uintptr_t)members, k, m)
	{
		struct plan_member *to;

		if (k >= PLAN_MEMBERS || mdl_read(json_object_get(m, "registration"),
		                             &model_registration_table, &p->member[k].reg, err))
			return false;
		if (!p->member[k].reg.has_pair || ctlr_pair_member(p, p->member[k].reg.pair.member) >= 0)
			return false;
		to = &p->p.m[k];
		memcpy(to->name, p->member[k].reg.pair.member, sizeof(to->name));
		snprintf(p->member[k].owner, MDL_NAME, "%.31s", mdl_text_of(m, "owner"));
		snprintf(p->member[k].was_boot, MDL_ID, "%.63s", mdl_text_of(m, "was_boot"));
		p->member[k].lease = strtoull(mdl_text_of(m, "lease"), NULL, 16);
		to->up = !strcmp(mdl_text_of(m, "state"), "up");
		to->said = status_read(json_object_get(m, "status"), &to->st);
	}
	p->p.serves = ctlr_pair_member(p, mdl_text_of(j, "serves"));
	p->p.epoch = mdl_number_of(j, "epoch");
	p->p.since_ms = mdl_number_of(j, "since_ms");
	return k > 0;
}

/* --- events ----------------------------------------------------------------------------------- */

static const char *clock_of(uint64_t ms, char out[16])
{
	const time_t s = (time_t)(ms / 1000);
	struct tm tm;

	gmtime_r(&s, &tm);
	snprintf(out, 16, "%02d:%02d:%02d.%03u", tm.tm_hour % 24, tm.tm_min % 60, tm.tm_sec % 61,
	    (unsigned)(ms % 1000));
	return out;
}

/* Another one serves than before: by itself, or as it was told to. */
static void takeover_event(struct ctlr *c, const struct ctlr_pair *was, const struct ctlr_pair *p)
{
	const struct plan_member *m = &p->p.m[p->p.serves];
	const struct plan_member *before = was->p.serves >= 0 ? &was->p.m[was->p.serves] : NULL;
	const bool other = before && strcmp(before->name, m->name) != 0;
	const bool planned = m->st.has_served && m->st.served_by == PLAN_STANDBY_E_YIELDS;
	char at[16];

	if (!before)
		ctlr_event(c, EVENT_INFO, "pair", p->name, "%s serves since %s UTC, epoch %" PRIu64 ": %s",
		    m->name, clock_of(p->p.since_ms, at), p->p.epoch,
		    m->st.has_served ? plan_standby_served_text(m->st.served_by) : "it does not say why");
	else if (other)
		ctlr_event(c, planned ? EVENT_INFO : EVENT_WARNING, "pair", p->name,
		    "%s: %s serves instead of %s since %s UTC, epoch %" PRIu64 " after %" PRIu64 ": %s",
		    planned ? "handed over" : "takeover", m->name, before->name, clock_of(p->p.since_ms, at),
		    p->p.epoch, was->p.epoch,
		    m->st.has_served ? plan_standby_served_text(m->st.served_by) : "it does not say why");
	else
		ctlr_event(c, p->p.epoch < was->p.epoch ? EVENT_WARNING : EVENT_INFO, "pair", p->name,
		    "%s serves again since %s UTC, epoch %" PRIu64 " after %" PRIu64 ": %s", m->name,
		    clock_of(p->p.since_ms, at), p->p.epoch, was->p.epoch,
		    p->p.epoch < was->p.epoch ? "it has no journal of what was"
		                              : (m->st.has_served ? plan_standby_served_text(m->st.served_by)
		                                                  : "it does not say why"));
	if (other && planned)
		COUNT(c, takeovers_planned);
	else if (other)
		COUNT(c, takeovers);
}

static void member_events(struct ctlr *c, const struct ctlr_pair *was, const struct ctlr_pair *p)
{
	for (unsigned k = 0; k < PLAN_MEMBERS; k++) {
		const struct plan_member *m = &p->p.m[k];
		const int old = ctlr_pair_member(was, m->name);
		const bool up = old >= 0 && was->p.m[old].up;

		if (*m->name && m->up != up)
			ctlr_event(c, m->up ? EVENT_INFO : EVENT_WARNING, "pair", p->name, "%s is %s (%s)",
			    m->name, m->up ? "up" : "lost: it does not renew its lease", p->member[k].owner);
	}
}

static void verdict_event(struct ctlr *c, const struct ctlr_pair *was, const struct ctlr_pair *p)
{
	static const enum ctlr_severity severity[] = {EVENT_INFO, EVENT_WARNING, EVENT_ERROR};
	const enum plan_standby_why why = p->verdict.why;
	const bool error = plan_standby_why_severity(why) == EVENT_ERROR;

	if (was->mod_rev && why == was->verdict.why &&
	    (!error || !strcmp(p->verdict.text, was->verdict.text)))
		return;
	if (error)
		COUNT(c, pair_conflicts);
	if (why == PLAN_STANDBY_PROTECTED)
		ctlr_event(c, EVENT_INFO, "pair", p->name, "protected: %s", p->verdict.text);
	else
		ctlr_event(c, severity[plan_standby_why_severity(why)], "pair", p->name,
		    "not protected (%s): %s", plan_standby_why_name(why), p->verdict.text);
}

static void events(struct ctlr *c, const struct ctlr_pair *was, const struct ctlr_pair *p)
{
	member_events(c, was, p);
	if (p->p.serves >= 0 && (p->p.serves != was->p.serves || p->p.epoch != was->p.epoch))
		takeover_event(c, was, p);
	if (strcmp(p->differ, was->differ) != 0)
		ctlr_event(c, *p->differ ? EVENT_WARNING : EVENT_INFO, "pair", p->name,
		    "its gateways differ in %s", *p->differ ? p->differ : "nothing any more");
	verdict_event(c, was, p);
}

/* --- applying --------------------------------------------------------------------------------- */

static void judge(struct ctlr_pair *p)
{
	char bars[96];

	differ(p, p->differ, bars);
	plan_standby_judge(&p->p, bars, &p->verdict);
}

/* A process that is still the same keeps what is not stored of it. */
static void keep_member(const struct ctlr *c, const struct ctlr_pair *was, struct ctlr_pair *p, unsigned k)
{
	struct ctlr_member *to = &p->member[k];
	const int old = ctlr_pair_member(was, p->p.m[k].name);
	const struct ctlr_member *from = old >= 0 ? &was->member[old] : NULL;

	if (!from || strcmp(from->reg.boot_id, to->reg.boot_id) != 0 || from->lease != to->lease) {
		to->expires = ctlr_lease_expiry(c);
		return;
	}
	to->heard = from->heard;
	to->expires = from->expires;
	to->running = from->running;
	to->refused = from->refused;
	memcpy(to->refusal, from->refusal, sizeof(to->refusal));
	to->load = from->load;
	to->wants = from->wants && plan_standby_status_differs(&from->want, &p->p.m[k].st);
	to->want = from->want;
}

/* What a process that is gone reported is told by the next one, or by who took over. */
static void sessions_drop(struct ctlr *c, const struct ctlr_pair *was, const struct ctlr_pair *p, unsigned k)
{
	if (*was->p.m[k].name && strcmp(was->member[k].reg.boot_id, p->member[k].reg.boot_id) != 0)
		ctlr_gateway_drop_sessions(c, ctlr_map_find(&c->gateways, p->name), k);
}

static void pair_free(struct ctlr *c, struct ctlr_pair *p)
{
	c->pairs_protected -= p->mod_rev && p->verdict.why == PLAN_STANDBY_PROTECTED;
	ctlr_map_del(&c->pairs, &p->node);
	members_free(p);
	free(p);
}

void ctlr_pair_apply(struct ctlr *c, const struct store_kv *kv, const char *name)
{
	struct ctlr_pair *p = ctlr_pair_of(c, name), was, now = {.mod_rev = kv->mod_rev};
	struct mdl_error err = {.text = "the record cannot be read"};
	json_t *j = kv->value ? json_loadb(kv->value, kv->len, 0, NULL) : NULL;

	if (!kv->value) {
		if (p)
			pair_free(c, p);
		return;
	}
	if (!json_is_object(j) || !pair_read(j, &now, &err)) {
		ctlr_event(c, EVENT_ERROR, "store", kv->key, "%s%s%s: left alone", err.field,
		    *err.field ? ": " : "", err.text);
		json_decref(j);
		members_free(&now);
		return;
	}
	json_decref(j);
	p = CTLR_MAP_NEED(&c->pairs, struct ctlr_pair, name, name);
	if (!p) {
		members_free(&now);
		return;
	}
	was = *p;
	if (!was.mod_rev)
		was.p.serves = -1;
	now.node = p->node;
	memcpy(now.name, p->name, sizeof(now.name));
	for (unsigned k = 0; k < PLAN_MEMBERS; k++) {
		keep_member(c, &was, &now, k);
		sessions_drop(c, &was, &now, k);
	}
	judge(&now);
	*p = now;
	c->pairs_protected += now.verdict.why == PLAN_STANDBY_PROTECTED;
	c->pairs_protected -= was.mod_rev && was.verdict.why == PLAN_STANDBY_PROTECTED;
	if (c->loaded) /* else it is history */
		events(c, &was, p);
	members_free(&was);
}

void ctlr_pair_owner_gone(struct ctlr *c, const char *owner)
{
	struct ctlr_pair *p;

	CTLR_MAP_EACH(&c->pairs, p)
	{
		for (unsigned k = 0; k < PLAN_MEMBERS; k++)
			if (!strcmp(p->member[k].owner, owner))
				p->member[k].expires = ctlr_lease_expiry(c);
	}
}

json_t *ctlr_pairs_problems(struct ctlr *c)
{
	json_t *list = json_array();
	struct ctlr_pair *p;

	CTLR_MAP_EACH(&c->pairs, p)
	{
		if (p->verdict.why != PLAN_STANDBY_PROTECTED && json_array_size(list) < PROBLEMS)
			json_array_append_new(
			    list, json_pack("{s:s, s:s, s:s}", "gateway", p->name, "reason",
			              plan_standby_why_name(p->verdict.why), "why", p->verdict.text));
	}
	return list;
}

void ctlr_pairs_free(struct ctlr *c)
{
	struct ctlr_map_node *n;

	while ((n = ctlr_map_next(&c->pairs, NULL)))
		pair_free(c, (struct ctlr_pair *)n);
	ctlr_map_free(&c->pairs);
}
