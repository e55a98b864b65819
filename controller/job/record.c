/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the form of a job's record, since the store may have one of another version or a foreign
 * one. */
#include <stdio.h>
#include <stdlib.h>

#include "controller/job/jobs.h"
#include "controller/job/split.h"

static bool is_amount(const json_t *v)
{
	return json_is_integer(v) && json_integer_value(v) >= 0;
}

/* True for "GATEWAY/GATEWAY". */
static bool pair_ok(const char *pair)
{
	char a[MDL_NAME], b[MDL_NAME], rest;

	return pair && sscanf(pair, "%31[^/]/%31[^/]%c", a, b, &rest) == 2 && mdl_is_name(a) &&
	       mdl_is_name(b);
}

/* True if the field is absent, 0 or a QPN. */
static bool qpn_ok(const json_t *row, const char *key)
{
	const json_t *v = json_object_get(row, key);

	return !v || (is_amount(v) && json_integer_value(v) <= 0xffffff);
}

static bool has_texts(const json_t *j, const char *const *key)
{
	while (*key && json_is_string(json_object_get(j, *key)))
		key++;
	return !*key;
}

static bool rate_ok(const json_t *v)
{
	return is_amount(v) && (uint64_t)json_integer_value(v) <= INT64_MAX / 4;
}

/* Checks an entry of "network", which query_json.c makes. */
static bool network_ok(const json_t *n)
{
	static const char *const words[] = {"name", "first", "second", "shape", NULL};
	static const char *const leg_words[] = {"provider", "edge", "path", NULL};
	json_t *legs = json_object_get(n, "legs"), *pairs = json_object_get(n, "pairs"), *v;
	bool ok = has_texts(n, words) && json_is_array(legs) && json_is_object(pairs) &&
	          rate_ok(json_object_get(n, "bandwidth_bps")) &&
	          is_amount(json_object_get(n, "reserved_ms"));
	const char *pair;

	for (size_t i = 0; ok && i < json_array_size(legs); i++) {
		const json_t *leg = json_array_get(legs, i);

		ok = has_texts(leg, leg_words) && rate_ok(json_object_get(leg, "bandwidth_bps"));
	}
	json_object_foreach(pairs, pair, v) ok = ok && pair_ok(pair) && rate_ok(v);
	return ok;
}

static bool row_ok(const json_t *row)
{
	const char *source = json_string_value(json_object_get(row, "source"));
	const char *destination = json_string_value(json_object_get(row, "destination"));
	const json_t *pair = json_object_get(row, "pair"), *bps = json_object_get(row, "gateway_bps");
	char addr[MDL_ADDR];

	return source && mdl_ip(source, addr) && destination && mdl_ip(destination, addr) &&
	       (!pair || pair_ok(json_string_value(pair))) && rate_ok(bps) && qpn_ok(row, "source_qpn") &&
	       qpn_ok(row, "destination_qpn");
}

static bool claim_ok(const json_t *claim)
{
	return json_is_string(json_object_get(claim, "name")) && rate_ok(json_object_get(claim, "bps"));
}

static bool shape_ok(const json_t *record)
{
	const json_t *since = json_object_get(record, "since_ms"),
	             *deadline = json_object_get(record, "deadline_ms"),
	             *preempted = json_object_get(record, "preempted"),
	             *preempts = json_object_get(record, "preempts"),
	             *measured = json_object_get(record, "measured_ms");

	return !since == !deadline && (!since || (is_amount(since) && is_amount(deadline))) &&
	       (!preempts || json_is_array(preempts)) && (!measured || is_amount(measured)) &&
	       (!preempted ||
	           (json_is_string(json_object_get(preempted, "by")) &&
	               is_amount(json_object_get(preempted, "at_ms")) && json_object_get(record, "reason")));
}

bool ctlr_job_record_ok(const json_t *record)
{
	const json_t *job = json_object_get(record, "job"), *plan = json_object_get(record, "plan");
	const json_t *claims = json_object_get(record, "claims"), *reason = json_object_get(record, "reason");
	const json_t *network = json_object_get(record, "network");
	bool ok =
	    json_is_object(job) && json_is_array(plan) && json_is_array(claims) &&
	    is_amount(json_object_get(record, "until_ms")) && (!reason || json_is_string(reason)) &&
	    (!network || json_is_array(network)) && shape_ok(record) &&
	    (json_object_get(record, "ranks") ? ctlr_split_table_ok(job, json_object_get(record, "ranks"))
	                                      : !json_object_get(job, "split"));

	for (size_t i = 0; ok && i < json_array_size(plan); i++)
		ok = row_ok(json_array_get(plan, i));
	for (size_t i = 0; ok && i < json_array_size(claims); i++)
		ok = claim_ok(json_array_get(claims, i));
	for (size_t i = 0; ok && i < json_array_size(network); i++)
		ok = network_ok(json_array_get(network, i));
	return ok;
}

unsigned ctlr_job_claims(const json_t *record, struct plan_claim **out)
{
	json_t *list = json_object_get(record, "claims"), *t;
	struct plan_claim *claim = calloc(json_array_size(list) + 1, sizeof(*claim));
	unsigned n = 0;
	size_t i;

	json_array_foreach(list, i, t)
	{
		const char *name = json_string_value(json_object_get(t, "name"));

		if (!claim || !name)
			continue;
		snprintf(claim[n].name, sizeof(claim[n].name), "%s", name);
		claim[n++].bps = (uint64_t)json_integer_value(json_object_get(t, "bps"));
	}
	*out = claim;
	return n;
}
