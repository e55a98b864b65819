/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests, from their headers to their reply. A request that waits is suspended and occupies no
 * thread. Connections are in http_conn.c, threads in http_loop.c, paths in endpoint.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/word.h"
#include "controller/server/endpoint.h"
#include "controller/server/http.h"
#include "controller/server/req.h"
#include "controller/server/server.h"
#include "controller/state/event.h"

#define TOO_LARGE 413

/* --- requests --------------------------------------------------------------------------------- */

struct query {
	struct ctlr_req *r;
	const char *known;
	bool ok;
};

static enum MHD_Result on_param(void *cls, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct query *q = cls;
	struct ctlr_req *r = q->r;

	if (!q->ok)
		return MHD_YES;
	q->ok = false;
	if (!base_word_in(name, q->known))
		ctlr_req_fail(r, 400, "", "unknown parameter %.64s", name);
	else if (ctlr_req_param(r, name))
		ctlr_req_fail(r, 400, name, "%s is given twice", name);
	else if (r->params == REQ_PARAMS || !value || strlen(value) >= sizeof(r->param[0].value))
		ctlr_req_fail(r, 400, name, "%s: expected a shorter value", name);
	else {
		snprintf(r->param[r->params].name, sizeof(r->param[0].name), "%s", name);
		snprintf(r->param[r->params++].value, sizeof(r->param[0].value), "%s", value);
		q->ok = true;
	}
	return MHD_YES;
}

/* The handler, or NULL with the reply set. plain: the listener without certificates. */
static ctlr_handler *find_handler(
    struct ctlr_req *r, struct MHD_Connection *mhd, const char *url, const char *method, bool plain)
{
	const char *m = !strcmp(method, "HEAD") ? "GET" : method;
	const struct ctlr_endpoint *e;
	struct query q = {r, "", true};
	char list[64];
	bool other;

	if (plain && strcmp(m, "GET") != 0) {
		ctlr_req_fail(r, 405, "", "only GET without a certificate");
		snprintf(r->allow, sizeof(r->allow), "GET, HEAD");
		return NULL;
	}
	if (plain)
		snprintf(r->who.name, sizeof(r->who.name), "page");
	if (plain)
		r->who.role = ROLE_OPERATOR;
	e = ctlr_endpoint_find(m, url, r, &other, list);
	if (!e && other) {
		ctlr_req_fail(r, 405, "", "method %.16s is not allowed here: %s", method, list);
		memcpy(r->allow, list, sizeof(list));
		return NULL;
	}
	if (!e) {
		ctlr_req_fail(r, 404, "", "there is no %.128s", url);
		return NULL;
	}
	if (!(e->roles & r->who.role)) {
		ctlr_req_fail(r, 403, "", "%s may not %s this", r->who.name, m);
		return NULL;
	}
	q.known = e->params;
	MHD_get_connection_values(mhd, MHD_GET_ARGUMENT_KIND, on_param, &q);
	return q.ok ? e->run : NULL;
}

/* Refuses a request by its headers; its body is not read. */
static bool body_too_large(struct MHD_Connection *mhd, struct ctlr_req *r)
{
	const char *s = MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
	const char *te = MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, MHD_HTTP_HEADER_TRANSFER_ENCODING);

	if (!te && s && (strlen(s) > 18 || strtoull(s, NULL, 10) > r->c->conf->body)) {
		COUNT(r->c, too_large);
		ctlr_event(r->c, EVENT_WARNING, "refused", r->who.name, "a body of %.18s bytes", s);
		ctlr_req_fail(
		    r, TOO_LARGE, "", "expected at most %llu bytes", (unsigned long long)r->c->conf->body);
		return true;
	}
	return false;
}

