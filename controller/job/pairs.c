/* SPDX-License-Identifier: Apache-2.0 */
/* The pairs of addresses that a job asks for: as they were posted, of its rank table, or of its
 * split and the ranks that its containers have (split.c). */
#include <inttypes.h>
#include <stdlib.h>

#include "controller/job/jobs.h"
#include "controller/job/shape.h"
#include "controller/job/split.h"
#include "controller/server/req.h"

static uint32_t saturate32(uint64_t v)
{
	return v < UINT32_MAX ? (uint32_t)v : UINT32_MAX;
}

/* r NULL: no request waits for the result. */
static int from_ranks(
    struct ctlr_req *r, const struct model_job *m, uint64_t since_ms, struct plan_job_pair **out)
{
	const struct model_rank *from = m->ranks.at;
	const struct plan_triple want = {ctlr_shape_of(m, 0, since_ms).bandwidth_bps,
	    saturate32(m->demand.delay_us), saturate32(m->demand.jitter_us)};
	const unsigned max = 2 * m->ranks.n;
	struct plan_rank *rank = calloc(m->ranks.n, sizeof(*rank));
	uint32_t bad = 0;
	int n = RWY_ENOMEM;

	*out = calloc(max, sizeof(**out));
	if (rank && *out) {
		for (unsigned i = 0; i < m->ranks.n; i++) {
			rank[i].rank = (uint32_t)from[i].rank;
			rank[i].stage = (uint32_t)from[i].stage;
			(void)ctlr_lpm_parse_ip(from[i].address, &rank[i].addr);
		}
		n = plan_job_ranks(rank, m->ranks.n, &want, m->ring, *out, max, &bad);
		if (n < 0 && r)
			ctlr_req_fail(r, 400, "ranks",
			    "ranks: rank %" PRIu32
			    ": expected each rank once, stages 0, 1, 2, ... with as many ranks each",
			    bad);
		if (n > (int)max)
			n = (int)max;
	} else if (r) {
		ctlr_req_fail(r, 503, "", "out of memory");
	}
	free(rank);
	return n;
}

static int from_pairs(
    struct ctlr_req *r, const struct model_job *m, uint64_t since_ms, struct plan_job_pair **out)
{
	const struct model_pair *from = m->pairs.at;

	*out = calloc(m->pairs.n, sizeof(**out));
	if (!*out) {
		if (r)
			ctlr_req_fail(r, 503, "", "out of memory");
		return RWY_ENOMEM;
	}
	for (unsigned i = 0; i < m->pairs.n; i++) {
		(void)ctlr_lpm_parse_ip(from[i].source, &(*out)[i].a);
		(void)ctlr_lpm_parse_ip(from[i].destination, &(*out)[i].b);
		(*out)[i].want = (struct plan_triple){ctlr_shape_of(m, i, since_ms).bandwidth_bps,
		    saturate32(from[i].delay_us), saturate32(from[i].jitter_us)};
		(*out)[i].a_qpn = (uint32_t)from[i].source_qpn;
		(*out)[i].b_qpn = (uint32_t)from[i].destination_qpn;
	}
	return (int)m->pairs.n;
}

int ctlr_job_pairs(struct ctlr_req *r, const struct model_job *m, const json_t *table, uint64_t since_ms,
    struct plan_job_pair **out)
{
	*out = NULL;
	if (m->has_split)
		return ctlr_split_pairs(r, m, table, out);
	return m->ranks.n ? from_ranks(r, m, since_ms, out) : from_pairs(r, m, since_ms, out);
}
