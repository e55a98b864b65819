/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to etcd's JSON gateway: endpoints in turn, the meaning of failures, streams.
 */
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/http.h"
#include "controller/store/internal.h"

#define ANSWER_MAX    (64u << 20)
#define SILENCE_MS    15000 /* a watch on a member that is cut off stays silent for ever */
#define ENDPOINTS_MAX 16

/* GRPC status codes in etcd's answers. */
enum { GRPC_INVALID = 3, GRPC_EXHAUSTED = 8 };

struct store_etcd_http {
	pthread_mutex_t lock;
	struct rwy_http *http;
	char *endpoint[ENDPOINTS_MAX], *ca, *cert, *key, *user, *password;
	char *token; /* etcd's, after the login */
	char problem[STORE_TEXT];
	unsigned endpoints, good, attempts;
	long timeout_ms;
};

/* Makes a client. Each stream has its own, with the token of that moment. */
static int client_new(const struct store_etcd_http *h, struct rwy_http **out)
{
	const struct rwy_http_cfg cfg = {.ca = h->ca,
	    .certificate = h->cert,
	    .key = h->key,
	    .protocols = "http,https",
	    .connect_ms = h->timeout_ms,
	    .answer_max = ANSWER_MAX};

	return rwy_http_new(out, &cfg);
}

static int set_headers(const struct store_etcd_http *h, struct rwy_http *http)
{
	char auth[512];
	/* without "hasleader" a member that has lost its leader stays silent */
	const char *const list[] = {
	    "Content-Type: application/json", "Grpc-Metadata-hasleader: true", h->token ? auth : NULL, NULL};

	if (h->token)
		snprintf(auth, sizeof(auth), "Authorization: %s", h->token);
	return rwy_http_set_headers(http, list);
}

/* --- the meaning of answers ------------------------------------------------------------------- */

static const char *text_of(const json_t *j, const char *key)
{
	const char *s = json_string_value(json_object_get(j, key));

	return s ? s : "";
}

/* The store's error for an answer; j is NULL if it is not JSON. etcd reports {"error": ..., "code":
 * ...}. */
static int meaning(long status, const json_t *j)
{
	const char *error = text_of(j, "error");
	const json_int_t code = json_integer_value(json_object_get(j, "code"));

	if (status == 200)
		return j ? 0 : STORE_EUNSURE;
	if (strstr(error, "lease not found"))
		return STORE_ENOLEASE;
	if (code == GRPC_EXHAUSTED && strstr(error, "space exceeded"))
		return STORE_EFULL;
	if (strstr(error, "invalid auth token"))
		return RWY_EAGAIN;
	if (code == GRPC_INVALID || (code == GRPC_EXHAUSTED && strstr(error, "larger than max")))
		return RWY_EINVAL; /* too large for etcd, or for its gateway */
	/* timed out, leader changed, unavailable: it may have been done */
	return STORE_EUNSURE;
}

/* Sends one request to one endpoint; `again`: it may be executed twice. STORE_EDOWN: it was not
 * executed. */
static int ask_one(struct store_etcd_http *h, unsigned endpoint, const char *path, const char *ask,
    bool again, json_t **answer)
{
	struct rwy_http_answer a;
	enum rwy_http_fail fail;
	char url[512];
	int rc;

	snprintf(url, sizeof(url), "%s%s", h->endpoint[endpoint], path);
	fail = again ? rwy_http_ask(h->http, "POST", url, ask, h->timeout_ms * 3, &a)
	             : rwy_http_ask_once(h->http, url, ask, h->timeout_ms * 3, &a);
	*answer = a.len && !fail ? json_loadb(a.body, a.len, 0, NULL) : NULL;
	rc = rwy_http_unsent(fail)        ? STORE_EDOWN
	     : fail == RWY_HTTP_TOO_LARGE ? RWY_ENOMEM
	     : fail                       ? STORE_EUNSURE
	                                  : meaning(a.status, *answer);
	if (rc)
		snprintf(h->problem, sizeof(h->problem), "%.100s: status %ld %.120s", h->endpoint[endpoint],
		    a.status,
		    fail == RWY_HTTP_TOO_LARGE ? "and more than we take"
		    : fail                     ? a.why
		    : *answer                  ? text_of(*answer, "error")
		                               : "without JSON");
	if (rc) {
		json_decref(*answer);
		*answer = NULL;
	}
	return rc;
}

static int login(struct store_etcd_http *h, unsigned endpoint)
{
	json_t *ask = json_pack("{s:s, s:s}", "name", h->user, "password", h->password), *answer = NULL;
	char *text = json_dumps(ask, JSON_COMPACT);
	int rc = text ? ask_one(h, endpoint, "/v3/auth/authenticate", text, true, &answer) : RWY_ENOMEM;

	if (!rc) {
		free(h->token);
		h->token = strdup(text_of(answer, "token"));
		rc = set_headers(h, h->http);
	}
	json_decref(answer);
	json_decref(ask);
	free(text);
	return rc;
}

static int ask_in_turn(
    struct store_etcd_http *h, const char *path, const char *ask, bool again, json_t **answer)
{
	int rc = STORE_EDOWN;

