/* SPDX-License-Identifier: Apache-2.0 */
/* Requests as handlers see them: parameters, body, reply, changes of the store, waiting. */
#ifndef CONTROLLER_SERVER_REQ_H
#define CONTROLLER_SERVER_REQ_H

#include "controller/state/change.h"
#include "controller/state/ctlr.h"

struct worker;

enum role { ROLE_NONE, ROLE_GATEWAY = 1, ROLE_OPERATOR = 2, ROLE_SCHEDULER = 4, ROLE_NETWORK = 8 };

struct identity {
	char name[MDL_NAME];
	enum role role;
};

#define REQ_ARGS   3
#define REQ_PARAMS 8

enum outcome {
	REQ_DONE, /* the reply is there */
	REQ_WAIT, /* somebody has it: req_finish later */
};

typedef enum outcome handler(struct ctlr *c, struct req *r);

struct param {
	char name[32], value[128];
};

struct req {
	struct ctlr *c;
	void *connection; /* MHD's */
	struct worker *worker;
	handler *run;
	const char *method;
	struct identity who;
	char arg[REQ_ARGS][MDL_NAME + MDL_ID]; /* of the path */
	struct param param[REQ_PARAMS];
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
	struct req *next;
	struct site *site;
	struct ask *ask;                /* of networks' controllers: job/ask.c */
	void (*ask_end)(struct req *r); /* frees it; locked */
};

/* Frees what a handler keeps with its request. Locked. */
static inline void req_ended(struct req *r)
{
	if (r->ask_end)
		r->ask_end(r);
}

enum outcome req_fail(struct req *r, unsigned status, const char *field, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
enum outcome req_reply(struct req *r, unsigned status, json_t *json); /* takes json */
enum outcome req_done(struct req *r, unsigned status, uint64_t rev);  /* {"revision": rev} */
enum outcome req_wrong(struct req *r, const struct mdl_error *err);   /* 400 */
/* The body as a struct of table t; false: the reply says why not. *json (may be NULL): the caller's
 * reference. */
bool req_read(struct req *r, const struct mdl_table *t, void *out, json_t **json);
const char *req_param(const struct req *r, const char *name);
bool req_number(struct req *r, const char *name, uint64_t min, uint64_t max, uint64_t dflt, uint64_t *out);
/* Submits; the reply is `status` with the revision, or what the store says; the handler runs again when
 * something else was first. */
enum outcome req_commit(struct req *r, struct change *ch, unsigned status);
/* The same, with a reply of its own made once it is applied. */
enum outcome req_commit_then(struct req *r, struct change *ch, change_cb *then);
/* The same; then, in place of a reply, `next`, which makes it or waits. */
enum outcome req_commit_next(struct req *r, struct change *ch, handler *next);
void req_store_failed(struct req *r, int rc);
void req_run_again(struct req *r);             /* locked; its handler, from the beginning */
void req_over(struct req *r);                  /* locked; as req_finish, for a reply that may be a refusal */
void req_finish(struct req *r);                /* locked; the reply is there: it goes out */
void req_go_on(struct req *r);                 /* locked; its handler runs again, in its thread */
void req_again_all(struct ctlr *c, bool stop); /* locked; those that waited for what was first */
bool req_is(const struct req *r, const char *gateway); /* the caller is that gateway, or 403 */

/* Handlers of the server itself (system.c). */
handler event_list, health_get, metrics_get, page_get;

#endif
