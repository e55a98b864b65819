/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any content of the store. The input has lines "KEY VALUE", or "KEY" for a deletion. Each is
 * applied as by the watch; then everything that depends on the state is made: documents, routes,
 * lists. A line "GET PATH" or "PUT PATH BODY", "POST", "DELETE" is a request, whose changes are
 * applied at once.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/fleet/fleet.h"
#include "controller/job/jobs.h"
#include "controller/state/event.h"
#include "controller/tables.h"
#include "base/log.h"

static struct ctlr_conf conf;
static const struct ctlr empty = {
    .conf = &conf, .ops = &ctlr_ops, .endpoints = ctlr_endpoints, .lock = PTHREAD_MUTEX_INITIALIZER};
static struct ctlr ctlr;
static rwy_time now = 1000 * RWY_SEC;

rwy_time ctlr_now(void)
{
	return now;
}

uint64_t ctlr_wall_ms(void)
{
	return 1700000000000 + now / RWY_MS;
}

/* --- replaces writer.c: a store that accepts everything at once ------------------------------- */

#define OPS 256

struct ctlr_change {
	struct ctlr_change *next;
	ctlr_change_cb *cb;
	void *ctx;
	char *key[OPS], *value[OPS];
	unsigned ops;
};

static struct ctlr_change *queue;

struct ctlr_change *ctlr_change_new(ctlr_change_cb *cb, void *ctx)
{
	struct ctlr_change *ch = calloc(1, sizeof(*ch));

	ctlr_change_set(ch, cb, ctx);
	return ch;
}

void ctlr_change_set(struct ctlr_change *ch, ctlr_change_cb *cb, void *ctx)
{
	ch->cb = cb;
	ch->ctx = ctx;
}

static void add(struct ctlr_change *ch, const char *key, char *value)
{
	if (ch->ops == OPS)
		abort(); /* no store accepts that */
	ch->key[ch->ops] = strdup(key);
	ch->value[ch->ops++] = value;
}

void ctlr_change_put(struct ctlr_change *ch, const char *key, json_t *value)
{
	char *text = json_dumps(value, JSON_COMPACT);

	if (!text)
		abort();
	add(ch, key, text);
	json_decref(value);
}

void ctlr_change_del(struct ctlr_change *ch, const char *key)
{
	add(ch, key, NULL);
}

void ctlr_change_cmp(struct ctlr_change *ch, const char *key, uint64_t mod_rev)
{
}

unsigned ctlr_change_ops(const struct ctlr_change *ch)
{
	return ch->ops;
}

bool ctlr_change_submit(struct ctlr *c, struct ctlr_change *ch)
{
	ch->next = queue;
	queue = ch;
	return true;
}

void ctlr_writer_free(struct ctlr *c)
{
}

static void apply(const char *key, const char *value, size_t len, uint64_t rev)
{
	const struct store_kv kv = {key, value, len, rev, rev, 0};

	ctlr_apply_record(&ctlr, &kv);
}

void ctlr_change_cancel(struct ctlr_change *ch)
{
	for (unsigned i = 0; ch && i < ch->ops; i++) {
		free(ch->key[i]);
		free(ch->value[i]);
	}
	free(ch);
}

static void take_all(void)
{
	struct ctlr_change *ch;

	ctlr_replica_renewed(&ctlr, now);
	for (unsigned i = 0; i < 20 && (ch = queue); i++) {
		queue = ch->next;
		ctlr.rev++;
		for (unsigned k = 0; k < ch->ops; k++)
			apply(ch->key[k], ch->value[k], ch->value[k] ? strlen(ch->value[k]) : 0, ctlr.rev);
		if (ch->cb)
			ch->cb(ch->ctx, 0, ctlr.rev);
		ctlr_change_cancel(ch);
	}
}

/* --- replaces http.c: a request --------------------------------------------------------------- */

static void req_end(struct ctlr_req *r)
{
	char *text = r->json ? json_dumps(r->json, JSON_COMPACT) : NULL;

	if ((r->json && !text) || !r->status)
		abort();
	free(text);
	ctlr_req_release(r);
	json_decref(r->json);
	free(r->text);
	free(r->body);
	free(r);
}

void ctlr_req_finish(struct ctlr_req *r)
{
	req_end(r);
}

