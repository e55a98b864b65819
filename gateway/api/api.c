/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The local API: HTTP on a Unix socket, on a thread of its own. This file is the server: requests
 * and uploads. Elsewhere: the socket (socket.c), the table of pages (routes.c), who may ask for
 * which (guard.c, role.c), parameters and errors (request.c), pages (the other files here).
 */
#include "gateway/api/api.h"

#include <microhttpd.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/word.h"
#include "gateway/api/guard.h"
#include "gateway/capture/capture.h"
#include "gateway/control/access.h"
#include "gateway/control/tunnels.h"

#define MEMORY       262144 /* bytes of a connection: half of it is what a stream sends at once */
#define IDLE_SECONDS 10
#define TOO_LARGE    413 /* the library has two names for it */

/* The API's socket and the one of the metrics have a thread each; `turn` lets one page run. */
static struct {
	struct gw_app *app;
	struct MHD_Daemon *daemon, *metrics;
	char path[CONF_STR];
	pthread_mutex_t turn;
} api = {.turn = PTHREAD_MUTEX_INITIALIZER};

/* --- requests -------------------------------------------------------------------------------- */

struct upload {
	char *text;
	size_t len;
	bool too_large;
	struct api_stream *stream;        /* in slots; else NULL */
	void (*sent)(struct gw_app *app); /* api_reply.sent */
	struct api_user user;             /* who sends it; a reader at the metrics' socket */
};

static int fd_of(struct MHD_Connection *conn)
{
	return MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}

struct query {
	struct api_req *req;
	struct api_reply *reply;
	const char *known; /* "limit cursor ..." */
};

