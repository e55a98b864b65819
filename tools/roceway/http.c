/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to the gateway's API over its Unix socket. An answer is text or JSON; a fault is one
 * line. */
#include "tools/roceway/roceway.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fileacl.h"
#include "base/http.h"

#define ANSWER_MAX (64u << 20)
#define TIMEOUT_MS 60000L

/* The client for this socket; NULL: out of memory. */
static struct rwy_http *client(const char *path)
{
	static struct rwy_http *http; /* kept for the repeated requests of --watch */
	const struct rwy_http_cfg cfg = {.unix_socket = path, .protocols = "http", .answer_max = ANSWER_MAX};

	if (!http && rwy_http_new(&http, &cfg))
		return NULL;
	return http;
}

static enum rwy_http_fail transfer(
    struct rwy_http *http, const char *method, const char *page, const char *send, struct rwy_http_answer *a)
{
	char url[2048];

	if (!http) {
		*a = (struct rwy_http_answer){.body = "", .why = "out of memory"};
		return RWY_HTTP_BROKEN;
	}
	snprintf(url, sizeof(url), "http://gateway%s", page);
	return rwy_http_ask(http, method, url, send, TIMEOUT_MS, a);
}

static bool misused;

bool api_misused(void)
{
	return misused;
}

static void tell_http(const struct rwy_http_answer *a)
{
	json_t *j = json_loads(a->body, 0, NULL);
	const char *error = js(j, "error");

	if (*error)
		cli_error("the gateway answers: %s", error);
	else
		cli_error("the gateway answers with HTTP status %ld", a->status);
	json_decref(j);
}

/* The kernel refuses users whom the socket's file does not let in: says whom it does. */
static void tell_not_let_in(const char *path)
{
	uint32_t gid[BASE_FILEACL_GROUPS];
	const unsigned n = base_fileacl_groups(path, gid, BASE_FILEACL_GROUPS);
	const struct passwd *owner;
	char groups[512] = "";
	struct stat st;

	if (stat(path, &st)) {
		cli_error("cannot reach the gateway at %s: %s", path, strerror(errno));
		return;
	}
	for (unsigned i = 0; i < n; i++) {
		const struct group *g = getgrgid(gid[i]);
		const char *before = i ? ", " : " and members of group ";
		const size_t used = strlen(groups);

		if (g)
			snprintf(groups + used, sizeof(groups) - used, "%s`%s`", before, g->gr_name);
		else
			snprintf(groups + used, sizeof(groups) - used, "%s%u", before, gid[i]);
	}
	owner = getpwuid(st.st_uid);
	cli_error("cannot reach the gateway at %s: only %s%s may%s", path,
	    owner ? owner->pw_name : "its user", groups,
	    n ? "" : ": api.read_group and api.operator_group of its configuration name no group");
}

void cli_unreachable(const struct cli *cli, const char *why, long os_error)
{
	if (os_error == EACCES)
		tell_not_let_in(cli->socket);
	else
		cli_error("cannot reach the gateway at %s: %s (is roceway-gateway running? --socket or "
		          "ROCEWAY_SOCKET tells where)",
		    cli->socket, os_error ? strerror((int)os_error) : why);
}

static void tell_unreachable(const struct cli *cli, const struct rwy_http_answer *a)
{
	cli_unreachable(cli, a->why, a->os_error);
}

char *api_get(const struct cli *cli, const char *page, long *status)
{
	struct rwy_http_answer a;
	struct rwy_http *http = client(cli->socket);
	char *text;

	if (transfer(http, "GET", page, NULL, &a)) {
		tell_unreachable(cli, &a);
		return NULL;
	}
	if (a.status != 200 && !(status && a.len)) {
		misused = misused || a.status == 400;
		tell_http(&a);
		return NULL;
	}
	if (status)
		*status = a.status;
	text = rwy_http_take_body(http);
	return text ? text : strdup("");
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
	struct rwy_http_answer a;
	enum rwy_http_fail fail = transfer(client(cli->socket), method, page, body ? body : "", &a);
	json_t *j = fail ? NULL : json_loads(a.body, 0, NULL);

	if (fail)
		tell_unreachable(cli, &a);
	else if (a.status >= 200 && a.status < 300 && json_is_object(j))
		return j;
	else if (*js(j, "error"))
		tell_error(j, file);
	else
		cli_error("the gateway answers with HTTP status %ld", a.status);
	json_decref(j);
	return NULL;
}

void api_page_of(char *page, size_t size, const char *path, const char *name)
{
	char *escaped = rwy_http_escape(name);

	snprintf(page, size, "%s%s", path, escaped ? escaped : "");
	free(escaped);
}

void api_query(char *page, size_t size, const char *name, const char *value)
{
	char *escaped = rwy_http_escape(value);
	const size_t used = strlen(page);

	snprintf(
	    page + used, size - used, "%c%s=%s", strchr(page, '?') ? '&' : '?', name, escaped ? escaped : "");
	free(escaped);
}
