/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /v1/flows: connections in pages. A cursor is WORKER.CURSOR.SKIP: the engine's cursor before a
 * batch, and the number of entries of that batch already returned. One request looks at a bounded
 * number of entries, so a page may be short, even empty, with more to follow.
 *
 * With sort=recent one page has the connections with the most recent packets, latest first. Workers
 * still return their entries in batches, with packets in between; a heap of `limit` entries keeps
 * the best.
 */
#include "gateway/api/api.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "gateway/control/tenants.h"

#define BATCH     64 /* entries that a worker copies at once: packets wait meanwhile */
#define LOOK_MAX  16384
#define LIMIT     100
#define LIMIT_MAX 1000
#define QPN_MAX   0xffffff

struct filter {
	struct rwy_ip local, remote;
	bool by_local, by_remote, by_qpn;
	uint32_t qpn;
	const char *state, *tunnel, *tenant; /* NULL: any */
};

struct batch {
	uint32_t cursor;
	unsigned count;
	uint32_t flows;
	struct eng_flow_info flow[BATCH];
	char tenant[BATCH][TENANT_NAME_MAX]; /* names of the tenants */
};

struct place {
	unsigned worker;
	uint32_t cursor;
	unsigned skip;
};

static void copy_batch(struct eng *e, void *arg)
{
	struct batch *b = arg;

	b->count = eng_flows(e, &b->cursor, b->flow, BATCH);
}

static void copy_count(struct eng *e, void *arg)
{
	*(uint32_t *)arg = eng_flow_count(e);
}

static void read_filter(const struct api_req *req, struct api_reply *reply, struct filter *f)
{
	static const char *const states[] = {"learning", "paired", "idle", "failed", "closing"};
	bool known = false;

	memset(f, 0, sizeof(*f));
	f->by_local = api_ip(req, reply, "local", &f->local);
	f->by_remote = api_ip(req, reply, "remote", &f->remote);
	f->by_qpn = api_param(req, "qpn");
	f->qpn = (uint32_t)api_number(req, reply, "qpn", 0, QPN_MAX);
	f->tunnel = api_tunnel_param(req, reply);
	f->tenant = api_tenant_param(req, reply);
	f->state = api_param(req, "state");
	for (unsigned i = 0; f->state && i < sizeof(states) / sizeof(states[0]); i++)
		known = known || !strcmp(states[i], f->state);
	if (f->state && !known)
		api_fail(reply, 400, "parameter state: expected learning, paired, idle, failed or closing");
}

static void read_place(const struct api_req *req, struct api_reply *reply, struct place *p)
{
	const char *s = api_param(req, "cursor");
	int end = 0;

	memset(p, 0, sizeof(*p));
	if (!s)
		return;
	if (strspn(s, "0123456789.") != strlen(s) || strlen(s) > 20 ||
	    sscanf(s, "%u.%" SCNu32 ".%u%n", &p->worker, &p->cursor, &p->skip, &end) != 3 || s[end] ||
	    p->worker >= req->app->workers || p->skip >= BATCH)
		api_fail(reply, 400, "parameter cursor: expected `next` of an earlier page");
}

static void name_tenants(const struct api_req *req, struct batch *b)
{
	uint32_t index[BATCH];

	for (unsigned i = 0; i < b->count; i++)
		index[i] = b->flow[i].tenant;
	gw_tenant_names(req->app, index, b->count, b->tenant);
}

static bool matches(const struct filter *f, const struct eng_flow_info *i, const char *tenant)
{
	return (!f->by_local || rwy_ip_eq(&f->local, &i->local)) &&
	       (!f->by_remote || rwy_ip_eq(&f->remote, &i->remote)) &&
	       (!f->by_qpn || f->qpn == i->local_qpn || f->qpn == i->remote_qpn) &&
	       (!f->state || !strcmp(f->state, i->state)) && (!f->tunnel || !strcmp(f->tunnel, i->tunnel)) &&
	       (!f->tenant || !strcmp(f->tenant, tenant));
}

/* null: never given up. */
static json_t *patience_json(rwy_dur patience)
{
	return patience == RWY_NEVER ? json_null() : json_real((double)patience / 1e9);
}