	for (unsigned i = 0; i < h->attempts * h->endpoints; i++) {
		const unsigned endpoint = (h->good + i) % h->endpoints;

		if (h->user && !h->token && login(h, endpoint))
			continue;
		rc = ask_one(h, endpoint, path, ask, again, answer);
		if (rc == RWY_ENOMEM && !again)
			rc = STORE_EUNSURE;
		if (rc == RWY_EAGAIN) { /* the token has expired */
			free(h->token);
			h->token = NULL;
			rc = STORE_EDOWN;
			continue;
		}
		if (rc == STORE_EDOWN || (rc == STORE_EUNSURE && again))
			continue;
		/* the next request does not begin with an endpoint that timed out */
		h->good = rc == STORE_EUNSURE ? (endpoint + 1) % h->endpoints : endpoint;
		return rc;
	}
	return rc == STORE_EUNSURE && again ? STORE_EDOWN : rc;
}

int store_etcd_http_post(
    struct store_etcd_http *h, const char *path, json_t *ask, bool again, json_t **answer)
{
	char *text = ask ? json_dumps(ask, JSON_COMPACT) : NULL;
	int rc = RWY_ENOMEM;

	*answer = NULL;
	if (text) {
		pthread_mutex_lock(&h->lock);
		rc = ask_in_turn(h, path, text, again, answer);
		pthread_mutex_unlock(&h->lock);
	}
	json_decref(ask);
	free(text);
	return rc;
}

/* --- streams ---------------------------------------------------------------------------------- */

int store_etcd_http_stream(struct store_etcd_http *h, unsigned endpoint, const char *path, json_t *ask,
    store_etcd_line_cb *line, store_etcd_tick_cb *tick, void *ctx)
{
	const struct rwy_http_lines_ops ops = {.line = line, .tick = tick};
	char *text = ask ? json_dumps(ask, JSON_COMPACT) : NULL, url[512];
	enum rwy_http_fail fail = RWY_HTTP_BROKEN;
	struct rwy_http *http = NULL;
	int rc, ended = 0;

	snprintf(url, sizeof(url), "%s%s", h->endpoint[endpoint % h->endpoints], path);
	pthread_mutex_lock(&h->lock);
	rc = text ? client_new(h, &http) : RWY_ENOMEM;
	if (!rc)
		rc = set_headers(h, http);
	pthread_mutex_unlock(&h->lock);
	if (!rc)
		fail = rwy_http_lines(http, url, text, SILENCE_MS, &ops, ctx, &ended);
	rwy_http_free(http);
	json_decref(ask);
	free(text);
	if (rc)
		return rc;
	if (fail == RWY_HTTP_ENDED)
		return ended;
	/* a line that is too long holds too much to catch up with; a clean end is a server that
	 * stops */
	return fail == RWY_HTTP_TOO_LARGE ? STORE_ECOMPACT : STORE_EDOWN;
}

unsigned store_etcd_http_endpoints(const struct store_etcd_http *h)
{
	return h->endpoints;
}

unsigned store_etcd_http_good(struct store_etcd_http *h)
{
	unsigned good;

	pthread_mutex_lock(&h->lock);
	good = h->good;
	pthread_mutex_unlock(&h->lock);
	return good;
}

void store_etcd_http_problem(struct store_etcd_http *h, char *text)
{
	pthread_mutex_lock(&h->lock);
	memcpy(text, h->problem, STORE_TEXT);
	pthread_mutex_unlock(&h->lock);
}

/* --- open, close ------------------------------------------------------------------------------ */

void store_etcd_http_free(struct store_etcd_http *h)
{
	if (!h)
		return;
	rwy_http_free(h->http);
	for (unsigned i = 0; i < h->endpoints; i++)
		free(h->endpoint[i]);
	free(h->ca);
	free(h->cert);
	free(h->key);
	free(h->user);
	free(h->password);
	free(h->token);
	pthread_mutex_destroy(&h->lock);
	free(h);
}

static bool copy_text(char **out, const char *s)
{
	*out = s ? strdup(s) : NULL;
	return !s || *out;
}

int store_etcd_http_new(struct store_etcd_http **out, const struct store_etcd_cfg *cfg, char *text)
{
	struct store_etcd_http *h;
	bool ok;

	if (!cfg->endpoints || cfg->endpoints > ENDPOINTS_MAX) {
		snprintf(text, STORE_TEXT, "expected 1 to %u etcd endpoints, found %u", ENDPOINTS_MAX,
		    cfg->endpoints);
		return RWY_EINVAL;
	}
	h = calloc(1, sizeof(*h));
	if (!h)
		return RWY_ENOMEM;
	pthread_mutex_init(&h->lock, NULL);
	h->timeout_ms = cfg->timeout_ms ? (long)cfg->timeout_ms : 1000;
	h->attempts = cfg->attempts ? cfg->attempts : 2;
	ok = copy_text(&h->ca, cfg->ca) && copy_text(&h->cert, cfg->cert) && copy_text(&h->key, cfg->key) &&
	     copy_text(&h->user, cfg->user) && copy_text(&h->password, cfg->password);
	for (; ok && h->endpoints < cfg->endpoints; h->endpoints++)
		ok = copy_text(&h->endpoint[h->endpoints], cfg->endpoint[h->endpoints]);
	if (ok && !client_new(h, &h->http) && !set_headers(h, h->http)) {
		*out = h;
		return 0;
	}
	snprintf(text, STORE_TEXT, "out of memory");
	store_etcd_http_free(h);
	return RWY_ENOMEM;
}
