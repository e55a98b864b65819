/* SPDX-License-Identifier: Apache-2.0 */
/* Processes the controller's answers: see agent.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "gateway/agent/request.h"

#define VALUES_MAX 2000000u /* values in a JSON text: each takes up to 300 bytes */
#define REPOLL_MS  200
#define AGAIN_MS   5000 /* after an unreadable document */
#define SOON_MS    1000 /* after a worker did not answer */
#define TTL_MIN    150
#define TTL_MAX    3600000

#define COUNT(a, f)                                                                                          \
	do {                                                                                                 \
		pthread_mutex_lock(&(a)->lock);                                                              \
		(a)->st.f++;                                                                                 \
		pthread_mutex_unlock(&(a)->lock);                                                            \
	} while (0)

/* Reads a number from lo to hi. False: malformed. */
static bool number(const json_t *o, const char *key, uint64_t lo, uint64_t hi, uint64_t *out)
{
	const json_t *v = json_object_get(o, key);

	if (!json_is_integer(v) || json_integer_value(v) < 0)
		return false;
	*out = (uint64_t)json_integer_value(v);
	return *out >= lo && *out <= hi;
}

static void lease_taken(struct agent *a, uint64_t ttl_ms, uint64_t now)
{
	pthread_mutex_lock(&a->lock);
	a->st.ttl_ms = (uint32_t)ttl_ms;
	a->renewed = now;
	pthread_mutex_unlock(&a->lock);
	a->lease_at = now + ttl_ms / 3 - ttl_ms / 30 + agent_jitter(a, ttl_ms / 30);
}

static void on_registered(struct agent *a, const json_t *j, uint64_t now)
{
	const char *lease = json_string_value(json_object_get(j, "lease"));
	uint64_t ttl, generation;

	if (!lease || strlen(lease) != 16 || !number(j, "ttl_ms", 1, TTL_MAX, &ttl) ||
	    !number(j, "generation", 0, INT64_MAX, &generation)) {
		agent_give_up(a, "registration: the answer is invalid");
		return;
	}
	memcpy(a->lease, lease, 17);
	a->after = a->st.generation;
	if (generation < a->after) /* the controller has forgotten what it issued */
		a->after = 0;
	a->unknown = generation < a->st.generation;
	agent_state_set(a, AGENT_REGISTERED);
	COUNT(a, registrations);
	agent_log(a, GW_LOG_NOTICE, "controller=%s registered generation=%" PRIu64 " running=%" PRIu64,
	    a->cfg.url[a->at], generation, a->st.generation);
	lease_taken(a, ttl < TTL_MIN ? TTL_MIN : ttl, now);
	a->lease_at = now; /* report the running generation at once */
	a->poll_at = a->sessions_at = now;
	a->links_at = now + agent_jitter(a, a->cfg.links_ms);
	a->ops->resync(a->ctx);
}

static void on_renewed(struct agent *a, const json_t *j, uint64_t now)
{
	uint64_t ttl, generation;

	if (!number(j, "ttl_ms", 1, TTL_MAX, &ttl) || !number(j, "generation", 0, INT64_MAX, &generation)) {
		agent_give_up(a, "lease: the answer is invalid");
		return;
	}
	a->failed = 0;
	COUNT(a, renewals);
	lease_taken(a, ttl < TTL_MIN ? TTL_MIN : ttl, now);
}

static void refuse(struct agent *a, uint64_t generation, const char *why)
{
	pthread_mutex_lock(&a->lock);
	a->st.documents_refused++;
	a->st.refused = generation;
	snprintf(a->st.why, sizeof(a->st.why), "%s", why);
	pthread_mutex_unlock(&a->lock);
	agent_log(a, GW_LOG_ERROR, "document generation=%" PRIu64 " refused, nothing has changed: %s",
	    generation, why);
	a->lease_at = 0; /* report it at once */
}

static void on_document(struct agent *a, const json_t *j, const char *text, uint64_t now)
{
	uint64_t generation = 0;
	char why[AGENT_WHY] = "";
	int rc;

	if (!number(j, "generation", 1, INT64_MAX, &generation)) {
		refuse(a, 0, "expected an object with `generation`, a number above 0");
		a->poll_at = now + AGAIN_MS;
		return;
	}
	if (a->after && generation <= a->after) {
		snprintf(why, sizeof(why), "expected a generation above %" PRIu64 ", found %" PRIu64,
		    a->after, generation);
		refuse(a, 0, why);
		a->poll_at = now + AGAIN_MS;
		return;
	}
	rc = a->ops->apply(a->ctx, j, text, why);
	if (rc == RWY_EAGAIN || rc == RWY_ENOMEM) {
		agent_log(a, GW_LOG_WARNING, "document generation=%" PRIu64 " not now: %s", generation, why);
		a->poll_at = now + SOON_MS;
		return;
	}
	a->after = generation;
	if (rc) {
		refuse(a, generation, why);
		return;
	}
	pthread_mutex_lock(&a->lock);
	a->st.generation = generation;
	a->st.refused = 0;
	*a->st.why = 0;
	a->st.documents++;
	pthread_mutex_unlock(&a->lock);
	a->unknown = false;
	a->lease_at = 0;
}