static enum MHD_Result on_param(void *cls, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct query *q = cls;

	if (!base_word_in(name, q->known))
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

/* Finds the page, and whether the user may ask for it. NULL: the reply is failed. */
static const struct api_route *route_of(struct api_req *req, const char *url, const char *method,
    const struct api_user *u, bool metrics, struct api_reply *reply)
{
	const struct api_route *r = api_route_find(url, &req->name);

	if (metrics && (!r || !r->anybody)) {
		api_fail(reply, MHD_HTTP_NOT_FOUND, "only /metrics, /livez, /readyz and /healthz are here");
		return NULL;
	}
	/* who has no role is not told which pages there are */
	if (!api_guard_allows(u, API_READER, method, url, reply))
		return NULL;
	if (!r) {
		api_fail(reply, MHD_HTTP_NOT_FOUND, "no page %.128s: GET /v1 lists them", url);
		return NULL;
	}
	if (!base_word_in(req->method, r->methods)) {
		api_fail(reply, MHD_HTTP_METHOD_NOT_ALLOWED, "method %.32s is not allowed here: %s does",
		    method, r->methods);
		reply->allow = r->methods;
		return NULL;
	}
	return api_guard_allows(u, api_route_needs(r, req->method), method, url, reply) ? r : NULL;
}

/* The same for the parameters that change something. */
static bool params_allowed(const struct api_req *req, const struct api_route *r, const struct api_user *u,
    const char *url, struct api_reply *reply)
{
	for (unsigned i = 0; i < req->params; i++)
		if (api_route_changes(r, req->param[i].name) &&
		    !api_guard_allows(u, API_OPERATOR, req->method, url, reply))
			return false;
	return true;
}

static void serve(struct MHD_Connection *conn, const char *url, const char *method, const struct upload *up,
    bool metrics, struct api_reply *reply)
{
	struct api_req req = {.app = api.app,
	    .conn = conn,
	    .method = !strcmp(method, "HEAD") ? "GET" : method,
	    .role = up->user.role};
	const struct api_route *r = route_of(&req, url, method, &up->user, metrics, reply);
	struct query q = {&req, reply, r ? r->params : ""};

	if (!r)
		return;
	if (up->too_large) {
		api_fail(reply, TOO_LARGE, "expected at most %u bytes", CONF_TENANT_MAX);
		return;
	}
	req.body = up->text ? up->text : "";
	req.body_len = up->len;
	MHD_get_connection_values(conn, MHD_GET_ARGUMENT_KIND, on_param, &q);
	if (reply->status != MHD_HTTP_OK || !params_allowed(&req, r, &up->user, url, reply))
		return;
	if (!strcmp(req.method, "GET"))
		gw_tunnels_read(api.app);
	r->page(&req, reply); /* unless it is a GET it may change what others read */
	if (!strcmp(req.method, "GET"))
		gw_tunnels_read_end(api.app);
	if (api_route_needs(r, req.method) == API_OPERATOR)
		api_guard_tell(&up->user, method, url, reply->status);
}

/* --- uploads ---------------------------------------------------------------------------------- */

static void upload_add(struct upload *up, const char *data, size_t n)
{
	char *more = NULL;

	if (up->user.role != API_OPERATOR)
		return; /* nothing of it is used */
	if (!up->too_large && up->len + n <= CONF_TENANT_MAX)
		more = realloc(up->text, up->len + n + 1);
	if (!more) {
		up->too_large = true;
		return; /* the rest is read and dropped, then the answer follows */
	}
	memcpy(more + up->len, data, n);
	up->text = more;
	up->len += n;
	up->text[up->len] = 0;
}

static struct upload *upload_new(struct MHD_Connection *conn, bool metrics)
{
	struct upload *up = calloc(1, sizeof(*up));

	if (up && metrics)
		up->user.role = API_READER;
	else if (up)
		api_guard_user(fd_of(conn), &up->user);
	return up;
}

static void on_completed(
    void *cls, struct MHD_Connection *conn, void **state, enum MHD_RequestTerminationCode why)
{
	struct upload *up = *state;

	if (up) {
		if (up->sent && why == MHD_REQUEST_TERMINATED_COMPLETED_OK)
			up->sent(api.app);
		api_stream_end(up->stream);
		free(up->text);
	}
	free(up);
	*state = NULL;
}

/* Turns "GET PATCH" into the value of Allow: "GET, HEAD, PATCH". */
static void add_allow(struct MHD_Response *resp, const char *methods)
{
	char text[96] = "";

	for (const char *m = methods; *m; m += strspn(m, " ")) {
		const int n = (int)strcspn(m, " ");
		const size_t used = strlen(text);

		snprintf(text + used, sizeof(text) - used, "%s%.*s%s", used ? ", " : "", n, m,
		    !strncmp(m, "GET", 3) ? ", HEAD" : "");
		m += n;
	}
	MHD_add_response_header(resp, MHD_HTTP_HEADER_ALLOW, text);
}

static enum MHD_Result queue(
    struct MHD_Connection *conn, const struct api_reply *reply, struct MHD_Response *resp)
{
	enum MHD_Result rc;

	MHD_add_response_header(resp, MHD_HTTP_HEADER_CONTENT_TYPE, reply->type);
	MHD_add_response_header(resp, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	if (reply->allow)
		add_allow(resp, reply->allow);
	rc = MHD_queue_response(conn, reply->status, resp);
	MHD_destroy_response(resp);
	return rc;
}

static enum MHD_Result answer(struct MHD_Connection *conn, struct api_reply *reply, struct upload *up)
{
	struct MHD_Response *resp;

	if (reply->stream && api_stream_in_slots(reply->stream)) {
		resp = api_stream_switch(reply->stream);
		if (!resp)
			return MHD_NO;
		up->stream = reply->stream;
		reply->status = MHD_HTTP_SWITCHING_PROTOCOLS;
		return queue(conn, reply, resp);
	}
	if (reply->stream) {
		resp = api_stream_response(reply->stream);
		return resp ? queue(conn, reply, resp) : MHD_NO;
	}
	if (!reply->text) {
		reply->text = reply->json ? json_dumps(reply->json, JSON_COMPACT) : NULL;
		reply->type = "application/json";
	}
	json_decref(reply->json);
	if (!reply->text)
		return MHD_NO; /* no memory: the connection is closed */
	resp = MHD_create_response_from_buffer(strlen(reply->text), reply->text, MHD_RESPMEM_MUST_FREE);
	if (!resp) {
		free(reply->text);
		return MHD_NO;
	}
	return queue(conn, reply, resp);
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *conn, const char *url, const char *method,
    const char *version, const char *data, size_t *size, void **state)
{
	struct api_reply reply = {.status = MHD_HTTP_OK};

	/* the library calls first with the headers, then with the upload, then for the answer */
	if (!*state) {
		*state = upload_new(conn, cls == &api.metrics);
		return *state ? MHD_YES : MHD_NO;
	}
	if (*size) {
		upload_add(*state, data, *size);
		*size = 0;
		return MHD_YES;
	}
	struct upload *up = *state;

	pthread_mutex_lock(&api.turn);
	serve(conn, url, method, up, cls == &api.metrics, &reply);
	pthread_mutex_unlock(&api.turn);
	up->sent = reply.sent;
	return answer(conn, &reply, up);
}

/* Readers leave some connections of the API's socket to operators. *state: it is counted. */
static void on_connection(
    void *cls, struct MHD_Connection *conn, void **state, enum MHD_ConnectionNotificationCode what)
{
	bool counted = *state;

	if (cls == &api.metrics)
		return;
	pthread_mutex_lock(&api.turn);
	if (what == MHD_CONNECTION_NOTIFY_CLOSED)
		api_guard_close(counted);
	else if (!api_guard_open(fd_of(conn), &counted))
		(void)shutdown(fd_of(conn), SHUT_RDWR); /* the server finds it closed */
	pthread_mutex_unlock(&api.turn);
	*state = counted ? &api : NULL;
}

/* --- start, stop ----------------------------------------------------------------------------- */

/* Serves the listening socket; cls goes to on_request(). Signals belong to the control thread. */
static struct MHD_Daemon *serve_on(int fd, void *cls)
{
	struct MHD_Daemon *d;
	sigset_t all, old;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	d = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL | MHD_ALLOW_UPGRADE, 0, NULL,
	    NULL, on_request, cls, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
	    API_CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT, IDLE_SECONDS,
	    MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY, MHD_OPTION_NOTIFY_COMPLETED, on_completed,
	    NULL, MHD_OPTION_NOTIFY_CONNECTION, on_connection, cls, MHD_OPTION_END);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!d) {
		gw_log(GW_LOG_ERROR, "api", "cannot start the HTTP server");
		close(fd);
	}
	return d;
}

