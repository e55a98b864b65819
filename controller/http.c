/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP server: connections and who is at their other end, requests from their first byte to their reply,
 * what takes too long. A request that has to wait is suspended: no thread waits with it. Not here: what is
 * answered (endpoints.c).
 */
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "controller/ask.h"
#include "controller/ctlr.h"
#include "controller/http_reply.h"
#include "controller/trust.h"
#include "gateway/log.h"

#define IDLE_SECONDS 310u         /* between requests; above the longest poll */
#define HANDSHAKE    (5 * RWY_MS) /* of our time */
#define TOO_LARGE    413
#define PAGE_CONNS   64
#define CONN_MEMORY  (24u << 10)

/* A connection. In the list from its first byte to its last. */
struct conn {
	struct conn *next, *prev;
	struct MHD_Connection *mhd;
	rwy_time since; /* the request that is coming began then; 0: none is */
	bool spoke;     /* a request line has come: it is no longer shaking hands */
	unsigned trust; /* generation of `who` */
	struct identity who;
};

static struct {
	struct ctlr *c;
	struct MHD_Daemon *tls, *plain;
	pthread_mutex_t lock;
	struct conn *conns;
	bool stopping;
} h = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* --- connections
 * ------------------------------------------------------------------------------------------------ */

static struct conn *conn_of(struct MHD_Connection *mhd)
{
	const union MHD_ConnectionInfo *i = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return i ? i->socket_context : NULL;
}

static void on_connection(
    void *cls, struct MHD_Connection *mhd, void **context, enum MHD_ConnectionNotificationCode code)
{
	struct conn *k = *context;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		k = calloc(1, sizeof(*k));
		if (!k)
			return;
		k->mhd = mhd;
		k->since = ctlr_now();
		pthread_mutex_lock(&h.lock);
		k->next = h.conns;
		if (h.conns)
			h.conns->prev = k;
		h.conns = k;
		pthread_mutex_unlock(&h.lock);
		*context = k;
		return;
	}
	if (!k)
		return;
	pthread_mutex_lock(&h.lock);
	if (k->prev)
		k->prev->next = k->next;
	else
		h.conns = k->next;
	if (k->next)
		k->next->prev = k->prev;
	pthread_mutex_unlock(&h.lock);
	free(k);
	*context = NULL;
}

static void conn_since(struct MHD_Connection *mhd, rwy_time since)
{
	struct conn *k = conn_of(mhd);

	pthread_mutex_lock(&h.lock);
	if (k)
		k->since = since;
	pthread_mutex_unlock(&h.lock);
}

/* The request line is there: the rest has to follow. */
static void *on_uri(void *cls, const char *uri, struct MHD_Connection *mhd)
{
	struct conn *k = conn_of(mhd);

	pthread_mutex_lock(&h.lock);
	if (k) {
		k->since = ctlr_now();
		k->spoke = true;
	}
	pthread_mutex_unlock(&h.lock);
	return NULL;
}

/* When very many come at once, it is we who take long over their handshakes: each one allows for that of the
 * others. */
static rwy_dur greeting_limit(const struct ctlr *c)
{
	rwy_dur limit = c->conf->request;

	for (const struct conn *k = h.conns; k; k = k->next)
		limit += k->since && !k->spoke ? HANDSHAKE : 0;
	return limit;
}

