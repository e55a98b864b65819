/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the agent only (agent.c, answer.c, state.c, request.c): its requests, and what is known of
 * the controller. All of it is the agent's thread.
 */
#ifndef GATEWAY_AGENT_REQUEST_H
#define GATEWAY_AGENT_REQUEST_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/http.h"
#include "gateway/agent/agent.h"

enum agent_what { REQ_NONE, REQ_REGISTER, REQ_LEASE, REQ_SESSIONS, REQ_LINKS, REQ_DOCUMENT };

/* Requests of one connection run one after the other. */
struct agent_req {
	struct rwy_http *http;
	enum agent_what what; /* REQ_NONE: nothing is under way */
};

struct agent {
	struct agent_cfg cfg;
	const struct agent_ops *ops;
	void *ctx;
	struct rwy_http_loop *loop;
	struct agent_req req, poll; /* all but the long poll; it */
	_Atomic bool stop;

	unsigned at;     /* index in cfg.url */
	unsigned failed; /* consecutive failures */
	char lease[17];
	uint64_t after; /* newest document seen */
	/* the controller does not know the running generation: 0 is reported instead */
	bool unknown;
	/* ms, monotonic */
	uint64_t lease_at, poll_at, links_at, sessions_at, retry_at, since, renewed;
	uint32_t random;

	pthread_mutex_t lock; /* protects st */
	struct agent_status st;
};

/* state.c */
uint64_t agent_ms(void);                           /* monotonic */
const char *agent_what_name(enum agent_what what); /* "lease" */
void agent_log(const struct agent *a, int level, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Returns a random time between ms / 2 and ms: many gateways must not come back at once. */
uint64_t agent_jitter(struct agent *a, uint64_t ms);
/* Changes the state that agent_status() shows. */
void agent_state_set(struct agent *a, enum agent_state s);
/* Sets the time of the next attempt, in ms from now. */
void agent_retry(struct agent *a, uint64_t ms);
/* Gives up this controller and tries the next one. The running document stays in force. */
void agent_give_up(struct agent *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* answer.c: r is done. */
void agent_answered(
    struct agent *a, struct agent_req *r, enum rwy_http_fail fail, const struct rwy_http_answer *answer);

/* request.c. max: bytes of an answer. False: no memory. */
bool agent_req_new(const struct agent *a, struct agent_req *r, size_t max);
/* Takes `body`; NULL: none is sent. False: no memory. */
bool agent_req_begin(struct agent *a, struct agent_req *r, enum agent_what what, const char *method,
    const char *path, json_t *body, long timeout_ms);
void agent_req_end(struct agent_req *r); /* also one that is under way */

#endif
