/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs. A job is planned against the present state (plan/job.h), stored with its plan, booked when
 * the store has it, and released when it is withdrawn or ends. A plan's gateways precede any other
 * choice for the pairs of the job.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/job/query.h"
#include "controller/job/jobs.h"
#include "controller/job/shape.h"
#include "controller/job/split.h"
#include "controller/server/req.h"
#include "controller/state/change.h"
#include "controller/state/ctlr.h"
#include "controller/state/event.h"
#include "controller/state/pinned.h"
#include "controller/state/reserved.h"

/* --- the job as posted ------------------------------------------------------------------------ */

static bool is_alone(const struct model_pair *p)
{
	char a[MDL_ADDR], b[MDL_ADDR];

	return mdl_ip(p->source, a) && mdl_ip(p->destination, b) && !strcmp(a, b);
}

static bool job_sensible(struct ctlr_req *r, const struct model_job *m)
{
	if (!!m->pairs.n + !!m->ranks.n + m->has_split != 1)
		return ctlr_req_fail(r, 400, "pairs", "pairs: expected either pairs, ranks or a split"),
		       false;
	if (m->ranks.n && !m->has_demand)
		return ctlr_req_fail(r, 400, "demand", "demand: missing: ranks need one"), false;
	if (m->pairs.n && (m->has_demand || m->ring))
		return ctlr_req_fail(r, 400, "demand", "demand, ring: are for ranks"), false;
	if (m->has_split && m->has_demand)
		return ctlr_req_fail(r, 400, "demand", "demand: a split has its own"), false;
	if (!ctlr_split_sensible(r, m) || !ctlr_shape_sensible(r, m))
		return false;
	if (m->has_dscp && m->has_carrier && m->carrier != MODEL_NATIVE)
		return ctlr_req_fail(r, 400, "dscp", "dscp: expected the carrier native, or none"), false;
	if (*m->name && *r->arg[0] && strcmp(m->name, r->arg[0]) != 0)
		return ctlr_req_fail(r, 400, "name", "name: the path says %s", r->arg[0]), false;
	if (!*m->name && !*r->arg[0])
		return ctlr_req_fail(r, 400, "name", "name: missing"), false;
	for (unsigned i = 0; i < m->pairs.n; i++) {
		const struct model_pair *p = &((const struct model_pair *)m->pairs.at)[i];
		char field[64];

		snprintf(field, sizeof(field), "pairs[%u].%s", i,
		    p->source_qpn ? "destination_qpn" : "source_qpn");
		if (is_alone(p)) {
			snprintf(field, sizeof(field), "pairs[%u].destination", i);
			return ctlr_req_fail(r, 400, field, "%s: it is the source", field), false;
		}
		if (!p->source_qpn != !p->destination_qpn)
			return ctlr_req_fail(r, 400, field, "%s: missing: both QPNs or none", field), false;
		if (p->source_qpn && m->granularity != MODEL_QP)
			return ctlr_req_fail(r, 400, "granularity", "granularity: expected qp with QPNs"),
			       false;
	}
	if (*m->tenant && !ctlr_map_find(&r->c->tenants, m->tenant))
		return ctlr_req_fail(r, 409, "tenant", "tenant: there is no %s", m->tenant), false;
	return true;
}

const char *ctlr_job_state(const json_t *record)
{
	return json_object_get(record, "preempted") ? "preempted"
	       : json_object_get(record, "reason")  ? "broken"
	       : ctlr_split_missing(record)         ? "waiting"
	                                            : "planned";
}

static json_t *job_json(const char *name, const json_t *record)
{
	static const char *const also[] = {"reason", "network", "deadline_ms", "preempts", "preempted"};
	json_t *j = json_pack("{s:s, s:s, s:o, s:o}", "name", name, "state", ctlr_job_state(record), "job",
	    json_deep_copy(json_object_get(record, "job")), "plan",
	    json_deep_copy(json_object_get(record, "plan")));

	for (unsigned i = 0; i < sizeof(also) / sizeof(also[0]); i++)
		if (json_object_get(record, also[i]))
			json_object_set_new(j, also[i], json_deep_copy(json_object_get(record, also[i])));
	return j;
}

