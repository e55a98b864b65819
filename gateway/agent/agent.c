/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked of the controller, when, and what follows from its answers: see agent.h. */
#include "gateway/agent/agent.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gateway/agent/http.h"
#include "base/log.h"
#include "base/random.h"

#define ANSWER_MAX    (1u << 20)
#define DOCUMENT_MAX  (32u << 20) /* one of DOCUMENT_ASSIGNMENTS_MAX has 20 MB */
#define VALUES_MAX    2000000u    /* of JSON: each takes up to 300 bytes */
#define REQUEST_MS    5000
#define POLL_GRACE_MS 10000
#define SESSIONS_MS   200 /* not more often */
#define REPOLL_MS     200
#define NEXT_MS       50   /* the next controller is tried so soon */
#define AGAIN_MS      5000 /* after a document that could not be read at all */
#define SOON_MS       1000 /* a worker was not reached */
#define IDLE_MS       1000
#define TTL_MIN       150
#define TTL_MAX       3600000

uint64_t agent_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static void log_agent(const struct agent *a, int level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void log_agent(const struct agent *a, int level, const char *fmt, ...)
{
	char msg[AGENT_WHY + 256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	a->ops->log(a->ctx, level, msg);
}

/* Something between half of it and all of it: many gateways must not come back at once. */
static uint64_t jitter(struct agent *a, uint64_t ms)
{
	a->random = a->random * 1664525u + 1013904223u;
	return ms / 2 + (ms / 2 + 1) * (a->random >> 8) / (1u << 24);
}

#define COUNT(a, f)                                                                                          \
	do {                                                                                                 \
		pthread_mutex_lock(&(a)->lock);                                                              \
		(a)->st.f++;                                                                                 \
		pthread_mutex_unlock(&(a)->lock);                                                            \
	} while (0)

static void state_set(struct agent *a, enum agent_state s)
{
	pthread_mutex_lock(&a->lock);
	if (a->st.state != s)
		a->since = agent_ms();
	a->st.state = s;
	snprintf(a->st.url, sizeof(a->st.url), "%s", a->cfg.url[a->at]);
	pthread_mutex_unlock(&a->lock);
}

static void retry(struct agent *a, uint64_t ms)
{
	pthread_mutex_lock(&a->lock);
	a->retry_at = agent_ms() + ms;
	pthread_mutex_unlock(&a->lock);
}

/* --- failure ------------------------------------------------------------------------------------------- */

static uint64_t backoff(struct agent *a)
{
	unsigned round = a->failed / a->cfg.urls;
	uint64_t ms = a->cfg.backoff_ms;

	if (a->failed % a->cfg.urls)
		return jitter(a, 2 * NEXT_MS);
	while (--round && ms < a->cfg.backoff_max_ms)
		ms *= 2;
	return jitter(a, ms < a->cfg.backoff_max_ms ? ms : a->cfg.backoff_max_ms);
}

/* This controller is of no use now: the next one. What runs goes on. */
static void give_up(struct agent *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void give_up(struct agent *a, const char *fmt, ...)
{
	char why[AGENT_WHY];
	va_list ap;
	bool told;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	agent_req_end(a, &a->req);
	agent_req_end(a, &a->poll);
	a->failed++;
	pthread_mutex_lock(&a->lock);
	told = a->st.state != AGENT_REGISTERED && !strcmp(a->st.problem, why);
	memcpy(a->st.problem, why, sizeof(why));
	a->st.failures++;
	pthread_mutex_unlock(&a->lock);
	log_agent(a, told ? GW_LOG_DEBUG : GW_LOG_WARNING, "controller=%s %s", a->cfg.url[a->at], why);
	a->at = (a->at + 1) % a->cfg.urls;
	retry(a, backoff(a));
	state_set(a, AGENT_AWAY);
}

static const char *name_of(enum agent_what what)
{
	switch (what) {
	case REQ_REGISTER:
		return "registration";
	case REQ_LEASE:
		return "lease";
	case REQ_SESSIONS:
		return "session report";
	case REQ_LINKS:
		return "link report";
	case REQ_DOCUMENT:
		return "document";
	case REQ_NONE:
		break;
	}
	return "";
}

/* --- asking ------------------------------------------------------------------------------------------- */

static void request_start(
    struct agent *a, enum agent_what what, const char *method, const char *sub, json_t *body)
{
	char path[160];

	snprintf(path, sizeof(path), "/v1/gateways/%s%s", a->cfg.name, sub);
	if (!body || !agent_req_begin(a, &a->req, what, method, path, body, REQUEST_MS))
		give_up(a, "%s: out of memory", name_of(what));
}

static void ask_register(struct agent *a)
{
	json_t *body = a->ops->registration(a->ctx);

	state_set(a, AGENT_REGISTERING);
	if (body)
		json_object_set_new(body, "boot_id", json_string(a->cfg.boot_id));
	request_start(a, REQ_REGISTER, "PUT", "", body);
}

static void ask_lease(struct agent *a)
{
	json_t *body = json_pack("{s:s, s:s, s:I, s:o}", "lease", a->lease, "boot_id", a->cfg.boot_id,
	    "generation_running", (json_int_t)(a->unknown ? 0 : a->st.generation), "load",
	    a->ops->load(a->ctx));

	if (body && a->st.refused)
		json_object_set_new(body, "generation_refused", json_integer((json_int_t)a->st.refused));
	if (body && *a->st.why)
		json_object_set_new(body, "refusal", json_string(a->st.why));
	request_start(a, REQ_LEASE, "POST", "/lease", body);
}

static void ask_document(struct agent *a)
{
	char path[200];

	snprintf(path, sizeof(path), "/v1/gateways/%s/document?after=%" PRIu64 "&wait_ms=%" PRIu32,
	    a->cfg.name, a->after, a->cfg.poll_ms);
	if (!agent_req_begin(a, &a->poll, REQ_DOCUMENT, "GET", path, NULL, a->cfg.poll_ms + POLL_GRACE_MS))
		give_up(a, "document: out of memory");
}

/* True: something to tell is on its way. */
static bool ask_reports(struct agent *a, uint64_t now)
{
	json_t *list = NULL;

	if (now >= a->sessions_at) {
		list = a->ops->sessions(a->ctx);
		a->sessions_at = now + SESSIONS_MS;
		if (list) {
			request_start(a, REQ_SESSIONS, "POST", "/sessions",
			    json_pack("{s:s, s:o}", "lease", a->lease, "sessions", list));
			return true;
		}
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
	if (now >= a->lease_at)
		ask_lease(a);
	else
		(void)ask_reports(a, now);
}

/* --- answers ------------------------------------------------------------------------------------------- */

/* A number from lo to hi; false: it is none. */
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
	a->lease_at = now + ttl_ms / 3 - ttl_ms / 30 + jitter(a, ttl_ms / 30);
}

static void on_registered(struct agent *a, const json_t *j, uint64_t now)
{
	const char *lease = json_string_value(json_object_get(j, "lease"));
	uint64_t ttl, generation;

	if (!lease || strlen(lease) != 16 || !number(j, "ttl_ms", 1, TTL_MAX, &ttl) ||
	    !number(j, "generation", 0, INT64_MAX, &generation)) {
		give_up(a, "registration: the answer is not what it must be");
		return;
	}
	memcpy(a->lease, lease, 17);
	a->after = a->st.generation;
	if (generation < a->after) /* it has forgotten what it issued */
		a->after = 0;
	a->unknown = generation < a->st.generation;
	state_set(a, AGENT_REGISTERED);
	COUNT(a, registrations);
	log_agent(a, GW_LOG_NOTICE, "controller=%s registered generation=%" PRIu64 " running=%" PRIu64,
	    a->cfg.url[a->at], generation, a->st.generation);
	lease_taken(a, ttl < TTL_MIN ? TTL_MIN : ttl, now);
	a->lease_at = now; /* it hears at once what runs */
	a->poll_at = a->sessions_at = now;
	a->links_at = now + jitter(a, a->cfg.links_ms);
	a->ops->resync(a->ctx);
}

static void on_renewed(struct agent *a, const json_t *j, uint64_t now)
{
	uint64_t ttl, generation;

	if (!number(j, "ttl_ms", 1, TTL_MAX, &ttl) || !number(j, "generation", 0, INT64_MAX, &generation)) {
		give_up(a, "lease: the answer is not what it must be");
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
	log_agent(a, GW_LOG_ERROR, "document generation=%" PRIu64 " refused, nothing has changed: %s",
	    generation, why);
	a->lease_at = 0; /* the controller hears of it at once */
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
		log_agent(a, GW_LOG_WARNING, "document generation=%" PRIu64 " not now: %s", generation, why);
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
	a->sessions_at = 0; /* there may be more */
}

/* It does not know us, or not any more: again, at the same controller. */
static void register_again(struct agent *a, const char *why)
{
	agent_req_end(a, &a->req);
	agent_req_end(a, &a->poll);
	COUNT(a, lease_lost);
	log_agent(a, GW_LOG_NOTICE, "controller=%s registering again: %s", a->cfg.url[a->at], why);
	if (++a->failed > 3) { /* it takes us up, and does not know us then */
		give_up(a, "lease: refused again and again: %s", why);
		return;
	}
	retry(a, a->failed > 1 ? jitter(a, a->cfg.backoff_ms) : 0);
	state_set(a, AGENT_AWAY);
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
	if (what == REQ_DOCUMENT && status == 409) { /* it never issued that one */
		a->after = 0;
		a->unknown = true;
		a->poll_at = agent_ms() + REPOLL_MS;
	} else if (what != REQ_REGISTER && (status == 409 || status == 404)) {
		register_again(a, why);
	} else if ((what == REQ_SESSIONS || what == REQ_LINKS) && (status == 400 || status == 413)) {
		COUNT(a, reports_refused);
		log_agent(a, GW_LOG_ERROR, "controller=%s %s refused (%ld): %.300s", a->cfg.url[a->at],
		    name_of(what), status, why);
	} else {
		give_up(a, "%s: status %ld: %.300s", name_of(what), status, why);
	}
}

/* A text of a few megabytes can be of so many values that they fill the memory. */
static bool too_many(const char *text, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += text[i] == ',' || text[i] == '{' || text[i] == '[';
	return n > VALUES_MAX;
}

static void answered(struct agent *a, struct agent_req *r, CURLcode rc)
{
	const enum agent_what what = r->what;
	const uint64_t now = agent_ms();
	char *text = r->answer, err[CURL_ERROR_SIZE];
	const bool too_large = r->too_large || too_many(text, r->len);
	json_t *j = NULL;
	long status = 0;

	curl_easy_getinfo(r->curl, CURLINFO_RESPONSE_CODE, &status);
	snprintf(err, sizeof(err), "%s", *r->err ? r->err : curl_easy_strerror(rc));
	if (rc == CURLE_OK && r->len && !too_large)
		j = json_loadb(text, r->len, JSON_REJECT_DUPLICATES, NULL);
	r->answer = NULL;
	agent_req_end(a, r);
	if (rc != CURLE_OK || too_large) {
		give_up(a, "%s: %s", name_of(what), too_large ? "the answer is too large" : err);
	} else if (what == REQ_DOCUMENT && status == 304) {
		a->poll_at = now + (a->cfg.poll_ms < REPOLL_MS ? a->cfg.poll_ms : REPOLL_MS);
	} else if (status != 200) {
		bad(a, what, status, j);
	} else if (what == REQ_DOCUMENT && !json_is_object(j)) {
		refuse(a, 0, "expected a JSON object");
		a->poll_at = now + AGAIN_MS;
	} else if (!json_is_object(j)) {
		give_up(a, "%s: the answer is no JSON object", name_of(what));
	} else {
		good(a, what, j, text, now);
	}
	json_decref(j);
	free(text);
}

/* --- the loop ------------------------------------------------------------------------------------------ */

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
		CURLMsg *m;
		int n;

		due(a, agent_ms());
		curl_multi_perform(a->multi, &n);
		while ((m = curl_multi_info_read(a->multi, &n))) {
			struct agent_req *r = NULL;
			CURLcode rc = m->data.result;

			if (m->msg != CURLMSG_DONE)
				continue;
			curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &r);
			if (r->what != REQ_NONE)
				answered(a, r, rc);
		}
		curl_multi_poll(a->multi, NULL, 0, wait_ms(a, agent_ms()), NULL);
	}
}

void agent_stop(struct agent *a)
{
	atomic_store(&a->stop, true);
	curl_multi_wakeup(a->multi);
}

void agent_wake(struct agent *a)
{
	curl_multi_wakeup(a->multi);
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

/* --- creation ------------------------------------------------------------------------------------------ */

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
	state_set(a, AGENT_AWAY);
	curl_global_init(CURL_GLOBAL_DEFAULT);
	a->multi = curl_multi_init();
	a->headers = curl_slist_append(NULL, "Content-Type: application/json");
	a->headers = curl_slist_append(a->headers, "Expect:");
	if (a->multi && a->headers && agent_req_new(a, &a->req, ANSWER_MAX) &&
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
	agent_req_free(a, &a->req);
	agent_req_free(a, &a->poll);
	curl_slist_free_all(a->headers);
	if (a->multi)
		curl_multi_cleanup(a->multi);
	pthread_mutex_destroy(&a->lock);
	free(a);
}