void ctlr_req_resume(struct ctlr_req *r)
{
	abort(); /* polls do not occur here */
}

/* Adds one parameter, unless the request would wait because of it. */
static void param(struct ctlr_req *r, const char *text)
{
	const char *is = strchr(text, '=');

	if (!is || is[1] == 0 || !strncmp(text, "wait_ms", 7))
		return;
	snprintf(r->param[0].name, sizeof(r->param[0].name), "%.*s", (int)(is - text), text);
	snprintf(r->param[0].value, sizeof(r->param[0].value), "%s", is + 1);
	r->params = 1;
}

static void request(const char *method, const char *path, const char *body)
{
	struct ctlr_req *r = calloc(1, sizeof(*r));
	const struct ctlr_endpoint *e;
	char allow[64], url[256];
	bool other;

	snprintf(url, sizeof(url), "%.*s", (int)strcspn(path, "?"), path);
	r->c = &ctlr;
	r->method = method;
	r->who.role = ROLE_OPERATOR;
	e = ctlr_endpoint_find(method, url, r, &other, allow);
	if (!e) {
		free(r);
		return;
	}
	if (strchr(path, '?'))
		param(r, strchr(path, '?') + 1);
	r->body = strdup(body);
	r->len = strlen(body);
	r->run = e->run;
	if (e->run(&ctlr, r) == REQ_DONE)
		req_end(r);
}

/* --- all that depends on the state ------------------------------------------------------------ */

static void look(void)
{
	static const char *const path[] = {
	    "gateways", "tunnels", "sessions", "links", "sites", "tenants", "jobs"};
	struct ctlr_gateway *g;
	char url[64];

	CTLR_MAP_EACH(&ctlr.gateways, g)
	{
		json_t *j = ctlr_document_json(&ctlr, g);

		if (!j)
			abort();
		json_decref(j);
	}
	for (unsigned i = 0; i < sizeof(path) / sizeof(path[0]); i++) {
		snprintf(url, sizeof(url), "/v1/%s", path[i]);
		request("GET", url, "");
	}
}

static void tick(rwy_dur d)
{
	now += d;
	ctlr_gateway_tick(&ctlr, now);
	ctlr_tunnels_tick(&ctlr, now);
	ctlr_job_end_tick(&ctlr);
	ctlr_job_move_tick(&ctlr);
	take_all();
}

static void line(char *text)
{
	static const char *const method[] = {"GET ", "PUT ", "POST ", "DELETE "};
	char *space = strchr(text, ' '), *rest;

	for (unsigned i = 0; i < 4; i++) {
		if (strncmp(text, method[i], strlen(method[i])) != 0)
			continue;
		rest = strchr(space + 1, ' ');
		if (rest)
			*rest++ = 0;
		*space = 0;
		request(text, space + 1, rest ? rest : "");
		take_all();
		return;
	}
	if (*text == '+') {
		tick(RWY_SEC);
		return;
	}
	if (space)
		*space++ = 0;
	if (*text && strlen(text) < STORE_KEY_MAX)
		apply(text, space, space ? strlen(space) : 0, ++ctlr.rev);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char name[] = "controller: {name: me}\nlisten: {address: '127.0.0.1:1'}\n"
	                           "tls: {ca: a, certificate: b, key: c}\nstore: {kind: sqlite, path: p}\n";
	char *text = malloc(size + 1), *save = NULL;
	struct conf_error err;

	ctlr = empty;
	gw_log_init(-1);
	if (!text || ctlr_conf_parse(&conf, name, sizeof(name) - 1, "", &err) || plan_book_new(&ctlr.book) ||
	    ctlr_events_new(&ctlr.events))
		abort();
	memcpy(text, data, size);
	text[size] = 0;
	for (char *l = strtok_r(text, "\n", &save); l; l = strtok_r(NULL, "\n", &save))
		line(l);
	look();
	tick(20 * RWY_MS);
	tick(RWY_SEC);
	look();
	tick(60 * RWY_SEC);
	look();
	while (queue) {
		struct ctlr_change *ch = queue;

		queue = ch->next;
		if (ch->cb)
			ch->cb(ch->ctx, STORE_EDOWN, 0);
		ctlr_change_cancel(ch);
	}
	ctlr_free(&ctlr);
	ctlr_events_free(ctlr.events);
	free(text);
	return 0;
}
