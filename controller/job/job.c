/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs: planned against what there is (plan/job.h), stored with their plan, booked when the store has them,
 * given back when they are withdrawn or over. What a job's pairs were given goes before any other choice.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/job/ask.h"
#include "controller/job/jobs.h"
#include "controller/server/req.h"
#include "controller/state/change.h"
#include "controller/state/ctlr.h"
#include "controller/state/event.h"
#include "controller/state/reserve.h"

/* --- the job as posted ------------------------------------------------------------------------ */

static bool sensible(struct req *r, const struct model_job *m)
{
	if (!m->pairs.n == !m->ranks.n)
		return req_fail(r, 400, "pairs", "pairs: expected either pairs or ranks"), false;
	if (m->ranks.n && !m->has_demand)
		return req_fail(r, 400, "demand", "demand: missing: ranks need one"), false;
	if (m->pairs.n && (m->has_demand || m->ring))
		return req_fail(r, 400, "demand", "demand, ring: are for ranks"), false;
	if (*m->name && *r->arg[0] && strcmp(m->name, r->arg[0]) != 0)
		return req_fail(r, 400, "name", "name: the path says %s", r->arg[0]), false;
	if (!*m->name && !*r->arg[0])
		return req_fail(r, 400, "name", "name: missing"), false;
	for (unsigned i = 0; i < m->pairs.n; i++) {
		const struct model_pair *p = &((const struct model_pair *)m->pairs.at)[i];
		char field[64];

		snprintf(field, sizeof(field), "pairs[%u].%s", i,
		    p->source_qpn ? "destination_qpn" : "source_qpn");
		if (!p->source_qpn != !p->destination_qpn)
			return req_fail(r, 400, field, "%s: missing: both QPNs or none", field), false;
		if (p->source_qpn && m->granularity != MODEL_QP)
			return req_fail(r, 400, "granularity", "granularity: expected qp with QPNs"), false;
	}
	if (*m->tenant && !map_find(&r->c->tenants, m->tenant))
		return req_fail(r, 409, "tenant", "tenant: there is no %s", m->tenant), false;
	return true;
}

static json_t *job_json(const char *name, const json_t *record)
{
	json_t *reason = json_object_get(record, "reason");
	json_t *j = json_pack("{s:s, s:s, s:o, s:o}", "name", name, "state", reason ? "broken" : "planned",
	    "job", json_deep_copy(json_object_get(record, "job")), "plan",
	    json_deep_copy(json_object_get(record, "plan")));

	if (reason)
		json_object_set_new(j, "reason", json_deep_copy(reason));
	if (json_object_get(record, "network"))
		json_object_set_new(j, "network", json_deep_copy(json_object_get(record, "network")));
	return j;
}

/* --- requests --------------------------------------------------------------------------------- */

static void planned(void *ctx, int rc, uint64_t rev)
{
	struct req *r = ctx;
	const struct job *j = map_find(&r->c->jobs, r->arg[1]);
	const unsigned status = *r->arg[2] ? 200 : 201;

	if (j)
		req_reply(r, status, job_json(j->name, j->json));
	else
		req_fail(r, 409, "", "the job was withdrawn meanwhile");
}

/* Networks' tunnels that the record has not are given back. */
static enum outcome keep(struct ctlr *c, struct req *r, const struct job *old, json_t *record)
{
	json_t *all = grant_tunnels(c, r->arg[1], old ? old->json : NULL);
	struct change *ch = change_new(NULL, NULL);
	char key[STORE_KEY_MAX];

	change_cmp(ch, "guard/config", c->guard_rev);
	change_put(ch, "guard/config", json_object());
	if (old)
		change_put(ch, "touch/", json_object());
	if (json_array_size(all))
		grant_put(c, ch, r->arg[1], grant_without(all, record));
	json_decref(all);
	snprintf(key, sizeof(key), "job/%.31s", r->arg[1]);
	change_put(ch, key, record);
	return req_commit_then(r, ch, planned);
}