static json_t *flow_json(const struct eng_flow_info *i, const char *tenant, unsigned worker, rwy_time now)
{
	return json_pack(
	    "{s:i, s:s, s:o, s:o, s:I, s:I, s:s, s:s, s:s, s:s, s:I,"
	    " s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:I, s:I, s:I, s:f,"
	    " s:i, s:i, s:f, s:f, s:o, s:s, s:f, s:b, s:f, s:f, s:I, s:I, s:I, s:f, s:I, s:I}",
	    "worker", (int)worker, "tenant", tenant, "local", api_json_ip(&i->local), "remote",
	    api_json_ip(&i->remote), "local_qpn", (json_int_t)i->local_qpn, "remote_qpn",
	    (json_int_t)i->remote_qpn, "tunnel", i->tunnel, "state", i->state, "learned", i->learned, "error",
	    i->error, "pmtu", (json_int_t)i->pmtu, "responder_psn", (json_int_t)i->responder_psn,
	    "responder_acked", (json_int_t)i->responder_acked, "requester_una", (json_int_t)i->requester_una,
	    "requester_nxt", (json_int_t)i->requester_nxt, "tx_packets", (json_int_t)i->tx_packets,
	    "tx_bytes", (json_int_t)i->tx_bytes, "rx_packets", (json_int_t)i->rx_packets, "rx_bytes",
	    (json_int_t)i->rx_bytes, "custody_bytes", (json_int_t)i->custody_bytes, "requester_queue",
	    (json_int_t)i->requester_queue, "host_resent", (json_int_t)i->host_resent, "rnr_naks",
	    (json_int_t)i->rnr_naks, "limit", i->limit, "remote_window", (json_int_t)i->remote_window,
	    "remote_drain_Bps", (json_int_t)i->remote_drain_Bps, "requester_rate_Bps",
	    (json_int_t)i->requester_rate_Bps, "requester_rtt_seconds", (double)i->requester_rtt / 1e9,
	    "requester_retry", (int)i->requester_retry, "requester_rnr_retry", (int)i->requester_rnr_retry,
	    "requester_timeout_min_seconds", (double)i->requester_timeout_min / 1e9,
	    "requester_timeout_max_seconds", (double)i->requester_timeout_max / 1e9,
	    "requester_patience_seconds", patience_json(i->requester_patience), "ack_mode", i->ack_mode,
	    "patience_seconds", (double)i->patience / 1e9, "impatient", (int)i->impatient, "idle_seconds",
	    (double)rwy_since(i->last, now) / 1e9, "last_seconds", (double)i->last / 1e9, "seq_naks",
	    (json_int_t)i->seq_naks, "host_timeouts", (json_int_t)i->host_timeouts, "naks_sent",
	    (json_int_t)i->naks_sent, "withheld_seconds", (double)i->withheld / 1e9, "withheld_times",
	    (json_int_t)i->withheld_times, "vni", (json_int_t)i->vni);
}

/* Fills `list` from a position on. Returns true: p is where the next page starts; false: the end is
 * reached. */
static bool collect(const struct api_req *req, struct api_reply *reply, const struct filter *f,
    struct place *p, size_t limit, json_t *list)
{
	struct batch b;
	unsigned looked = 0;
	bool ended;

	while (p->worker < req->app->workers) {
		b.cursor = p->cursor;
		if (gw_call(req->app, p->worker, copy_batch, &b)) {
			api_fail(reply, 503, "worker %u does not answer", p->worker);
			return false;
		}
		name_tenants(req, &b);
		for (; p->skip < b.count; p->skip++) {
			if (json_array_size(list) == limit)
				return true;
			if (matches(f, &b.flow[p->skip], b.tenant[p->skip]))
				json_array_append_new(list,
				    flow_json(&b.flow[p->skip], b.tenant[p->skip], p->worker, gw_now()));
		}
		looked += b.count;
		ended = !b.cursor;
		p->worker += ended;
		p->cursor = ended ? 0 : b.cursor;
		p->skip = 0;
		if (looked >= LOOK_MAX)
			return p->worker < req->app->workers;
	}
	return false;
}

/* --- most recent ----------------------------------------------------------------------------- */

struct found {
	struct eng_flow_info flow;
	char tenant[TENANT_NAME_MAX];
	unsigned worker;
};

/* A heap with the longest idle entry on top, which a more recent one replaces. */
struct recent {
	struct found *v;
	size_t n, max;
	uint64_t matching;
};

static bool is_later(const struct recent *r, size_t a, size_t b)
{
	return r->v[a].flow.last > r->v[b].flow.last;
}

