/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Provider `http`: a network's controller behind the REST contract of docs/controller-planning.md.
 * It sends one request at a time over one kept connection; time and size of each answer are
 * bounded.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/http.h"
#include "controller/plan/spread.h"
#include "controller/provider/internal.h"

#define BODY_MAX   (1u << 20)
#define TIMEOUT_MS 3000L

struct http_net {
	struct provider p;
	struct rwy_http *http;
	char *url;
	long timeout_ms;
	struct rwy_http_answer answer; /* the last one */
};

static void net_close(struct provider *p)
{
	struct http_net *h = (struct http_net *)p;

	if (!h)
		return;
	rwy_http_free(h->http);
	free(h->url);
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

static int client_new(struct rwy_http **out, const char *ca, const char *cert, const char *key)
{
	static const char *const headers[] = {"Content-Type: application/json", NULL};
	const struct rwy_http_cfg cfg = {.ca = ca,
	    .certificate = cert,
	    .key = key,
	    .protocols = "http,https",
	    .headers = headers,
	    .answer_max = BODY_MAX,
	    .proxy = true};

	return rwy_http_new(out, &cfg);
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
		h->url = strdup(url);
	}
	if (!h || !h->url || client_new(&h->http, ca, cert, key)) {
		net_close(h ? &h->p : NULL);
		return provider_fail(err, RWY_ENOMEM, "out of memory");
	}
	if (h->url[strlen(h->url) - 1] == '/')
		h->url[strlen(h->url) - 1] = '\0';
	*out = &h->p;
	return 0;
}

/* Sends one request. Returns the HTTP status, or an error with a message. */
static int network_ask(
    struct http_net *h, const char *method, const char *path, const char *body, struct provider_err *err)
{
	enum rwy_http_fail fail;
	char url[2048];

	if (snprintf(url, sizeof(url), "%s%s", h->url, path) >= (int)sizeof(url))
		return provider_fail(err, RWY_EINVAL, "the address is too long");
	fail = rwy_http_ask(h->http, method, url, body, h->timeout_ms, &h->answer);
	if (fail == RWY_HTTP_TOO_LARGE)
		return provider_fail(err, PROVIDER_EBAD, "%.120s: the answer is longer than 1 MiB", url);
	if (fail == RWY_HTTP_LATE)
		return provider_fail(
		    err, PROVIDER_ETIMEDOUT, "%.120s: no answer within %ld ms", url, h->timeout_ms);
	if (fail)
		return provider_fail(err, PROVIDER_EIO, "%.120s: %.110s", url, h->answer.why);
	return (int)h->answer.status;
}

/* The error for a status that is not a success. */
static int refused(struct http_net *h, int status, struct provider_err *err)
{
	char other[32];
	int code = status >= 400 && status < 500 ? PROVIDER_EREFUSED : PROVIDER_EBAD;

	if (status < 0)
		return status;
	(void)snprintf(other, sizeof(other), "status %d", status);
	provider_json_error(err->text, sizeof(err->text), h->answer.body, h->answer.len, other);
	return code;
}

/* Names from the API are plain words; other characters are escaped. */
static int path_of(
    char *out, size_t len, const char *fmt, const char *a, const char *b, struct provider_err *err)
{
	char *ea = rwy_http_escape(a), *eb = rwy_http_escape(b ? b : "");
	int n = -1;

	if (ea && eb)
		n = b ? snprintf(out, len, "%s?first=%s&second=%s", fmt, ea, eb)
		      : snprintf(out, len, "%s/%s", fmt, ea);
	free(ea);
	free(eb);
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

	status = path_of(where, sizeof(where), "/v1/paths", first, second, err);
	if (status == 0)
		status = network_ask(h, "GET", where, NULL, err);
	if (status == 404) {
		err->text[0] = '\0';
		return 0; /* the network does not know these sites, so it has no paths */
	}
	if (status != 200)
		return refused(h, status, err);
	n = provider_json_paths(&path, h->answer.body, h->answer.len, 0, h->url, err);
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

	status = path_of(where, sizeof(where), "/v1/tunnels", name, NULL, err);
	if (status)
		return status;
	body = provider_json_tunnel(first, second, routes, pl);
	if (!body)
		return provider_fail(err, RWY_ENOMEM, "out of memory");
	status = network_ask(h, "PUT", where, body, err);
	free(body);
	return status == 200 || status == 201 || status == 204 ? 0 : refused(h, status, err);
}

static int net_drop(struct provider *p, const char *name, struct provider_err *err)
{
	struct http_net *h = (struct http_net *)p;
	char where[1024];
	int status;

	status = path_of(where, sizeof(where), "/v1/tunnels", name, NULL, err);
	if (status == 0)
		status = network_ask(h, "DELETE", where, NULL, err);
	return status == 200 || status == 204 || status == 404 ? 0 : refused(h, status, err);
}

static int net_has(
    struct provider *p, const char *name, struct plan_route *out, unsigned max, struct provider_err *err)
{
	struct http_net *h = (struct http_net *)p;
	char where[1024];
	int status;

	status = path_of(where, sizeof(where), "/v1/tunnels", name, NULL, err);
	if (status == 0)
		status = network_ask(h, "GET", where, NULL, err);
	if (status == 404)
		return 0;
	if (status != 200)
		return refused(h, status, err);
	status = provider_json_legs(out, max, h->answer.body, h->answer.len, h->url, err);
	return status == RWY_EINVAL ? PROVIDER_EBAD : status;
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
    .has = net_has,
};
