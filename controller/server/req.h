/* SPDX-License-Identifier: Apache-2.0 */
/* Requests as handlers see them: parameters, body, reply, changes of the store, waiting. */
#ifndef CONTROLLER_SERVER_REQ_H
#define CONTROLLER_SERVER_REQ_H

#include "controller/state/change.h"
#include "controller/state/ctlr.h"

struct ctlr_http_worker;

enum ctlr_role { ROLE_NONE, ROLE_GATEWAY = 1, ROLE_OPERATOR = 2, ROLE_SCHEDULER = 4, ROLE_NETWORK = 8 };

struct ctlr_identity {
	char name[MDL_NAME];
	enum ctlr_role role;
};

#define REQ_ARGS   3
#define REQ_PARAMS 8

enum ctlr_outcome {
	REQ_DONE, /* the reply is there */
	REQ_WAIT, /* somebody has it: ctlr_req_finish later */
};

typedef enum ctlr_outcome ctlr_handler(struct ctlr *c, struct ctlr_req *r);

struct ctlr_req_param {
	char name[32], value[128];
};

struct ctlr_req {
	struct ctlr *c;
	void *connection; /* MHD's */
	struct ctlr_http_worker *worker;
	ctlr_handler *run;
	const char *method;
	struct ctlr_identity who;
	char arg[REQ_ARGS][MDL_NAME + MDL_ID]; /* of the path */
	struct ctlr_req_param param[REQ_PARAMS];
	unsigned params;
	char *body;
	size_t len, cap;
	/* the reply */
	unsigned status;
	json_t *json;
	char *text; /* instead; malloced, or: */
	const void *data;
	size_t data_len;
	const char *type;
	char allow[64]; /* of a 405 */
	/* waiting */
	unsigned tries;
	bool waiting, finished;
	bool unsure;          /* the store's answer to it was lost once */
	uint64_t after, saw;  /* saw: the revision that the handler knew */
	rwy_time came, until; /* whole; at the latest */
	struct ctlr_req *next;
	struct ctlr_site *site;
	struct ctlr_query *query;              /* of networks' controllers: job/query.c */
	void (*query_end)(struct ctlr_req *r); /* frees it; locked */
};

/* Frees what a handler keeps with its request. Locked. */
static inline void ctlr_req_release(struct ctlr_req *r)
{
	if (r->query_end)
		r->query_end(r);
}

enum ctlr_outcome ctlr_req_fail(struct ctlr_req *r, unsigned status, const char *field, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
enum ctlr_outcome ctlr_req_reply(struct ctlr_req *r, unsigned status, json_t *json); /* takes json */
enum ctlr_outcome ctlr_req_reply_revision(
    struct ctlr_req *r, unsigned status, uint64_t rev);                               /* {"revision": rev} */
enum ctlr_outcome ctlr_req_bad_body(struct ctlr_req *r, const struct mdl_error *err); /* 400 */
/* The body as a struct of table t; false: the reply says why not. *json (may be NULL): the caller's
 * reference. */
bool ctlr_req_read(struct ctlr_req *r, const struct mdl_table *t, void *out, json_t **json);
const char *ctlr_req_param(const struct ctlr_req *r, const char *name);
bool ctlr_req_number(
    struct ctlr_req *r, const char *name, uint64_t min, uint64_t max, uint64_t dflt, uint64_t *out);
/* Submits; the reply is `status` with the revision, or what the store says; the handler runs again when
 * something else was first. */
enum ctlr_outcome ctlr_req_commit(struct ctlr_req *r, struct ctlr_change *ch, unsigned status);
/* The same, with a reply of its own made once it is applied. */
enum ctlr_outcome ctlr_req_commit_then(struct ctlr_req *r, struct ctlr_change *ch, ctlr_change_cb *then);
/* The same; then, in place of a reply, `next`, which makes it or waits. */
enum ctlr_outcome ctlr_req_commit_next(struct ctlr_req *r, struct ctlr_change *ch, ctlr_handler *next);
void ctlr_req_run(struct ctlr_req *r); /* locked; its handler, from the beginning */
void ctlr_req_conclude(
    struct ctlr_req *r);                  /* locked; as ctlr_req_finish, for a reply that may be a refusal */
void ctlr_req_finish(struct ctlr_req *r); /* locked; the reply is there: it goes out */
void ctlr_req_resume(struct ctlr_req *r); /* locked; its handler runs again, in its thread */
void ctlr_req_retry_all(struct ctlr *c, bool stop); /* locked; those that waited for what was first */
bool ctlr_req_is_gateway(
    const struct ctlr_req *r, const char *gateway); /* the caller is that gateway, or 403 */

/* Handlers of the server itself (system.c). */
ctlr_handler ctlr_api_event_list, ctlr_api_health_get, ctlr_api_metrics_get, ctlr_api_page_get;

#endif
