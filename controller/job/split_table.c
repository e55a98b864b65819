/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the table of a job's ranks; see split.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/job/split.h"

static uint32_t one_or(uint64_t v)
{
	return v ? (uint32_t)v : 1;
}

static int cmp_nic(const void *va, const void *vb)
{
	const struct model_nic *a = va, *b = vb;
	const int names = strverscmp(a->name, b->name);

	return names ? names : strcmp(a->address, b->address);
}

void ctlr_split_sort_nics(struct model_container *k)
{
	if (k->nics.n)
		qsort(k->nics.at, k->nics.n, sizeof(struct model_nic), cmp_nic);
}

/* --- pairs ------------------------------------------------------------------------------------ */

/* The address of each rank that a container has. Sorts the containers' NICs. */
static void set_addresses(
    const struct model_job *m, const json_t *table, struct plan_rank_address *at, uint32_t world)
{
	struct model_container *k = m->containers.at;
	json_t *e;
	size_t i;

	for (uint32_t n = 0; n < world; n++)
		at[n].cluster = PLAN_RANK_NONE;
	json_array_foreach(json_object_get(table, "containers"), i, e)
	{
		const uint64_t first = mdl_number_of(e, "first"), count = mdl_number_of(e, "count");
		const struct model_nic *nic;

		if (i >= m->containers.n || count > k[i].ranks || first > world || count > world - first)
			continue;
		ctlr_split_sort_nics(&k[i]);
		nic = k[i].nics.at;
		for (unsigned n = 0; n < count; n++) {
			at[first + n].cluster = (uint32_t)mdl_number_of(e, "cluster");
			(void)ctlr_lpm_parse_ip(nic[ctlr_split_nic(&k[i], n)].address, &at[first + n].addr);
		}
	}
}

int ctlr_split_pairs(
    struct ctlr_req *r, const struct model_job *m, const json_t *table, struct plan_job_pair **out)
{
	const struct plan_split s = {.pipeline = one_or(m->split.pipeline),
	    .data = one_or(m->split.data),
	    .tensor = one_or(m->split.tensor),
	    .ring = m->ring};
	const json_t *demand = json_object_get(table, "demand");
	const struct plan_triple want = {mdl_number_of(demand, "bandwidth_bps"),
	    (uint32_t)mdl_number_of(demand, "delay_us"), (uint32_t)mdl_number_of(demand, "jitter_us")};
	const uint64_t world = (uint64_t)s.pipeline * s.data * s.tensor;
	struct plan_rank_address *at = world <= PLAN_JOB_RANKS_MAX ? calloc(world, sizeof(*at)) : NULL;
	int n = RWY_ENOMEM;

	*out = NULL;
	if (at) {
		set_addresses(m, table, at, (uint32_t)world);
		n = plan_ranks_pairs(out, &s, at, &want, MODEL_BPS_MAX);
	}
	free(at);
	if (n < 0 && r && n == PLAN_ERANGE)
		ctlr_req_fail(r, 400, "split",
		    "split: the ranks of two addresses demand more than 10^15 bit/s together");
	else if (n < 0 && r)
		ctlr_req_fail(r, 503, "", "out of memory");
	return n;
}

/* --- the record ------------------------------------------------------------------------------- */

static bool number_ok(const json_t *v, uint64_t max)
{
	return json_is_integer(v) && json_integer_value(v) >= 0 && (uint64_t)json_integer_value(v) <= max;
}

bool ctlr_split_table_ok(const json_t *job, const json_t *table)
{
	json_t *containers = json_object_get(job, "containers"), *list = json_object_get(table, "containers");
	const json_t *first = json_object_get(table, "first");
	bool ok = json_is_object(json_object_get(job, "split")) && json_is_array(containers) &&
	          json_array_size(containers) == json_array_size(list) && json_is_array(first) &&
	          number_ok(json_object_get(table, "missing"), PLAN_JOB_RANKS_MAX) &&
	          number_ok(json_object_get(table, "generation"), INT64_MAX) &&
	          json_is_object(json_object_get(table, "demand"));

	for (size_t i = 0; ok && i < json_array_size(list); i++) {
		const json_t *e = json_array_get(list, i);

		ok = json_is_string(json_object_get(e, "name")) &&
		     !strcmp(mdl_text_of(e, "name"), mdl_text_of(json_array_get(containers, i), "name")) &&
		     number_ok(json_object_get(e, "cluster"), PLAN_CLUSTERS_MAX - 1) &&
		     number_ok(json_object_get(e, "first"), PLAN_JOB_RANKS_MAX) &&
		     number_ok(json_object_get(e, "count"), PLAN_JOB_RANKS_MAX);
	}
	for (size_t i = 0; ok && i < json_array_size(first); i++)
		ok = number_ok(json_array_get(first, i), PLAN_JOB_RANKS_MAX);
	return ok;
}

unsigned ctlr_split_missing(const json_t *record)
{
	return (unsigned)mdl_number_of(json_object_get(record, "ranks"), "missing");
}

bool ctlr_split_failed(const json_t *record)
{
	json_t *list = json_object_get(json_object_get(record, "ranks"), "containers"), *e;
	size_t i;

	json_array_foreach(list, i, e) if (json_is_true(json_object_get(e, "failed"))) return true;
	return false;
}

json_t *ctlr_split_reason(const json_t *record)
{
	json_t *list = json_object_get(json_object_get(record, "ranks"), "containers"), *e;
	unsigned failed = 0;
	size_t i;

	json_array_foreach(list, i, e) failed += json_is_true(json_object_get(e, "failed"));
	return json_sprintf(
	    "%u ranks have no container: %u containers failed, and no spare one is left at their "
	    "sites",
	    ctlr_split_missing(record), failed);
}