static void swap(struct recent *r, size_t a, size_t b)
{
	const struct found t = r->v[a];

	r->v[a] = r->v[b];
	r->v[b] = t;
}

static void sift_down(struct recent *r, size_t at)
{
	for (size_t least = at;; at = least) {
		for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < r->n; child++)
			if (is_later(r, least, child))
				least = child;
		if (least == at)
			return;
		swap(r, at, least);
	}
}

static void recent_add(
    struct recent *r, const struct eng_flow_info *flow, const char *tenant, unsigned worker)
{
	size_t at = 0;

	r->matching++;
	if (r->n < r->max)
		at = r->n++;
	else if (flow->last <= r->v[0].flow.last)
		return;
	r->v[at].flow = *flow;
	r->v[at].worker = worker;
	snprintf(r->v[at].tenant, sizeof(r->v[at].tenant), "%s", tenant);
	if (!at)
		sift_down(r, 0);
	for (; at && is_later(r, (at - 1) / 2, at); at = (at - 1) / 2)
		swap(r, at, (at - 1) / 2);
}

static void keep_worker(const struct api_req *req, struct api_reply *reply, const struct filter *f,
    unsigned worker, struct recent *r)
{
	struct batch b = {0};

	do {
		if (gw_call(req->app, worker, copy_batch, &b)) {
			api_fail(reply, 503, "worker %u does not answer", worker);
			return;
		}
		name_tenants(req, &b);
		for (unsigned i = 0; i < b.count; i++)
			if (matches(f, &b.flow[i], b.tenant[i]))
				recent_add(r, &b.flow[i], b.tenant[i], worker);
	} while (b.cursor);
}

static json_t *recent_list(struct recent *r)
{
	const rwy_time now = gw_now();
	json_t *list = json_array();

	while (r->n) { /* the longest idle comes last in the list */
		json_array_insert_new(list, 0, flow_json(&r->v[0].flow, r->v[0].tenant, r->v[0].worker, now));
		r->v[0] = r->v[--r->n];
		sift_down(r, 0);
	}
	return list;
}

static void recent(
    const struct api_req *req, struct api_reply *reply, const struct filter *f, uint64_t total, size_t limit)
{
	struct recent r = {.v = malloc((limit + 1) * sizeof(*r.v)), .max = limit};

	if (!r.v)
		api_fail(reply, 500, "out of memory");
	for (unsigned i = 0; reply->status == 200 && i < req->app->workers; i++)
		keep_worker(req, reply, f, i, &r);
	if (reply->status == 200)
		reply->json = json_pack("{s:I, s:I, s:o, s:n}", "total", (json_int_t)total, "matching",
		    (json_int_t)r.matching, "flows", recent_list(&r), "next");
	free(r.v);
}

/* --- the page -------------------------------------------------------------------------------- */

static bool read_sort(const struct api_req *req, struct api_reply *reply)
{
	const char *sort = api_param(req, "sort");

	if (sort && strcmp(sort, "recent") != 0)
		api_fail(reply, 400, "parameter sort: expected recent");
	if (sort && api_param(req, "cursor"))
		api_fail(reply, 400, "parameter cursor: not with sort");
	return sort;
}

void api_flows(const struct api_req *req, struct api_reply *reply)
{
	const uint64_t limit = api_number(req, reply, "limit", LIMIT, LIMIT_MAX);
	const bool sort = read_sort(req, reply);
	struct filter f;
	struct place p;
	uint64_t total = 0;
	json_t *list, *next = NULL;

	if (!limit)
		api_fail(reply, 400, "parameter limit: expected a number from 1 to %d", LIMIT_MAX);
	read_filter(req, reply, &f);
	read_place(req, reply, &p);
	for (unsigned i = 0; reply->status == 200 && i < req->app->workers; i++) {
		uint32_t n = 0;

		if (gw_call(req->app, i, copy_count, &n))
			api_fail(reply, 503, "worker %u does not answer", i);
		total += n;
	}
	if (reply->status != 200)
		return;
	if (sort) {
		recent(req, reply, &f, total, limit);
		return;
	}
	list = json_array();
	if (collect(req, reply, &f, &p, limit, list))
		next = json_sprintf("%u.%u.%u", p.worker, p.cursor, p.skip);
	if (reply->status == 200)
		reply->json = json_pack("{s:I, s:o, s:o}", "total", (json_int_t)total, "flows", list, "next",
		    next ? next : json_null());
	else
		json_decref(list);
}
