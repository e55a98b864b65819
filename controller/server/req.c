/* SPDX-License-Identifier: Apache-2.0 */
/* Functions for handlers: replies, parameters, the body, changes of the store. http.c has the
 * requests themselves. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/server/req.h"
#include "controller/server/http.h"

#include "controller/state/change.h"

#define TRIES_MAX 100

static void reply_clear(struct ctlr_req *r)
{
	json_decref(r->json);
	free(r->text);
	r->json = NULL;
	r->text = NULL;
	r->data = NULL;
}

enum ctlr_outcome ctlr_req_fail(struct ctlr_req *r, unsigned status, const char *field, const char *fmt, ...)
{
	char text[384];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	reply_clear(r);
	r->status = status;
	r->json = json_pack("{s:s}", "error", text);
	if (!r->json) /* a client's text that is not UTF-8 */
		r->json = json_pack("{s:s}", "error", "refused");
	if (*field)
		json_object_set_new(r->json, "field", json_string(field));
	return REQ_DONE;
}

enum ctlr_outcome ctlr_req_reply(struct ctlr_req *r, unsigned status, json_t *json)
{
	reply_clear(r);
	r->status = status;
	r->json = json;
	return json ? REQ_DONE : ctlr_req_fail(r, 503, "", "out of memory");
}

enum ctlr_outcome ctlr_req_reply_revision(struct ctlr_req *r, unsigned status, uint64_t rev)
{
	return ctlr_req_reply(r, status, json_pack("{s:I}", "revision", (json_int_t)rev));
}

enum ctlr_outcome ctlr_req_bad_body(struct ctlr_req *r, const struct mdl_error *err)
{
	return ctlr_req_fail(r, 400, err->field, "%s%s%s", err->field, *err->field ? ": " : "", err->text);
}

bool ctlr_req_read(struct ctlr_req *r, const struct mdl_table *t, void *out, json_t **json)
{
	struct mdl_error err;
	json_t *j = mdl_parse(r->body ? r->body : "", r->len, &err);
	int rc = j ? mdl_read(j, t, out, &err) : RWY_EINVAL;

	if (rc)
		ctlr_req_bad_body(r, &err);
	if (json && !rc)
		*json = json_incref(j);
	json_decref(j);
	return !rc;
}

const char *ctlr_req_param(const struct ctlr_req *r, const char *name)
{
	for (unsigned i = 0; i < r->params; i++)
		if (!strcmp(r->param[i].name, name))
			return r->param[i].value;
	return NULL;
}

bool ctlr_req_number(
    struct ctlr_req *r, const char *name, uint64_t min, uint64_t max, uint64_t dflt, uint64_t *out)
{
	const char *s = ctlr_req_param(r, name);
	const size_t n = s ? strspn(s, "0123456789") : 0;

	*out = dflt;
	if (!s)
		return true;
	if (n && n < 20 && !s[n])
		*out = strtoull(s, NULL, 10);
	if (n && n < 20 && !s[n] && *out >= min && *out <= max)
		return true;
	ctlr_req_fail(r, 400, name, "%s: expected a number from %" PRIu64 " to %" PRIu64, name, min, max);
	return false;
}

bool ctlr_req_is_gateway(const struct ctlr_req *r, const char *gateway)
{
	if (r->who.role != ROLE_GATEWAY || !strcmp(r->who.name, gateway))
		return true;
	ctlr_req_fail((struct ctlr_req *)(uintptr_t)r, 403, "", "the certificate is %s's, not %s's",
	    r->who.name, gateway);
	return false;
}

/* --- changes ---------------------------------------------------------------------------------- */

struct pending {
	struct ctlr_req *r;
	ctlr_change_cb *then;
	ctlr_handler *next, *smaller;
	unsigned status;
};

/* The reply after a lost answer of the store. The change may still take effect, even if it is not
 * visible yet, so the text denies nothing. */
static const char *outcome_text(const struct ctlr_req *r)
{
	return r->unsure ? "it may have been done" : "nothing has changed";
}

static void reply_store_failed(struct ctlr_req *r, int rc)
{
	COUNT(r->c, store_errors);
	ctlr_req_fail(r, 503, "", "%s: %s", store_strerror(rc), outcome_text(r));
}

/* The handler refuses now, but an answer of the store was lost, and the earlier change may still
 * take effect. A DELETE that finds nothing has succeeded. */
static void deny_nothing(struct ctlr_req *r)
{
	char text[256];

	if (r->status == 404 && !strcmp(r->method, "DELETE")) {
		ctlr_req_reply_revision(r, 200, r->c->rev);
		return;
	}
	snprintf(text, sizeof(text), "%.255s", json_string_value(json_object_get(r->json, "error")));
	ctlr_req_fail(r, 503, "", "%s: it may have been done; now: %s", store_strerror(STORE_EUNSURE), text);
}

