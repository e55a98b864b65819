/* SPDX-License-Identifier: Apache-2.0 */
/* One HTTPS request of the agent, with certificates on both sides. agent.c decides on requests,
 * answer.c on answers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/agent/http.h"

#define CONNECT_MS 3000
#define REDIRECTS  0L
#define HEAD_MAX   65536 /* bytes of an answer's headers */

static size_t on_data(char *data, size_t size, size_t n, void *ctx)
{
	struct agent_req *r = ctx;
	char *more = NULL;

	n *= size;
	if (r->len + n <= r->max)
		more = realloc(r->answer, r->len + n + 1);
	if (!more) {
		r->too_large = true;
		return 0; /* ends the transfer */
	}
	memcpy(more + r->len, data, n);
	r->answer = more;
	r->len += n;
	r->answer[r->len] = 0;
	return n;
}

/* Bounds the headers: the library would keep any number of them. */
static size_t on_header(char *data, size_t size, size_t n, void *ctx)
{
	struct agent_req *r = ctx;

	r->head += size * n;
	r->too_large |= r->head > HEAD_MAX;
	return r->too_large ? 0 : size * n;
}

bool agent_req_new(struct agent *a, struct agent_req *r, size_t max)
{
	r->max = max;
	r->curl = curl_easy_init();
	if (!r->curl)
		return false;
	curl_easy_setopt(r->curl, CURLOPT_PRIVATE, r);
	curl_easy_setopt(r->curl, CURLOPT_WRITEFUNCTION, on_data);
	curl_easy_setopt(r->curl, CURLOPT_WRITEDATA, r);
	curl_easy_setopt(r->curl, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(r->curl, CURLOPT_HEADERDATA, r);
	curl_easy_setopt(r->curl, CURLOPT_ERRORBUFFER, r->err);
	curl_easy_setopt(r->curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(r->curl, CURLOPT_PROXY, "");
	curl_easy_setopt(r->curl, CURLOPT_FOLLOWLOCATION, REDIRECTS);
	curl_easy_setopt(r->curl, CURLOPT_PROTOCOLS_STR, "https");
	curl_easy_setopt(r->curl, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
	curl_easy_setopt(r->curl, CURLOPT_SSL_VERIFYPEER, 1L);
	curl_easy_setopt(r->curl, CURLOPT_SSL_VERIFYHOST, 2L);
	curl_easy_setopt(r->curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	curl_easy_setopt(r->curl, CURLOPT_CAINFO, a->cfg.ca);
	curl_easy_setopt(r->curl, CURLOPT_SSLCERT, a->cfg.certificate);
	curl_easy_setopt(r->curl, CURLOPT_SSLKEY, a->cfg.key);
	curl_easy_setopt(r->curl, CURLOPT_HTTPHEADER, a->headers);
	return true;
}

void agent_req_free(struct agent *a, struct agent_req *r)
{
	if (!r->curl)
		return;
	agent_req_end(a, r);
	curl_easy_cleanup(r->curl);
	r->curl = NULL;
}

void agent_req_end(struct agent *a, struct agent_req *r)
{
	if (r->what != REQ_NONE)
		curl_multi_remove_handle(a->multi, r->curl);
	free(r->body);
	free(r->answer);
	r->body = r->answer = NULL;
	r->len = 0;
	r->what = REQ_NONE;
}

/* Takes ownership of `body`; NULL: a GET. */
bool agent_req_begin(struct agent *a, struct agent_req *r, enum agent_what what, const char *method,
    const char *path, json_t *body, long timeout_ms)
{
	char url[512];

	r->body = body ? json_dumps(body, JSON_COMPACT) : NULL;
	if (body && !r->body) {
		json_decref(body);
		return false;
	}
	json_decref(body);
	r->len = 0;
	r->head = 0;
	r->too_large = false;
	*r->err = 0;
	snprintf(url, sizeof(url), "%s%s", a->cfg.url[a->at], path);
	curl_easy_setopt(r->curl, CURLOPT_URL, url);
	curl_easy_setopt(r->curl, CURLOPT_TIMEOUT_MS, timeout_ms);
	if (r->body) {
		curl_easy_setopt(r->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(r->body));
		curl_easy_setopt(r->curl, CURLOPT_POSTFIELDS, r->body);
		curl_easy_setopt(r->curl, CURLOPT_CUSTOMREQUEST, method);
	} else {
		curl_easy_setopt(r->curl, CURLOPT_CUSTOMREQUEST, NULL);
		curl_easy_setopt(r->curl, CURLOPT_HTTPGET, 1L);
	}
	r->what = what;
	if (curl_multi_add_handle(a->multi, r->curl) == CURLM_OK)
		return true;
	r->what = REQ_NONE;
	agent_req_end(a, r);
	return false;
}
