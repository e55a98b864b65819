/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP client over libcurl: one request at a time over a kept connection, bounded in time and in
 * size, with TLS files on both sides. A request blocks, or several clients' requests share a loop.
 * The client knows nothing of what is asked: retries, other servers and the meaning of a status are
 * the caller's. A client and its loop belong to one thread at a time.
 */
#ifndef BASE_HTTP_H
#define BASE_HTTP_H

#include <stdbool.h>
#include <stddef.h>

#include "rwy/err.h"

struct rwy_http;

struct rwy_http_cfg {                  /* all strings are copied */
	const char *ca;                /* file with the server's CAs; NULL: the system's */
	const char *certificate, *key; /* our own files; NULL: none */
	const char *unix_socket;       /* NULL: connect to the URL's host */
	const char *protocols;         /* "https" or "http,https" */
	const char *const *headers;    /* of each request, up to a NULL; may be NULL */
	long connect_ms;               /* 0: the request's own bound */
	/* Bytes of a body, or of lines that came at once. Headers have 64 KiB at most. */
	size_t answer_max;
	bool proxy; /* as the environment says; else none */
};

enum rwy_http_fail {
	RWY_HTTP_OK,
	/* The request was not sent: */
	RWY_HTTP_UNREACHABLE, /* no address, or no connection */
	RWY_HTTP_UNTRUSTED,   /* the CA did not sign the server's certificate */
	RWY_HTTP_BAD_CA,      /* the CA's file is unusable */
	RWY_HTTP_BAD_TLS,     /* our certificate or key is bad, or the server has no TLS */
	/* The request may have been executed: */
	RWY_HTTP_LATE,      /* no complete answer in time */
	RWY_HTTP_TOO_LARGE, /* the answer is too large */
	RWY_HTTP_ENDED,     /* a callback ended it */
	RWY_HTTP_BROKEN,    /* any other failure */
};

/* True: the request has not reached a server, so it may be sent again. */
static inline bool rwy_http_unsent(enum rwy_http_fail f)
{
	return f >= RWY_HTTP_UNREACHABLE && f <= RWY_HTTP_BAD_TLS;
}

/* Owned by the client and valid until its next request. */
struct rwy_http_answer {
	long status;      /* 0: no answer came */
	const char *body; /* the body, with a terminating 0; "": empty */
	size_t len;
	const char *why; /* reason of a failure, in libcurl's words */
	long os_error;   /* errno of the connection; 0: none */
};

/* RWY_ENOMEM. Each new connection reads the files. */
RWY_MUST_CHECK int rwy_http_new(struct rwy_http **out, const struct rwy_http_cfg *cfg);
/* Ends its request, if one is under way, and frees its answers, too. NULL is allowed. */
void rwy_http_free(struct rwy_http *h);
/* Replaces the configured headers. RWY_ENOMEM. */
RWY_MUST_CHECK int rwy_http_set_headers(struct rwy_http *h, const char *const *headers);

/* Sends a request and blocks for at most timeout_ms. body NULL: no body. *out is filled after a
 * failure as well. */
enum rwy_http_fail rwy_http_ask(struct rwy_http *h, const char *method, const char *url, const char *body,
    long timeout_ms, struct rwy_http_answer *out);
/*
 * The same for a POST that must not be executed twice (RFC 9110, 9.2.2). When a connection breaks
 * after a part of the body has left, rwy_http_ask() may send the request again on another one; if
 * that fails it may say RWY_HTTP_UNREACHABLE, though the first one was executed. This function says
 * RWY_HTTP_BROKEN. body is not NULL.
 */
enum rwy_http_fail rwy_http_ask_once(
    struct rwy_http *h, const char *url, const char *body, long timeout_ms, struct rwy_http_answer *out);
/* Hands the last answer's body to the caller, who frees it; NULL: it was empty. */
char *rwy_http_take_body(struct rwy_http *h);

/* Requests under way in one thread, none of which blocks it. */
struct rwy_http_loop;

/* RWY_ENOMEM. */
RWY_MUST_CHECK int rwy_http_loop_new(struct rwy_http_loop **out);
void rwy_http_loop_free(struct rwy_http_loop *l); /* after all its clients; NULL: fine */
/*
 * Begins a request of h, which has none under way; rwy_http_done() tells its end in timeout_ms.
 * body is copied; NULL: none is sent. RWY_ENOMEM.
 */
RWY_MUST_CHECK int rwy_http_begin(struct rwy_http_loop *l, struct rwy_http *h, const char *method,
    const char *url, const char *body, long timeout_ms);
/* Gives up the request of h, if one is under way: rwy_http_done() does not name it. */
void rwy_http_end(struct rwy_http *h);
/*
 * Does what is due, and gives the next client whose request is done, with what rwy_http_ask() would
 * return; NULL: none is. Never blocks.
 */
struct rwy_http *rwy_http_done(
    struct rwy_http_loop *l, enum rwy_http_fail *fail, struct rwy_http_answer *out);
/* Waits until there is something to do, most_ms have passed, or rwy_http_loop_wake() was called. */
void rwy_http_loop_wait(struct rwy_http_loop *l, int most_ms);
void rwy_http_loop_wake(struct rwy_http_loop *l); /* any thread */

/* Called in the thread of rwy_http_lines; another value than 0 ends it. */
struct rwy_http_lines_ops {
	/* text has neither its line end nor a terminating 0 */
	int (*line)(void *ctx, const char *text, size_t len);
	int (*tick)(void *ctx); /* called ten times a second, and after lines */
};
/* POSTs, and passes on the answer line by line until the server ends it (RWY_HTTP_OK), a callback
 * ends it (RWY_HTTP_ENDED, *rc is its value) or nothing comes for silence_ms (RWY_HTTP_LATE).
 * Blocks meanwhile. */
enum rwy_http_fail rwy_http_lines(struct rwy_http *h, const char *url, const char *body, long silence_ms,
    const struct rwy_http_lines_ops *ops, void *ctx, int *rc);

/* Called in the thread of rwy_http_stream; another value than 0 ends it. */
struct rwy_http_stream_ops {
	int (*data)(void *ctx, const void *data, size_t len); /* of an answer with status 200 */
	int (*tick)(void *ctx);                               /* as above */
};
/* GETs, and passes the answer on as it comes; the rest as rwy_http_lines. The body of an answer
 * with another status is in *out, as of rwy_http_ask. */
enum rwy_http_fail rwy_http_stream(struct rwy_http *h, const char *url, long silence_ms,
    const struct rwy_http_stream_ops *ops, void *ctx, int *rc, struct rwy_http_answer *out);

/* Returns text percent-encoded for a path or a query; the caller frees it. NULL: memory is
 * short. */
char *rwy_http_escape(const char *text);

#endif
