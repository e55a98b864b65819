/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /v1/memory: who holds packet buffers (docs/memory.md). Workers by kinds, tenants, and the
 * local hosts and connections that hold most. Workers give their entries a batch at a time, with
 * packets in between.
 */
#include "gateway/api/api.h"

#include <inttypes.h>
#include <stdlib.h>

#include "gateway/control/tenants.h"

#define BATCH     64 /* entries that a worker copies in one go */
#define LIMIT     10
#define LIMIT_MAX 1000

#define X(e, n, s) {n, s},
static const struct gw_counter_name kinds[] = {ENG_MEM_KINDS(X)};
#undef X

static json_int_t sum_of(const uint64_t kind[ENG_MEM_N])
{
	uint64_t n = 0;

	for (unsigned k = 0; k < ENG_MEM_N; k++)
		n += kind[k];
	return (json_int_t)n;
}

/* Adds each kind's bytes to o: "custody_bytes" .. */
static json_t *add_kinds(json_t *o, const uint64_t kind[ENG_MEM_N])
{
	char name[48];

	for (unsigned k = 0; k < ENG_MEM_N; k++) {
		snprintf(name, sizeof(name), "%s_bytes", kinds[k].name);
		json_object_set_new(o, name, json_integer((json_int_t)kind[k]));
	}
	return o;
}

/* --- workers --------------------------------------------------------------------------------- */

static void copy_memory(struct eng *e, void *arg)
{
	eng_memory(e, arg);
}

static json_t *kinds_json(const struct eng_memory *m)
{
	static const char *const tunnel[] = {"cm", "reassembly", "fec", "datagrams", "order"};
	static const char *const text[] = {"CM messages on their way",
	    "what waits for an earlier buffer, or its rest", "repairs (forward error correction)",
	    "best-effort packets", "order between queue pairs (ack mode causal)"};
	const uint32_t bufs[] = {m->cm, m->reassembly, m->fec, m->dgrams, m->order};
	json_t *list = json_array();

	for (unsigned k = 0; k < ENG_MEM_N; k++)
		json_array_append_new(
		    list, json_pack("{s:s, s:I, s:I, s:I, s:s}", "kind", kinds[k].name, "bytes",
		              (json_int_t)m->kind[k].bytes, "buffers", (json_int_t)m->kind[k].bufs,
		              "max_bytes", (json_int_t)m->kind[k].max, "help", kinds[k].text));
	for (unsigned i = 0; i < sizeof(bufs) / sizeof(bufs[0]); i++)
		json_array_append_new(
		    list, json_pack("{s:s, s:I, s:I, s:I, s:s}", "kind", tunnel[i], "bytes",
		              (json_int_t)bufs[i] * (json_int_t)m->buf_cost, "buffers", (json_int_t)bufs[i],
		              "max_bytes", (json_int_t)0, "help", text[i]));
	return list;
}

static json_t *worker_json(unsigned worker, const struct eng_memory *m)
{
	return json_pack("{s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "worker", (int)worker,
	    "held_bytes", (json_int_t)m->held, "most_bytes", (json_int_t)m->most, "soft_bytes",
	    (json_int_t)m->soft, "max_bytes", (json_int_t)m->max, "reserved_bytes", (json_int_t)m->reserved,
	    "buffer_bytes", (json_int_t)m->buf_cost, "hosts", (json_int_t)m->hosts, "waiting",
	    (json_int_t)m->waiting, "kinds", kinds_json(m));
}

static json_t *workers_list(const struct api_req *req, struct api_reply *reply)
{
	json_t *list = json_array();

	for (unsigned w = 0; w < req->app->workers; w++) {
		struct eng_memory m;

		if (gw_call(req->app, w, copy_memory, &m))
			api_fail(reply, 503, "worker %u does not answer", w);
		else
			json_array_append_new(list, worker_json(w, &m));
	}
	return list;
}

/* --- tenants --------------------------------------------------------------------------------- */

struct tenant_call {
	uint32_t index;
	struct eng_tenant_stats sum;
};

static void add_tenant(struct eng *e, void *arg)
{
	struct tenant_call *c = arg;
	struct eng_tenant_stats st;

	if (!eng_tenant_stats(e, c->index, &st))
		return;
	c->sum.held += st.held;
	c->sum.most += st.most;
	c->sum.max += st.max;
	c->sum.reserve += st.reserve;
	c->sum.hosts += st.hosts;
	for (unsigned k = 0; k < ENG_MEM_N; k++)
		c->sum.kind[k] += st.kind[k];
}

