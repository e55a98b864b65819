/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/reservations and metrics: the rates that jobs' plans give to pairs of hosts, and what was
 * sent. */
#include "gateway/api/api.h"
#include "gateway/control/reservations.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void api_reservations(const struct api_req *req, struct api_reply *reply)
{
	struct gw_reservation_info *v;
	const unsigned n = gw_reservations_get(req->app, &v);
	json_t *list = json_array();

	for (unsigned i = 0; i < n; i++) {
		const struct gw_reservation *r = &v[i].r;
		json_t *o =
		    json_pack("{s:s, s:I, s:o, s:o, s:I, s:I, s:s, s:I, s:i, s:b, s:I, s:I, s:b, s:b}", "job",
		        r->job, "vni", (json_int_t)r->vni, "source", api_json_ip(&r->src), "destination",
		        api_json_ip(&r->dst), "source_qpn", (json_int_t)r->src_qpn, "destination_qpn",
		        (json_int_t)r->dst_qpn, "tunnel", r->tunnel, "rate_bps", (json_int_t)r->rate_bps,
		        "priority", (int)r->priority, "enforced", r->number != 0, "sent_bytes",
		        (json_int_t)v[i].sent, "sent_guaranteed_bytes", (json_int_t)v[i].sent_guaranteed,
		        "waiting", v[i].waiting, "limited", v[i].limited);

		if (r->has_dscp)
			json_object_set_new(o, "dscp", json_integer(r->dscp));
		json_array_append_new(list, o);
	}
	free(v);
	reply->json = json_pack("{s:o}", "reservations", list);
}

/* --- metrics ---------------------------------------------------------------------------------- */

static int by_job(const void *a, const void *b)
{
	const struct gw_reservation_info *x = a, *y = b;

	return strcmp(x->r.job, y->r.job);
}

/* Makes one entry of those of one job, with the sums. Returns how many remain. */
static unsigned jobs_of(struct gw_reservation_info *v, unsigned n)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < n; i++) {
		struct gw_reservation_info *to = kept ? &v[kept - 1] : NULL;

		if (!to || strcmp(to->r.job, v[i].r.job) != 0) {
			v[kept++] = v[i];
			continue;
		}
		to->r.rate_bps += v[i].r.rate_bps;
		to->sent += v[i].sent;
	}
	return kept;
}

/* A document may name a job as it likes. */
static void print_label(FILE *f, const char *name, const char *job)
{
	fprintf(f, "%s{job=\"", name);
	for (; *job; job++) {
		if (*job == '"' || *job == '\\')
			fputc('\\', f);
		fputc(*job < ' ' ? '_' : *job, f);
	}
	fputs("\"}", f);
}

void api_metrics_reservations(FILE *f, const struct api_req *req)
{
	struct gw_reservation_info *v;
	unsigned n = gw_reservations_get(req->app, &v);
	const bool heads = n || !req->app->workers; /* not started: --print-metrics */

	if (n)
		qsort(v, n, sizeof(*v), by_job);
	n = jobs_of(v, n);
	if (heads)
		fputs("# HELP roceway_job_planned_bits_per_second Rates that a job's hosts of this site have "
		      "on the WAN.\n# TYPE roceway_job_planned_bits_per_second gauge\n",
		    f);
	for (unsigned i = 0; i < n; i++) {
		print_label(f, "roceway_job_planned_bits_per_second", v[i].r.job);
		fprintf(f, " %" PRIu64 "\n", v[i].r.rate_bps);
	}
	if (heads)
		fputs("# HELP roceway_job_sent_bytes_total What they sent on the WAN.\n"
		      "# TYPE roceway_job_sent_bytes_total counter\n",
		    f);
	for (unsigned i = 0; i < n; i++) {
		print_label(f, "roceway_job_sent_bytes_total", v[i].r.job);
		fprintf(f, " %" PRIu64 "\n", v[i].sent);
	}
	free(v);
}
