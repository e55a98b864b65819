/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Provider `http`: a network's controller behind the REST contract of docs/controller-planning.md. One
 * request at a time over one kept connection, each bounded in time and in the size of its answer.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>

#include "controller/plan/spread.h"
#include "controller/provider/internal.h"

#define BODY_MAX   (1u << 20)
#define TIMEOUT_MS 3000L

struct http_net {
	struct provider p;
	CURL *curl;
	char *url, *ca, *cert, *key;
	long timeout_ms;
	char *body;
	size_t len; /* of the last answer */
	bool too_long;
};

static size_t on_body(char *data, size_t size, size_t n, void *ctx)
{
	struct http_net *h = ctx;

	if (n > BODY_MAX - h->len) {
		h->too_long = true;
		return 0;
	}
	memcpy(h->body + h->len, data, n);
	h->len += n;
	return n;
}

static void net_close(struct provider *p)
{
	struct http_net *h = (struct http_net *)p;

	if (!h)
		return;
	if (h->curl)
		curl_easy_cleanup(h->curl);
	free(h->url);
	free(h->ca);
	free(h->cert);
	free(h->key);
	free(h->body);
	free(h);
}

static int timeout_of(const char *text, long *out)
{
	char *end;
	long v = text ? strtol(text, &end, 10) : TIMEOUT_MS;

	if (text && (*text < '0' || *text > '9' || *end || v < 1 || v > 60000))
		return RWY_EINVAL;
	*out = v;
	return 0;
}

static char *copy(const char *s)
{
	return s ? strdup(s) : NULL;
}

static int net_open(
    struct provider **out, const struct provider_option *o, unsigned n, struct provider_err *err)
{
	const char *url = provider_option(o, n, "url"), *ca = provider_option(o, n, "ca");
	const char *cert = provider_option(o, n, "cert"), *key = provider_option(o, n, "key");
	struct http_net *h;
	long timeout;
	int rc;

	*out = NULL;
	rc = provider_options_check(o, n, provider_http.options, err);
	if (rc)
		return rc;
	if (!url || (strncmp(url, "https://", 8) != 0 && strncmp(url, "http://", 7) != 0))
		return provider_fail(err, RWY_EINVAL, "url: has to begin with https:// or http://");
	if (timeout_of(provider_option(o, n, "timeout_ms"), &timeout))
		return provider_fail(err, RWY_EINVAL, "timeout_ms: has to be 1 to 60000");
	if (!cert != !key)
		return provider_fail(err, RWY_EINVAL, "%s: is missing beside %s", cert ? "key" : "cert",
		    cert ? "cert" : "key");
	h = calloc(1, sizeof(*h));
	if (h) {
		h->p.ops = &provider_http;
		h->timeout_ms = timeout;
		h->url = copy(url);
		h->ca = copy(ca);
		h->cert = copy(cert);
		h->key = copy(key);
		h->body = malloc(BODY_MAX + 1);
		h->curl = curl_easy_init();
	}
	if (!h || !h->url || !h->body || !h->curl || (ca && !h->ca) || (cert && !h->cert) ||
	    (key && !h->key)) {
		net_close(h ? &h->p : NULL);
		return provider_fail(err, RWY_ENOMEM, "out of memory");
	}
	if (h->url[strlen(h->url) - 1] == '/')
		h->url[strlen(h->url) - 1] = '\0';
	*out = &h->p;
	return 0;
}

/* One request; the status, or an error with a message. */
static int ask(
    struct http_net *h, const char *method, const char *path, const char *body, struct provider_err *err)
{
	struct curl_slist *head = curl_slist_append(NULL, "Content-Type: application/json");
	char url[2048], why[CURL_ERROR_SIZE] = "";
	long status = 0;
	CURLcode rc;