static enum outcome put(struct ctlr *c, struct req *r, bool post)
{
	struct model_job m;
	struct job *old;
	json_t *json = NULL, *record = NULL, *posted;
	bool wait;

	if (!req_read(r, &model_job_table, &m, &json))
		return REQ_DONE;
	r->status = 0;
	if (!sensible(r, &m)) {
		mdl_free(&model_job_table, &m);
		json_decref(json);
		return REQ_DONE;
	}
	snprintf(r->arg[1], sizeof(r->arg[1]), "%s", *m.name ? m.name : r->arg[0]);
	json_object_del(json, "name");
	old = map_find(&c->jobs, r->arg[1]);
	posted = json_object_get(old ? old->json : NULL, "job");
	*r->arg[2] = 0;
	if (old)
		snprintf(r->arg[2], sizeof(r->arg[2]), "again");
	if (old && json_equal(posted, json))
		req_reply(r, 200, job_json(old->name, old->json));
	else if (old && post)
		req_fail(r, 409, "name", "name: another job is %s", old->name);
	wait = grant_taken(c, r->arg[1], r->ask);
	if (!r->status && !wait)
		record = job_plan(c, r, r->arg[1], &m, json, old);
	mdl_free(&model_job_table, &m);
	json_decref(json);
	if (r->status)
		return REQ_DONE;
	if (wait)
		return ask_wait(c, r, r->arg[1]);
	if (!record || ask_missing(r)) {
		json_decref(record);
		return ask_paths(c, r, r->arg[1]);
	}
	if (json_object_get(record, "network") && !ask_made(r))
		return ask_make(c, r, r->arg[1], record);
	return keep(c, r, old, record);
}

enum outcome job_post(struct ctlr *c, struct req *r)
{
	return put(c, r, true);
}

enum outcome job_put(struct ctlr *c, struct req *r)
{
	return put(c, r, false);
}

/* What networks made for it is given back when the store has that. */
static struct change *withdrawal(struct ctlr *c, const struct job *j)
{
	json_t *all = grant_tunnels(c, j->name, j->json);
	struct change *ch = change_new(NULL, NULL);
	char key[STORE_KEY_MAX];

	snprintf(key, sizeof(key), "job/%s", j->name);
	change_cmp(ch, "guard/config", c->guard_rev);
	change_put(ch, "guard/config", json_object());
	change_put(ch, "touch/", json_object());
	change_del(ch, key);
	if (json_array_size(all))
		grant_put(c, ch, j->name, json_incref(all));
	json_decref(all);
	return ch;
}

enum outcome job_delete(struct ctlr *c, struct req *r)
{
	const struct job *j = map_find(&c->jobs, r->arg[0]);

	if (!j)
		return req_fail(r, 404, "", "there is no job %s", r->arg[0]);
	if (grant_taken(c, j->name, r->ask))
		return ask_wait(c, r, j->name);
	return req_commit(r, withdrawal(c, j), 200);
}

enum outcome job_get(struct ctlr *c, struct req *r)
{
	const struct job *j = map_find(&c->jobs, r->arg[0]);

	return j ? req_reply(r, 200, job_json(j->name, j->json))
	         : req_fail(r, 404, "", "there is no job %s", r->arg[0]);
}

enum outcome job_list(struct ctlr *c, struct req *r)
{
	struct job **all = jobs_by_name(c);
	json_t *list = json_array();

	for (struct job **p = all; p && *p; p++)
		json_array_append_new(list, job_json((*p)->name, (*p)->json));
	free(all);
	return req_reply(r, 200, json_pack("{s:o}", "jobs", list));
}

/* --- time ------------------------------------------------------------------------------------- */

void job_tick(struct ctlr *c)
{
	const uint64_t now = ctlr_wall_ms();
	struct job *j;

	MAP_EACH(&c->jobs, j)
	{
		if (!j->until_ms || now < j->until_ms)
			continue;
		j->until_ms = now + 1000; /* again, if the store does not take it */
		if (!grant_taken(c, j->name, NULL) && change_submit(c, withdrawal(c, j)))
			event(EVENT_INFO, "job", j->name, "its time is over");
	}
	job_move_tick(c);
}

