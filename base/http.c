/* SPDX-License-Identifier: Apache-2.0 */
#include "base/http.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TICK_MS  100
#define HEAD_MAX 65536   /* bytes of an answer's headers */
#define READ_MAX 262144L /* bytes of a stream that are read at once */

struct rwy_http_loop {
	CURLM *multi;
};

struct rwy_http {
	CURL *curl;
	struct curl_slist *headers;
	struct rwy_http_loop *loop; /* of the request under way there; NULL: none is */
	char *body;
	const char *once; /* the rest of a body that is sent once */
	size_t len, max, head;
	bool too_large;
	char why[CURL_ERROR_SIZE];
	/* fields of a rwy_http_lines or rwy_http_stream call */
	int (*line)(void *ctx, const char *text, size_t len);
	int (*data)(void *ctx, const void *data, size_t len);
	int (*tick)(void *ctx);
	void *ctx;
	int rc;
	struct timespec heard;
};

static bool append(struct rwy_http *h, const char *data, size_t n)
{
	char *more = h->len + n <= h->max ? realloc(h->body, h->len + n + 1) : NULL;

	h->too_large |= !more;
	if (!more)
		return false;
	h->body = more;
	memcpy(h->body + h->len, data, n);
	h->len += n;
	h->body[h->len] = 0;
	return true;
}

/* A return value below n ends the transfer. */
static size_t on_data(char *data, size_t size, size_t n, void *arg)
{
	return append(arg, data, size * n) ? size * n : 0;
}

/* libcurl keeps headers, as many as come. */
static size_t on_header(char *data, size_t size, size_t n, void *arg)
{
	struct rwy_http *h = arg;

	h->head += size * n;
	h->too_large |= h->head > HEAD_MAX;
	return h->too_large ? 0 : size * n;
}

static size_t on_line_data(char *data, size_t size, size_t n, void *arg)
{
	struct rwy_http *h = arg;
	size_t from = 0, look = h->len; /* the bytes before were searched already */

	n *= size;
	clock_gettime(CLOCK_MONOTONIC, &h->heard);
	if (!append(h, data, n))
		return 0;
	for (char *nl; !h->rc && (nl = memchr(h->body + look, '\n', h->len - look));) {
		const size_t at = (size_t)(nl - h->body);

		h->rc = h->line(h->ctx, h->body + from, at - from);
		look = from = at + 1;
	}
	h->len -= from;
	memmove(h->body, h->body + from, h->len);
	return h->rc ? 0 : n;
}

static size_t on_stream_data(char *data, size_t size, size_t n, void *arg)
{
	struct rwy_http *h = arg;
	long status = 0;

	n *= size;
	clock_gettime(CLOCK_MONOTONIC, &h->heard);
	curl_easy_getinfo(h->curl, CURLINFO_RESPONSE_CODE, &status);
	if (status != 200)
		return append(h, data, n) ? n : 0;
	h->rc = h->data(h->ctx, data, n);
	return h->rc ? 0 : n;
}

static void set_policy(CURL *c, const struct rwy_http_cfg *cfg)
{
	curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, cfg->protocols);
	curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(c, CURLOPT_PATH_AS_IS, 1L); /* also what is called `..` */
	curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, 1L);
	curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, 2L);
	curl_easy_setopt(c, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	if (!cfg->proxy)
		curl_easy_setopt(c, CURLOPT_PROXY, "");
	if (cfg->connect_ms)
		curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, cfg->connect_ms);
	if (cfg->unix_socket)
		curl_easy_setopt(c, CURLOPT_UNIX_SOCKET_PATH, cfg->unix_socket);
	if (cfg->ca)
		curl_easy_setopt(c, CURLOPT_CAINFO, cfg->ca);
	if (cfg->certificate)
		curl_easy_setopt(c, CURLOPT_SSLCERT, cfg->certificate);
	if (cfg->key)
		curl_easy_setopt(c, CURLOPT_SSLKEY, cfg->key);
}