void http_tick(struct ctlr *c, rwy_time now)
{
	unsigned n = 0;
	rwy_dur greeting;

	pthread_mutex_lock(&h.lock);
	greeting = greeting_limit(c);
	for (struct conn *k = h.conns; k; k = k->next) {
		const union MHD_ConnectionInfo *i;

		if (!k->since || rwy_since(k->since, now) < (k->spoke ? c->conf->request : greeting))
			continue;
		i = MHD_get_connection_info(k->mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
		if (i)
			shutdown(i->connect_fd, SHUT_RDWR); /* the library finds it closed */
		k->since = 0;
		COUNT(slow_clients);
		n++;
	}
	pthread_mutex_unlock(&h.lock);
	if (n)
		event(EVENT_WARNING, "refused", NULL, "%u clients took too long to send a request", n);
}

/* Who is there: found out once a connection, and again when the revocation list is a new one. */
static bool authenticated(struct MHD_Connection *mhd, struct req *r)
{
	const union MHD_ConnectionInfo *i = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);
	struct conn *k = conn_of(mhd);
	char text[128];
	unsigned status;

	if (!k || !i) {
		req_fail(r, 503, "", "out of memory");
		return false;
	}
	if (k->trust == trust_generation()) {
		r->who = k->who;
		return true;
	}
	status = trust_check((gnutls_session_t)i->tls_session, &r->who, text);
	if (!status) {
		k->who = r->who;
		k->trust = trust_generation();
		return true;
	}
	COUNT(unauthenticated);
	event(EVENT_WARNING, "refused", NULL, "%s", text);
	req_fail(r, status, "", "%s", text);
	return false;
}

/* --- requests
 * ----------------------------------------------------------------------------------------------------- */

struct query {
	struct req *r;
	const char *known;
	bool ok;
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
	struct req *r = q->r;

	if (!q->ok)
		return MHD_YES;
	q->ok = false;
	if (!word_in(name, q->known))
		req_fail(r, 400, "", "unknown parameter %.64s", name);
	else if (req_param(r, name))
		req_fail(r, 400, name, "%s is given twice", name);
	else if (r->params == REQ_PARAMS || !value || strlen(value) >= sizeof(r->param[0].value))
		req_fail(r, 400, name, "%s: expected a shorter value", name);
	else {
		snprintf(r->param[r->params].name, sizeof(r->param[0].name), "%s", name);
		snprintf(r->param[r->params++].value, sizeof(r->param[0].value), "%s", value);
		q->ok = true;
	}
	return MHD_YES;
}

/* The handler, or NULL with the reply. plain: the listener without certificates. */
static handler *find(
    struct req *r, struct MHD_Connection *mhd, const char *url, const char *method, bool plain)
{
	const char *m = !strcmp(method, "HEAD") ? "GET" : method;
	const struct endpoint *e;
	struct query q = {r, "", true};
	char list[64];
	bool other;

	if (plain && strcmp(m, "GET") != 0) {
		req_fail(r, 405, "", "only GET without a certificate");
		snprintf(r->allow, sizeof(r->allow), "GET, HEAD");
		return NULL;
	}
	if (plain)
		snprintf(r->who.name, sizeof(r->who.name), "page");
	if (plain)
		r->who.role = ROLE_OPERATOR;
	e = endpoint_find(m, url, r, &other, list);
	if (!e && other) {
		req_fail(r, 405, "", "method %.16s is not allowed here: %s", method, list);
		memcpy(r->allow, list, sizeof(list));
		return NULL;
	}
	if (!e) {
		req_fail(r, 404, "", "there is no %.128s", url);
		return NULL;
	}
	if (!(e->roles & r->who.role)) {
		req_fail(r, 403, "", "%s may not %s this", r->who.name, m);
		return NULL;
	}
	q.known = e->params;
	MHD_get_connection_values(mhd, MHD_GET_ARGUMENT_KIND, on_param, &q);
	return q.ok ? e->run : NULL;
}

/* Refused by its headers alone: nothing of what follows is read. */
static bool too_large(struct MHD_Connection *mhd, struct req *r)
{
	const char *s = MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
	const char *te = MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, MHD_HTTP_HEADER_TRANSFER_ENCODING);

	if (!te && s && (strlen(s) > 18 || strtoull(s, NULL, 10) > r->c->conf->body)) {
		COUNT(too_large);
		event(EVENT_WARNING, "refused", r->who.name, "a body of %.18s bytes", s);
		req_fail(
		    r, TOO_LARGE, "", "expected at most %llu bytes", (unsigned long long)r->c->conf->body);
		return true;
	}
	return false;
}

