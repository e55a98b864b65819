/* SPDX-License-Identifier: Apache-2.0 */
/* Requests as handlers see them: parameters, body, reply, changes of the store, waiting. */
#ifndef CONTROLLER_SERVER_REQ_H
#define CONTROLLER_SERVER_REQ_H

#include "controller/state/change.h"
#include "controller/state/ctlr.h"

struct ctlr_http_worker;

enum ctlr_role {
	ROLE_NONE,
	ROLE_GATEWAY = 1,
	ROLE_OPERATOR = 2,
	ROLE_SCHEDULER = 4,
	ROLE_NETWORK = 8,
	ROLE_CONTAINER = 16,
	ROLE_HOST = 32
};

struct ctlr_identity {
	char name[MDL_NAME];
	enum ctlr_role role;
};

#define REQ_ARGS   3
#define REQ_PARAMS 8

enum ctlr_outcome {
	REQ_DONE, /* the reply is set */
	REQ_WAIT, /* ctlr_req_finish() comes later */
};

typedef enum ctlr_outcome ctlr_handler(struct ctlr *c, struct ctlr_req *r);

/* True if what a poll waits for has happened. Locked. */
typedef bool ctlr_req_news(struct ctlr *c, const struct ctlr_req *r);

struct ctlr_req_param {
	char name[32], value[128];
};

struct ctlr_req {
	struct ctlr *c;
	void *connection; /* the library's */
	struct ctlr_http_worker *worker;
	ctlr_handler *run;
	const char *method;
	struct ctlr_identity who;
	char arg[REQ_ARGS][MDL_NAME + MDL_ID]; /* from the path */
	struct ctlr_req_param param[REQ_PARAMS];
	unsigned params;
	char *body;
	size_t len, cap;
	/* The reply. */
	unsigned status;
	json_t *json;
	char *text; /* instead of json: malloced, or static `data` */
	const void *data;
	size_t data_len;
	const char *type;
	char allow[64]; /* for a 405 */
	/* While it waits. */
	unsigned tries;
	bool waiting, finished;
	bool unsure;          /* the store's answer was lost once */
	uint64_t after, saw;  /* saw: the revision that the handler knew */
	rwy_time came, until; /* time of its last byte; end of its wait */
	uint64_t since_ms;    /* job/shape.h; 0: not asked for yet */
	struct ctlr_req *next;
	struct ctlr_site *site;
	ctlr_req_news *news;                   /* of a long poll; poll.h */
	struct ctlr_query *query;              /* networks' controllers; job/query.c */
	void (*query_end)(struct ctlr_req *r); /* frees it; locked */
};

/* Frees what a handler keeps with its request. Locked. */
static inline void ctlr_req_release(struct ctlr_req *r)
{
	if (r->query_end)
		r->query_end(r);
}

/*
 * Replies. Each replaces an earlier reply and returns REQ_DONE; out of memory becomes a 503.
 * Locked, or on the worker's thread before the handler runs.
 */
/* {"error": ..., "field": ...}; field "": no field. */
enum ctlr_outcome ctlr_req_fail(struct ctlr_req *r, unsigned status, const char *field, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Takes over the reference to json. */
enum ctlr_outcome ctlr_req_reply(struct ctlr_req *r, unsigned status, json_t *json);
/* {"revision": rev} */
enum ctlr_outcome ctlr_req_reply_revision(struct ctlr_req *r, unsigned status, uint64_t rev);
/* 400 with the error's field. */
enum ctlr_outcome ctlr_req_bad_body(struct ctlr_req *r, const struct mdl_error *err);

/* Reads the body as a struct of table t, to free with mdl_free(). false: the reply says why. *json
 * gets a reference for the caller; json may be NULL. */
bool ctlr_req_read(struct ctlr_req *r, const struct mdl_table *t, void *out, json_t **json);
/* The value of a query parameter, which belongs to r; NULL: it is not given. */
const char *ctlr_req_param(const struct ctlr_req *r, const char *name);
/* Reads a number from a parameter. false: the reply says why. */
bool ctlr_req_number(
    struct ctlr_req *r, const char *name, uint64_t min, uint64_t max, uint64_t dflt, uint64_t *out);
/* True if the caller is this gateway, or no gateway at all; else the reply is a 403. */
bool ctlr_req_is_gateway(const struct ctlr_req *r, const char *gateway);

/*
 * Changes of the store. All take over ch (NULL: 503) and return REQ_WAIT, or REQ_DONE with a 503.
 * If another change was first the handler runs again. Locked.
 */
/* The reply is `status` with the revision, or the store's error. */
enum ctlr_outcome ctlr_req_commit(struct ctlr_req *r, struct ctlr_change *ch, unsigned status);
/* `then` makes the reply when the change is applied. A 503 if it is stored and long not applied. */
enum ctlr_outcome ctlr_req_commit_then(struct ctlr_req *r, struct ctlr_change *ch, ctlr_change_cb *then);
/* `next` runs instead of a reply; it replies or waits. */
enum ctlr_outcome ctlr_req_commit_next(struct ctlr_req *r, struct ctlr_change *ch, ctlr_handler *next);
/* As ctlr_req_commit(), but `smaller` runs if the store takes no change so large; nothing of it is
 * stored then. */
enum ctlr_outcome ctlr_req_commit_or(
    struct ctlr_req *r, struct ctlr_change *ch, unsigned status, ctlr_handler *smaller);

/* Requests that wait. Locked, any thread. */
/* Sends the reply, which is set. */
void ctlr_req_finish(struct ctlr_req *r);
/* The same, but after a lost answer of the store a refusal becomes a 503, since the change may have
 * been made. */
void ctlr_req_conclude(struct ctlr_req *r);
/* Runs its handler from the beginning, at once. */
void ctlr_req_run(struct ctlr_req *r);
/* Runs its handler from the beginning, on its worker's thread. */
void ctlr_req_resume(struct ctlr_req *r);
/* Runs the requests in c->retry; stop: refuses them. */
void ctlr_req_retry_all(struct ctlr *c, bool stop);

/* Handlers of the server itself; system.c. */
ctlr_handler ctlr_api_event_list, ctlr_api_health_get, ctlr_api_metrics_get, ctlr_api_page_get;

#endif
