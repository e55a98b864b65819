/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/agent/watch.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/http.h"
#include "base/log.h"
#include "base/random.h"
#include "shim/agent/redirects.h"

#define ANSWER_MAX  (8u << 20) /* 1024 prefixes of 16 relays are 2.5 MB */
#define CONNECT_MS  3000
#define LEASE_MS    5000
#define POLL_MS     30000 /* longest wait; less with a short lease */
#define GRACE_MS    10000
#define REPOLL      (100 * RWY_MS) /* least time between two polls */
#define BACKOFF     (500 * RWY_MS)
#define BACKOFF_MAX (30 * RWY_SEC)
#define TTL_MIN_MS  150
#define TTL_MAX_MS  3600000
#define TTL_MS      30000 /* before a controller has said */

struct hagent_watch {
	const struct hagent_conf *conf;
	const struct hagent_watch_ops *ops;
	void *ctx;
	struct rwy_http_loop *loop;
	struct rwy_http *poll, *lease;
	bool polling, leasing; /* a request is under way */
	char boot_id[20];
	unsigned at;     /* index of the controller */
	unsigned failed; /* in a row */
	uint64_t after;  /* generation that was seen; 0: none */
	uint64_t running;
	uint64_t ttl_ms;
	bool held;
	rwy_time poll_at, lease_at, retry_at, renewed;
};

static const char *url_of(const struct hagent_watch *w)
{
	return w->conf->url[w->at];
}

int hagent_watch_new(
    struct hagent_watch **out, const struct hagent_conf *conf, const struct hagent_watch_ops *ops, void *ctx)
{
	static const char *const headers[] = {"Content-Type: application/json", NULL};
	const struct rwy_http_cfg cfg = {.ca = conf->ca,
	    .certificate = conf->certificate,
	    .key = conf->key,
	    .protocols = "https",
	    .headers = headers,
	    .connect_ms = CONNECT_MS,
	    .answer_max = ANSWER_MAX};
	struct hagent_watch *w = calloc(1, sizeof(*w));

	*out = NULL;
	if (!w)
		return RWY_ENOMEM;
	*w = (struct hagent_watch){.conf = conf, .ops = ops, .ctx = ctx, .ttl_ms = TTL_MS};
	snprintf(w->boot_id, sizeof(w->boot_id), "b%016" PRIx64, base_random64());
	if (rwy_http_loop_new(&w->loop) != 0 || rwy_http_new(&w->poll, &cfg) != 0 ||
	    rwy_http_new(&w->lease, &cfg) != 0) {
		hagent_watch_free(w);
		return RWY_ENOMEM;
	}
	*out = w;
	return 0;
}

void hagent_watch_free(struct hagent_watch *w)
{
	if (!w)
		return;
	rwy_http_free(w->poll);
	rwy_http_free(w->lease);
	if (w->loop)
		rwy_http_loop_free(w->loop);
	free(w);
}

/* --- failures --------------------------------------------------------------------------------- */

/* Between half and all of it, so that many hosts do not come back at once. */
static rwy_dur jitter(rwy_dur d)
{
	return d / 2 + base_random64() % (d / 2 + 1);
}

/* This controller is of no use: the next one, and after all of them a pause. */
static __attribute__((format(printf, 3, 4))) void give_up(
    struct hagent_watch *w, rwy_time now, const char *fmt, ...)
{
	char why[HAGENT_WHY];
	unsigned rounds;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	gw_log(GW_LOG_WARNING, "controller", "%s: %s", url_of(w), why);
	rwy_http_end(w->poll);
	rwy_http_end(w->lease);
	w->polling = w->leasing = false;
	w->at = (w->at + 1) % w->conf->urls;
	w->failed++;
	w->poll_at = w->lease_at = 0;
	if (w->failed % w->conf->urls)
		return;
	rounds = w->failed / w->conf->urls - 1;
	w->retry_at = now + jitter(rounds < 6 ? BACKOFF << rounds : BACKOFF_MAX);
}

/* --- answers ---------------------------------------------------------------------------------- */

static const char *said(const json_t *j)
{
	const char *why = json_string_value(json_object_get(j, "error"));

	return why ? why : "the answer is invalid";
}

static void on_lease(struct hagent_watch *w, const struct rwy_http_answer *a, const json_t *j, rwy_time now)
{
	const json_int_t ttl = json_integer_value(json_object_get(j, "ttl_ms"));

	if (a->status != 200 || ttl < TTL_MIN_MS || ttl > TTL_MAX_MS) {
		give_up(w, now, "lease: %ld: %s", a->status, said(j));
		return;
	}
	if (!w->held)
		gw_log(GW_LOG_NOTICE, "controller", "%s: lease of %lld ms as %s", url_of(w), (long long)ttl,
		    w->conf->name);
	w->held = true;
	w->failed = 0;
	w->ttl_ms = (uint64_t)ttl;
	w->renewed = now;
	w->lease_at = now + w->ttl_ms * RWY_MS / 3;
}

