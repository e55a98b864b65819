/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections: who is at the other end, and who takes too long to say something. Those of which something is
 * waited for are in a list of their worker's, the oldest first, so that looking for slow ones costs nothing
 * with very many connections. Not here: requests (http.c).
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "controller/server/http.h"
#include "controller/server/trust.h"
#include "base/log.h"

#define HANDSHAKE (5 * RWY_MS) /* of our time */
#define READING   6            /* times as long as a request: answers are larger */

static gnutls_datum_t ticket_key; /* all workers': a client may come back to any; GnuTLS turns it over */

static unsigned greeting; /* connections of all workers that have not said anything yet */

static struct conn *conn_of(struct MHD_Connection *mhd)
{
	const union MHD_ConnectionInfo *i = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return i ? i->socket_context : NULL;
}

static void wait_no_more(struct worker *w, struct conn *k)
{
	struct conns *l = k->in;

	if (!l)
		return;
	*(k->prev ? &k->prev->next : &l->first) = k->next;
	*(k->next ? &k->next->prev : &l->last) = k->prev;
	l->n--;
	if (l == &w->greeting)
		__atomic_sub_fetch(&greeting, 1, __ATOMIC_RELAXED);
	k->in = NULL;
	k->next = k->prev = NULL;
}

static void wait_for(struct worker *w, struct conn *k, struct conns *l)
{
	wait_no_more(w, k);
	k->since = ctlr_now();
	k->in = l;
	k->prev = l->last;
	*(l->last ? &l->last->next : &l->first) = k;
	l->last = k;
	l->n++;
	if (l == &w->greeting)
		__atomic_add_fetch(&greeting, 1, __ATOMIC_RELAXED);
}

/* Who comes back, or opens another connection, proves by a ticket that it has shaken hands: less than half
 * the work, for both. Who it is is in the ticket, and is held against the revocation list as always. */
int http_tickets_new(void)
{
	return gnutls_session_ticket_key_generate(&ticket_key) ? RWY_ENOMEM : 0;
}

void http_tickets_free(void)
{
	gnutls_memset(ticket_key.data, 0, ticket_key.size);
	gnutls_free(ticket_key.data);
	ticket_key = (gnutls_datum_t){NULL, 0};
}

static void tickets(struct MHD_Connection *mhd)
{
	const union MHD_ConnectionInfo *i = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);

	if (i && gnutls_session_ticket_enable_server((gnutls_session_t)i->tls_session, &ticket_key))
		gw_log(GW_LOG_DEBUG, "http", "a connection without tickets");
}

void http_connection(
    void *cls, struct MHD_Connection *mhd, void **context, enum MHD_ConnectionNotificationCode code)
{
	struct worker *w = cls;
	struct conn *k = *context;

	w->progress = true;
	__atomic_add_fetch(&w->connections, code == MHD_CONNECTION_NOTIFY_STARTED ? 1 : -1, __ATOMIC_RELAXED);
	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		k = calloc(1, sizeof(*k));
		if (!k)
			return; /* its first request is refused */
		k->mhd = mhd;
		if (!w->plain)
			tickets(mhd);
		wait_for(w, k, &w->greeting);
	} else if (k) {
		wait_no_more(w, k);
		free(k);
		k = NULL;
	}
	*context = k;
}

/* The request line is there: the rest has to follow. */
void *http_uri(void *cls, const char *uri, struct MHD_Connection *mhd)
{
	struct worker *w = cls;
	struct conn *k = conn_of(mhd);

	w->progress = true;
	if (k)
		wait_for(w, k, &w->sending);
	return NULL;
}

void http_conn_heard(struct worker *w, struct MHD_Connection *mhd)
{
	struct conn *k = conn_of(mhd);

	if (k)
		wait_no_more(w, k);
}

void http_conn_answered(struct worker *w, struct MHD_Connection *mhd)
{
	struct conn *k = conn_of(mhd);

	if (k)
		wait_for(w, k, &w->reading);
}

static unsigned slow(struct worker *w, struct conns *l, rwy_dur limit, rwy_time now)
{
	unsigned n = 0;

	for (struct conn *k; (k = l->first) && rwy_since(k->since, now) >= limit; n++) {
		const union MHD_ConnectionInfo *i =
		    MHD_get_connection_info(k->mhd, MHD_CONNECTION_INFO_CONNECTION_FD);

		if (i)
			shutdown(i->connect_fd, SHUT_RDWR); /* the library finds it closed */
		wait_no_more(w, k);
		COUNT(slow_clients);
	}
	return n;
}

/* When very many come at once, it is we who take long over their handshakes: each one allows for that of the
 * others. */
void http_conns_slow(struct worker *w, rwy_dur limit, rwy_time now)
{
	const rwy_dur others = HANDSHAKE * __atomic_load_n(&greeting, __ATOMIC_RELAXED);
	const unsigned n = slow(w, &w->greeting, limit + others, now) + slow(w, &w->sending, limit, now);
	const unsigned reading = slow(w, &w->reading, READING * limit, now);

	if (reading)
		event(EVENT_WARNING, "refused", NULL, "%u clients took too long to read an answer", reading);
	if (n)
		event(EVENT_WARNING, "refused", NULL, "%u clients took too long to send a request", n);
}

bool http_conn_who(struct MHD_Connection *mhd, struct req *r)
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