int rwy_http_set_headers(struct rwy_http *h, const char *const *headers)
{
	/* without this a large body waits a second for permission */
	struct curl_slist *list = curl_slist_append(NULL, "Expect:"), *more = list;

	for (; more && headers && *headers; headers++)
		more = curl_slist_append(list, *headers);
	if (!more) {
		curl_slist_free_all(list);
		return RWY_ENOMEM;
	}
	curl_easy_setopt(h->curl, CURLOPT_HTTPHEADER, list);
	curl_slist_free_all(h->headers);
	h->headers = list;
	return 0;
}

int rwy_http_new(struct rwy_http **out, const struct rwy_http_cfg *cfg)
{
	struct rwy_http *h = calloc(1, sizeof(*h));

	if (!h)
		return RWY_ENOMEM;
	curl_global_init(CURL_GLOBAL_DEFAULT);
	h->max = cfg->answer_max;
	h->curl = curl_easy_init();
	if (!h->curl || rwy_http_set_headers(h, cfg->headers)) {
		rwy_http_free(h);
		return RWY_ENOMEM;
	}
	set_policy(h->curl, cfg);
	curl_easy_setopt(h->curl, CURLOPT_ERRORBUFFER, h->why);
	curl_easy_setopt(h->curl, CURLOPT_WRITEDATA, h);
	curl_easy_setopt(h->curl, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(h->curl, CURLOPT_HEADERDATA, h);
	curl_easy_setopt(h->curl, CURLOPT_PRIVATE, h);
	*out = h;
	return 0;
}

void rwy_http_free(struct rwy_http *h)
{
	if (!h)
		return;
	rwy_http_end(h);
	curl_easy_cleanup(h->curl);
	curl_slist_free_all(h->headers);
	free(h->body);
	free(h);
}

/* --- requests --------------------------------------------------------------------------------- */

enum body_of { BODY_CALLER, BODY_COPIED, BODY_ONCE };

/*
 * libcurl sends a request again on a new connection when the one that it used before breaks without
 * an answer. It does not when it cannot have the body again: this callback has no way back.
 */
static size_t on_body(char *to, size_t size, size_t n, void *arg)
{
	struct rwy_http *h = arg;
	size_t len = strlen(h->once);

	len = len < size * n ? len : size * n;
	memcpy(to, h->once, len);
	h->once += len;
	return len;
}

static void set_request(
    struct rwy_http *h, const char *method, const char *url, const char *body, enum body_of whose)
{
	h->len = h->head = 0;
	h->rc = 0;
	h->too_large = false;
	*h->why = 0;
	curl_easy_setopt(h->curl, CURLOPT_URL, url);
	if (body && whose == BODY_ONCE) {
		h->once = body;
		curl_easy_setopt(h->curl, CURLOPT_POST, 1L);
		curl_easy_setopt(h->curl, CURLOPT_POSTFIELDS, NULL);
		curl_easy_setopt(h->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(body));
		curl_easy_setopt(h->curl, CURLOPT_READFUNCTION, on_body);
		curl_easy_setopt(h->curl, CURLOPT_READDATA, h);
	} else if (body) {
		curl_easy_setopt(h->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(body));
		curl_easy_setopt(
		    h->curl, whose == BODY_COPIED ? CURLOPT_COPYPOSTFIELDS : CURLOPT_POSTFIELDS, body);
	} else {
		curl_easy_setopt(h->curl, CURLOPT_HTTPGET, 1L);
	}
	curl_easy_setopt(h->curl, CURLOPT_CUSTOMREQUEST, method);
}

static enum rwy_http_fail fail_of(const struct rwy_http *h, CURLcode rc)
{
	if (h->too_large)
		return RWY_HTTP_TOO_LARGE;
	switch ((int)rc) { /* codes of libcurl */
	case CURLE_OK:
		return RWY_HTTP_OK;
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_CONNECT:
		return RWY_HTTP_UNREACHABLE;
	case CURLE_PEER_FAILED_VERIFICATION:
		return RWY_HTTP_UNTRUSTED;
	case CURLE_SSL_CACERT_BADFILE:
		return RWY_HTTP_BAD_CA;
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CONNECT_ERROR:
		return RWY_HTTP_BAD_TLS;
	case CURLE_OPERATION_TIMEDOUT:
		return RWY_HTTP_LATE;
	default:
		return RWY_HTTP_BROKEN;
	}
}

static enum rwy_http_fail get_answer(struct rwy_http *h, CURLcode rc, struct rwy_http_answer *out)
{
	memset(out, 0, sizeof(*out));
	curl_easy_getinfo(h->curl, CURLINFO_RESPONSE_CODE, &out->status);
	curl_easy_getinfo(h->curl, CURLINFO_OS_ERRNO, &out->os_error);
	out->body = h->len ? h->body : "";
	out->len = h->len;
	out->why = *h->why ? h->why : curl_easy_strerror(rc);
	return fail_of(h, rc);
}

static enum rwy_http_fail ask(struct rwy_http *h, long timeout_ms, struct rwy_http_answer *out)
{
	curl_easy_setopt(h->curl, CURLOPT_WRITEFUNCTION, on_data);
	curl_easy_setopt(h->curl, CURLOPT_TIMEOUT_MS, timeout_ms);
	return get_answer(h, curl_easy_perform(h->curl), out);
}

enum rwy_http_fail rwy_http_ask(struct rwy_http *h, const char *method, const char *url, const char *body,
    long timeout_ms, struct rwy_http_answer *out)
{
	set_request(h, method, url, body, BODY_CALLER);
	return ask(h, timeout_ms, out);
}

enum rwy_http_fail rwy_http_ask_once(
    struct rwy_http *h, const char *url, const char *body, long timeout_ms, struct rwy_http_answer *out)
{
	enum rwy_http_fail fail;

	set_request(h, "POST", url, body, BODY_ONCE);
	fail = ask(h, timeout_ms, out);
	/* The failure is that of the second connection; the first one took a part of the body. */
	return rwy_http_unsent(fail) && h->once != body ? RWY_HTTP_BROKEN : fail;
}

char *rwy_http_take_body(struct rwy_http *h)
{
	char *body = h->len ? h->body : NULL;

	if (!body)
		return NULL;
	h->body = NULL;
	h->len = 0;
	return body;
}

/* --- requests that do not block --------------------------------------------------------------- */

int rwy_http_loop_new(struct rwy_http_loop **out)
{
	struct rwy_http_loop *l = calloc(1, sizeof(*l));

	curl_global_init(CURL_GLOBAL_DEFAULT);
	if (l)
		l->multi = curl_multi_init();
	if (!l || !l->multi) {
		free(l);
		return RWY_ENOMEM;
	}
	*out = l;
	return 0;
}

void rwy_http_loop_free(struct rwy_http_loop *l)
{
	if (!l)
		return;
	curl_multi_cleanup(l->multi);
	free(l);
}

int rwy_http_begin(struct rwy_http_loop *l, struct rwy_http *h, const char *method, const char *url,
    const char *body, long timeout_ms)
{
	set_request(h, method, url, body, BODY_COPIED);
	curl_easy_setopt(h->curl, CURLOPT_WRITEFUNCTION, on_data);
	curl_easy_setopt(h->curl, CURLOPT_TIMEOUT_MS, timeout_ms);
	if (curl_multi_add_handle(l->multi, h->curl) != CURLM_OK)
		return RWY_ENOMEM;
	h->loop = l;
	return 0;
}

void rwy_http_end(struct rwy_http *h)
{
	if (h->loop)
		curl_multi_remove_handle(h->loop->multi, h->curl);
	h->loop = NULL;
}

struct rwy_http *rwy_http_done(struct rwy_http_loop *l, enum rwy_http_fail *fail, struct rwy_http_answer *out)
{
	CURLMsg *msg;
	int n;

	curl_multi_perform(l->multi, &n);
	while ((msg = curl_multi_info_read(l->multi, &n))) {
		const CURLcode rc = msg->data.result;
		struct rwy_http *h = NULL;

		if (msg->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &h);
		rwy_http_end(h);
		*fail = get_answer(h, rc, out);
		return h;
	}
	return NULL;
}

void rwy_http_loop_wait(struct rwy_http_loop *l, int most_ms)
{
	curl_multi_poll(l->multi, NULL, 0, most_ms, NULL);
}

void rwy_http_loop_wake(struct rwy_http_loop *l)
{
	curl_multi_wakeup(l->multi);
}

/* --- lines ------------------------------------------------------------------------------------ */

static bool silent(const struct rwy_http *h, long most_ms)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (now.tv_sec - h->heard.tv_sec) * 1000 + (now.tv_nsec - h->heard.tv_nsec) / 1000000 > most_ms;
}