static json_t *tenant_json(const struct api_req *req, const char *name, uint32_t index)
{
	struct tenant_call c = {.index = index};

	/* A worker that does not come to it is left out. */
	for (unsigned w = 0; w < req->app->workers; w++)
		if (gw_call(req->app, w, add_tenant, &c))
			continue;
	return add_kinds(
	    json_pack("{s:s, s:I, s:I, s:I, s:I, s:I}", "tenant", name, "held_bytes", (json_int_t)c.sum.held,
	        "most_bytes", (json_int_t)c.sum.most, "max_bytes", (json_int_t)c.sum.max, "reserved_bytes",
	        (json_int_t)c.sum.reserve, "hosts", (json_int_t)c.sum.hosts),
	    c.sum.kind);
}

/* The plain LAN first, its name is "". */
static json_t *tenants_list(const struct api_req *req)
{
	struct gw_tenant_info *v = calloc(LIMIT_MAX, sizeof(*v));
	json_t *list = json_array();
	const char *after = "";
	unsigned n;

	json_array_append_new(list, tenant_json(req, "", 0));
	while (v && (n = gw_tenants_get(req->app, after, v, LIMIT_MAX))) {
		for (unsigned i = 0; i < n; i++)
			json_array_append_new(list, tenant_json(req, v[i].name, v[i].index));
		after = n == LIMIT_MAX ? v[n - 1].name : NULL;
		if (!after)
			break;
	}
	free(v);
	return list;
}

/* --- those that hold most -------------------------------------------------------------------- */

/* A list of at most `max` objects, by what they hold, the most first. */
struct top {
	json_t *list;
	size_t max;
};

static json_int_t held_by(const json_t *o)
{
	return json_integer_value(json_object_get(o, "bytes"));
}

/* True: an object with so many bytes would be in the list. */
static bool is_top(const struct top *t, json_int_t bytes)
{
	const size_t n = json_array_size(t->list);

	return n < t->max || bytes > held_by(json_array_get(t->list, n - 1));
}

/* Takes o. */
static void keep(struct top *t, json_t *o)
{
	size_t at = json_array_size(t->list);

	while (at && held_by(json_array_get(t->list, at - 1)) < held_by(o))
		at--;
	json_array_insert_new(t->list, at, o);
	if (json_array_size(t->list) > t->max)
		json_array_remove(t->list, t->max);
}

static const char *name_of(const struct api_req *req, uint32_t index, char name[1][TENANT_NAME_MAX])
{
	gw_tenant_names(req->app, &index, 1, name);
	return name[0];
}

struct host_batch {
	uint32_t cursor;
	unsigned n;
	struct eng_memory_host host[BATCH];
};

static void copy_hosts(struct eng *e, void *arg)
{
	struct host_batch *b = arg;

	b->n = eng_memory_hosts(e, &b->cursor, b->host, BATCH);
}

static json_t *host_json(const struct api_req *req, const struct eng_memory_host *h, unsigned worker)
{
	char name[1][TENANT_NAME_MAX];

	return add_kinds(
	    json_pack("{s:s, s:o, s:i, s:I, s:I, s:I, s:I, s:I}", "tenant", name_of(req, h->tenant, name),
	        "address", api_json_ip(&h->addr), "worker", (int)worker, "bytes", sum_of(h->kind),
	        "held_bytes", (json_int_t)h->held, "most_bytes", (json_int_t)h->most, "sides",
	        (json_int_t)h->sides, "unpaired_flows", (json_int_t)h->half_open),
	    h->kind);
}

static void top_hosts(const struct api_req *req, struct top *t, unsigned worker)
{
	struct host_batch b = {0};

	do {
		if (gw_call(req->app, worker, copy_hosts, &b))
			return;
		for (unsigned i = 0; i < b.n; i++)
			if (is_top(t, sum_of(b.host[i].kind)))
				keep(t, host_json(req, &b.host[i], worker));
	} while (b.cursor);
}

struct flow_batch {
	uint32_t cursor;
	unsigned n;
	struct eng_flow_info flow[BATCH];
};

static void copy_flows(struct eng *e, void *arg)
{
	struct flow_batch *b = arg;

	b->n = eng_flows(e, &b->cursor, b->flow, BATCH);
}

/* Bytes that count against a connection's bound, of its direction with more: see `most_bytes`. */
static json_int_t flow_held(const struct eng_flow_info *i)
{
	const uint64_t custody = i->held[ENG_MEM_CUSTODY] + i->held[ENG_MEM_UNPAIRED];
	const uint64_t responses = i->held[ENG_MEM_RESPONSES];

	return (json_int_t)(custody > responses ? custody : responses);
}

