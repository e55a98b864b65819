/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP client over libcurl: one request at a time over a kept connection, bounded in time and in size, with
 * TLS files on both sides. It knows nothing of what is asked: retries, other servers and the meaning of a
 * status are the caller's. A client belongs to one thread at a time.
 */
#ifndef BASE_HTTP_H
#define BASE_HTTP_H

#include <stdbool.h>
#include <stddef.h>

#include "rwy/err.h"

struct rwy_http;

struct rwy_http_cfg {                  /* all of it is copied */
	const char *ca;                /* file of the server's CAs; NULL: the system's */
	const char *certificate, *key; /* files of our own; NULL: none */
	const char *unix_socket;       /* NULL: the URL's host */
	const char *protocols;         /* "https" or "http,https" */
	const char *const *headers;    /* of each request, up to a NULL; may be NULL */
	long connect_ms;               /* 0: the request's own bound */
	size_t answer_max;             /* bytes of a body, or of lines that came at once */
	bool proxy;                    /* as the environment says; else none */
};

enum rwy_http_fail {
	RWY_HTTP_OK,
	/* Not sent: */
	RWY_HTTP_UNREACHABLE, /* no address, or no connection */
	RWY_HTTP_UNTRUSTED,   /* the server's certificate is not the CA's */
	RWY_HTTP_BAD_CA,      /* the CA's file cannot be used */
	RWY_HTTP_BAD_TLS,     /* our certificate or key, or no TLS there */
	/* Perhaps done: */
	RWY_HTTP_LATE,      /* no (whole) answer in time */
	RWY_HTTP_TOO_LARGE, /* the answer is */
	RWY_HTTP_ENDED,     /* by a callback */
	RWY_HTTP_BROKEN,    /* anything else */
};

static inline bool rwy_http_unsent(enum rwy_http_fail f)
{
	return f >= RWY_HTTP_UNREACHABLE && f <= RWY_HTTP_BAD_TLS;
}

/* All of it is the client's, until its next request. */
struct rwy_http_answer {
	long status;      /* 0: none came */
	const char *body; /* ended by a 0 besides; "": empty */
	size_t len;
	const char *why; /* of a failure, in libcurl's words */
	long os_error;   /* errno of the connection; 0: none */
};

/* RWY_ENOMEM. The files are read with each new connection. */
RWY_MUST_CHECK int rwy_http_new(struct rwy_http **out, const struct rwy_http_cfg *cfg);
void rwy_http_free(struct rwy_http *h); /* NULL: fine */
/* In place of the configured ones. RWY_ENOMEM. */
RWY_MUST_CHECK int rwy_http_set_headers(struct rwy_http *h, const char *const *headers);

/* Blocks for at most timeout_ms. body NULL: none is sent. *out is filled after a failure as well. */
enum rwy_http_fail rwy_http_ask(struct rwy_http *h, const char *method, const char *url, const char *body,
    long timeout_ms, struct rwy_http_answer *out);
/* The body of the last answer becomes the caller's, to free; NULL: it was empty. */
char *rwy_http_take_body(struct rwy_http *h);

/* Called in the thread of rwy_http_lines; another value than 0 ends it. */
struct rwy_http_lines_ops {
	int (*line)(void *ctx, const char *text, size_t len); /* without its end; not ended by a 0 */
	int (*tick)(void *ctx);                               /* ten times a second, and after lines */
};
/* POSTs, and gives the answer line by line, until the server ends it (RWY_HTTP_OK), a callback does
 * (RWY_HTTP_ENDED, *rc is its value) or nothing comes for silence_ms (RWY_HTTP_LATE). Blocks that long. */
enum rwy_http_fail rwy_http_lines(struct rwy_http *h, const char *url, const char *body, long silence_ms,
    const struct rwy_http_lines_ops *ops, void *ctx, int *rc);

/* Percent-encoded for a path or a query, to free; NULL: out of memory. */
char *rwy_http_escape(const char *text);

#endif
