/* SPDX-License-Identifier: Apache-2.0 */
/* What handlers use: replies, parameters, the body, changes of the store. Not here: connections (http.c). */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/server/req.h"

#include "controller/state/change.h"

#define TRIES_MAX 100

static void reply_clear(struct req *r)
{
	json_decref(r->json);
	free(r->text);
	r->json = NULL;
	r->text = NULL;
	r->data = NULL;
}

enum outcome req_fail(struct req *r, unsigned status, const char *field, const char *fmt, ...)
{
	char text[384];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	reply_clear(r);
	r->status = status;
	r->json = json_pack("{s:s}", "error", text);
	if (!r->json) /* the text is from a client and not UTF-8 */
		r->json = json_pack("{s:s}", "error", "refused");
	if (*field)
		json_object_set_new(r->json, "field", json_string(field));
	return REQ_DONE;
}

enum outcome req_reply(struct req *r, unsigned status, json_t *json)
{
	reply_clear(r);
	r->status = status;
	r->json = json;
	return json ? REQ_DONE : req_fail(r, 503, "", "out of memory");
}

enum outcome req_done(struct req *r, unsigned status, uint64_t rev)
{
	return req_reply(r, status, json_pack("{s:I}", "revision", (json_int_t)rev));
}

enum outcome req_wrong(struct req *r, const struct mdl_error *err)
{
	return req_fail(r, 400, err->field, "%s%s%s", err->field, *err->field ? ": " : "", err->text);
}

bool req_read(struct req *r, const struct mdl_table *t, void *out, json_t **json)
{
	struct mdl_error err;
	json_t *j = mdl_parse(r->body ? r->body : "", r->len, &err);
	int rc = j ? mdl_read(j, t, out, &err) : RWY_EINVAL;

	if (rc)
		req_wrong(r, &err);
	if (json && !rc)
		*json = json_incref(j);
	json_decref(j);
	return !rc;
}

const char *req_param(const struct req *r, const char *name)
{
	for (unsigned i = 0; i < r->params; i++)
		if (!strcmp(r->param[i].name, name))
			return r->param[i].value;
	return NULL;
}

bool req_number(struct req *r, const char *name, uint64_t min, uint64_t max, uint64_t dflt, uint64_t *out)
{
	const char *s = req_param(r, name);
	const size_t n = s ? strspn(s, "0123456789") : 0;

	*out = dflt;
	if (!s)
		return true;
	if (n && n < 20 && !s[n])
		*out = strtoull(s, NULL, 10);
	if (n && n < 20 && !s[n] && *out >= min && *out <= max)
		return true;
	req_fail(r, 400, name, "%s: expected a number from %" PRIu64 " to %" PRIu64, name, min, max);
	return false;
}

bool req_is(const struct req *r, const char *gateway)
{
	if (r->who.role != ROLE_GATEWAY || !strcmp(r->who.name, gateway))
		return true;
	req_fail(
	    (struct req *)(uintptr_t)r, 403, "", "the certificate is %s's, not %s's", r->who.name, gateway);
	return false;
}

/* --- changes ---------------------------------------------------------------------------------- */

struct pending {
	struct req *r;
	change_cb *then;
	handler *next;
	unsigned status;
};

/* What a lost answer did may come to light at any time, even after we looked: then nothing is denied. */
static const char *so(const struct req *r)
{
	return r->unsure ? "it may have been done" : "nothing has changed";
}

void req_store_failed(struct req *r, int rc)
{
	COUNT(r->c, store_errors);
	req_fail(r, 503, "", "%s: %s", store_strerror(rc), so(r));
}

/* Refused now, after an answer was lost: that one may still take effect (but for what is gone as asked). */
static void not_refused(struct req *r)
{
	char text[256];

	if (r->status == 404 && !strcmp(r->method, "DELETE")) {
		req_done(r, 200, r->c->rev);
		return;
	}
	snprintf(text, sizeof(text), "%.255s", json_string_value(json_object_get(r->json, "error")));
	req_fail(r, 503, "", "%s: it may have been done; now: %s", store_strerror(STORE_EUNSURE), text);
}

void req_over(struct req *r)
{
	if (r->unsure && r->status >= 400)
		not_refused(r);
	req_finish(r);
}

void req_run_again(struct req *r)
{
	r->status = 0;
	r->saw = r->c->rev;
	if (r->run(r->c, r) == REQ_DONE)
		req_over(r);
}

/* Something else was first, or we do not know: what there is now decides, once we have seen it. */
static void again(struct req *r, int rc)
{
	if (++r->tries > TRIES_MAX) {
		req_fail(r, 503, "", "%s again and again: try later", store_strerror(rc));
		req_finish(r);
	} else if (r->c->rev > r->saw) {
		req_run_again(r);
	} else {
		r->next = r->c->again;
		r->c->again = r;
	}
}

void req_again_all(struct ctlr *c, bool stop)
{
	struct req *list = c->again, *next;

	c->again = NULL;
	for (struct req *r = list; r; r = next) {
		next = r->next;
		r->next = NULL;
		if (!stop) {
			req_run_again(r);
			continue;
		}
		req_fail(r, 503, "", "the controller stops: %s", so(r));
		req_finish(r);
	}
}

static void on_done(void *ctx, int rc, uint64_t rev)
{
	struct pending *p = ctx;
	struct req *r = p->r;
	handler *next = p->next;

	if (rc == STORE_ECONFLICT || rc == STORE_EUNSURE) {
		free(p);
		r->unsure |=
		    rc == STORE_EUNSURE && !next; /* what is before the change that was asked for is not it */
		again(r, rc);
		return;
	}
	if (rc) {
		req_store_failed(r, rc);
		if (rc == RWY_EINVAL)
			req_fail(r, 413, "", "%s", store_strerror(rc));
	} else if (next) {
		free(p);
		if (next(r->c, r) == REQ_DONE)
			req_over(r);
		return;
	} else if (p->then) {
		p->then(r, 0, rev);
	} else {
		req_done(r, p->status, rev);
	}
	free(p);
	req_finish(r);
}

static enum outcome commit(struct req *r, struct change *ch, unsigned status, change_cb *then, handler *next)
{
	struct pending *p = ch ? malloc(sizeof(*p)) : NULL;

	if (!p) {
		change_cancel(ch);
		return req_fail(r, 503, "", "out of memory");
	}
	*p = (struct pending){r, then, next, status};
	change_set(ch, on_done, p);
	if (change_submit(r->c, ch))
		return REQ_WAIT; /* p is the change's */
	free(p);
	return req_fail(r, 503, "", "too many changes are waiting for the store");
}

enum outcome req_commit(struct req *r, struct change *ch, unsigned status)
{
	return commit(r, ch, status, NULL, NULL);
}

enum outcome req_commit_then(struct req *r, struct change *ch, change_cb *then)
{
	return commit(r, ch, 200, then, NULL);
}

enum outcome req_commit_next(struct req *r, struct change *ch, handler *next)
{
	return commit(r, ch, 200, NULL, next);
}