/* *code: libcurl's word for the end. */
static enum rwy_http_fail run_long(struct rwy_http *h, CURLM *m, long silence_ms, CURLcode *code)
{
	int running = 1, left;

	*code = CURLE_OK;
	while (running && !h->rc && !h->too_large) {
		if (curl_multi_perform(m, &running))
			return RWY_HTTP_BROKEN;
		if (!h->rc)
			h->rc = h->tick(h->ctx);
		if (running && !h->rc && curl_multi_poll(m, NULL, 0, TICK_MS, NULL))
			return RWY_HTTP_BROKEN;
		if (!h->rc && silent(h, silence_ms))
			return RWY_HTTP_LATE;
	}
	for (CURLMsg *msg; (msg = curl_multi_info_read(m, &left));)
		*code = msg->data.result;
	return h->rc ? RWY_HTTP_ENDED : fail_of(h, *code);
}

/* A request whose answer goes on: what it is, is set. */
static enum rwy_http_fail ask_long(
    struct rwy_http *h, curl_write_callback on, long silence_ms, void *ctx, int *rc, CURLcode *code)
{
	CURLM *m = curl_multi_init();
	enum rwy_http_fail fail = RWY_HTTP_BROKEN;

	*rc = 0;
	*code = CURLE_OUT_OF_MEMORY;
	if (!m)
		return fail;
	h->ctx = ctx;
	clock_gettime(CLOCK_MONOTONIC, &h->heard);
	curl_easy_setopt(h->curl, CURLOPT_WRITEFUNCTION, on);
	curl_easy_setopt(h->curl, CURLOPT_TIMEOUT_MS, 0L);
	curl_multi_add_handle(m, h->curl);
	fail = run_long(h, m, silence_ms, code);
	curl_multi_remove_handle(m, h->curl);
	curl_multi_cleanup(m);
	*rc = h->rc;
	return fail;
}