static bool body_add(struct req *r, const char *data, size_t n)
{
	if (r->len + n > r->c->conf->body) {
		COUNT(too_large);
		event(EVENT_WARNING, "refused", r->who.name, "a body above %llu bytes",
		    (unsigned long long)r->c->conf->body);
		req_fail(
		    r, TOO_LARGE, "", "expected at most %llu bytes", (unsigned long long)r->c->conf->body);
		return false;
	}
	if (r->len + n + 1 > r->cap) {
		size_t cap = r->cap ? r->cap * 2 : 4096;
		char *more;

		while (cap < r->len + n + 1)
			cap *= 2;
		more = realloc(r->body, cap);
		if (!more) {
			req_fail(r, 503, "", "out of memory");
			return false;
		}
		r->body = more;
		r->cap = cap;
	}
	memcpy(r->body + r->len, data, n);
	r->len += n;
	r->body[r->len] = 0;
	return true;
}

static void req_free(struct req *r)
{
	json_decref(r->json);
	free(r->text);
	free(r->body);
	free(r);
}

static enum MHD_Result first_call(
    struct MHD_Connection *mhd, const char *url, const char *method, void **state, bool plain)
{
	struct req *r = calloc(1, sizeof(*r));

	*state = r;
	if (!r)
		return MHD_NO;
	r->c = h.c;
	r->connection = mhd;
	if ((plain || authenticated(mhd, r)) && !too_large(mhd, r)) {
		r->run = find(r, mhd, url, method, plain);
		r->method = r->run ? (!strcmp(method, "PUT")         ? "PUT"
		                         : !strcmp(method, "POST")   ? "POST"
		                         : !strcmp(method, "DELETE") ? "DELETE"
		                                                     : "GET")
		                   : "";
	}
	if (r->run)
		return MHD_YES;
	if (r->status >= 401 && r->status <= 403 && *r->who.name)
		event(EVENT_WARNING, "refused", r->who.name, "%s %.96s", method, url);
	conn_since(mhd, 0);
	return http_reply(mhd, r, r->status == 401 || r->status == TOO_LARGE);
}

/* True: the reply is there. Only what has to wait is suspended, since the library walks all that are whenever
 * one goes on; under the lock, so that nobody finishes it before. */
static bool run(struct req *r)
{
	struct ctlr *c = r->c;
	bool done = true;

	ctlr_lock(c);
	r->saw = c->rev;
	if (h.stopping)
		req_fail(r, 503, "", "the controller stops");
	else if (r->run(c, r) == REQ_WAIT && !r->finished) {
		MHD_suspend_connection(r->connection);
		r->waiting = true;
		done = false;
	}
	if (done)
		ask_end(r);
	ctlr_unlock(c);
	return done;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *mhd, const char *url, const char *method,
    const char *version, const char *data, size_t *size, void **state)
{
	struct req *r = *state;

	if (!r)
		return first_call(mhd, url, method, state, cls != NULL);
	if (*size) {
		if (!r->status && !body_add(r, data, *size)) {
			free(r->body);
			r->body = NULL;
			r->cap = 0;
			r->len = 0;
		}
		*size = 0;
		/* the rest is read as long as a request may take, and forgotten */
		return MHD_YES;
	}
	conn_since(mhd, 0);
	if (r->finished || r->status || run(r))
		return http_reply(mhd, r, r->status == TOO_LARGE);
	return MHD_YES;
}

void req_finish(struct req *r)
{
	ask_end(r);
	r->finished = true;
	if (!r->waiting)
		return;
	r->waiting = false;
	MHD_resume_connection(r->connection);
}

static void on_completed(
    void *cls, struct MHD_Connection *mhd, void **state, enum MHD_RequestTerminationCode why)
{
	struct req *r = *state;

	*state = NULL;
	conn_since(mhd, 0);
	if (r)
		req_free(r);
}

/* --- start, stop
 * ---------------------------------------------------------------------------------------------------- */

