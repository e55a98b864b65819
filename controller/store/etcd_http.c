/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to etcd's JSON gateway: endpoints in turn, what a failure means, streams. Not here: what is asked
 * (etcd.c).
 */
#include <curl/curl.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "controller/store/internal.h"

#define ANSWER_MAX    (64u << 20)
#define LINE_BYTES    (64u << 20)
#define TICK_MS       100
#define SILENCE_MS    15000 /* a watch on a member that is cut off says nothing for ever */
#define ENDPOINTS_MAX 16

/* gRPC's status codes that etcd's answers carry. */
enum {
	GRPC_UNKNOWN = 2,
	GRPC_INVALID = 3,
	GRPC_DEADLINE = 4,
	GRPC_NOT_FOUND = 5,
	GRPC_EXHAUSTED = 8,
	GRPC_UNAVAILABLE = 14
};

struct store_etcd_http {
	pthread_mutex_t lock;
	CURL *curl;
	struct curl_slist *headers;
	char *endpoint[ENDPOINTS_MAX], *ca, *cert, *key, *user, *password;
	char *token; /* etcd's, once we logged in */
	char problem[STORE_TEXT];
	unsigned endpoints, good, attempts;
	long timeout_ms;
};

struct body {
	char *text;
	size_t len, max;
	bool full;
};

static size_t on_data(char *data, size_t one, size_t n, void *arg)
{
	struct body *b = arg;
	char *more = b->len + n < b->max ? realloc(b->text, b->len + n + 1) : NULL;

	b->full |= !more;
	if (!more)
		return 0;
	b->text = more;
	memcpy(b->text + b->len, data, n);
	b->len += n;
	b->text[b->len] = 0;
	return n;
}

static struct curl_slist *headers_new(const struct store_etcd_http *h)
{
	struct curl_slist *l = curl_slist_append(NULL, "Expect:");
	char auth[512];

	l = curl_slist_append(l, "Content-Type: application/json");
	l = curl_slist_append(
	    l, "Grpc-Metadata-hasleader: true"); /* else a member without a leader says nothing */
	if (h->token) {
		snprintf(auth, sizeof(auth), "Authorization: %s", h->token);
		l = curl_slist_append(l, auth);
	}
	return l;
}

static void set_common(const struct store_etcd_http *h, CURL *c, unsigned endpoint, const char *path,
    const char *ask, struct curl_slist *headers)
{
	char url[512];

	snprintf(url, sizeof(url), "%s%s", h->endpoint[endpoint], path);
	curl_easy_reset(c);
	curl_easy_setopt(c, CURLOPT_URL, url);
	curl_easy_setopt(c, CURLOPT_PROXY, "");
	curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(c, CURLOPT_TCP_NODELAY, 1L);
	curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, h->timeout_ms);
	curl_easy_setopt(c, CURLOPT_POSTFIELDS, ask);
	curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
	if (h->ca)
		curl_easy_setopt(c, CURLOPT_CAINFO, h->ca);
	if (h->cert)
		curl_easy_setopt(c, CURLOPT_SSLCERT, h->cert);
	if (h->key)
		curl_easy_setopt(c, CURLOPT_SSLKEY, h->key);
}

/* --- meaning of answers ----------------------------------------------------------------------- */

static const char *text_of(const json_t *j, const char *key)
{
	const char *s = json_string_value(json_object_get(j, key));

	return s ? s : "";
}

/* NULL when it is none: etcd's {"error": ..., "code": ...}. */
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
	if (code == GRPC_INVALID)
		return RWY_EINVAL;
	return STORE_EUNSURE; /* timed out, leader changed, unavailable: it may have been done */
}

static bool never_sent(CURLcode rc)
{
	return rc == CURLE_COULDNT_CONNECT || rc == CURLE_COULDNT_RESOLVE_HOST ||
	       rc == CURLE_SSL_CONNECT_ERROR || rc == CURLE_PEER_FAILED_VERIFICATION;
}

/* One request at one endpoint. STORE_EDOWN: it was not taken there. */
static int ask_one(
    struct store_etcd_http *h, unsigned endpoint, const char *path, const char *ask, json_t **answer)
{
	struct body b = {.max = ANSWER_MAX};
	long status = 0;
	CURLcode crc;
	int rc;

