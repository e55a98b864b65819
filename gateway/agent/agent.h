/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gateway's client of the control center's API (controller/openapi.yaml): registration, lease,
 * the document by long poll, reports. It uses one of several controllers at a time and the next one
 * when it fails; back-off has jitter. Callbacks supply registration and reports, and apply
 * documents: nothing here knows a gateway, so tests run it against their own server.
 *
 * Thread: agent_run and every callback run on one thread. agent_status and agent_stop: any thread.
 */
#ifndef GATEWAY_AGENT_AGENT_H
#define GATEWAY_AGENT_AGENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "rwy/err.h"

#define AGENT_WHY 512

struct agent_ops {
	/* Request bodies, freed by the caller; NULL: memory is short. */
	json_t *(*registration)(void *ctx);
	json_t *(*load)(void *ctx);
	/* pair: the state of this gateway as one of a pair, freed by the caller; NULL: it is none.
	 * pair_news: that differs from what pair() returned last, so the agent reports at once.
	 * Either may be NULL. */
	json_t *(*pair)(void *ctx);
	bool (*pair_news)(void *ctx);
	/* An array; NULL: nothing to report. */
	json_t *(*links)(void *ctx);
	/*
	 * The next sessions to report, an array of at most 1000; NULL: none for now. After resync
	 * all sessions come, in reports that *part counts from 1; *last: no more of them. *part
	 * stays 0 in other reports.
	 */
	json_t *(*sessions)(void *ctx, uint64_t *part, bool *last);
	/* A controller has just accepted our registration: it knows none of our sessions. */
	void (*resync)(void *ctx);
	/* The answer to the last session report. */
	void (*decided)(void *ctx, const json_t *decisions);
	/* Applies a document completely or not at all. Returns 0; RWY_EINVAL with why: refused;
	 * RWY_EAGAIN: try again soon. text: the document as received, to be stored. */
	int (*apply)(void *ctx, const json_t *doc, const char *text, char why[AGENT_WHY]);
	void (*log)(void *ctx, int level, const char *msg);
};

struct agent_cfg {
	const char *const *url; /* https://host[:port] */
	unsigned urls;
	const char *ca, *certificate, *key; /* files */
	const char *name, *boot_id;
	const char *member;  /* of a pair; NULL or "": it is none */
	uint64_t generation; /* generation that runs already; 0: none */
	uint32_t links_ms;   /* interval of link reports */
	uint32_t poll_ms;    /* longest wait of a poll */
	/* delay after all controllers failed; doubles up to the maximum */
	uint32_t backoff_ms, backoff_max_ms;
};
/* Sets the intervals; the caller fills in the rest. */
void agent_cfg_default(struct agent_cfg *cfg);

enum agent_state { AGENT_AWAY, AGENT_REGISTERING, AGENT_REGISTERED };

#define AGENT_COUNTERS(X)                                                                                    \
	X(registrations, "registrations that a controller accepted")                                         \
	X(renewals, "leases renewed")                                                                        \
	X(lease_lost, "leases that the controller no longer knew")                                           \
	X(failures, "requests to controllers without a valid answer")                                        \
	X(documents, "documents applied")                                                                    \
	X(documents_refused, "documents refused as a whole")                                                 \
	X(session_reports, "session reports that the controller accepted")                                   \
	X(sessions_told, "sessions in them")                                                                 \
	X(decisions, "decisions that came back")                                                             \
	X(link_reports, "link reports that the controller accepted")                                         \
	X(reports_refused, "reports that the controller refused: they are lost")

struct agent_status {
	enum agent_state state;
	char url[128];                /* address of the controller in use, or tried */
	uint32_t ttl_ms;              /* time to live of the lease */
	uint64_t generation, refused; /* running; refused since; 0: none */
	/* ms since: this state, the lease; ms until: the next try */
	uint64_t since_ms, renewed_ms, retry_ms;
	char why[AGENT_WHY];     /* reason of the refusal */
	char problem[AGENT_WHY]; /* last failure */
#define X(f, s) uint64_t f;
	AGENT_COUNTERS(X)
#undef X
};

struct agent;
/* cfg is copied, but not the texts in it. RWY_ENOMEM. Free after agent_run() has returned. */
RWY_MUST_CHECK int agent_new(
    struct agent **out, const struct agent_cfg *cfg, const struct agent_ops *ops, void *ctx);
void agent_free(struct agent *a);
void agent_run(struct agent *a); /* returns after agent_stop */
void agent_stop(struct agent *a);
/* Copies the state. Any thread. */
void agent_status(struct agent *a, struct agent_status *out);

#endif
