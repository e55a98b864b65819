/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the agent (agent.c, answer.c, state.c, http.c): one request, and the state of the
 * connection to the controller. Used by the agent's thread only. */
#ifndef GATEWAY_AGENT_HTTP_H
#define GATEWAY_AGENT_HTTP_H

#include <curl/curl.h>
#include <pthread.h>
#include <stdatomic.h>

#include "gateway/agent/agent.h"

enum agent_what { REQ_NONE, REQ_REGISTER, REQ_LEASE, REQ_SESSIONS, REQ_LINKS, REQ_DOCUMENT };

/* One request at a time on one connection. */
struct agent_req {
	CURL *curl;
	enum agent_what what; /* REQ_NONE: no request is in progress */
	char *body;
	char *answer;
	size_t len, max, head;
	bool too_large;
	char err[CURL_ERROR_SIZE];
};

struct agent {
	struct agent_cfg cfg;
	const struct agent_ops *ops;
	void *ctx;
	CURLM *multi;
	struct curl_slist *headers;
	/* req: all requests except the long poll; poll: the long poll */
	struct agent_req req, poll;
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
void agent_state_set(struct agent *a, enum agent_state s);
void agent_retry(struct agent *a, uint64_t ms);
/* Gives up this controller and tries the next one. The running document stays in force. */
void agent_give_up(struct agent *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* answer.c: processes the end of request r with curl's result. */
void agent_answered(struct agent *a, struct agent_req *r, CURLcode rc);

/* http.c. False: the request cannot begin; *why says why. */
bool agent_req_new(struct agent *a, struct agent_req *r, size_t max);
void agent_req_free(struct agent *a, struct agent_req *r);
bool agent_req_begin(struct agent *a, struct agent_req *r, enum agent_what what, const char *method,
    const char *path, json_t *body, long timeout_ms);
/* Ends a request, also one in progress. */
void agent_req_end(struct agent *a, struct agent_req *r);

#endif