static json_t *flow_json(const struct api_req *req, const struct eng_flow_info *i, unsigned worker)
{
	char name[1][TENANT_NAME_MAX];

	return add_kinds(
	    json_pack("{s:s, s:o, s:o, s:I, s:I, s:i, s:s, s:I, s:I, s:I}", "tenant",
	        name_of(req, i->tenant, name), "local", api_json_ip(&i->local), "remote",
	        api_json_ip(&i->remote), "local_qpn", (json_int_t)i->local_qpn, "remote_qpn",
	        (json_int_t)i->remote_qpn, "worker", (int)worker, "state", i->state, "bytes", sum_of(i->held),
	        "held_bytes", flow_held(i), "most_bytes", (json_int_t)i->held_most),
	    i->held);
}

static void top_flows(const struct api_req *req, struct top *t, unsigned worker)
{
	struct flow_batch b = {0};

	do {
		if (gw_call(req->app, worker, copy_flows, &b))
			return;
		for (unsigned i = 0; i < b.n; i++)
			if (sum_of(b.flow[i].held) && is_top(t, sum_of(b.flow[i].held)))
				keep(t, flow_json(req, &b.flow[i], worker));
	} while (b.cursor);
}

/* --- the page -------------------------------------------------------------------------------- */

void api_memory(const struct api_req *req, struct api_reply *reply)
{
	const uint64_t limit = api_number(req, reply, "limit", LIMIT, LIMIT_MAX);
	struct top hosts, flows;
	json_t *workers;

	if (reply->status != 200)
		return;
	workers = workers_list(req, reply);
	if (reply->status != 200) {
		json_decref(workers);
		return;
	}
	hosts = (struct top){.list = json_array(), .max = limit};
	flows = (struct top){.list = json_array(), .max = limit};
	for (unsigned w = 0; limit && w < req->app->workers; w++) {
		top_hosts(req, &hosts, w);
		top_flows(req, &flows, w);
	}
	reply->json = json_pack("{s:o, s:o, s:o, s:o}", "workers", workers, "tenants", tenants_list(req),
	    "hosts", hosts.list, "connections", flows.list);
}

/* --- Prometheus ------------------------------------------------------------------------------ */

static void metric(FILE *f, const char *name, const char *text)
{
	fprintf(f, "# HELP roceway_memory_%s %s.\n# TYPE roceway_memory_%s gauge\n", name, text, name);
}

void api_metrics_memory(FILE *f, const struct api_req *req)
{
	struct eng_memory sum = {0}, m;

	for (unsigned w = 0; w < req->app->workers; w++) {
		if (gw_call(req->app, w, copy_memory, &m))
			continue;
		for (unsigned k = 0; k < ENG_MEM_N; k++) {
			sum.kind[k].bytes += m.kind[k].bytes;
			sum.kind[k].bufs += m.kind[k].bufs;
		}
		sum.held += m.held;
		sum.most += m.most;
		sum.max += m.max;
		sum.soft += m.soft;
		sum.waiting += m.waiting;
	}
	metric(f, "bytes", "bytes of packet buffers held, by kind");
	for (unsigned k = 0; k < ENG_MEM_N; k++)
		fprintf(
		    f, "roceway_memory_bytes{kind=\"%s\"} %" PRIu64 "\n", kinds[k].name, sum.kind[k].bytes);
	metric(f, "buffers", "packet buffers held, by kind");
	for (unsigned k = 0; k < ENG_MEM_N; k++)
		fprintf(
		    f, "roceway_memory_buffers{kind=\"%s\"} %" PRIu32 "\n", kinds[k].name, sum.kind[k].bufs);
	metric(f, "held_bytes", "bytes held of the kinds that share a bound");
	fprintf(f, "roceway_memory_held_bytes %" PRIu64 "\n", sum.held);
	metric(f, "most_bytes", "most of them ever, of all workers");
	fprintf(f, "roceway_memory_most_bytes %" PRIu64 "\n", sum.most);
	metric(f, "soft_limit_bytes", "their bound above which ACKs wait");
	fprintf(f, "roceway_memory_soft_limit_bytes %" PRIu64 "\n", sum.soft);
	metric(f, "limit_bytes", "their bound above which requests are refused");
	fprintf(f, "roceway_memory_limit_bytes %" PRIu64 "\n", sum.max);
	metric(f, "waiting", "directions of connections that were refused and wait for room");
	fprintf(f, "roceway_memory_waiting %" PRIu32 "\n", sum.waiting);
}
