/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections: the client's identity, and clients that are too slow. A connection whose client owes
 * something is in a list of its worker, the oldest first, so finding slow ones is cheap with very
 * many connections. Requests are in http.c.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/log.h"
#include "controller/server/http.h"
#include "controller/server/req.h"
#include "controller/server/trust.h"
#include "controller/state/event.h"

#define HANDSHAKE (5 * RWY_MS) /* processor time of a handshake */
#define READING   6            /* times a request's limit, since answers are larger */

static struct ctlr_http_conn *conn_of(struct MHD_Connection *mhd)
{
	const union MHD_ConnectionInfo *i = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return i ? i->socket_context : NULL;
}

static void stop_waiting(struct ctlr_http_worker *w, struct ctlr_http_conn *k)
{
	struct ctlr_http_conns *l = k->in;

	if (!l)
		return;
	*(k->prev ? &k->prev->next : &l->first) = k->next;
	*(k->next ? &k->next->prev : &l->last) = k->prev;
	l->n--;
	if (l == &w->greeting)
		atomic_fetch_sub_explicit(&w->server->greeting, 1, memory_order_relaxed);
	k->in = NULL;
	k->next = k->prev = NULL;
}

static void start_waiting(struct ctlr_http_worker *w, struct ctlr_http_conn *k, struct ctlr_http_conns *l)
{
	stop_waiting(w, k);
	k->since = ctlr_now();
	k->in = l;
	k->prev = l->last;
	*(l->last ? &l->last->next : &l->first) = k;
	l->last = k;
	l->n++;
	if (l == &w->greeting)
		atomic_fetch_add_explicit(&w->server->greeting, 1, memory_order_relaxed);
}

/* A ticket proves an earlier handshake, which saves both sides more than half of the work. It names
 * the client, which is checked against the revocation list as always. */
int ctlr_http_tickets_new(struct ctlr_http *h)
{
	return gnutls_session_ticket_key_generate(&h->ticket_key) ? RWY_ENOMEM : 0;
}

void ctlr_http_tickets_free(struct ctlr_http *h)
{
	gnutls_memset(h->ticket_key.data, 0, h->ticket_key.size);
	gnutls_free(h->ticket_key.data);
	h->ticket_key = (gnutls_datum_t){NULL, 0};
}

static void enable_tickets(struct ctlr_http *h, struct MHD_Connection *mhd)
{
	const union MHD_ConnectionInfo *i = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);

	if (i && gnutls_session_ticket_enable_server((gnutls_session_t)i->tls_session, &h->ticket_key))
		gw_log(GW_LOG_DEBUG, "http", "a connection without tickets");
}

void ctlr_http_connection(
    void *cls, struct MHD_Connection *mhd, void **context, enum MHD_ConnectionNotificationCode code)
{
	struct ctlr_http_worker *w = cls;
	struct ctlr_http_conn *k = *context;

	w->progress = true;
	if (code == MHD_CONNECTION_NOTIFY_STARTED)
		atomic_fetch_add_explicit(&w->c->counters.connections, 1, memory_order_relaxed);
	else
		atomic_fetch_sub_explicit(&w->c->counters.connections, 1, memory_order_relaxed);
	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		k = calloc(1, sizeof(*k));
		if (!k)
			return; /* its first request is refused */
		k->mhd = mhd;
		if (!w->plain)
			enable_tickets(w->server, mhd);
		start_waiting(w, k, &w->greeting);
	} else if (k) {
		stop_waiting(w, k);
		free(k);
		k = NULL;
	}
	*context = k;
}

/* The request line has arrived; the rest has to follow. */
void *ctlr_http_uri(void *cls, const char *uri, struct MHD_Connection *mhd)
{
	struct ctlr_http_worker *w = cls;
	struct ctlr_http_conn *k = conn_of(mhd);

	w->progress = true;
	if (k)
		start_waiting(w, k, &w->sending);
	return NULL;
}

void ctlr_http_conn_heard(struct ctlr_http_worker *w, struct MHD_Connection *mhd)
{
	struct ctlr_http_conn *k = conn_of(mhd);

	if (k)
		stop_waiting(w, k);
}

void ctlr_http_conn_answered(struct ctlr_http_worker *w, struct MHD_Connection *mhd)
{
	struct ctlr_http_conn *k = conn_of(mhd);

	if (k)
		start_waiting(w, k, &w->reading);
}

static unsigned end_slow(struct ctlr_http_worker *w, struct ctlr_http_conns *l, rwy_dur limit, rwy_time now)
{
	unsigned n = 0;

	for (struct ctlr_http_conn *k; (k = l->first) && rwy_since(k->since, now) >= limit; n++) {
		const union MHD_ConnectionInfo *i =
		    MHD_get_connection_info(k->mhd, MHD_CONNECTION_INFO_CONNECTION_FD);

		if (i)
			/* the library finds the connection closed */
			shutdown(i->connect_fd, SHUT_RDWR);
		stop_waiting(w, k);
		COUNT(w->c, slow_clients);
	}
	return n;
}

/* When very many clients connect at once the handshakes are slow because of the controller. So each
 * client gets the time that the others' handshakes take. */
void ctlr_http_conns_slow(struct ctlr_http_worker *w, rwy_dur limit, rwy_time now)
{
	const rwy_dur others = HANDSHAKE * atomic_load_explicit(&w->server->greeting, memory_order_relaxed);
	const unsigned n =
	    end_slow(w, &w->greeting, limit + others, now) + end_slow(w, &w->sending, limit, now);
	const unsigned reading = end_slow(w, &w->reading, READING * limit, now);

	if (reading)
		ctlr_event(w->c, EVENT_WARNING, "refused", NULL, "%u clients took too long to read an answer",
		    reading);
	if (n)
		ctlr_event(
		    w->c, EVENT_WARNING, "refused", NULL, "%u clients took too long to send a request", n);
}

bool ctlr_http_conn_identify(struct ctlr_http_worker *w, struct MHD_Connection *mhd, struct ctlr_req *r)
{
	const union MHD_ConnectionInfo *i = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);
	struct ctlr_http_conn *k = conn_of(mhd);
	char text[128];
	unsigned status;

	if (!k || !i) {
		ctlr_req_fail(r, 503, "", "out of memory");
		return false;
	}
	if (k->trust == ctlr_trust_generation(w->c->trust)) {
		r->who = k->who;
		return true;
	}
	status = ctlr_trust_check(w->c->trust, (gnutls_session_t)i->tls_session, &r->who, text);
	if (!status) {
		k->who = r->who;
		k->trust = ctlr_trust_generation(w->c->trust);
		return true;
	}
	COUNT(w->c, unauthenticated);
	ctlr_event(w->c, EVENT_WARNING, "refused", NULL, "%s", text);
	ctlr_req_fail(r, status, "", "%s", text);
	return false;
}
