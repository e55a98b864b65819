/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the HTTP server: its threads (http_loop.c), connections and who is at their other end (http_conn.c),
 * requests (http.c), replies (http_reply.c), requests that wait (http_wait.c). Each connection belongs to one
 * worker: everything of it happens in that one's thread and without a lock, but for the news that a request
 * is finished.
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

/* A connection. It is in a list while we wait for its client: for the first request line, for the rest of a
 * request, or for the client to read the answer. */
struct ctlr_http_conn {
	struct ctlr_http_conns *in; /* NULL: nothing is waited for */
	struct ctlr_http_conn *next, *prev;
	struct MHD_Connection *mhd;
	rwy_time since;
	unsigned trust; /* generation of `who` */
	struct ctlr_identity who;
};

struct ctlr_http_conns { /* in the order of `since` */
	struct ctlr_http_conn *first, *last;
	unsigned n;
};

struct ctlr_http_worker { /* its thread's, but for what is said */
	struct ctlr *c;
	struct ctlr_http *server;
	bool plain; /* the listener without certificates */
	struct MHD_Daemon *mhd;
	int epoll; /* the library's */
	struct ctlr_http_conns greeting, sending, reading;
	bool progress;      /* something came since it was cleared */
	unsigned suspended; /* requests that wait */
	rwy_time resumed;   /* some of them, last */
	pthread_t thread;
	int wake;                      /* any thread's: an eventfd */
	pthread_mutex_t lock;          /* of what follows */
	struct ctlr_req *first, *last; /* those that go on */
	unsigned urgent;               /* of them: not 304 */
	atomic_bool stop;
};

struct ctlr_http {
	struct ctlr *c;
	struct ctlr_http_worker w[WORKERS_MAX];
	unsigned n;
	bool stopping;             /* under the state's lock */
	gnutls_datum_t ticket_key; /* all workers': a client may come back to any; GnuTLS turns it over */
	atomic_uint greeting;      /* connections of all workers that have not said anything yet */
};

/* --- http.c ----------------------------------------------------------------------------------- */

/* For the library. cls: the worker. */
enum MHD_Result ctlr_http_request(void *cls, struct MHD_Connection *mhd, const char *url, const char *method,
    const char *version, const char *data, size_t *size, void **state);
void ctlr_http_completed(
    void *cls, struct MHD_Connection *mhd, void **state, enum MHD_RequestTerminationCode why);

/* Refuses the polls that wait, and each request from now on. */
void ctlr_http_refuse(struct ctlr_http *h);

/* --- http_conn.c ------------------------------------------------------------------------------ */

/* For the library. cls: the worker. */
void ctlr_http_connection(
    void *cls, struct MHD_Connection *mhd, void **context, enum MHD_ConnectionNotificationCode code);
void *ctlr_http_uri(void *cls, const char *uri, struct MHD_Connection *mhd);
RWY_MUST_CHECK int ctlr_http_tickets_new(struct ctlr_http *h); /* before the first connection */
void ctlr_http_tickets_free(struct ctlr_http *h);
/* Its request is complete or refused: the client owes nothing. */
void ctlr_http_conn_heard(struct ctlr_http_worker *w, struct MHD_Connection *mhd);
/* Its answer goes out: it has to be read. */
void ctlr_http_conn_answered(struct ctlr_http_worker *w, struct MHD_Connection *mhd);
/* Fills r->who; false: the refusal is in r. The certificate is verified once a connection, and again after a
 * new revocation list. */
bool ctlr_http_conn_identify(struct ctlr_http_worker *w, struct MHD_Connection *mhd, struct ctlr_req *r);
/* Ends the connections that take too long. */
void ctlr_http_conns_slow(struct ctlr_http_worker *w, rwy_dur limit, rwy_time now);

/* --- http_wait.c ------------------------------------------------------------------------------ */

/* The worker's thread, under the state's lock: the request waits until it is finished or resumed. */
void ctlr_http_suspend(struct ctlr_http_worker *w, struct ctlr_req *r);
/* Wakes its thread. Any thread. */
void ctlr_http_wake(struct ctlr_http_worker *w);
/* Resumes some requests if it is time, or all (at_once). Returns the time until the next may be resumed;
 * RWY_NEVER: none is there. The worker's thread. */
rwy_dur ctlr_http_resume_some(struct ctlr_http_worker *w, rwy_time now, bool at_once);

/* --- http_reply.c ----------------------------------------------------------------------------- */

/* Queues what r says. end: and closes the connection behind it. MHD_NO: out of memory. */
enum MHD_Result ctlr_http_reply(struct MHD_Connection *mhd, struct ctlr_req *r, bool end);

#endif
