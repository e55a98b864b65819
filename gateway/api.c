/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The local API: HTTP on a Unix socket, one thread of its own, read only. This file is the server: socket,
 * requests, parameters, errors. Not here: what a page says (api_*.c).
 */
#include "gateway/api.h"

#include <errno.h>
#include <microhttpd.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "gateway/log.h"

#define CONNECTIONS_MAX 32
#define IDLE_SECONDS    10

struct route {
	const char *path, *params, *text;
	api_page *page;
};

static api_page index_page;

static const struct route routes[] = {
    {"/v1", "", "this list", index_page},
    {"/v1/status", "", "the gateway in one object", api_status},
    {"/v1/flows", "limit cursor local remote qpn state tunnel",
        "connections, by pages: follow `next` as `cursor` until it is null", api_flows},
    {"/v1/tunnels", "workers", "tunnels over all workers; ?workers=1 adds each worker's half", api_tunnels},
    {"/v1/counters", "nonzero workers", "every counter with its sentence; ?nonzero=1, ?workers=1: not summed",
        api_counters},
    {"/v1/ports", "", "ports with addresses, link and counters", api_ports},
    {"/v1/neighbours", "", "next hops on the ports' subnets", api_neighbours},
    {"/v1/workers", "", "packet threads and how busy they are", api_workers},
    {"/metrics", "", "Prometheus text", api_metrics},
    {"/livez", "", "200: the workers answer", api_livez},
    {"/readyz", "", "200: running, ports up, a tunnel up", api_readyz},
    {"/healthz", "", "both, and every tunnel", api_healthz},
};
#define ROUTES (sizeof(routes) / sizeof(routes[0]))

static struct {
	struct gw_app *app;
	struct MHD_Daemon *daemon;
	char path[CONF_STR];
} api;

/* --- for the pages ------------------------------------------------------------------------------ */

void api_fail(struct api_reply *reply, unsigned status, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	if (reply->status != MHD_HTTP_OK)
		return; /* the first fault is the one to tell */
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	json_decref(reply->json);
	free(reply->text);
	reply->text = NULL;
	reply->status = status;
	reply->json = json_pack("{s:s}", "error", text);
}

const char *api_param(const struct api_req *req, const char *name)
{
	for (unsigned i = 0; i < req->params; i++)
		if (!strcmp(req->param[i].name, name))
			return req->param[i].value;
	return NULL;
}

bool api_flag(const struct api_req *req, struct api_reply *reply, const char *name)
{
	const char *v = api_param(req, name);

	if (v && *v && strcmp(v, "0") != 0 && strcmp(v, "1") != 0)
		api_fail(reply, MHD_HTTP_BAD_REQUEST, "parameter %s: expected 0 or 1", name);
	return v && strcmp(v, "0") != 0;
}

uint64_t api_number(
    const struct api_req *req, struct api_reply *reply, const char *name, uint64_t dflt, uint64_t max)
{
	const char *s = api_param(req, name);
	char *end;
	uint64_t v;

	if (!s)
		return dflt;
	errno = 0;
	v = strtoull(s, &end, !strncmp(s, "0x", 2) ? 16 : 10);
	if (*s < '0' || *s > '9' || *end || errno || v > max) {
		api_fail(reply, MHD_HTTP_BAD_REQUEST, "parameter %s: expected a number up to %llu", name,
		    (unsigned long long)max);
		return dflt;
	}
	return v;
}

static void index_page(const struct api_req *req, struct api_reply *reply)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < ROUTES; i++)
		json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "path", routes[i].path, "parameters",
		                                routes[i].params, "text", routes[i].text));
	reply->json = json_pack("{s:o}", "pages", list);
}

/* --- requests ----------------------------------------------------------------------------------- */

struct query {
	struct api_req *req;
	struct api_reply *reply;
	const char *known; /* "limit cursor ..." */
};

static bool word_in(const char *word, const char *words)
{
	const size_t n = strlen(word);

	for (const char *at = words; n && (at = strstr(at, word)); at += n)
		if ((at == words || at[-1] == ' ') && (!at[n] || at[n] == ' '))
			return true;
	return false;
}

static enum MHD_Result on_param(void *cls, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct query *q = cls;

	if (!word_in(name, q->known))
		api_fail(q->reply, MHD_HTTP_BAD_REQUEST, "unknown parameter %.64s: this page knows %s", name,
		    *q->known ? q->known : "none");
	else if (api_param(q->req, name))
		api_fail(q->reply, MHD_HTTP_BAD_REQUEST, "parameter %s is given twice", name);
	else if (q->req->params < API_PARAMS_MAX) {
		q->req->param[q->req->params].name = name;
		q->req->param[q->req->params++].value = value ? value : "";
	}
	return MHD_YES;
}

static const struct route *route_find(const char *url)
{
	for (unsigned i = 0; i < ROUTES; i++)
		if (!strcmp(routes[i].path, url))
			return &routes[i];
	return NULL;
}

