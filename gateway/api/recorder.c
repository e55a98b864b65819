/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /v1/recorder: the workers' last decisions (engine/recorder.h). The API's thread reads the
 * rings; no worker is asked, so it answers also while one hangs.
 */
#include "gateway/api/api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/recorder.h"

#define LIMIT     100
#define LIMIT_MAX 10000
#define QPN_MAX   0xffffff
#define VNI_MAX   0xffffff

struct filter {
	struct rwy_ip local, remote;
	bool by_local, by_remote, by_qpn, by_vni;
	uint32_t qpn, vni;
	enum eng_record_kind kind; /* ENG_REC_NONE: any */
};

struct found {
	struct eng_record r;
	unsigned worker;
};

static void read_filter(const struct api_req *req, struct api_reply *reply, struct filter *f)
{
	const char *kind = api_param(req, "kind");

	memset(f, 0, sizeof(*f));
	f->by_local = api_ip(req, reply, "local", &f->local);
	f->by_remote = api_ip(req, reply, "remote", &f->remote);
	f->by_qpn = api_param(req, "qpn");
	f->qpn = (uint32_t)api_number(req, reply, "qpn", 0, QPN_MAX);
	f->by_vni = api_param(req, "vni");
	f->vni = (uint32_t)api_number(req, reply, "vni", 0, VNI_MAX);
	f->kind = kind ? eng_record_find(kind) : ENG_REC_NONE;
	if (kind && !f->kind)
		api_fail(reply, 400, "parameter kind: there is no kind %.32s", kind);
}

/* Entries about no connection have neither addresses nor QPNs. */
static bool matches(const struct filter *f, const struct eng_record *r)
{
	if (f->kind && r->kind != f->kind)
		return false;
	if (r->side == ENG_OF_ENGINE)
		return !f->by_local && !f->by_remote && !f->by_qpn && !f->by_vni;
	return (!f->by_vni || f->vni == r->vni) && (!f->by_local || rwy_ip_eq(&f->local, &r->local)) &&
	       (!f->by_remote || rwy_ip_eq(&f->remote, &r->remote)) &&
	       (!f->by_qpn || f->qpn == r->local_qpn || f->qpn == r->remote_qpn);
}

/* The newest ones that match, up to max, the newest first. */
static size_t take_worker(
    const struct api_req *req, const struct filter *f, unsigned worker, struct found *out, size_t max)
{
	const struct eng_recorder_ring *ring = gw_recorder(req->app, worker);
	const uint32_t newest = ring ? atomic_load_explicit(&ring->newest, memory_order_acquire) : 0;
	size_t n = 0;

	for (uint32_t i = 0; ring && i < ring->entries && n < max; i++) {
		struct found *to = &out[n];

		to->worker = worker;
		n += eng_recorder_get(ring, newest - i, &to->r) && matches(f, &to->r);
	}
	return n;
}

/* Decisions of one turn have one time. */
static int newest_first(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	if (x->r.at != y->r.at)
		return x->r.at > y->r.at ? -1 : 1;
	if (x->worker != y->worker)
		return x->worker > y->worker ? -1 : 1;
	return (int32_t)(y->r.seq - x->r.seq);
}

/* UTC, with microseconds. */
static void wall_text(char out[40], uint64_t wall_ns)
{
	const time_t s = (time_t)(wall_ns / RWY_SEC);
	struct tm tm;
	size_t n = strftime(out, 40, "%Y-%m-%dT%H:%M:%S", gmtime_r(&s, &tm));

	snprintf(out + n, 40 - n, ".%06uZ", (unsigned)(wall_ns % RWY_SEC / RWY_US));
}

static json_t *record_json(const struct found *f, rwy_time now, uint64_t wall)
{
	const struct eng_record *r = &f->r;
	const bool engine = r->side == ENG_OF_ENGINE;
	char time[40], text[256], name[sizeof(r->name) + 1] = "";

	wall_text(time, wall - rwy_since(r->at, now));
	eng_record_say(r, text, sizeof(text));
	if (engine)
		memcpy(name, r->name, sizeof(r->name));
	return json_pack(
	    "{s:i, s:I, s:s, s:f, s:s, s:s, s:o, s:o, s:I, s:I, s:I, s:s, s:s, s:s, s:I, s:I, s:s}", "worker",
	    (int)f->worker, "number", (json_int_t)r->seq, "time", time, "ago_seconds",
	    (double)rwy_since(r->at, now) / 1e9, "kind", eng_record_name((enum eng_record_kind)r->kind),
	    "side", eng_record_side_name(r->side), "local", engine ? json_string("") : api_json_ip(&r->local),
	    "remote", engine ? json_string("") : api_json_ip(&r->remote), "local_qpn",
	    (json_int_t)r->local_qpn, "remote_qpn", (json_int_t)r->remote_qpn, "vni", (json_int_t)r->vni,
	    "tunnel", name, "from", eng_record_from(r), "to", eng_record_to(r), "psn", (json_int_t)r->psn,
	    "value", (json_int_t)r->value, "text", text);
}

static json_t *list_json(const struct found *v, size_t n)
{
	json_t *list = json_array();
	const rwy_time now = gw_now();
	const uint64_t utc = gw_utc(now);

	while (n--)
		json_array_append_new(list, record_json(&v[n], now, utc));
	return list;
}

void api_recorder(const struct api_req *req, struct api_reply *reply)
{
	const uint64_t limit = api_number(req, reply, "limit", LIMIT, LIMIT_MAX);
	const uint64_t only = api_number(req, reply, "worker", req->app->workers, req->app->workers - 1);
	struct found *v;
	struct filter f;
	size_t n = 0;

	if (!limit)
		api_fail(reply, 400, "parameter limit: expected a number from 1 to %d", LIMIT_MAX);
	read_filter(req, reply, &f);
	if (reply->status != 200)
		return;
	v = malloc((limit * req->app->workers + 1) * sizeof(*v));
	if (!v) {
		api_fail(reply, 500, "out of memory");
		return;
	}
	for (unsigned i = 0; i < req->app->workers; i++)
		if (only == req->app->workers || only == i)
			n += take_worker(req, &f, i, v + n, limit);
	qsort(v, n, sizeof(*v), newest_first);
	reply->json = json_pack("{s:o}", "entries", list_json(v, n < limit ? n : limit));
	free(v);
}
