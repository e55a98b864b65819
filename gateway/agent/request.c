/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of the agent, by the HTTP client of base/http.h: begin and end. */
#include <stdio.h>
#include <stdlib.h>

#include "gateway/agent/request.h"

#define CONNECT_MS 3000

bool agent_req_new(const struct agent *a, struct agent_req *r, size_t max)
{
	static const char *const headers[] = {"Content-Type: application/json", NULL};
	const struct rwy_http_cfg cfg = {
	    .ca = a->cfg.ca,
	    .certificate = a->cfg.certificate,
	    .key = a->cfg.key,
	    .protocols = "https",
	    .headers = headers,
	    .connect_ms = CONNECT_MS,
	    .answer_max = max,
	};

	return rwy_http_new(&r->http, &cfg) == 0;
}

void agent_req_end(struct agent_req *r)
{
	rwy_http_end(r->http);
	r->what = REQ_NONE;
}

bool agent_req_begin(struct agent *a, struct agent_req *r, enum agent_what what, const char *method,
    const char *path, json_t *body, long timeout_ms)
{
	char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
	const bool whole = text || !body;
	char url[512];
	bool begun;

	json_decref(body);
	snprintf(url, sizeof(url), "%s%s", a->cfg.url[a->at], path);
	begun = whole && rwy_http_begin(a->loop, r->http, method, url, text, timeout_ms) == 0;
	free(text);
	if (begun)
		r->what = what;
	return begun;
}
