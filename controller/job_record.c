/* SPDX-License-Identifier: Apache-2.0 */
/* Is it a job's record? The store may have another version's, or somebody's own. Not here: what it means
 * (job.c). */
#include <stdio.h>

#include "controller/jobs.h"

static bool amount(const json_t *v)
{
	return json_is_integer(v) && json_integer_value(v) >= 0;
}

/* "GATEWAY/GATEWAY" */
static bool pair_ok(const char *pair)
{
	char a[MDL_NAME], b[MDL_NAME], rest;

	return pair && sscanf(pair, "%31[^/]/%31[^/]%c", a, b, &rest) == 2 && mdl_is_name(a) &&
	       mdl_is_name(b);
}

static bool row_ok(const json_t *row)
{
	const char *source = json_string_value(json_object_get(row, "source"));
	const char *destination = json_string_value(json_object_get(row, "destination"));
	const json_t *pair = json_object_get(row, "pair"), *bps = json_object_get(row, "gateway_bps");
	char addr[MDL_ADDR];

	return source && mdl_ip(source, addr) && destination && mdl_ip(destination, addr) &&
	       (!pair || pair_ok(json_string_value(pair))) && amount(bps) &&
	       (uint64_t)json_integer_value(bps) <= INT64_MAX / 4;
}

static bool take_ok(const json_t *take)
{
	const json_t *bps = json_object_get(take, "bps");

	return json_is_string(json_object_get(take, "name")) && amount(bps) &&
	       (uint64_t)json_integer_value(bps) <= INT64_MAX / 4;
}

bool job_record_ok(const json_t *record)
{
	const json_t *job = json_object_get(record, "job"), *plan = json_object_get(record, "plan");
	const json_t *takes = json_object_get(record, "takes"), *reason = json_object_get(record, "reason");
	bool ok = json_is_object(job) && json_is_array(plan) && json_is_array(takes) &&
	          amount(json_object_get(record, "until_ms")) && (!reason || json_is_string(reason));

	for (size_t i = 0; ok && i < json_array_size(plan); i++)
		ok = row_ok(json_array_get(plan, i));
	for (size_t i = 0; ok && i < json_array_size(takes); i++)
		ok = take_ok(json_array_get(takes, i));
	return ok;
}