	if (snprintf(url, sizeof(url), "%s%s", h->url, path) >= (int)sizeof(url)) {
		curl_slist_free_all(head);
		return provider_fail(err, RWY_EINVAL, "the address is too long");
	}
	h->len = 0;
	h->too_long = false;
	curl_easy_reset(h->curl); /* connections stay */
	curl_easy_setopt(h->curl, CURLOPT_URL, url);
	curl_easy_setopt(h->curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(h->curl, CURLOPT_CUSTOMREQUEST, method);
	curl_easy_setopt(h->curl, CURLOPT_HTTPHEADER, head);
	curl_easy_setopt(h->curl, CURLOPT_TIMEOUT_MS, h->timeout_ms);
	curl_easy_setopt(h->curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(h->curl, CURLOPT_ERRORBUFFER, why);
	curl_easy_setopt(h->curl, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(h->curl, CURLOPT_WRITEDATA, h);
	if (body)
		curl_easy_setopt(h->curl, CURLOPT_POSTFIELDS, body);
	if (h->ca)
		curl_easy_setopt(h->curl, CURLOPT_CAINFO, h->ca);
	if (h->cert) {
		curl_easy_setopt(h->curl, CURLOPT_SSLCERT, h->cert);
		curl_easy_setopt(h->curl, CURLOPT_SSLKEY, h->key);
	}
	rc = curl_easy_perform(h->curl);
	curl_easy_getinfo(h->curl, CURLINFO_RESPONSE_CODE, &status);
	curl_slist_free_all(head);
	if (h->too_long)
		return provider_fail(err, PROVIDER_EBAD, "%.120s: the answer is longer than 1 MiB", url);
	if (rc == CURLE_OPERATION_TIMEDOUT)
		return provider_fail(
		    err, PROVIDER_ETIMEDOUT, "%.120s: no answer within %ld ms", url, h->timeout_ms);
	if (rc != CURLE_OK)
		return provider_fail(
		    err, PROVIDER_EIO, "%.120s: %.110s", url, why[0] ? why : curl_easy_strerror(rc));
	return (int)status;
}

/* The error for a status that is no success. */
static int refused(struct http_net *h, int status, struct provider_err *err)
{
	char other[32];
	int code = status >= 400 && status < 500 ? PROVIDER_EREFUSED : PROVIDER_EBAD;

	if (status < 0)
		return status;
	(void)snprintf(other, sizeof(other), "status %d", status);
	provider_json_error(err->text, sizeof(err->text), h->body, h->len, other);
	return code;
}

/* Names from the API are plain words; what is not is escaped. */
static int path_of(struct http_net *h, char *out, size_t len, const char *fmt, const char *a, const char *b,
    struct provider_err *err)
{
	char *ea = curl_easy_escape(h->curl, a, 0), *eb = curl_easy_escape(h->curl, b ? b : "", 0);
	int n = -1;

	if (ea && eb)
		n = b ? snprintf(out, len, "%s?first=%s&second=%s", fmt, ea, eb)
		      : snprintf(out, len, "%s/%s", fmt, ea);
	curl_free(ea);
	curl_free(eb);
	if (n < 0 || (size_t)n >= len)
		return provider_fail(err, RWY_EINVAL, "%.60s: the name is too long", a);
	return 0;
}

static int net_routes(struct provider *p, const char *first, const char *second, struct plan_route *out,
    unsigned max, struct provider_err *err)
{
	struct http_net *h = (struct http_net *)p;
	struct provider_path *path = NULL;
	char where[1024];
	int status, n, i;

	status = path_of(h, where, sizeof(where), "/v1/paths", first, second, err);
	if (status == 0)
		status = ask(h, "GET", where, NULL, err);
	if (status == 404) {
		err->text[0] = '\0';
		return 0; /* it does not know these sites: no paths */
	}
	if (status != 200)
		return refused(h, status, err);
	n = provider_json_paths(&path, h->body, h->len, 0, h->url, err);
	if (n == RWY_EINVAL)
		return PROVIDER_EBAD;
	for (i = 0; i < n && (unsigned)i < max; i++)
		out[i] = path[i].route;
	free(path);
	return n > (int)max ? (int)max : n;
}

static int net_make(struct provider *p, const char *name, const char *first, const char *second,
    const struct plan_route *routes, const struct plan_placement *pl, struct provider_err *err)
{
	struct http_net *h = (struct http_net *)p;
	char where[1024], *body;
	int status;

	status = path_of(h, where, sizeof(where), "/v1/tunnels", name, NULL, err);
	if (status)
		return status;
	body = provider_json_tunnel(first, second, routes, pl);
	if (!body)
		return provider_fail(err, RWY_ENOMEM, "out of memory");
	status = ask(h, "PUT", where, body, err);
	free(body);
	return status == 200 || status == 201 || status == 204 ? 0 : refused(h, status, err);
}

static int net_drop(struct provider *p, const char *name, struct provider_err *err)
{
	struct http_net *h = (struct http_net *)p;
	char where[1024];
	int status;

	status = path_of(h, where, sizeof(where), "/v1/tunnels", name, NULL, err);
	if (status == 0)
		status = ask(h, "DELETE", where, NULL, err);
	return status == 200 || status == 204 || status == 404 ? 0 : refused(h, status, err);
}

static const char *const options[] = {"url: of the network's controller",
    "ca: certificates that sign its own", "cert: our certificate", "key: of our certificate",
    "timeout_ms: of a request, 1 to 60000, default 3000", NULL};

const struct provider_ops provider_http = {
    .name = "http",
    .help = "a network's controller behind a REST contract",
    .options = options,
    .open = net_open,
    .close = net_close,
    .routes = net_routes,
    .make = net_make,
    .drop = net_drop,
};
