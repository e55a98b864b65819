/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/siblings: other gateways of this site, and the packets handed to them; the same for
 * Prometheus. */
#include "gateway/api/api.h"
#include "gateway/control/siblings.h"

#include <inttypes.h>
#include <stdlib.h>

static unsigned siblings_copy(const struct api_req *req, struct gw_sibling_info **out)
{
	*out = calloc(CONF_SIBLINGS_MAX, sizeof(**out));
	return *out && req->app->workers ? gw_siblings_get(req->app, *out, CONF_SIBLINGS_MAX) : 0;
}

void api_siblings(const struct api_req *req, struct api_reply *reply)
{
	struct gw_sibling_info *s;
	const unsigned n = siblings_copy(req, &s);
	json_t *list = json_array();

	for (unsigned i = 0; i < n; i++)
		json_array_append_new(list,
		    json_pack("{s:s, s:s, s:o, s:o, s:b, s:I, s:I, s:s, s:I}", "name", s[i].name, "state",
		        s[i].lost ? "lost" : "up", "address", api_json_ip(&s[i].addr), "mac",
		        s[i].mac_known ? api_json_mac(s[i].mac) : json_null(), "mac_known", s[i].mac_known,
		        "weight", (json_int_t)s[i].weight, "pairs", (json_int_t)s[i].pairs, "from",
		        s[i].controller ? "controller" : "gateway", "packets", (json_int_t)s[i].packets));
	free(s);
	reply->json = json_pack("{s:o}", "siblings", list);
}

void api_metrics_siblings(FILE *f, const struct api_req *req)
{
	struct gw_sibling_info *s;
	const unsigned n = siblings_copy(req, &s);
	const bool heads = n || !req->app->workers; /* not started: --print-metrics */

	if (heads)
		fputs("# HELP roceway_sibling_up 1 unless the gateway of this site is lost.\n"
		      "# TYPE roceway_sibling_up gauge\n",
		    f);
	for (unsigned i = 0; i < n; i++)
		fprintf(f, "roceway_sibling_up{sibling=\"%s\"} %d\n", s[i].name, !s[i].lost);
	if (heads)
		fputs("# HELP roceway_sibling_packets_total RoCE packets forwarded to it.\n"
		      "# TYPE roceway_sibling_packets_total counter\n",
		    f);
	for (unsigned i = 0; i < n; i++)
		fprintf(f, "roceway_sibling_packets_total{sibling=\"%s\"} %" PRIu64 "\n", s[i].name,
		    s[i].packets);
	free(s);
}