static void on_log(void *cls, const char *fmt, va_list ap)
{
	char text[256];

	vsnprintf(text, sizeof(text), fmt, ap);
	gw_log(GW_LOG_DEBUG, "http", "%s", text);
}

#define COMMON                                                                                               \
	MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL, MHD_OPTION_NOTIFY_CONNECTION, on_connection, NULL,  \
	    MHD_OPTION_URI_LOG_CALLBACK, on_uri, NULL, MHD_OPTION_CONNECTION_TIMEOUT, IDLE_SECONDS,          \
	    MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONN_MEMORY, MHD_OPTION_EXTERNAL_LOGGER, on_log,     \
	    NULL

static struct MHD_Daemon *start(const char *address, bool tls, const struct ctlr_conf *conf)
{
	const unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
	const unsigned pool = tls && conf->threads > 1 ? conf->threads : 0;
	struct sockaddr_storage a;
	unsigned len;

	if (!ctlr_address(address, &a, &len))
		return NULL;
	if (!tls)
		return MHD_start_daemon(flags | (a.ss_family == AF_INET6 ? MHD_USE_IPv6 : 0), 0, NULL, NULL,
		    on_request, &h, COMMON, MHD_OPTION_SOCK_ADDR, (struct sockaddr *)&a,
		    MHD_OPTION_LISTENING_ADDRESS_REUSE, 1u, MHD_OPTION_CONNECTION_LIMIT, (unsigned)PAGE_CONNS,
		    MHD_OPTION_END);
	return MHD_start_daemon(flags | MHD_USE_TLS | (a.ss_family == AF_INET6 ? MHD_USE_IPv6 : 0), 0, NULL,
	    NULL, on_request, NULL, COMMON, MHD_OPTION_SOCK_ADDR, (struct sockaddr *)&a,
	    MHD_OPTION_LISTENING_ADDRESS_REUSE, 1u, MHD_OPTION_CONNECTION_LIMIT, conf->connections,
	    MHD_OPTION_THREAD_POOL_SIZE, pool, MHD_OPTION_LISTEN_BACKLOG_SIZE, 4096u,
	    MHD_OPTION_HTTPS_MEM_KEY, trust_key(), MHD_OPTION_HTTPS_MEM_CERT, trust_cert(),
	    MHD_OPTION_HTTPS_MEM_TRUST, trust_ca(), MHD_OPTION_HTTPS_PRIORITIES,
	    "SECURE128:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2", MHD_OPTION_END);
}

int http_start(struct ctlr *c)
{
	h.c = c;
	h.tls = start(c->conf->address, true, c->conf);
	if (!h.tls) {
		gw_log(GW_LOG_ERROR, "http", "cannot listen on %s, or certificate and key do not fit",
		    c->conf->address);
		return RWY_EINVAL;
	}
	if (*c->conf->page) {
		h.plain = start(c->conf->page, false, c->conf);
		if (!h.plain) {
			gw_log(GW_LOG_ERROR, "http", "cannot listen on %s", c->conf->page);
			return RWY_EINVAL;
		}
	}
	gw_log(GW_LOG_NOTICE, "http", "listening on %s%s%s", c->conf->address,
	    h.plain ? ", the page on " : "", c->conf->page);
	return 0;
}

/* The library wants no suspended connection when it stops: http_stop comes after the writer's, with polls
 * ended. */
void http_stop(struct ctlr *c)
{
	struct gateway *g;

	ctlr_lock(c);
	h.stopping = true;
	MAP_EACH(&c->gateways, g)
	{
		if (g->poll) {
			req_fail(g->poll, 503, "", "the controller stops");
			req_finish(g->poll);
			g->poll = NULL;
		}
	}
	for (struct req *r = c->polls, *next; r; r = next) {
		next = r->next;
		req_fail(r, 503, "", "the controller stops");
		req_finish(r);
	}
	c->polls = NULL;
	ctlr_unlock(c);
	if (h.plain)
		MHD_stop_daemon(h.plain);
	if (h.tls)
		MHD_stop_daemon(h.tls);
	h.tls = h.plain = NULL;
}