static void on_poll(struct hagent_watch *w, const struct rwy_http_answer *a, const json_t *j, rwy_time now)
{
	const json_t *generation = json_object_get(j, "generation");
	char why[HAGENT_WHY] = "";
	char *text;

	w->poll_at = now + REPOLL;
	if (a->status == 304)
		return;
	if (a->status != 200 || json_integer_value(generation) <= 0) {
		give_up(w, now, "redirects: %ld: %s", a->status, said(j));
		return;
	}
	/* Also one that is refused is not asked for again. */
	w->after = (uint64_t)json_integer_value(generation);
	text = hagent_redirects_text(j, why, sizeof(why));
	if (text && w->ops->policy(w->ctx, text, w->after, url_of(w), why)) {
		w->running = w->after;
		w->lease_at = now; /* the controller hears of it */
	} else {
		gw_log(GW_LOG_ERROR, "controller", "%s: generation %" PRIu64 " is not used: %s", url_of(w),
		    w->after, why);
	}
	free(text);
}

static void hear(struct hagent_watch *w, struct rwy_http *h, enum rwy_http_fail fail,
    const struct rwy_http_answer *a, rwy_time now)
{
	json_t *j = NULL;

	if (h == w->poll)
		w->polling = false;
	else
		w->leasing = false;
	if (fail != RWY_HTTP_OK) {
		give_up(w, now, "%s: %s", h == w->poll ? "redirects" : "lease", a->why);
		return;
	}
	if (a->len)
		j = json_loadb(a->body, a->len, JSON_REJECT_DUPLICATES, NULL);
	if (h == w->poll)
		on_poll(w, a, j, now);
	else
		on_lease(w, a, j, now);
	json_decref(j);
}

/* --- requests --------------------------------------------------------------------------------- */

static void lease_begin(struct hagent_watch *w, rwy_time now)
{
	json_t *o = json_pack("{s:s, s:s, s:s, s:I, s:o}", "boot_id", w->boot_id, "site", w->conf->site,
	    "version", RWY_VERSION, "generation", (json_int_t)w->running, "down", w->ops->down(w->ctx));
	char *body = o ? json_dumps(o, JSON_COMPACT) : NULL, url[512];

	snprintf(url, sizeof(url), "%s/v1/hosts/%s/lease", url_of(w), w->conf->name);
	w->leasing = body && rwy_http_begin(w->loop, w->lease, "POST", url, body, LEASE_MS) == 0;
	w->lease_at = now + w->ttl_ms * RWY_MS / 3; /* until the answer says */
	free(body);
	json_decref(o);
	if (!w->leasing)
		give_up(w, now, "lease: no memory");
}

static void poll_begin(struct hagent_watch *w, rwy_time now)
{
	const uint64_t wait = w->ttl_ms < POLL_MS ? w->ttl_ms : POLL_MS;
	char url[512];

	snprintf(url, sizeof(url), "%s/v1/redirects?site=%s&after=%" PRIu64 "&wait_ms=%" PRIu64, url_of(w),
	    w->conf->site, w->after, wait);
	w->polling = rwy_http_begin(w->loop, w->poll, "GET", url, NULL, (long)wait + GRACE_MS) == 0;
	if (!w->polling)
		give_up(w, now, "redirects: no memory");
}

void hagent_watch_turn(struct hagent_watch *w, rwy_time now)
{
	struct rwy_http_answer a;
	enum rwy_http_fail fail;
	struct rwy_http *h;

	if (!w->renewed)
		w->renewed = now;
	while ((h = rwy_http_done(w->loop, &fail, &a)))
		hear(w, h, fail, &a, now);
	if (w->held && !hagent_watch_holds(w, now)) {
		w->held = false;
		gw_log(GW_LOG_WARNING, "controller", "the lease has run out: no controller has renewed it");
	}
	if (now < w->retry_at)
		return;
	if (!w->leasing && now >= w->lease_at)
		lease_begin(w, now);
	if (!w->polling && now >= w->poll_at && now >= w->retry_at)
		poll_begin(w, now);
}

void hagent_watch_wait(struct hagent_watch *w, int most_ms)
{
	rwy_http_loop_wait(w->loop, most_ms);
}

bool hagent_watch_holds(const struct hagent_watch *w, rwy_time now)
{
	return rwy_since(w->renewed, now) < w->ttl_ms * RWY_MS;
}

void hagent_watch_news(struct hagent_watch *w)
{
	w->lease_at = 0;
}