/* --- requests --------------------------------------------------------------------------------- */

static void reply_planned(void *ctx, int rc, uint64_t rev)
{
	struct ctlr_req *r = ctx;
	const struct ctlr_job *j = ctlr_map_find(&r->c->jobs, r->arg[1]);
	const unsigned status = *r->arg[2] ? 200 : 201;

	if (j)
		ctlr_req_reply(r, status, job_json(j->name, j->json));
	else
		ctlr_req_fail(r, 409, "", "the job was withdrawn meanwhile");
}

/* The record of a job whose room another one has taken: its pairs have routes and no rates, and it
 * is planned again as soon as it fits. */
static json_t *preempted_record(const struct ctlr_job *j, const char *by)
{
	json_t *record = json_deep_copy(j->json);

	json_object_set_new(record, "claims", json_array());
	json_object_set_new(record, "reason", json_sprintf("preempted by %s", by));
	json_object_set_new(
	    record, "preempted", json_pack("{s:s, s:I}", "by", by, "at_ms", (json_int_t)ctlr_wall_ms()));
	json_object_del(record, "preempts");
	return record;
}

/* In one change with the job that needs it, so that nobody sees the one without the other. */
static void preempt(struct ctlr *c, struct ctlr_change *ch, const char *name, const json_t *record)
{
	char key[STORE_KEY_MAX];
	json_t *of;
	size_t i;

	json_array_foreach(json_object_get(record, "preempts"), i, of)
	{
		const struct ctlr_job *j = ctlr_map_find(&c->jobs, json_string_value(of));

		if (!j)
			continue;
		snprintf(key, sizeof(key), "job/%.31s", j->name);
		ctlr_change_put(ch, key, preempted_record(j, name));
	}
}

enum ctlr_outcome ctlr_job_store(
    struct ctlr *c, struct ctlr_req *r, const struct ctlr_job *old, json_t *record, bool decided)
{
	json_t *all = ctlr_reservation_tunnels(c, r->arg[1], old ? old->json : NULL);
	struct ctlr_change *ch = ctlr_change_new(NULL, NULL);
	char key[STORE_KEY_MAX];

	ctlr_change_cmp(ch, "guard/config", c->guard_rev);
	ctlr_change_put(ch, "guard/config", json_object());
	if (old)
		ctlr_change_put(ch, "touch/", json_object());
	if (json_array_size(all))
		ctlr_reservation_put(c, ch, r->arg[1], ctlr_reservation_without(all, record));
	json_decref(all);
	if (decided)
		preempt(c, ch, r->arg[1], record);
	snprintf(key, sizeof(key), "job/%.31s", r->arg[1]);
	ctlr_change_put(ch, key, record);
	return ctlr_req_commit_then(r, ch, reply_planned);
}

/* Plans a job and stores it. */
static enum ctlr_outcome decide_job(
    struct ctlr *c, struct ctlr_req *r, const struct model_job *m, json_t *posted, const struct ctlr_job *old)
{
	json_t *record;

	if (ctlr_reservation_locked(c, r->arg[1], r->query))
		return ctlr_query_wait(c, r, r->arg[1]);
	record = ctlr_job_plan(c, r, r->arg[1], m, posted, old);
	if (r->status) {
		json_decref(record);
		return REQ_DONE;
	}
	if (!record || ctlr_query_missing(r)) {
		json_decref(record);
		return ctlr_query_paths(c, r, r->arg[1]);
	}
	if (!ctlr_job_fits_documents(c, r, record, old)) {
		json_decref(record);
		return REQ_DONE;
	}
	if (json_object_get(record, "network") && !ctlr_query_made(r))
		return ctlr_query_make(c, r, r->arg[1], record);
	return ctlr_job_store(c, r, old, record, true);
}

static enum ctlr_outcome put_job(struct ctlr *c, struct ctlr_req *r, bool post)
{
	struct model_job m;
	struct ctlr_job *old;
	json_t *json = NULL, *posted;
	enum ctlr_outcome out = REQ_DONE;

