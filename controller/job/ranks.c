/* SPDX-License-Identifier: Apache-2.0 */
/* Tells ranks to containers, as soon as they change, and takes reports of containers that died. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/job/jobs.h"
#include "controller/job/query.h"
#include "controller/job/split.h"
#include "controller/server/poll.h"

/* --- the answer ------------------------------------------------------------------------------- */

struct view { /* a job's record, read */
	struct model_job m;
	json_t *table;
	const struct ctlr_job *job;
	uint32_t width, world;
};

static uint64_t one_or(uint64_t v)
{
	return v ? v : 1;
}

static bool view_open(struct view *v, const struct ctlr_job *j)
{
	struct mdl_error err;

	*v = (struct view){.table = json_object_get(j->json, "ranks"), .job = j};
	if (!v->table || mdl_read(json_object_get(j->json, "job"), &model_job_table, &v->m, &err))
		return false;
	v->width = (uint32_t)(one_or(v->m.split.data) * one_or(v->m.split.tensor));
	v->world = (uint32_t)(v->width * one_or(v->m.split.pipeline));
	for (unsigned i = 0; i < v->m.containers.n; i++)
		ctlr_split_sort_nics(&((struct model_container *)v->m.containers.at)[i]);
	return true;
}

static json_t *entry_of(const struct view *v, size_t i)
{
	return json_array_get(json_object_get(v->table, "containers"), i);
}

static json_t *nic_json(const struct model_nic *nic)
{
	json_t *j = json_pack("{s:s, s:s}", "name", nic->name, "address", nic->address);

	if (*nic->hca)
		json_object_set_new(j, "hca", json_string(nic->hca));
	return j;
}

/* The containers with ranks whose first rank is below this one's. */
static unsigned node_rank(const struct view *v, uint64_t first)
{
	unsigned n = 0;

	for (size_t i = 0; i < v->m.containers.n; i++)
		n += mdl_number_of(entry_of(v, i), "count") && mdl_number_of(entry_of(v, i), "first") < first;
	return n;
}

static json_t *container_json(const struct view *v, size_t i)
{
	const struct model_container *k = &((const struct model_container *)v->m.containers.at)[i];
	const struct model_cluster *cluster = v->m.split.clusters.at;
	const struct model_nic *nic = k->nics.at;
	json_t *e = entry_of(v, i), *nics = json_array(), *ranks = json_array(), *j;
	const uint64_t first = mdl_number_of(e, "first"), count = mdl_number_of(e, "count");
	const unsigned at = (unsigned)mdl_number_of(e, "cluster");

	for (unsigned n = 0; n < k->nics.n; n++)
		json_array_append_new(nics, nic_json(&nic[n]));
	for (unsigned n = 0; n < count && n < k->ranks; n++) {
		const uint64_t rank = first + n, stage = rank / v->width;

		json_array_append_new(ranks, json_pack("{s:I, s:I, s:i}", "rank", (json_int_t)rank, "stage",
		                                 (json_int_t)stage, "nic", (int)ctlr_split_nic(k, n)));
	}
	j = json_pack("{s:s, s:s, s:b, s:o, s:o}", "name", k->name, "site",
	    at < v->m.split.clusters.n ? cluster[at].site : "", "failed",
	    json_is_true(json_object_get(e, "failed")), "nics", nics, "ranks", ranks);
	if (*k->node)
		json_object_set_new(j, "node", json_string(k->node));
	if (count)
		json_object_set_new(j, "node_rank", json_integer(node_rank(v, first)));
	return j;
}

/* The container of rank 0. */
static json_t *master_json(const struct view *v)
{
	const struct model_container *k = v->m.containers.at;
	const uint64_t port = v->m.split.master_port;

	for (size_t i = 0; i < v->m.containers.n; i++)
		if (mdl_number_of(entry_of(v, i), "count") && !mdl_number_of(entry_of(v, i), "first"))
			return json_pack("{s:s, s:s, s:I}", "container", k[i].name, "address",
			    ((const struct model_nic *)k[i].nics.at)->address, "port",
			    (json_int_t)(port ? port : MODEL_MASTER_PORT));
	return NULL;
}

/* only: the container that is asked for; NULL: all. */
static json_t *ranks_json(const struct view *v, const char *only)
{
	const struct model_container *k = v->m.containers.at;
	json_t *list = json_array(), *master = master_json(v), *reason, *j;

	for (size_t i = 0; i < v->m.containers.n; i++)
		if (!only || !strcmp(k[i].name, only))
			json_array_append_new(list, container_json(v, i));
	j = json_pack("{s:s, s:I, s:s, s:I, s:I, s:I, s:o, s:o}", "job", v->job->name, "generation",
	    (json_int_t)mdl_number_of(v->table, "generation"), "state", ctlr_job_state(v->job->json),
	    "world_size", (json_int_t)v->world, "nodes", (json_int_t)node_rank(v, UINT64_MAX), "missing",
	    (json_int_t)mdl_number_of(v->table, "missing"), "demand",
	    json_deep_copy(json_object_get(v->table, "demand")), "containers", list);
	reason = json_object_get(v->job->json, "reason");
	if (reason)
		json_object_set_new(j, "reason", json_deep_copy(reason));
	if (master)
		json_object_set_new(j, "master", master);
	return j;
}

static bool has_container(const struct view *v, const char *name)
{
	const struct model_container *k = v->m.containers.at;

	for (size_t i = 0; i < v->m.containers.n; i++)
		if (!strcmp(k[i].name, name))
			return true;
	return false;
}

/* --- GET -------------------------------------------------------------------------------------- */

