/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the control center over HTTPS, with certificates on both sides, one replica after the other. Not here:
 * what is asked (explain.c). */
#include "tools/roceway/roceway.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ANSWER_MAX (64u << 20)
#define CONNECT_MS 3000L
#define SECONDS    30L
#define URL_MAX    256

struct control {
	const char *ca, *certificate, *key;
	char url[CONTROLS_MAX][URL_MAX];
	char *problem[CONTROLS_MAX]; /* why it could not be asked; NULL: it could */
	unsigned n;
	CURL *curl;
	char *text; /* the answer */
	size_t len;
};

/* --- what it is told ------------------------------------------------------------------------------- */

/* The option, else the environment's; NULL, after saying so, when it is nowhere. */
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

/* URL[,URL]: a scheme, a name and perhaps a port. */
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

/* --- requests -------------------------------------------------------------------------------------- */

static size_t on_data(char *data, size_t one, size_t n, void *arg)
{
	struct control *k = arg;
	char *more;

	n *= one;
	more = k->len + n < ANSWER_MAX ? realloc(k->text, k->len + n + 1) : NULL;
	if (!more)
		return 0; /* ends the transfer */
	k->text = more;
	memcpy(k->text + k->len, data, n);
	k->len += n;
	k->text[k->len] = 0;
	return n;
}

static void set_tls(struct control *k)
{
	curl_easy_setopt(k->curl, CURLOPT_PROTOCOLS_STR, "https");
	curl_easy_setopt(k->curl, CURLOPT_SSL_VERIFYPEER, 1L);
	curl_easy_setopt(k->curl, CURLOPT_SSL_VERIFYHOST, 2L);
	curl_easy_setopt(k->curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	curl_easy_setopt(k->curl, CURLOPT_CAINFO, k->ca);
	curl_easy_setopt(k->curl, CURLOPT_SSLCERT, k->certificate);
	curl_easy_setopt(k->curl, CURLOPT_SSLKEY, k->key);
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
	k->curl = curl_easy_init();
	if (!k->curl) {
		cli_error("out of memory");
		control_free(k);
		return NULL;
	}
	set_tls(k);
	curl_easy_setopt(k->curl, CURLOPT_PROXY, "");
	curl_easy_setopt(k->curl, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(k->curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(k->curl, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
	curl_easy_setopt(k->curl, CURLOPT_TIMEOUT, SECONDS);
	curl_easy_setopt(k->curl, CURLOPT_WRITEFUNCTION, on_data);
	curl_easy_setopt(k->curl, CURLOPT_WRITEDATA, k);
	*rc = EXIT_OK;
	return k;
}

void control_free(struct control *k)
{
	if (!k)
		return;
	if (k->curl)
		curl_easy_cleanup(k->curl);
	for (unsigned i = 0; i < k->n; i++)
		free(k->problem[i]);
	free(k->text);
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

/* err: the library's own words, often more to the point than the code's. */
static void tell_transfer(struct control *k, unsigned i, CURLcode rc, const char *err)
{
	const char *url = k->url[i], *words = *err ? err : curl_easy_strerror(rc);

	if (rc == CURLE_PEER_FAILED_VERIFICATION)
		problem(k, i, "%s is not trusted by the CA in %s: %s", url, k->ca, words);
	else if (rc == CURLE_SSL_CACERT_BADFILE)
		problem(k, i, "%s is no CA: %s", k->ca, words);
	else if (rc == CURLE_SSL_CERTPROBLEM || rc == CURLE_SSL_CONNECT_ERROR)
		problem(
		    k, i, "no TLS with %s, certificate %s, key %s: %s", url, k->certificate, k->key, words);
	else
		problem(k, i, "cannot reach the controller at %s: %s", url, words);
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
	char url[URL_MAX + 1024], err[CURL_ERROR_SIZE] = "";
	CURLcode rc;
	json_t *j;

	k->len = 0;
	if (k->text)
		*k->text = 0;
	snprintf(url, sizeof(url), "%s%s", k->url[i], page);
	curl_easy_setopt(k->curl, CURLOPT_URL, url);
	curl_easy_setopt(k->curl, CURLOPT_ERRORBUFFER, err);
	rc = curl_easy_perform(k->curl);
	curl_easy_setopt(k->curl, CURLOPT_ERRORBUFFER, NULL);
	*status = 0;
	if (rc) {
		tell_transfer(k, i, rc, err);
		return NULL;
	}
	curl_easy_getinfo(k->curl, CURLINFO_RESPONSE_CODE, status);
	j = json_loads(k->text ? k->text : "", 0, NULL);
	if ((*status == 200 || *status == 404) && json_is_object(j))
		return j;
	tell_status(k, i, j, *status);
	json_decref(j);
	return NULL;
}

unsigned control_tell(const struct control *k)
{
	unsigned told = 0;

	for (unsigned i = 0; i < k->n; i++) {
		bool same = false; /* what is wrong with a file is so for every replica */

		for (unsigned m = 0; m < i; m++)
			same |= k->problem[i] && k->problem[m] && !strcmp(k->problem[i], k->problem[m]);
		if (k->problem[i] && !same)
			cli_error("%s", k->problem[i]);
		told += k->problem[i] != NULL;
	}
	return told;
}