static int start_metrics(const char *where)
{
	int fd = *where ? api_listen_open(where) : 0;

	if (!*where || fd < 0)
		return fd;
	api.metrics = serve_on(fd, &api.metrics);
	if (!api.metrics)
		return RWY_EINVAL;
	gw_log(GW_LOG_INFO, "api", "metrics on %s", where);
	return 0;
}

int gw_api_start(struct gw_app *app)
{
	int fd;

	gw_access_set(app->conf);
	fd = api_socket_open(app->conf->api_socket, GW_ACCESS_API);
	if (fd < 0)
		return fd;
	api.app = app;
	snprintf(api.path, sizeof(api.path), "%s", app->conf->api_socket);
	api.daemon = serve_on(fd, NULL);
	if (!api.daemon) {
		unlink(api.path);
		return RWY_EINVAL;
	}
	gw_log(GW_LOG_INFO, "api", "listening on %s", api.path);
	if (start_metrics(app->conf->api_metrics)) {
		gw_api_stop(app);
		return RWY_EINVAL;
	}
	return 0;
}

void gw_api_stop(struct gw_app *app)
{
	struct conf_listen l;

	if (!api.daemon)
		return;
	if (api.metrics && conf_listen_parse(app->conf->api_metrics, &l) && l.path)
		unlink(l.path);
	gw_cap_stop();    /* the server may not stop while a connection waits for packets */
	unlink(api.path); /* first: a new client finds no gateway instead of a closing one */
	if (api.metrics)
		MHD_stop_daemon(api.metrics);
	MHD_stop_daemon(api.daemon);
	api.daemon = api.metrics = NULL;
}
