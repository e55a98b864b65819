/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to the controller, and their times: see agent.h. answer.c processes the answers. */
#include "gateway/agent/agent.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/agent/request.h"
#include "base/log.h"
#include "base/random.h"

#define ANSWER_MAX    (1u << 20)
#define DOCUMENT_MAX  (32u << 20) /* a document with CONF_DOCUMENT_PAIRS_MAX has 20 MB */
#define REQUEST_MS    5000
#define POLL_GRACE_MS 10000
#define SESSIONS_MS   200 /* least interval of session reports */
#define IDLE_MS       1000

/* --- requests --------------------------------------------------------------------------------- */

static void request_start(
    struct agent *a, enum agent_what what, const char *method, const char *sub, json_t *body)
{
	char path[160];

	snprintf(path, sizeof(path), "/v1/gateways/%s%s", a->cfg.name, sub);
	if (!body || !agent_req_begin(a, &a->req, what, method, path, body, REQUEST_MS))
		agent_give_up(a, "%s: out of memory", agent_what_name(what));
}

static void ask_register(struct agent *a)
{
	json_t *body = a->ops->registration(a->ctx);

	agent_state_set(a, AGENT_REGISTERING);
	if (body)
		json_object_set_new(body, "boot_id", json_string(a->cfg.boot_id));
	request_start(a, REQ_REGISTER, "PUT", "", body);
}

static void ask_lease(struct agent *a)
{
	json_t *body = json_pack("{s:s, s:s, s:I, s:o}", "lease", a->lease, "boot_id", a->cfg.boot_id,
	    "generation_running", (json_int_t)(a->unknown ? 0 : a->st.generation), "load",
	    a->ops->load(a->ctx));
	json_t *pair = a->ops->pair ? a->ops->pair(a->ctx) : NULL;

	if (pair)
		json_object_set_new(body, "pair", pair);
	if (body && a->st.refused)
		json_object_set_new(body, "generation_refused", json_integer((json_int_t)a->st.refused));
	if (body && *a->st.why)
		json_object_set_new(body, "refusal", json_string(a->st.why));
	request_start(a, REQ_LEASE, "POST", "/lease", body);
}

static void ask_document(struct agent *a)
{
	const bool one_of_two = a->cfg.member && *a->cfg.member;
	char path[240];

	snprintf(path, sizeof(path), "/v1/gateways/%s/document?after=%" PRIu64 "&wait_ms=%" PRIu32 "%s%s",
	    a->cfg.name, a->after, a->cfg.poll_ms, one_of_two ? "&member=" : "",
	    one_of_two ? a->cfg.member : "");
	if (!agent_req_begin(a, &a->poll, REQ_DOCUMENT, "GET", path, NULL, a->cfg.poll_ms + POLL_GRACE_MS))
		agent_give_up(a, "document: out of memory");
}

/* Returns true when a report is being sent. */
static bool ask_sessions(struct agent *a)
{
	bool last = false;
	uint64_t part = 0;
	json_t *list = a->ops->sessions(a->ctx, &part, &last), *body;

	if (!list)
		return false;
	body = json_pack("{s:s, s:o}", "lease", a->lease, "sessions", list);
	if (body && part)
		json_object_update_new(
		    body, json_pack("{s:I, s:b}", "all_part", (json_int_t)part, "all_last", last));
	request_start(a, REQ_SESSIONS, "POST", "/sessions", body);
	return true;
}

/* Returns true when a report is being sent. */
static bool ask_reports(struct agent *a, uint64_t now)
{
	json_t *list = NULL;

	if (now >= a->sessions_at) {
		a->sessions_at = now + SESSIONS_MS;
		if (ask_sessions(a))
			return true;
	}
	if (now >= a->links_at) {
		list = a->ops->links(a->ctx);
		a->links_at = now + a->cfg.links_ms;
		if (list) {
			request_start(a, REQ_LINKS, "POST", "/links",
			    json_pack("{s:s, s:o}", "lease", a->lease, "links", list));
			return true;
		}
	}
	return false;
}