	if (!ctlr_req_read(r, &model_job_table, &m, &json))
		return REQ_DONE;
	r->status = 0;
	if (!job_sensible(r, &m)) {
		mdl_free(&model_job_table, &m);
		json_decref(json);
		return REQ_DONE;
	}
	snprintf(r->arg[1], sizeof(r->arg[1]), "%s", *m.name ? m.name : r->arg[0]);
	json_object_del(json, "name");
	old = ctlr_map_find(&c->jobs, r->arg[1]);
	posted = json_object_get(old ? old->json : NULL, "job");
	*r->arg[2] = 0;
	if (old)
		snprintf(r->arg[2], sizeof(r->arg[2]), "again");
	if (old && json_equal(posted, json) && !ctlr_split_missing(old->json) &&
	    !ctlr_split_failed(old->json))
		ctlr_req_reply(r, 200, job_json(old->name, old->json));
	else if (old && post)
		ctlr_req_fail(r, 409, "name", "name: another job is %s", old->name);
	if (!r->status)
		out = decide_job(c, r, &m, json, old);
	mdl_free(&model_job_table, &m);
	json_decref(json);
	return out;
}

enum ctlr_outcome ctlr_api_job_post(struct ctlr *c, struct ctlr_req *r)
{
	return put_job(c, r, true);
}

enum ctlr_outcome ctlr_api_job_put(struct ctlr *c, struct ctlr_req *r)
{
	return put_job(c, r, false);
}

void ctlr_job_guard(struct ctlr *c, struct ctlr_change *ch)
{
	ctlr_change_cmp(ch, "guard/config", c->guard_rev);
	ctlr_change_put(ch, "guard/config", json_object());
	ctlr_change_put(ch, "touch/", json_object());
}

size_t ctlr_job_withdraw(struct ctlr *c, struct ctlr_change *ch, const struct ctlr_job *j)
{
	json_t *all = ctlr_reservation_tunnels(c, j->name, j->json);
	const size_t bytes = json_dumpb(all, NULL, 0, JSON_COMPACT);
	char key[STORE_KEY_MAX];

	snprintf(key, sizeof(key), "job/%s", j->name);
	ctlr_change_del(ch, key);
	if (json_array_size(all))
		ctlr_reservation_put(c, ch, j->name, json_incref(all));
	json_decref(all);
	return bytes;
}

/* The change that withdraws one job. */
static struct ctlr_change *withdrawal_change(struct ctlr *c, const struct ctlr_job *j)
{
	struct ctlr_change *ch = ctlr_change_new(NULL, NULL);

	ctlr_job_guard(c, ch);
	(void)ctlr_job_withdraw(c, ch, j);
	return ch;
}

enum ctlr_outcome ctlr_api_job_delete(struct ctlr *c, struct ctlr_req *r)
{
	const struct ctlr_job *j = ctlr_map_find(&c->jobs, r->arg[0]);

	if (!j)
		return ctlr_req_fail(r, 404, "", "there is no job %s", r->arg[0]);
	if (ctlr_reservation_locked(c, j->name, r->query))
		return ctlr_query_wait(c, r, j->name);
	return ctlr_req_commit(r, withdrawal_change(c, j), 200);
}

enum ctlr_outcome ctlr_api_job_get(struct ctlr *c, struct ctlr_req *r)
{
	const struct ctlr_job *j = ctlr_map_find(&c->jobs, r->arg[0]);

	return j ? ctlr_req_reply(r, 200, job_json(j->name, j->json))
	         : ctlr_req_fail(r, 404, "", "there is no job %s", r->arg[0]);
}

enum ctlr_outcome ctlr_api_job_list(struct ctlr *c, struct ctlr_req *r)
{
	struct ctlr_job **all = ctlr_jobs_by_name(c);
	json_t *list = json_array();

	for (struct ctlr_job **p = all; p && *p; p++)
		json_array_append_new(list, job_json((*p)->name, (*p)->json));
	free(all);
	return ctlr_req_reply(r, 200, json_pack("{s:o}", "jobs", list));
}

/* --- from the store --------------------------------------------------------------------------- */

