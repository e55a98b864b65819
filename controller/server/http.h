/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the HTTP server: threads (http_loop.c), connections and their clients' identity
 * (http_conn.c), requests (http.c), replies (http_reply.c), requests that wait (http_wait.c). Each
 * connection belongs to one worker, whose thread handles it without a lock. Other threads only
 * report that a request is finished.
 */
#ifndef CONTROLLER_SERVER_HTTP_H
#define CONTROLLER_SERVER_HTTP_H

#include <gnutls/gnutls.h>
#include <microhttpd.h>
#include <stdatomic.h>

#include "controller/server/req.h"

#define WORKERS_MAX 65

struct ctlr_http;
struct ctlr_http_conns;

/* A connection. It is in a list while the server waits for its client: for the first request line,
 * for the rest of a request, or until the client has read the answer. */
struct ctlr_http_conn {
	struct ctlr_http_conns *in; /* NULL: the client owes nothing */
	struct ctlr_http_conn *next, *prev;
	struct MHD_Connection *mhd;
	rwy_time since;
	unsigned trust; /* generation of the trust that `who` was checked with */
	struct ctlr_identity who;
};

struct ctlr_http_conns { /* sorted by `since` */
	struct ctlr_http_conn *first, *last;
	unsigned n;
};

struct ctlr_http_worker { /* belongs to its thread, except where a comment says otherwise */
	struct ctlr *c;
	struct ctlr_http *server;
	bool plain; /* the listener without certificates */
	struct MHD_Daemon *mhd;
	int epoll; /* the library's */
	struct ctlr_http_conns greeting, sending, reading;
	bool progress;      /* something arrived since this was cleared */
	unsigned suspended; /* requests that wait */
	rwy_time resumed;   /* time of the last resumption */
	pthread_t thread;
	int wake;                      /* an eventfd, for any thread */
	pthread_mutex_t lock;          /* protects the fields below */
	struct ctlr_req *first, *last; /* queue of requests to resume */
	unsigned urgent;               /* those of the queue that are not 304 */
	atomic_bool stop;
};

struct ctlr_http {
	struct ctlr *c;
	struct ctlr_http_worker w[WORKERS_MAX];
	unsigned n;
	bool stopping; /* under the state's lock */
	/* shared by all workers, since a client may return to any; GnuTLS rotates it */
	gnutls_datum_t ticket_key;
	atomic_uint greeting; /* connections of all workers before their first request line */
};

/* --- http.c ----------------------------------------------------------------------------------- */

/* Called by the library; cls: the worker. */
enum MHD_Result ctlr_http_request(void *cls, struct MHD_Connection *mhd, const char *url, const char *method,
    const char *version, const char *data, size_t *size, void **state);
void ctlr_http_completed(
    void *cls, struct MHD_Connection *mhd, void **state, enum MHD_RequestTerminationCode why);

/* --- http_conn.c ------------------------------------------------------------------------------ */

/* Called by the library; cls: the worker. */
void ctlr_http_connection(
    void *cls, struct MHD_Connection *mhd, void **context, enum MHD_ConnectionNotificationCode code);
void *ctlr_http_uri(void *cls, const char *uri, struct MHD_Connection *mhd);
/* Makes the ticket key, before the first connection. */
RWY_MUST_CHECK int ctlr_http_tickets_new(struct ctlr_http *h);
void ctlr_http_tickets_free(struct ctlr_http *h);
/* The request is complete or refused: the client owes nothing more. */
void ctlr_http_conn_heard(struct ctlr_http_worker *w, struct MHD_Connection *mhd);
/* The answer goes out: the client has to read it. */
void ctlr_http_conn_answered(struct ctlr_http_worker *w, struct MHD_Connection *mhd);
/* Fills r->who; false: r has the refusal. The certificate is verified once for each connection, and
 * again after a new revocation list. */
bool ctlr_http_conn_identify(struct ctlr_http_worker *w, struct MHD_Connection *mhd, struct ctlr_req *r);
/* Ends connections whose clients take too long. */
void ctlr_http_conns_slow(struct ctlr_http_worker *w, rwy_dur limit, rwy_time now);

/* --- http_wait.c ------------------------------------------------------------------------------ */

/* Suspends the request until it is finished or resumed. The worker's thread, under the state's
 * lock. */
void ctlr_http_suspend(struct ctlr_http_worker *w, struct ctlr_req *r);
/* Wakes the worker's thread. Any thread. */
void ctlr_http_wake(struct ctlr_http_worker *w);
/* Resumes some requests if it is time for it; at_once: all. Returns the time until the next may be
 * resumed; RWY_NEVER: none waits. The worker's thread. */
rwy_dur ctlr_http_resume_some(struct ctlr_http_worker *w, rwy_time now, bool at_once);

/* --- http_reply.c ----------------------------------------------------------------------------- */

/* Sends the reply in r. end: closes the connection after it. MHD_NO: out of memory. */
enum MHD_Result ctlr_http_reply(struct MHD_Connection *mhd, struct ctlr_req *r, bool end);

#endif
