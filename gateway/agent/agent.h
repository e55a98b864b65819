/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gateway's end of the control center's API (controller/openapi.yaml): registration, lease, the document
 * by long poll, reports; several controllers, one at a time, the next when one fails; back-off with jitter.
 * Callbacks supply what is registered and reported, and apply documents: nothing here knows a gateway, so
 * that tests run it against a server of their own.
 *
 * Thread: agent_run and every callback are one thread's. agent_status and agent_stop: any thread.
 */
#ifndef GATEWAY_AGENT_AGENT_H
#define GATEWAY_AGENT_AGENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "rwy/err.h"

#define AGENT_WHY 512

struct agent_ops {
	/* Bodies, the callee's to free; NULL: no memory. */
	json_t *(*registration)(void *ctx);
	json_t *(*load)(void *ctx);
	/* An array; NULL: nothing to tell. */
	json_t *(*links)(void *ctx);
	/* The next sessions to tell, an array of at most 1000. NULL: none for now. */
	json_t *(*sessions)(void *ctx);
	/* A controller has just taken us up: it knows no session of ours. */
	void (*resync)(void *ctx);
	/* The answer to the sessions just reported. */
	void (*decided)(void *ctx, const json_t *decisions);
	/* A document, all or nothing. 0; RWY_EINVAL, why filled: refused; RWY_EAGAIN: try again soon. text:
	 * as it came, to be kept. */
	int (*apply)(void *ctx, const json_t *doc, const char *text, char why[AGENT_WHY]);
	void (*log)(void *ctx, int level, const char *msg);
};

struct agent_cfg {
	const char *const *url; /* https://host[:port] */
	unsigned urls;
	const char *ca, *certificate, *key; /* files */
	const char *name, *boot_id;
	uint64_t generation;                 /* that runs already, 0: none */
	uint32_t links_ms;                   /* how often links are told */
	uint32_t poll_ms;                    /* how long a poll waits */
	uint32_t backoff_ms, backoff_max_ms; /* after all controllers failed: doubles up to the latter */
};
void agent_cfg_default(struct agent_cfg *cfg);

enum agent_state { AGENT_AWAY, AGENT_REGISTERING, AGENT_REGISTERED };

#define AGENT_COUNTERS(X)                                                                                    \
	X(registrations, "times a controller took us up")                                                    \
	X(renewals, "leases renewed")                                                                        \
	X(lease_lost, "leases that the controller did not know any more")                                    \
	X(failures, "controllers that did not answer, or not as they must")                                  \
	X(documents, "documents applied")                                                                    \
	X(documents_refused, "documents refused: nothing of them is applied")                                \
	X(session_reports, "session reports that were taken")                                                \
	X(sessions_told, "sessions in them")                                                                 \
	X(decisions, "decisions that came back")                                                             \
	X(link_reports, "link reports that were taken")                                                      \
	X(reports_refused, "reports that the controller refused: they are lost")

struct agent_status {
	enum agent_state state;
	char url[128];                           /* of the controller that is talked to, or tried */
	uint32_t ttl_ms;                         /* of the lease */
	uint64_t generation, refused;            /* running; refused since, 0: none */
	uint64_t since_ms, renewed_ms, retry_ms; /* ago: this state, the lease; until the next try */
	char why[AGENT_WHY];                     /* why it was refused */
	char problem[AGENT_WHY];                 /* the last failure */
#define X(f, s) uint64_t f;
	AGENT_COUNTERS(X)
#undef X
};

struct agent;
RWY_MUST_CHECK int agent_new(
    struct agent **out, const struct agent_cfg *cfg, const struct agent_ops *ops, void *ctx);
void agent_free(struct agent *a);
void agent_run(struct agent *a); /* until agent_stop */
void agent_stop(struct agent *a);
void agent_status(struct agent *a, struct agent_status *out);

#endif