enum rwy_http_fail rwy_http_lines(struct rwy_http *h, const char *url, const char *body, long silence_ms,
    const struct rwy_http_lines_ops *ops, void *ctx, int *rc)
{
	CURLcode code;

	set_request(h, "POST", url, body, BODY_CALLER);
	h->line = ops->line;
	h->tick = ops->tick;
	return ask_long(h, on_line_data, silence_ms, ctx, rc, &code);
}

enum rwy_http_fail rwy_http_stream(struct rwy_http *h, const char *url, long silence_ms,
    const struct rwy_http_stream_ops *ops, void *ctx, int *rc, struct rwy_http_answer *out)
{
	enum rwy_http_fail fail;
	CURLcode code;

	set_request(h, "GET", url, NULL, BODY_CALLER);
	h->data = ops->data;
	h->tick = ops->tick;
	curl_easy_setopt(h->curl, CURLOPT_BUFFERSIZE, READ_MAX);
	fail = ask_long(h, on_stream_data, silence_ms, ctx, rc, &code);
	(void)get_answer(h, code, out);
	if (fail == RWY_HTTP_LATE && !*h->why) { /* libcurl has no word for it */
		snprintf(h->why, sizeof(h->why), "no answer in %ld seconds", silence_ms / 1000);
		out->why = h->why;
	}
	return fail;
}

char *rwy_http_escape(const char *text)
{
	char *escaped = curl_easy_escape(NULL, text, 0), *out = escaped ? strdup(escaped) : NULL;

	curl_free(escaped);
	return out;
}
