/* SPDX-License-Identifier: Apache-2.0 */
/* HTTPS requests to the control center, with certificates on both sides, to one replica after
 * another. explain.c decides what to ask. */
#include "tools/roceway/roceway.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/http.h"

#define ANSWER_MAX (64u << 20)
#define CONNECT_MS 3000L
#define TIMEOUT_MS 30000L
#define URL_MAX    256
#define PAGE       1000 /* entries of a list at a time */

struct control {
	const char *ca, *certificate, *key;
	char url[CONTROLS_MAX][URL_MAX];
	char *problem[CONTROLS_MAX]; /* why the replica could not be asked; NULL: it could */
	unsigned n;
	struct rwy_http *http;
};

/* --- options ---------------------------------------------------------------------------------- */

/* The value of an option, or of the environment variable. NULL: neither is set, and an error is
 * printed. */
static const char *setting(const struct cli *cli, const char *name, const char *env, const char *what)
{
	const char *v = cli_value(cli, name);

	v = v ? v : getenv(env);
	if (v && *v)
		return v;
	cli_error("%s: --%s or %s tells", what, name, env);
	return NULL;
}

static bool readable(const char *path)
{
	if (!access(path, R_OK))
		return true;
	cli_error("cannot read %s: %s", path, strerror(errno));
	return false;
}

/* Reads URL[,URL], each a scheme, a name and perhaps a port. */
static bool read_urls(struct control *k, const char *s)
{
	for (; *s; s += *s == ',') {
		size_t n = strcspn(s, ",");

		if (k->n == CONTROLS_MAX) {
			cli_error("--controller: more than %d", CONTROLS_MAX);
			return false;
		}
		if (strncmp(s, "https://", 8) != 0 || n < 9 || n >= URL_MAX) {
			cli_error("--controller: expected https://NAME:PORT, found %.*s", (int)n, s);
			return false;
		}
		snprintf(k->url[k->n], URL_MAX, "%.*s", (int)(s[n - 1] == '/' ? n - 1 : n), s);
		k->n++;
		s += n;
	}
	return k->n;
}

static bool read_settings(struct control *k, const struct cli *cli, int *rc)
{
	const char *urls = setting(cli, "controller", "ROCEWAY_CONTROLLER", "which control center");

	*rc = EXIT_USAGE;
	if (!urls || !read_urls(k, urls))
		return false;
	k->ca = setting(cli, "ca", "ROCEWAY_CA", "no CA to know the controller by");
	k->certificate = k->ca ? setting(cli, "certificate", "ROCEWAY_CERTIFICATE",
	                             "no certificate, an operator's or a scheduler's")
	                       : NULL;
	k->key = k->certificate ? setting(cli, "key", "ROCEWAY_KEY", "no key of the certificate") : NULL;
	if (!k->key)
		return false;
	*rc = EXIT_ERROR;
	return readable(k->ca) && readable(k->certificate) && readable(k->key);
}

/* --- requests -------------------------------------------------------------------------------- */

static int client_new(struct control *k)
{
	const struct rwy_http_cfg cfg = {.ca = k->ca,
	    .certificate = k->certificate,
	    .key = k->key,
	    .protocols = "https",
	    .connect_ms = CONNECT_MS,
	    .answer_max = ANSWER_MAX};

	return rwy_http_new(&k->http, &cfg);
}

struct control *control_new(const struct cli *cli, int *rc)
{
	struct control *k = calloc(1, sizeof(*k));

	*rc = EXIT_ERROR;
	if (!k) {
		cli_error("out of memory");
		return NULL;
	}
	if (!read_settings(k, cli, rc)) {
		control_free(k);
		return NULL;
	}
	if (client_new(k)) {
		cli_error("out of memory");
		control_free(k);
		return NULL;
	}
	*rc = EXIT_OK;
	return k;
}

void control_free(struct control *k)
{
	if (!k)
		return;
	rwy_http_free(k->http);
	for (unsigned i = 0; i < k->n; i++)
		free(k->problem[i]);
	free(k);
}

unsigned control_count(const struct control *k)
{
	return k->n;
}

__attribute__((format(printf, 3, 4))) static void problem(struct control *k, unsigned i, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	free(k->problem[i]);
	k->problem[i] = strdup(text);
}

static void tell_transfer(struct control *k, unsigned i, enum rwy_http_fail fail, const char *why)
{
	const char *url = k->url[i];

	if (fail == RWY_HTTP_UNTRUSTED)
		problem(k, i, "%s is not trusted by the CA in %s: %s", url, k->ca, why);
	else if (fail == RWY_HTTP_BAD_CA)
		problem(k, i, "%s is no CA: %s", k->ca, why);
	else if (fail == RWY_HTTP_BAD_TLS)
		problem(k, i, "no TLS with %s, certificate %s, key %s: %s", url, k->certificate, k->key, why);
	else
		problem(k, i, "cannot reach the controller at %s: %s", url, why);
}

static void tell_status(struct control *k, unsigned i, const json_t *j, long status)
{
	const char *error = js(j, "error");

	if (status == 403)
		problem(k, i, "%s refuses the certificate %s: %s (an operator or a scheduler may ask)",
		    k->url[i], k->certificate, *error ? error : "HTTP status 403");
	else if (*error)
		problem(k, i, "%s answers: %s", k->url[i], error);
	else
		problem(k, i, "%s answers with HTTP status %ld", k->url[i], status);
}

json_t *control_get(struct control *k, unsigned i, const char *page, long *status)
{
	struct rwy_http_answer a;
	enum rwy_http_fail fail;
	char url[URL_MAX + 1024];
	json_t *j;

	snprintf(url, sizeof(url), "%s%s", k->url[i], page);
	fail = rwy_http_ask(k->http, "GET", url, NULL, TIMEOUT_MS, &a);
	*status = fail ? 0 : a.status;
	if (fail) {
		tell_transfer(k, i, fail, a.why);
		return NULL;
	}
	j = json_loads(a.body, 0, NULL);
	if ((*status == 200 || *status == 404) && json_is_object(j))
		return j;
	tell_status(k, i, j, *status);
	json_decref(j);
	return NULL;
}

bool control_each(struct control *k, unsigned replica, const char *path, const char *list,
    bool (*each)(void *ctx, json_t *entry), void *ctx)
{
	char page[256], next[128] = "";
	bool more = true;
	json_t *j, *e;
	long status;
	size_t i;

	do {
		snprintf(page, sizeof(page), "%s?limit=%d", path, PAGE);
		if (*next)
			api_query(page, sizeof(page), "after", next);
		j = control_get(k, replica, page, &status);
		if (!j || status != 200) {
			json_decref(j);
			return false;
		}
		json_array_foreach(json_object_get(j, list), i, e) more = more && each(ctx, e);
		snprintf(next, sizeof(next), "%s", js(j, "next"));
		json_decref(j);
	} while (*next && more);
	return true;
}

unsigned control_tell(const struct control *k)
{
	unsigned shown = 0;

	for (unsigned i = 0; i < k->n; i++) {
		bool same = false; /* a fault of a file concerns every replica */

		for (unsigned m = 0; m < i; m++)
			same |= k->problem[i] && k->problem[m] && !strcmp(k->problem[i], k->problem[m]);
		if (k->problem[i] && !same)
			cli_error("%s", k->problem[i]);
		shown += k->problem[i] != NULL;
	}
	return shown;
}