static bool body_add(struct ctlr_req *r, const char *data, size_t n)
{
	if (r->len + n > r->c->conf->body) {
		COUNT(r->c, too_large);
		ctlr_event(r->c, EVENT_WARNING, "refused", r->who.name, "a body above %llu bytes",
		    (unsigned long long)r->c->conf->body);
		ctlr_req_fail(
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
			ctlr_req_fail(r, 503, "", "out of memory");
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

static void req_free(struct ctlr_req *r)
{
	json_decref(r->json);
	free(r->text);
	free(r->body);
	free(r);
}

static enum MHD_Result first_call(
    struct ctlr_http_worker *w, struct MHD_Connection *mhd, const char *url, const char *method, void **state)
{
	struct ctlr_req *r = calloc(1, sizeof(*r));

	*state = r;
	if (!r)
		return MHD_NO;
	r->c = w->c;
	r->worker = w;
	r->connection = mhd;
	if ((w->plain || ctlr_http_conn_identify(w, mhd, r)) && !body_too_large(mhd, r)) {
		r->run = find_handler(r, mhd, url, method, w->plain);
		r->method = r->run ? (!strcmp(method, "PUT")         ? "PUT"
		                         : !strcmp(method, "POST")   ? "POST"
		                         : !strcmp(method, "DELETE") ? "DELETE"
		                                                     : "GET")
		                   : "";
	}
	if (r->run)
		return MHD_YES;
	if (r->status >= 401 && r->status <= 403 && *r->who.name)
		ctlr_event(r->c, EVENT_WARNING, "refused", r->who.name, "%s %.96s", method, url);
	ctlr_http_conn_answered(w, mhd);
	return ctlr_http_reply(mhd, r, r->status == 401 || r->status == TOO_LARGE);
}

/* Runs the handler. true: the reply is set. Only requests that wait are suspended, because the
 * library walks all suspended ones whenever one is resumed. The lock keeps other threads from
 * finishing the request before it is suspended. */
static bool run_handler(struct ctlr_req *r)
{
	struct ctlr *c = r->c;
	bool done = true;

	r->came = ctlr_now();
	ctlr_lock(c);
	r->saw = c->rev;
	if (r->worker->server->stopping)
		ctlr_req_fail(r, 503, "", "the controller stops: nothing has changed");
	else if (r->run(c, r) == REQ_WAIT && !r->finished) {
		ctlr_http_suspend(r->worker, r);
		r->waiting = true;
		done = false;
	}
	if (done)
		ctlr_req_release(r);
	ctlr_unlock(c);
	return done;
}

enum MHD_Result ctlr_http_request(void *cls, struct MHD_Connection *mhd, const char *url, const char *method,
    const char *version, const char *data, size_t *size, void **state)
{
	struct ctlr_http_worker *w = cls;
	struct ctlr_req *r = *state;

	w->progress = true;
	if (!r)
		return first_call(w, mhd, url, method, state);
	if (*size) {
		if (!r->status && !body_add(r, data, *size)) {
			free(r->body);
			r->body = NULL;
			r->cap = 0;
			r->len = 0;
		}
		*size = 0;
		/* the rest of the body is read within the request's time, and discarded */
		return MHD_YES;
	}
	ctlr_http_conn_heard(w, mhd);
	if (!r->finished && !r->status && !run_handler(r))
		return MHD_YES;
	ctlr_http_conn_answered(w, mhd);
	return ctlr_http_reply(mhd, r, r->status == TOO_LARGE);
}

void ctlr_http_completed(
    void *cls, struct MHD_Connection *mhd, void **state, enum MHD_RequestTerminationCode why)
{
	struct ctlr_http_worker *w = cls;
	struct ctlr_req *r = *state;

	*state = NULL;
	w->progress = true;
	ctlr_http_conn_heard(w, mhd);
	if (r)
		req_free(r);
}

void ctlr_http_refuse(struct ctlr *c)
{
	struct ctlr_gateway *g;

	if (!c->http)
		return;
	ctlr_lock(c);
	c->http->stopping = true;
	CTLR_MAP_EACH(&c->gateways, g)
	{
		for (unsigned k = 0; k < CTLR_MEMBERS; k++)
			if (g->poll[k]) {
				ctlr_req_fail(g->poll[k], 503, "", "the controller stops");
				ctlr_req_finish(g->poll[k]);
				g->poll[k] = NULL;
			}
	}
	for (struct ctlr_req *r = c->polls, *next; r; r = next) {
		next = r->next;
		ctlr_req_fail(r, 503, "", "the controller stops");
		ctlr_req_finish(r);
	}
	c->polls = NULL;
	ctlr_unlock(c);
}
