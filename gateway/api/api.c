/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The local API: HTTP on a Unix socket, on a thread of its own. This file is the server: requests
 * and uploads. Elsewhere: the socket (socket.c), parameters and errors (request.c), pages (the
 * other files here).
 */
#include "gateway/api/api.h"

#include <microhttpd.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/word.h"
#include "gateway/capture/capture.h"
#include "gateway/control/tunnels.h"

#define IDLE_SECONDS 10
#define TOO_LARGE    413 /* the library has two names for it */

struct route {
	const char *methods;              /* GET includes HEAD */
	const char *path, *params, *text; /* NAME at the end of path matches any name */
	api_page *page;
};

static api_page index_page;

static const struct route routes[] = {
    {"GET", "/v1", "", "this list", index_page},
    {"GET", "/v1/status", "", "the gateway in one object", api_status},
    {"GET", "/v1/flows", "limit cursor sort local remote qpn state tunnel tenant",
        "connections, by pages: follow `next` as `cursor` until it is null; ?sort=recent: the last active",
        api_flows},
    {"GET", "/v1/recorder", "limit worker local remote qpn vni kind",
        "the last decisions of the workers, oldest first: the newest `limit` of those that match",
        api_recorder},
    {"GET", "/v1/tunnels", "workers", "tunnels over all workers; ?workers=1 adds each worker's half",
        api_tunnels},
    {"PUT PATCH DELETE", "/v1/tunnels/NAME", "",
        "one tunnel: PUT adds it, PATCH changes the keys that are sent, DELETE", api_tunnel},
    {"GET", "/v1/tenants", "limit after yaml",
        "tenants by name, by pages: follow `next` as `after` until it is null; ?yaml=1: all, for the file",
        api_tenants},
    {"GET PUT PATCH DELETE", "/v1/tenants/NAME", "yaml",
        "one tenant: GET, PUT adds it, PATCH changes the keys that are sent, DELETE", api_tenant},
    {"POST", "/v1/reload", "", "POST: read the configuration again", api_reload},
    {"GET", "/v1/memory", "limit",
        "who holds packet buffers: workers by kind, tenants, and the hosts and connections that hold most",
        api_memory},
    {"GET POST DELETE", "/v1/drain", "keep timeout told",
        "draining: GET the progress, POST begins it (?keep=1: no stop, ?timeout=SECONDS), DELETE cancels it",
        api_drain},
    {"GET", "/v1/standby", "", "this gateway as one of a pair: its state, and the other one's", api_standby},
    {"GET DELETE", "/v1/capture", "filter snap rate count seconds check",
        "packets of all stages as pcapng, until DELETE or the client ends it; ?check=1: is the filter good?",
        api_capture},
    {"GET", "/v1/counters", "nonzero workers",
        "every counter with its sentence; ?nonzero=1, ?workers=1: not summed", api_counters},
    {"GET", "/v1/ports", "", "ports with addresses, link and counters", api_ports},
    {"GET", "/v1/neighbours", "", "next hops on the ports' subnets", api_neighbours},
    {"GET", "/v1/links", "limit", "links of a relay, and how many are half-open, open and closed", api_links},
    {"GET", "/v1/map", "", "the listen map of a relay", api_map},
    {"PUT DELETE", "/v1/map/NAME", "", "one entry of it: PUT adds it, DELETE", api_map_entry},
    {"GET", "/v1/siblings", "", "other gateways of this site, and packets forwarded to them", api_siblings},
    {"GET", "/v1/reservations", "", "rates that jobs' plans give to pairs of hosts, and what they sent",
        api_reservations},
    {"GET", "/v1/workers", "", "packet threads and how busy they are", api_workers},
    {"GET", "/v1/controller", "", "the control center: URL, state and generation", api_controller},
    {"GET", "/v1/offload", "tenant summary", "tenants' rules in hardware, and why others are in software",
        api_offload},
    {"GET", "/metrics", "", "Prometheus text", api_metrics},
    {"GET", "/livez", "", "200: the workers answer", api_livez},
    {"GET", "/readyz", "", "200: running, ports up, a tunnel up", api_readyz},
    {"GET", "/healthz", "", "both, and every tunnel", api_healthz},
};
#define ROUTES (sizeof(routes) / sizeof(routes[0]))

/* The API's socket and the one of the metrics have a thread each; `turn` lets one page run. */
static struct {
	struct gw_app *app;
	struct MHD_Daemon *daemon, *metrics;
	char path[CONF_STR];
	pthread_mutex_t turn;
} api = {.turn = PTHREAD_MUTEX_INITIALIZER};