static void serve(struct MHD_Connection *conn, const char *url, const char *method, struct api_reply *reply)
{
	struct api_req req = {.app = api.app};
	const struct route *r = route_find(url);
	struct query q = {&req, reply, r ? r->params : ""};

	if (!r) {
		api_fail(reply, MHD_HTTP_NOT_FOUND, "no page %.128s: GET /v1 lists them", url);
		return;
	}
	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) {
		api_fail(reply, MHD_HTTP_METHOD_NOT_ALLOWED,
		    "method %.32s is not allowed: this API only reads, with GET", method);
		return;
	}
	MHD_get_connection_values(conn, MHD_GET_ARGUMENT_KIND, on_param, &q);
	if (reply->status == MHD_HTTP_OK)
		r->page(&req, reply);
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *conn, const char *url, const char *method,
    const char *version, const char *upload, size_t *upload_size, void **state)
{
	struct api_reply reply = {.status = MHD_HTTP_OK};
	struct MHD_Response *resp;
	enum MHD_Result rc;
	static int seen;

	/* called first with the headers, then with what a client uploads all the same, then for the answer */
	if (!*state || *upload_size) {
		*state = &seen;
		*upload_size = 0;
		return MHD_YES;
	}
	serve(conn, url, method, &reply);
	if (!reply.text) {
		reply.text = reply.json ? json_dumps(reply.json, JSON_COMPACT) : NULL;
		reply.type = "application/json";
	}
	json_decref(reply.json);
	if (!reply.text)
		return MHD_NO; /* out of memory: the connection is closed */
	resp = MHD_create_response_from_buffer(strlen(reply.text), reply.text, MHD_RESPMEM_MUST_FREE);
	if (!resp) {
		free(reply.text);
		return MHD_NO;
	}
	MHD_add_response_header(resp, MHD_HTTP_HEADER_CONTENT_TYPE, reply.type);
	MHD_add_response_header(resp, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	if (reply.status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(resp, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	rc = MHD_queue_response(conn, reply.status, resp);
	MHD_destroy_response(resp);
	return rc;
}

/* --- the socket --------------------------------------------------------------------------------- */

/* Removes what a dead gateway left behind; refuses to touch anything else. */
static int socket_clear(const struct sockaddr_un *sa)
{
	struct stat st;
	int fd, rc;

	if (lstat(sa->sun_path, &st))
		return 0; /* nothing there; other faults show at bind */
	if (!S_ISSOCK(st.st_mode)) {
		gw_log(GW_LOG_ERROR, "api", "%s exists and is no socket", sa->sun_path);
		return RWY_EEXIST;
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	rc = fd < 0 ? 0 : connect(fd, (const struct sockaddr *)sa, sizeof(*sa));
	if (fd >= 0)
		close(fd);
	if (rc && errno == ECONNREFUSED && (!unlink(sa->sun_path) || errno == ENOENT))
		return 0;
	gw_log(
	    GW_LOG_ERROR, "api", rc ? "%s is in the way" : "%s: another gateway answers there", sa->sun_path);
	return RWY_EEXIST;
}

static void make_parent(const char *path)
{
	char dir[CONF_STR];
	char *slash;

	snprintf(dir, sizeof(dir), "%s", path);
	slash = strrchr(dir, '/');
	if (slash && slash != dir) {
		*slash = 0;
		if (mkdir(dir, 0755) && errno != EEXIST)
			gw_log(GW_LOG_WARNING, "api", "cannot make %s: %s", dir, strerror(errno));
	}
}

static int socket_open(const char *path)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd;

	if (strlen(path) >= sizeof(sa.sun_path)) {
		gw_log(GW_LOG_ERROR, "api", "%s is too long for a Unix socket", path);
		return RWY_EINVAL;
	}
	memcpy(sa.sun_path, path, strlen(path));
	make_parent(path);
	if (socket_clear(&sa))
		return RWY_EEXIST;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* until listen() nobody can connect: the mode is right in time */
	if (fd < 0 || bind(fd, (const struct sockaddr *)&sa, sizeof(sa)) || chmod(path, 0660) ||
	    listen(fd, CONNECTIONS_MAX)) {
		gw_log(GW_LOG_ERROR, "api", "cannot listen on %s: %s", path, strerror(errno));
		if (fd >= 0)
			close(fd);
		return RWY_EINVAL;
	}
	return fd;
}

int gw_api_start(struct gw_app *app)
{
	int fd = socket_open(app->conf->api_socket);
	sigset_t all, old;

	if (fd < 0)
		return fd;
	api.app = app;
	snprintf(api.path, sizeof(api.path), "%s", app->conf->api_socket);
	sigfillset(&all); /* signals are the control thread's */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	api.daemon = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL, 0, NULL, NULL,
	    on_request, NULL, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX,
	    MHD_OPTION_CONNECTION_TIMEOUT, IDLE_SECONDS, MHD_OPTION_END);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!api.daemon) {
		gw_log(GW_LOG_ERROR, "api", "cannot start the HTTP server");
		close(fd);
		unlink(api.path);
		return RWY_EINVAL;
	}
	gw_log(GW_LOG_INFO, "api", "listening on %s", api.path);
	return 0;
}

void gw_api_stop(struct gw_app *app)
{
	if (!api.daemon)
		return;
	unlink(api.path); /* first: who comes now finds no gateway instead of a closing one */
	MHD_stop_daemon(api.daemon);
	api.daemon = NULL;
}