void ctlr_req_conclude(struct ctlr_req *r)
{
	if (r->unsure && r->status >= 400)
		deny_nothing(r);
	ctlr_req_finish(r);
}

void ctlr_req_run(struct ctlr_req *r)
{
	if (r->worker->server->stopping) { /* the watch may have ended: records can be old */
		ctlr_req_fail(r, 503, "", "the controller stops: %s", outcome_text(r));
		ctlr_req_finish(r);
		return;
	}
	r->status = 0;
	r->saw = r->c->rev;
	if (r->run(r->c, r) == REQ_DONE)
		ctlr_req_conclude(r);
}

/* Another change was first, or the answer was lost: the handler decides again when the watch has
 * caught up. */
static void retry_later(struct ctlr_req *r, int rc)
{
	if (++r->tries > TRIES_MAX) {
		ctlr_req_fail(r, 503, "", "%s again and again: try later", store_strerror(rc));
		ctlr_req_finish(r);
	} else if (r->c->rev > r->saw) {
		ctlr_req_run(r);
	} else {
		r->next = r->c->retry;
		r->c->retry = r;
	}
}

void ctlr_req_retry_all(struct ctlr *c, bool stop)
{
	struct ctlr_req *list = c->retry, *next;

	c->retry = NULL;
	for (struct ctlr_req *r = list; r; r = next) {
		next = r->next;
		r->next = NULL;
		if (!stop) {
			ctlr_req_run(r);
			continue;
		}
		ctlr_req_fail(r, 503, "", "the controller stops: %s", outcome_text(r));
		ctlr_req_finish(r);
	}
}

static void on_committed(void *ctx, int rc, uint64_t rev)
{
	struct pending *p = ctx;
	struct ctlr_req *r = p->r;
	ctlr_handler *next = rc == RWY_EINVAL ? p->smaller : p->next;

	if (rc == STORE_ECONFLICT || rc == STORE_EUNSURE) {
		free(p);
		/* a change before the requested one does not count */
		r->unsure |= rc == STORE_EUNSURE && !next;
		retry_later(r, rc);
		return;
	}
	if (next && (!rc || rc == RWY_EINVAL)) {
		free(p);
		if (next(r->c, r) == REQ_DONE)
			ctlr_req_conclude(r);
		return;
	}
	if (rc) {
		reply_store_failed(r, rc);
		if (rc == RWY_EINVAL)
			ctlr_req_fail(r, 413, "", "%s", store_strerror(rc));
	} else if (p->then && rev > r->c->rev) { /* the watch hangs: the state is older */
		ctlr_req_fail(r, 503, "", "the change is stored, but not visible here yet: ask again");
	} else if (p->then) {
		p->then(r, 0, rev);
	} else {
		ctlr_req_reply_revision(r, p->status, rev);
	}
	free(p);
	ctlr_req_finish(r);
}

static enum ctlr_outcome submit_change(struct ctlr_req *r, struct ctlr_change *ch, struct pending how)
{
	struct pending *p = ch ? malloc(sizeof(*p)) : NULL;

	if (!p) {
		ctlr_change_cancel(ch);
		return ctlr_req_fail(r, 503, "", "out of memory");
	}
	*p = how;
	p->r = r;
	ctlr_change_set(ch, on_committed, p);
	if (ctlr_change_submit(r->c, ch))
		return REQ_WAIT; /* the change owns p now */
	free(p);
	return ctlr_req_fail(r, 503, "", "too many changes are waiting for the store");
}

enum ctlr_outcome ctlr_req_commit(struct ctlr_req *r, struct ctlr_change *ch, unsigned status)
{
	return submit_change(r, ch, (struct pending){.status = status});
}

enum ctlr_outcome ctlr_req_commit_then(struct ctlr_req *r, struct ctlr_change *ch, ctlr_change_cb *then)
{
	return submit_change(r, ch, (struct pending){.status = 200, .then = then});
}

enum ctlr_outcome ctlr_req_commit_next(struct ctlr_req *r, struct ctlr_change *ch, ctlr_handler *next)
{
	return submit_change(r, ch, (struct pending){.status = 200, .next = next});
}

enum ctlr_outcome ctlr_req_commit_or(
    struct ctlr_req *r, struct ctlr_change *ch, unsigned status, ctlr_handler *smaller)
{
	return submit_change(r, ch, (struct pending){.status = status, .smaller = smaller});
}
