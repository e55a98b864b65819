/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the gateway's API over its Unix socket. What comes back is text or JSON; what went wrong is told in
 * one line. */
#include "tools/roceway/roceway.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER_MAX (64u << 20)
#define SECONDS    60L

struct body {
	char *text;
	size_t len;
};

static size_t on_data(char *data, size_t one, size_t n, void *arg)
{
	struct body *b = arg;
	char *more = b->len + n < ANSWER_MAX ? realloc(b->text, b->len + n + 1) : NULL;

	if (!more)
		return 0;
	b->text = more;
	memcpy(b->text + b->len, data, n);
	b->len += n;
	b->text[b->len] = 0;
	return n;
}

/* body NULL: only asked for. */
static void set_request(CURL *curl, const char *method, const char *body)
{
	static struct curl_slist *headers;

	if (!headers) /* without it a large body waits a second for permission */
		headers = curl_slist_append(NULL, "Expect:");
	curl_easy_setopt(curl, CURLOPT_HTTPGET, 1L);
	curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, NULL);
	if (!method)
		return;
	curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body ? body : "");
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
}

static CURLcode transfer(const char *path, const char *method, const char *page, const char *send,
    struct body *b, long *status, long *os_error)
{
	static CURL *curl; /* kept: --watch asks again and again */
	char url[2048];
	CURLcode rc;

	if (!curl)
		curl = curl_easy_init();
	if (!curl)
		return CURLE_FAILED_INIT;
	snprintf(url, sizeof(url), "http://gateway%s", page);
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, path);
	curl_easy_setopt(curl, CURLOPT_PROXY, "");
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_data);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, b);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT, SECONDS);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	set_request(curl, method, send);
	rc = curl_easy_perform(curl);
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, status);
	curl_easy_getinfo(curl, CURLINFO_OS_ERRNO, os_error);
	return rc;
}

static void tell_http(const struct body *b, long status)
{
	json_t *j = json_loads(b->text ? b->text : "", 0, NULL);
	const char *error = js(j, "error");

	if (*error)
		cli_error("the gateway answers: %s", error);
	else
		cli_error("the gateway answers with HTTP status %ld", status);
	json_decref(j);
}

static void tell_unreachable(const struct cli *cli, CURLcode rc, long os_error)
{
	cli_error("cannot reach the gateway at %s: %s (is roceway-gateway running? --socket or "
	          "ROCEWAY_SOCKET tells where)",
	    cli->socket, os_error ? strerror((int)os_error) : curl_easy_strerror(rc));
}

char *api_get(const struct cli *cli, const char *page, long *status)
{
	struct body b = {NULL, 0};
	long code = 0, os_error = 0;
	CURLcode rc = transfer(cli->socket, NULL, page, NULL, &b, &code, &os_error);

	if (rc) {
		tell_unreachable(cli, rc, os_error);
	} else if (code != 200 && !(status && b.text)) {
		tell_http(&b, code);
	} else {
		if (status)
			*status = code;
		return b.text ? b.text : strdup("");
	}
	free(b.text);
	return NULL;
}

json_t *api_get_json(const struct cli *cli, const char *page, long *status)
{
	char *text = api_get(cli, page, status);
	json_error_t err;
	json_t *j;

	if (!text)
		return NULL;
	j = json_loads(text, 0, &err);
	if (!json_is_object(j)) {
		cli_error(
		    "the gateway's answer to %s is no JSON object: %s", page, j ? "wrong type" : err.text);
		json_decref(j);
		j = NULL;
	}
	free(text);
	return j;
}

static void tell_error(const json_t *j, const char *file)
{
	if (file && ji(j, "line"))
		cli_error("%s:%lld:%lld: %s", file, ji(j, "line"), ji(j, "column"), js(j, "error"));
	else if (file)
		cli_error("%s: %s", file, js(j, "error"));
	else
		cli_error("%s", js(j, "error"));
}

json_t *api_send(
    const struct cli *cli, const char *method, const char *page, const char *body, const char *file)
{
	struct body b = {NULL, 0};
	long code = 0, os_error = 0;
	CURLcode rc = transfer(cli->socket, method, page, body, &b, &code, &os_error);
	json_t *j = rc ? NULL : json_loads(b.text ? b.text : "", 0, NULL);

	free(b.text);
	if (rc)
		tell_unreachable(cli, rc, os_error);
	else if (code >= 200 && code < 300 && json_is_object(j))
		return j;
	else if (*js(j, "error"))
		tell_error(j, file);
	else
		cli_error("the gateway answers with HTTP status %ld", code);
	json_decref(j);
	return NULL;
}

void api_page_of(char *page, size_t size, const char *path, const char *name)
{
	char *escaped = curl_easy_escape(NULL, name, 0);

	snprintf(page, size, "%s%s", path, escaped ? escaped : "");
	curl_free(escaped);
}

void api_query(char *page, size_t size, const char *name, const char *value)
{
	char *escaped = curl_easy_escape(NULL, value, 0);
	const size_t used = strlen(page);

	snprintf(
	    page + used, size - used, "%c%s=%s", strchr(page, '?') ? '&' : '?', name, escaped ? escaped : "");
	curl_free(escaped);
}