static void due(struct agent *a, uint64_t now)
{
	if (a->st.state == AGENT_AWAY) {
		if (now >= a->retry_at)
			ask_register(a);
		return;
	}
	if (a->st.state != AGENT_REGISTERED)
		return;
	if (a->poll.what == REQ_NONE && now >= a->poll_at)
		ask_document(a);
	if (a->st.state != AGENT_REGISTERED || a->req.what != REQ_NONE)
		return;
	if (now >= a->sessions_at && a->ops->pair_news && a->ops->pair_news(a->ctx))
		a->lease_at = 0; /* before sessions: it may serve since now */
	if (now >= a->lease_at)
		ask_lease(a);
	else
		(void)ask_reports(a, now);
}

/* --- loop ------------------------------------------------------------------------------------ */

static int wait_ms(const struct agent *a, uint64_t now)
{
	uint64_t at = now + IDLE_MS;

	if (a->st.state == AGENT_AWAY && a->retry_at < at)
		at = a->retry_at;
	if (a->st.state == AGENT_REGISTERED) {
		if (a->req.what == REQ_NONE) {
			at = a->lease_at < at ? a->lease_at : at;
			at = a->links_at < at ? a->links_at : at;
			at = a->sessions_at < at ? a->sessions_at : at;
		}
		if (a->poll.what == REQ_NONE && a->poll_at < at)
			at = a->poll_at;
	}
	return at > now ? (int)(at - now) : 0;
}

void agent_run(struct agent *a)
{
	while (!atomic_load(&a->stop)) {
		struct rwy_http_answer answer;
		enum rwy_http_fail fail;
		struct rwy_http *h;

		due(a, agent_ms());
		while ((h = rwy_http_done(a->loop, &fail, &answer)))
			agent_answered(a, h == a->poll.http ? &a->poll : &a->req, fail, &answer);
		rwy_http_loop_wait(a->loop, wait_ms(a, agent_ms()));
	}
}

void agent_stop(struct agent *a)
{
	atomic_store(&a->stop, true);
	rwy_http_loop_wake(a->loop);
}

void agent_status(struct agent *a, struct agent_status *out)
{
	const uint64_t now = agent_ms();

	pthread_mutex_lock(&a->lock);
	*out = a->st;
	out->since_ms = now - a->since;
	out->renewed_ms = a->renewed ? now - a->renewed : 0;
	out->retry_ms = a->st.state == AGENT_AWAY && a->retry_at > now ? a->retry_at - now : 0;
	pthread_mutex_unlock(&a->lock);
}

/* --- creation -------------------------------------------------------------------------------- */

void agent_cfg_default(struct agent_cfg *cfg)
{
	*cfg = (struct agent_cfg){
	    .links_ms = 5000, .poll_ms = 25000, .backoff_ms = 500, .backoff_max_ms = 30000};
}

int agent_new(struct agent **out, const struct agent_cfg *cfg, const struct agent_ops *ops, void *ctx)
{
	struct agent *a = calloc(1, sizeof(*a));

	if (!a)
		return RWY_ENOMEM;
	a->cfg = *cfg;
	a->ops = ops;
	a->ctx = ctx;
	pthread_mutex_init(&a->lock, NULL);
	a->random = (uint32_t)base_random64();
	a->st.generation = a->after = cfg->generation;
	a->since = agent_ms();
	agent_state_set(a, AGENT_AWAY);
	if (rwy_http_loop_new(&a->loop) == 0 && agent_req_new(a, &a->req, ANSWER_MAX) &&
	    agent_req_new(a, &a->poll, DOCUMENT_MAX)) {
		*out = a;
		return 0;
	}
	agent_free(a);
	return RWY_ENOMEM;
}

void agent_free(struct agent *a)
{
	if (!a)
		return;
	rwy_http_free(a->req.http);
	rwy_http_free(a->poll.http);
	rwy_http_loop_free(a->loop);
	pthread_mutex_destroy(&a->lock);
	free(a);
}