/* True if the job's ranks are not those that the client knows. */
static bool ranks_changed(struct ctlr *c, const struct ctlr_req *r)
{
	const struct ctlr_job *j = ctlr_map_find(&c->jobs, r->arg[0]);

	return !j || mdl_number_of(json_object_get(j->json, "ranks"), "generation") != r->after;
}

enum ctlr_outcome ctlr_api_job_ranks_get(struct ctlr *c, struct ctlr_req *r)
{
	const struct ctlr_job *j = ctlr_map_find(&c->jobs, r->arg[0]);
	const char *only = ctlr_req_param(r, "container");
	struct view v = {0};
	uint64_t wait;

	if (!ctlr_req_number(r, "after", 0, INT64_MAX, 0, &r->after) ||
	    !ctlr_req_number(r, "wait_ms", 0, MODEL_WAIT_MAX_MS, 0, &wait))
		return REQ_DONE;
	if (only && !mdl_is_ident(only))
		return ctlr_req_fail(r, 400, "container", "container: expected a container's name");
	if (r->who.role == ROLE_CONTAINER && strcmp(r->who.name, r->arg[0]) != 0)
		return ctlr_req_fail(r, 403, "", "the certificate is for the job %s", r->who.name);
	if (!j || !view_open(&v, j))
		return ctlr_req_fail(r, 404, "", "there is no job %s with ranks", r->arg[0]);
	if (only && !has_container(&v, only))
		ctlr_req_fail(r, 404, "container", "container: the job %s has no %s", j->name, only);
	else if (ranks_changed(c, r))
		ctlr_req_reply(r, 200, ranks_json(&v, only));
	else
		r->status = 304;
	mdl_free(&model_job_table, &v.m);
	return r->status == 304 ? ctlr_poll_wait(c, r, ranks_changed, wait) : REQ_DONE;
}

/* --- failures --------------------------------------------------------------------------------- */

/* The containers that failed so far, {NAME: true}. The caller owns it. */
static json_t *failed_so_far(const json_t *table)
{
	json_t *failed = json_object(), *e;
	size_t i;

	json_array_foreach(
	    json_object_get(table, "containers"), i, e) if (json_is_true(json_object_get(e, "failed")))
	    json_object_set_new(failed, mdl_text_of(e, "name"), json_true());
	return failed;
}

/* Adds the containers with this name, or on this server. False: there is none. */
static bool add_failed(json_t *failed, const struct model_job *m, const char *name, bool node)
{
	const struct model_container *k = m->containers.at;
	bool found = false;

	for (size_t i = 0; i < m->containers.n; i++) {
		if (strcmp(node ? k[i].node : k[i].name, name) != 0)
			continue;
		json_object_set_new(failed, k[i].name, json_true());
		found = true;
	}
	return found;
}

static bool add_all(struct ctlr_req *r, json_t *failed, const struct model_job *m,
    const struct mdl_list *list, const char *what, bool node)
{
	const char(*name)[MDL_ID] = list->at;

	for (unsigned i = 0; i < list->n; i++)
		if (!add_failed(failed, m, name[i], node)) {
			char field[64];

			snprintf(field, sizeof(field), "%s[%u]", what, i);
			ctlr_req_fail(r, 409, field, "%s: the job has no %s", field, name[i]);
			return false;
		}
	return true;
}

/* Gives the ranks of containers that failed to others. Networks keep what they made. */
static enum ctlr_outcome replace_failed(struct ctlr *c, struct ctlr_req *r, const struct ctlr_job *j,
    const struct model_job *m, const json_t *failed)
{
	json_t *table = ctlr_split_table(c, r, m, j, failed), *record;

	if (!table)
		return REQ_DONE;
	record = ctlr_job_plan_again(c, j, table);
	json_decref(table);
	if (!record)
		return ctlr_req_fail(r, 503, "", "out of memory");
	if (ctlr_job_fits_documents(c, r, record, j))
		return ctlr_job_store(c, r, j, record, false);
	json_decref(record);
	return REQ_DONE;
}

enum ctlr_outcome ctlr_api_job_failures_post(struct ctlr *c, struct ctlr_req *r)
{
	struct ctlr_job *j = ctlr_map_find(&c->jobs, r->arg[0]);
	enum ctlr_outcome out = REQ_DONE;
	struct model_failure f;
	struct view v = {0};
	json_t *failed;

	if (!ctlr_req_read(r, &model_failure_table, &f, NULL))
		return REQ_DONE;
	r->status = 0;
	if (!f.containers.n && !f.nodes.n)
		ctlr_req_fail(r, 400, "containers", "containers: expected containers or nodes");
	else if (!j || !view_open(&v, j))
		ctlr_req_fail(r, 404, "", "there is no job %s with ranks", r->arg[0]);
	else if (ctlr_split_missing(j->json) && !json_object_get(j->json, "reason"))
		ctlr_req_fail(r, 409, "", "the job waits for containers: put it with those that live");
	failed = failed_so_far(v.table);
	if (!r->status && add_all(r, failed, &v.m, &f.containers, "containers", false) &&
	    add_all(r, failed, &v.m, &f.nodes, "nodes", true)) {
		snprintf(r->arg[1], sizeof(r->arg[1]), "%s", j->name);
		snprintf(r->arg[2], sizeof(r->arg[2]), "again");
		out = ctlr_reservation_locked(c, j->name, r->query) ? ctlr_query_wait(c, r, j->name)
		                                                    : replace_failed(c, r, j, &v.m, failed);
	}
	json_decref(failed);
	mdl_free(&model_job_table, &v.m);
	mdl_free(&model_failure_table, &f);
	return out;
}