static void job_free(struct ctlr *c, struct ctlr_job *j)
{
	ctlr_reserved_set_job(c, j, false);
	ctlr_pinned_set_job(c, j, false);
	ctlr_job_set_routes(c, j, false);
	ctlr_containers_set_job(c, j, false);
	plan_book_release(c->book, j->claim, j->claims);
	ctlr_map_del(&c->jobs, &j->node);
	json_decref(j->json);
	free(j->claim);
	free(j);
}

/* Logs how a job moved; every replica does. */
static void log_change(struct ctlr *c, const char *name, const json_t *was, const json_t *is)
{
	const json_t *old = json_object_get(was, "plan"), *plan = json_object_get(is, "plan");
	const json_t *reason = json_object_get(is, "reason");
	const size_t n = json_array_size(plan);
	size_t moved = 0;

	if (!was || !json_equal(json_object_get(was, "job"), json_object_get(is, "job"))) {
		ctlr_event(c, EVENT_INFO, "job", name, "planned: %zu pairs", n);
		return;
	}
	for (size_t i = 0; i < n; i++)
		moved += !json_equal(json_object_get(json_array_get(old, i), "pair"),
		    json_object_get(json_array_get(plan, i), "pair"));
	if (moved)
		ctlr_event(
		    c, EVENT_INFO, "job", name, "%zu of its %zu pairs moved to other gateways", moved, n);
	if (reason && !json_equal(reason, json_object_get(was, "reason")))
		ctlr_event(c, EVENT_WARNING, "job", name, "%s%s",
		    json_object_get(is, "preempted") ? "" : "broken: ", json_string_value(reason));
	if (!reason && json_object_get(was, "reason"))
		ctlr_event(c, EVENT_INFO, "job", name, "fits again");
}

void ctlr_job_apply(struct ctlr *c, const struct store_kv *kv, const char *name)
{
	struct ctlr_job *j = ctlr_map_find(&c->jobs, name);
	json_t *record = kv->value ? json_loadb(kv->value, kv->len, 0, NULL) : NULL;

	if (kv->value && !ctlr_job_record_ok(record)) {
		ctlr_event(c, EVENT_ERROR, "store", kv->key, "the record cannot be read: left alone");
		json_decref(record);
		return;
	}
	if (record) {
		log_change(c, name, j ? j->json : NULL, record);
		ctlr_ranks_log(c, name, j ? j->json : NULL, record);
	}
	ctlr_reservation_mirror(c, name, j ? j->json : NULL, record);
	if (j)
		job_free(c, j);
	c->jobs_look = true;
	if (!kv->value) {
		ctlr_event(c, EVENT_INFO, "job", name, "withdrawn");
		return;
	}
	j = calloc(1, sizeof(*j));
	if (!j)
		return;
	snprintf(j->name, sizeof(j->name), "%.31s", name);
	if (ctlr_map_add(&c->jobs, &j->node, j->name)) {
		free(j);
		return;
	}
	j->json = record;
	j->mod_rev = kv->mod_rev;
	j->vni = ctlr_job_vni(c, record);
	j->until_ms = (uint64_t)json_integer_value(json_object_get(record, "until_ms"));
	j->claims = ctlr_job_claims(record, &j->claim);
	if (plan_book_claim(c->book, j->claim, j->claims))
		j->claims = 0;
	ctlr_reserved_set_job(c, j, true);
	ctlr_pinned_set_job(c, j, true);
	ctlr_containers_set_job(c, j, true);
	ctlr_job_set_routes(c, j, true);
}

/* At start jobs are applied before their tenants. */
void ctlr_job_set_tenant(struct ctlr *c)
{
	struct ctlr_job *j;

	CTLR_MAP_EACH(&c->jobs, j)
	{
		const uint32_t vni = ctlr_job_vni(c, j->json);

		if (j->vni == vni)
			continue;
		ctlr_job_set_routes(c, j, false);
		j->vni = vni;
		ctlr_job_set_routes(c, j, true);
	}
}

void ctlr_jobs_free(struct ctlr *c)
{
	struct ctlr_map_node *n;

	while ((n = ctlr_map_next(&c->jobs, NULL)))
		job_free(c, (struct ctlr_job *)n);
}
