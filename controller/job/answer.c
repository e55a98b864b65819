/* SPDX-License-Identifier: Apache-2.0 */
/* A planner's result as JSON: the record of a job that fits, or the reply to one that does not. */
#include "controller/job/answer.h"

#include <string.h>

#include "conf/schema.h"
#include "controller/job/shape.h"
#include "controller/plan/book.h"

static json_t *ip_json(const struct rwy_ip *a)
{
	char text[MDL_ADDR];

	conf_print_ip(a, text, sizeof(text));
	return json_string(text);
}

static json_t *row_json(
    const struct plan_job_result *res, const struct plan_job_row *row, const struct plan_job_pair *p)
{
	const struct plan_job_group *g = &res->groups[row->group];
	const enum plan_carrier k = g->decision.carrier;
	const struct rwy_ip *a = row->swapped ? &p->b : &p->a, *b = row->swapped ? &p->a : &p->b;

	json_t *j = json_pack("{s:o, s:o, s:s, s:I, s:I}", "source", ip_json(a), "destination", ip_json(b),
	    "carrier", plan_carrier_name(k), "gateway_bps",
	    (json_int_t)plan_gateway_bps(p->want.bandwidth_bps, g->decision.a_ppm), "edge_bps",
	    (json_int_t)plan_edge_bps(p->want.bandwidth_bps, g->decision.a_ppm, g->decision.b_ppm));

	if (p->a_qpn && p->b_qpn) {
		json_object_set_new(j, "source_qpn", json_integer(row->swapped ? p->b_qpn : p->a_qpn));
		json_object_set_new(j, "destination_qpn", json_integer(row->swapped ? p->a_qpn : p->b_qpn));
	}
	/* otherwise each queue pair has its own */
	if (row->first < g->n_gw[0] && row->second < g->n_gw[1])
		json_object_set_new(
		    j, "pair", json_sprintf("%s/%s", g->gw[0][row->first].name, g->gw[1][row->second].name));
	return j;
}

/* True if the plan has no decision for this row: no gateway, no tunnel, or no site. */
static bool is_unplaced(const struct plan_job_result *res, const struct plan_job_row *row)
{
	const struct plan_job_group *g = row->group < 0 ? NULL : &res->groups[row->group];

	for (unsigned i = 0; g && i < g->n_gw[0]; i++)
		if (g->gw_bps[0][i])
			return false;
	return true;
}

static void add_claim(json_t *claims, const char *name, json_int_t bps)
{
	json_array_append_new(claims, json_pack("{s:s, s:I}", "name", name, "bps", bps));
}

/* Adds the claims of the tunnels as networks made them, whatever the plan would be now. */
static void add_network_claims(json_t *claims, json_t *network)
{
	char name[5 * PLAN_NAME_MAX];
	json_t *n, *leg;
	size_t i, k;

	json_array_foreach(network, i, n) json_array_foreach(json_object_get(n, "legs"), k, leg)
	{
		plan_book_route(name, sizeof(name), json_string_value(json_object_get(n, "first")),
		    json_string_value(json_object_get(n, "second")),
		    json_string_value(json_object_get(leg, "edge")),
		    json_string_value(json_object_get(leg, "path")));
		add_claim(claims, name, json_integer_value(json_object_get(leg, "bandwidth_bps")));
	}
}

json_t *ctlr_answer_record(const struct plan_job_result *res, const struct plan_job_pair *pairs,
    json_t *posted, json_t **was, json_t *network)
{
	const uint64_t duration = (uint64_t)json_integer_value(json_object_get(posted, "duration_ms"));
	json_t *plan = json_array(), *claims = json_array(), *j;

	for (unsigned i = 0; i < res->n_rows; i++)
		if (!is_unplaced(res, &res->rows[i]))
			json_array_append_new(plan, row_json(res, &res->rows[i], &pairs[i]));
		else if (was && was[i])
			json_array_append(plan, was[i]);
	for (unsigned i = 0; i < res->n_claims; i++)
		if (strncmp(res->claims[i].name, "net/", 4) != 0)
			add_claim(claims, res->claims[i].name, (json_int_t)res->claims[i].bps);
	if (res->fail == PLAN_JOB_FITS)
		add_network_claims(claims, network);
	j = json_pack("{s:O, s:o, s:o, s:I}", "job", posted, "plan", plan, "claims", claims, "until_ms",
	    (json_int_t)(duration ? ctlr_wall_ms() + duration : 0));
	if (network)
		json_object_set_new(j, "network", network);
	return j;
}

/* The demand that would fit. Delay and jitter only where they were measured or promised. */
static json_t *fits_json(
    const struct plan_job_group *g, const struct plan_job_pair *p, const struct ctlr_shape *shape)
{
	const bool network = g->fail == PLAN_JOB_NETWORK;
	json_t *j = json_pack("{s:o, s:o, s:o, s:I}", "source", ip_json(&p->a), "destination", ip_json(&p->b),
	    "reason",
	    json_sprintf("%s%s%s", plan_job_fail_text(g->fail), network ? ": " : "",
	        network ? plan_place_fail_text(g->placement.fail) : ""),
	    "bandwidth_bps", (json_int_t)g->fits.bandwidth_bps);

	if (g->fits.delay_us)
		json_object_set_new(j, "delay_us", json_integer(g->fits.delay_us));
	if (g->fits.jitter_us)
		json_object_set_new(j, "jitter_us", json_integer(g->fits.jitter_us));
	ctlr_shape_fits(j, shape, g->want.bandwidth_bps, g->fits.bandwidth_bps);
	return j;
}

/* Nobody posted the pairs of ranks: the number of one tells nothing, the two addresses do. */
static void tell_pair(json_t *j, const struct plan_job_result *res, const struct plan_job_pair *p)
{
	char a[MDL_ADDR], b[MDL_ADDR];

	conf_print_ip(&p->a, a, sizeof(a));
	conf_print_ip(&p->b, b, sizeof(b));
	json_object_set_new(j, "error", json_sprintf("%s and %s: %s", a, b, plan_job_fail_text(res->fail)));
	json_object_set_new(j, "field", json_sprintf("pairs[%u]", res->fail_pair));
}

void ctlr_answer_refuse(struct ctlr_req *r, const struct plan_job_result *res,
    const struct plan_job_pair *pairs, const struct model_job *m, uint64_t later_ms)
{
	json_t *fits = json_array(), *j;
	bool listed[4096] = {false};

	for (unsigned i = 0; i < res->n_rows; i++) {
		const struct ctlr_shape shape = ctlr_shape_of(m, i, ctlr_shape_since(r));
		const int32_t k = res->rows[i].group;

		if (k < 0 || k >= 4096 || listed[k] || res->groups[k].fail == PLAN_JOB_FITS)
			continue;
		listed[k] = true;
		json_array_append_new(fits, fits_json(&res->groups[k], &pairs[i], &shape));
	}
	j = json_pack("{s:s, s:o}", "error", plan_job_fail_text(res->fail), "fits", fits);
	if (later_ms)
		json_object_set_new(j, "later_ms", json_integer((json_int_t)later_ms));
	if (res->fail == PLAN_JOB_NO_SITE)
		tell_pair(j, res, &pairs[res->fail_pair]);
	ctlr_req_reply(r, 409, j);
}

json_t *ctlr_answer_reason(const struct plan_job_result *res)
{
	for (unsigned i = 0; i < res->n_groups; i++)
		if (res->groups[i].fail == res->fail)
			return json_sprintf("%s and %s: %s", res->groups[i].first, res->groups[i].second,
			    plan_job_fail_text(res->fail));
	return json_string(plan_job_fail_text(res->fail));
}