static void on_sessions(struct agent *a, const json_t *j)
{
	const json_t *list = json_object_get(j, "decisions");

	pthread_mutex_lock(&a->lock);
	a->st.session_reports++;
	a->st.decisions += json_array_size(list);
	pthread_mutex_unlock(&a->lock);
	a->ops->decided(a->ctx, list);
	a->sessions_at = 0; /* more sessions may wait */
}

/* The controller does not know us, or no longer: register again at the same one. */
static void register_again(struct agent *a, const char *why)
{
	agent_req_end(&a->req);
	agent_req_end(&a->poll);
	COUNT(a, lease_lost);
	agent_log(a, GW_LOG_NOTICE, "controller=%s registering again: %s", a->cfg.url[a->at], why);
	if (++a->failed > 3) { /* it accepts registrations and then does not know us */
		agent_give_up(a, "lease: refused again and again: %s", why);
		return;
	}
	agent_retry(a, a->failed > 1 ? agent_jitter(a, a->cfg.backoff_ms) : 0);
	agent_state_set(a, AGENT_AWAY);
}

static void good(struct agent *a, enum agent_what what, const json_t *j, const char *text, uint64_t now)
{
	switch (what) {
	case REQ_REGISTER:
		on_registered(a, j, now);
		return;
	case REQ_LEASE:
		on_renewed(a, j, now);
		return;
	case REQ_SESSIONS:
		on_sessions(a, j);
		return;
	case REQ_LINKS:
		COUNT(a, link_reports);
		return;
	case REQ_DOCUMENT:
		on_document(a, j, text, now);
		return;
	case REQ_NONE:
		return;
	}
}

static void bad(struct agent *a, enum agent_what what, long status, const json_t *j)
{
	const char *why = json_string_value(json_object_get(j, "error"));

	why = why ? why : "it does not say why";
	if (what == REQ_DOCUMENT && status == 409) { /* it never issued that document */
		a->after = 0;
		a->unknown = true;
		a->poll_at = agent_ms() + REPOLL_MS;
	} else if (what != REQ_REGISTER && (status == 409 || status == 404)) {
		register_again(a, why);
	} else if ((what == REQ_SESSIONS || what == REQ_LINKS) && (status == 400 || status == 413)) {
		COUNT(a, reports_refused);
		agent_log(a, GW_LOG_ERROR, "controller=%s %s refused (%ld): %.300s", a->cfg.url[a->at],
		    agent_what_name(what), status, why);
	} else {
		agent_give_up(a, "%s: status %ld: %.300s", agent_what_name(what), status, why);
	}
}

/* A text of a few megabytes can have so many values that they fill the memory. */
static bool too_many(const char *text, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += text[i] == ',' || text[i] == '{' || text[i] == '[';
	return n > VALUES_MAX;
}

void agent_answered(
    struct agent *a, struct agent_req *r, enum rwy_http_fail fail, const struct rwy_http_answer *answer)
{
	const enum agent_what what = r->what;
	const uint64_t now = agent_ms();
	const bool too_large = fail == RWY_HTTP_TOO_LARGE || too_many(answer->body, answer->len);
	const long status = answer->status;
	char *text = rwy_http_take_body(r->http);
	json_t *j = NULL;

	if (fail == RWY_HTTP_OK && text && !too_large)
		j = json_loadb(text, answer->len, JSON_REJECT_DUPLICATES, NULL);
	r->what = REQ_NONE;
	if (fail != RWY_HTTP_OK || too_large) {
		agent_give_up(
		    a, "%s: %s", agent_what_name(what), too_large ? "the answer is too large" : answer->why);
	} else if (what == REQ_DOCUMENT && status == 304) {
		a->poll_at = now + (a->cfg.poll_ms < REPOLL_MS ? a->cfg.poll_ms : REPOLL_MS);
	} else if (status != 200) {
		bad(a, what, status, j);
	} else if (what == REQ_DOCUMENT && !json_is_object(j)) {
		refuse(a, 0, "expected a JSON object");
		a->poll_at = now + AGAIN_MS;
	} else if (!json_is_object(j)) {
		agent_give_up(a, "%s: the answer is no JSON object", agent_what_name(what));
	} else {
		good(a, what, j, text, now);
	}
	json_decref(j);
	free(text);
}