	set_common(h, h->curl, endpoint, path, ask, h->headers);
	curl_easy_setopt(h->curl, CURLOPT_TIMEOUT_MS, h->timeout_ms * 3);
	curl_easy_setopt(h->curl, CURLOPT_WRITEFUNCTION, on_data);
	curl_easy_setopt(h->curl, CURLOPT_WRITEDATA, &b);
	crc = curl_easy_perform(h->curl);
	curl_easy_getinfo(h->curl, CURLINFO_RESPONSE_CODE, &status);
	*answer = b.text && !crc ? json_loadb(b.text, b.len, 0, NULL) : NULL;
	free(b.text);
	rc = never_sent(crc) ? STORE_EDOWN
	     : b.full        ? RWY_ENOMEM
	     : crc           ? STORE_EUNSURE
	                     : meaning(status, *answer);
	if (rc)
		snprintf(h->problem, sizeof(h->problem), "%.100s: status %ld %.120s", h->endpoint[endpoint],
		    status,
		    b.full    ? "and more than we take"
		    : crc     ? curl_easy_strerror(crc)
		    : *answer ? text_of(*answer, "error")
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
	int rc = text ? ask_one(h, endpoint, "/v3/auth/authenticate", text, &answer) : RWY_ENOMEM;

	if (!rc) {
		free(h->token);
		h->token = strdup(text_of(answer, "token"));
		curl_slist_free_all(h->headers);
		h->headers = headers_new(h);
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
		rc = ask_one(h, endpoint, path, ask, answer);
		if (rc == RWY_ENOMEM && !again)
			rc = STORE_EUNSURE;
		if (rc == RWY_EAGAIN) { /* our token is too old */
			free(h->token);
			h->token = NULL;
			rc = STORE_EDOWN;
			continue;
		}
		if (rc == STORE_EDOWN || (rc == STORE_EUNSURE && again))
			continue;
		/* one that keeps us waiting is not asked first the next time */
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

struct stream {
	struct body b;
	store_etcd_line_cb *line;
	void *ctx;
	int rc;
	struct timespec heard;
};

static size_t on_stream(char *data, size_t one, size_t n, void *arg)
{
	struct stream *s = arg;
	size_t from = 0, look = s->b.len; /* before that there is no end of a line */

	clock_gettime(CLOCK_MONOTONIC, &s->heard);
	if (on_data(data, one, n, &s->b) != n) {
		s->rc = STORE_ECOMPACT; /* too long a line, of too much that was missed */
		return 0;
	}
	for (char *nl; !s->rc && (nl = memchr(s->b.text + look, '\n', s->b.len - look));) {
		const size_t at = (size_t)(nl - s->b.text);

		s->rc = s->line(s->ctx, s->b.text + from, at - from);
		look = from = at + 1;
	}
	s->b.len -= from;
	memmove(s->b.text, s->b.text + from, s->b.len);
	return s->rc ? 0 : n;
}

static bool silent(const struct stream *s)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (now.tv_sec - s->heard.tv_sec) * 1000 + (now.tv_nsec - s->heard.tv_nsec) / 1000000 >
	       SILENCE_MS;
}

static int stream_run(CURLM *m, struct stream *s, store_etcd_tick_cb *tick)
{
	int running = 1, left, rc = 0;

	while (!rc && !s->rc && running) {
		if (curl_multi_perform(m, &running) || curl_multi_poll(m, NULL, 0, TICK_MS, NULL))
			return STORE_EDOWN;
		rc = tick(s->ctx);
		if (!rc && silent(s))
			rc = STORE_EDOWN;
	}
	while (curl_multi_info_read(m, &left))
		;
	return s->rc ? s->rc : rc ? rc : STORE_EDOWN; /* a clean end is one as well: the server stops */
}

int store_etcd_http_stream(struct store_etcd_http *h, unsigned endpoint, const char *path, json_t *ask,
    store_etcd_line_cb *line, store_etcd_tick_cb *tick, void *ctx)
{
	struct stream s = {.b.max = LINE_BYTES, .line = line, .ctx = ctx};
	char *text = ask ? json_dumps(ask, JSON_COMPACT) : NULL;
	struct curl_slist *headers;
	CURL *c = curl_easy_init();
	CURLM *m = curl_multi_init();
	int rc = RWY_ENOMEM;

	pthread_mutex_lock(&h->lock);
	headers = headers_new(h);
	pthread_mutex_unlock(&h->lock);
	if (text && c && m) {
		clock_gettime(CLOCK_MONOTONIC, &s.heard);
		set_common(h, c, endpoint % h->endpoints, path, text, headers);
		curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_stream);
		curl_easy_setopt(c, CURLOPT_WRITEDATA, &s);
		curl_multi_add_handle(m, c);
		rc = stream_run(m, &s, tick);
		curl_multi_remove_handle(m, c);
	}
	curl_slist_free_all(headers);
	curl_easy_cleanup(c);
	curl_multi_cleanup(m);
	json_decref(ask);
	free(text);
	free(s.b.text);
	return rc;
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
	curl_easy_cleanup(h->curl);
	curl_slist_free_all(h->headers);
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

static bool copy(char **out, const char *s)
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
	curl_global_init(CURL_GLOBAL_DEFAULT);
	h->curl = curl_easy_init();
	h->timeout_ms = cfg->timeout_ms ? (long)cfg->timeout_ms : 1000;
	h->attempts = cfg->attempts ? cfg->attempts : 2;
	ok = h->curl && copy(&h->ca, cfg->ca) && copy(&h->cert, cfg->cert) && copy(&h->key, cfg->key) &&
	     copy(&h->user, cfg->user) && copy(&h->password, cfg->password);
	for (; ok && h->endpoints < cfg->endpoints; h->endpoints++)
		ok = copy(&h->endpoint[h->endpoints], cfg->endpoint[h->endpoints]);
	h->headers = headers_new(h);
	if (ok) {
		*out = h;
		return 0;
	}
	snprintf(text, STORE_TEXT, "out of memory");
	store_etcd_http_free(h);
	return RWY_ENOMEM;
}