/* --- from the store --------------------------------------------------------------------------- */

static uint32_t job_vni(const struct ctlr *c, const json_t *record)
{
	const char *tenant = json_string_value(json_object_get(json_object_get(record, "job"), "tenant"));
	const struct net_tenant *nt = tenant ? map_find(&c->tenants, tenant) : NULL;

	return nt ? nt->vni : 0;
}

static void job_free(struct ctlr *c, struct job *j)
{
	reserve_job(c, j, false);
	job_rows(c, j, false);
	plan_book_give(c->book, j->take, j->takes);
	map_del(&c->jobs, &j->node);
	json_decref(j->json);
	free(j->take);
	free(j);
}

/* What became of a job that was moved: at every replica. */
static void tell(const char *name, const json_t *was, const json_t *is)
{
	const json_t *old = json_object_get(was, "plan"), *plan = json_object_get(is, "plan");
	const json_t *reason = json_object_get(is, "reason");
	const size_t n = json_array_size(plan);
	size_t moved = 0;

	if (!was || !json_equal(json_object_get(was, "job"), json_object_get(is, "job"))) {
		event(EVENT_INFO, "job", name, "planned: %zu pairs", n);
		return;
	}
	for (size_t i = 0; i < n; i++)
		moved += !json_equal(json_object_get(json_array_get(old, i), "pair"),
		    json_object_get(json_array_get(plan, i), "pair"));
	if (moved)
		event(EVENT_INFO, "job", name, "%zu of its %zu pairs moved to other gateways", moved, n);
	if (reason && !json_equal(reason, json_object_get(was, "reason")))
		event(EVENT_WARNING, "job", name, "broken: %s", json_string_value(reason));
	if (!reason && json_object_get(was, "reason"))
		event(EVENT_INFO, "job", name, "fits again");
}

void job_apply(struct ctlr *c, const struct store_kv *kv, const char *name)
{
	struct job *j = map_find(&c->jobs, name);
	json_t *record = kv->value ? json_loadb(kv->value, kv->len, 0, NULL) : NULL;

	if (kv->value && !job_record_ok(record)) {
		event(EVENT_ERROR, "store", kv->key, "the record cannot be read: left alone");
		json_decref(record);
		return;
	}
	if (record)
		tell(name, j ? j->json : NULL, record);
	grant_mirror(c, name, j ? j->json : NULL, record);
	if (j)
		job_free(c, j);
	c->jobs_look = true;
	if (!kv->value) {
		event(EVENT_INFO, "job", name, "withdrawn");
		return;
	}
	j = calloc(1, sizeof(*j));
	if (!j)
		return;
	snprintf(j->name, sizeof(j->name), "%.31s", name);
	if (map_add(&c->jobs, &j->node, j->name)) {
		free(j);
		return;
	}
	j->json = record;
	j->mod_rev = kv->mod_rev;
	j->vni = job_vni(c, record);
	j->until_ms = (uint64_t)json_integer_value(json_object_get(record, "until_ms"));
	j->takes = job_takes(record, &j->take);
	if (plan_book_take(c->book, j->take, j->takes))
		j->takes = 0;
	reserve_job(c, j, true);
	job_rows(c, j, true);
}

/* At start jobs come before their tenants. */
void job_tenant(struct ctlr *c, const struct net_tenant *nt)
{
	struct job *j;

	MAP_EACH(&c->jobs, j)
	{
		const char *of =
		    json_string_value(json_object_get(json_object_get(j->json, "job"), "tenant"));

		if (!of || strcmp(of, nt->name) != 0 || j->vni == nt->vni)
			continue;
		job_rows(c, j, false);
		j->vni = nt->vni;
		job_rows(c, j, true);
	}
}

void jobs_free(struct ctlr *c)
{
	struct map_node *n;

	while ((n = map_next(&c->jobs, NULL)))
		job_free(c, (struct job *)n);
}