/* The pages of api.metrics. */
static bool for_anybody(const struct route *r)
{
	return r->page == api_metrics || r->page == api_livez || r->page == api_readyz ||
	       r->page == api_healthz;
}

static void index_page(const struct api_req *req, struct api_reply *reply)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < ROUTES; i++)
		json_array_append_new(
		    list, json_pack("{s:s, s:s, s:s, s:s}", "path", routes[i].path, "methods",
		              routes[i].methods, "parameters", routes[i].params, "text", routes[i].text));
	reply->json = json_pack("{s:o}", "pages", list);
}

/* --- requests -------------------------------------------------------------------------------- */

struct upload {
	char *text;
	size_t len;
	bool too_large;
};

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

/* *name: the part of the URL at NAME. */
static const struct route *route_find(const char *url, const char **name)
{
	for (unsigned i = 0; i < ROUTES; i++) {
		const char *path = routes[i].path, *at = strstr(path, "NAME");
		const size_t n = at ? (size_t)(at - path) : 0;

		*name = at ? url + n : "";
		if (at ? !strncmp(path, url, n) && url[n] && !strchr(url + n, '/') : !strcmp(path, url))
			return &routes[i];
	}
	return NULL;
}

static void serve(struct MHD_Connection *conn, const char *url, const char *method, const struct upload *up,
    bool metrics, struct api_reply *reply)
{
	struct api_req req = {
	    .app = api.app, .conn = conn, .method = !strcmp(method, "HEAD") ? "GET" : method};
	const struct route *r = route_find(url, &req.name);
	struct query q = {&req, reply, r ? r->params : ""};

	if (metrics && (!r || !for_anybody(r))) {
		api_fail(reply, MHD_HTTP_NOT_FOUND, "only /metrics, /livez, /readyz and /healthz are here");
		return;
	}
	if (!r) {
		api_fail(reply, MHD_HTTP_NOT_FOUND, "no page %.128s: GET /v1 lists them", url);
		return;
	}
	if (!base_word_in(req.method, r->methods)) {
		api_fail(reply, MHD_HTTP_METHOD_NOT_ALLOWED, "method %.32s is not allowed here: %s does",
		    method, r->methods);
		reply->allow = r->methods;
		return;
	}
	if (up->too_large) {
		api_fail(reply, TOO_LARGE, "expected at most %u bytes", CONF_TENANT_MAX);
		return;
	}
	req.body = up->text ? up->text : "";
	req.body_len = up->len;
	MHD_get_connection_values(conn, MHD_GET_ARGUMENT_KIND, on_param, &q);
	if (reply->status != MHD_HTTP_OK)
		return;
	if (strcmp(req.method, "GET") != 0) { /* the request may change what others read */
		r->page(&req, reply);
		return;
	}
	gw_tunnels_read(api.app);
	r->page(&req, reply);
	gw_tunnels_read_end(api.app);
}

/* --- uploads ---------------------------------------------------------------------------------- */

static void upload_add(struct upload *up, const char *data, size_t n)
{
	char *more = NULL;

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

static void on_completed(
    void *cls, struct MHD_Connection *conn, void **state, enum MHD_RequestTerminationCode why)
{
	struct upload *up = *state;

	if (up)
		free(up->text);
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

static enum MHD_Result answer(struct MHD_Connection *conn, struct api_reply *reply)
{
	struct MHD_Response *resp;

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
		*state = calloc(1, sizeof(struct upload));
		return *state ? MHD_YES : MHD_NO;
	}
	if (*size) {
		upload_add(*state, data, *size);
		*size = 0;
		return MHD_YES;
	}
	pthread_mutex_lock(&api.turn);
	serve(conn, url, method, *state, cls == &api.metrics, &reply);
	pthread_mutex_unlock(&api.turn);
	return answer(conn, &reply);
}

/* --- start, stop ----------------------------------------------------------------------------- */

/* Serves the listening socket; cls goes to on_request(). Signals belong to the control thread. */
static struct MHD_Daemon *serve_on(int fd, void *cls)
{
	struct MHD_Daemon *d;
	sigset_t all, old;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	d = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL | MHD_ALLOW_SUSPEND_RESUME, 0,
	    NULL, NULL, on_request, cls, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
	    API_CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT, IDLE_SECONDS, MHD_OPTION_NOTIFY_COMPLETED,
	    on_completed, NULL, MHD_OPTION_END);
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
	int fd = api_socket_open(app->conf->api_socket);

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
