/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside controller/ only: what the controller knows, and how its parts call each other.
 *
 * Everything below `lock` is in memory, indexed by hash. What has to outlive the process is in the store, and
 * gets here by one way only, whoever wrote it: a change goes to the store (writer.c), comes back through the
 * watch, and is applied in the order of revisions (apply.c). So what the store did not take has changed
 * nothing, and replicas agree. Sessions, measurements and loads are not stored: gateways tell them again.
 *
 * Threads: HTTP's (requests), the writer's (the store's calls), the watch's, the ticker's (leases, polls,
 * tunnels). All take the lock for short; none holds it over a call of the store. A reply is made locked and
 * sent unlocked: it has copies, never a reference to JSON that is kept here (`make tsan`).
 */
#ifndef CONTROLLER_STATE_CTLR_H
#define CONTROLLER_STATE_CTLR_H

#include <jansson.h>
#include <pthread.h>

#include "controller/conf/conf.h"
#include "controller/state/lpm.h"
#include "controller/state/map.h"
#include "controller/model/model.h"
#include "controller/plan/book.h"
#include "controller/plan/decide.h"
#include "controller/plan/spread.h"
#include "controller/plan/weight.h"
#include "controller/store/store.h"
#include "rwy/time.h"

#define CTLR_TICK_MS 20 /* a lease is seen to have run out, and a poll answered, within one each */

struct grant;
struct req;
struct tunnel;
struct worker;

struct site {
	struct map_node node;
	char name[MDL_NAME];
	bool stored; /* false: only gateways or tenants name it */
	struct model_site m;
	uint64_t mod_rev;        /* the record's */
	uint64_t changed_rev;    /* of anything that the documents of its gateways show */
	struct gateway *gateway; /* list */
	unsigned gateways;
	uint64_t routes_gen;
};

enum soon {
	SOON_DOCUMENT, /* its document may have changed: its poll is looked at */
	SOON_TUNNELS,  /* it may have other tunnels now */
	SOON_KINDS
};

struct soon_link {
	struct gateway *next, *prev;
	bool queued;
};

struct gateway {
	struct map_node node;
	char name[MDL_NAME];
	struct model_registration reg;
	uint64_t lease, mod_rev, touch_rev, job_rev;
	char owner[MDL_NAME]; /* the replica that it talks to */
	bool up;
	struct site *site;
	struct gateway *site_next;
	struct tunnel *tunnel; /* list */
	unsigned tunnels, sessions;
	struct session *session; /* list */
	/* not stored */
	rwy_time heard, expires;
	uint64_t running, refused;
	char refusal[256];
	struct model_load load;
	struct soon_link soon[SOON_KINDS];
	bool changing;   /* a change of its record is on the way */
	unsigned missed; /* times that the store did not take that its lease ran out */
	struct req *poll;
};

struct link { /* as one end measured it, by one carrier */
	bool has;
	struct model_link m;
	rwy_time at;
};

struct tunnel {
	struct map_node node;
	char name[2 * MDL_NAME]; /* "A/B", A < B */
	struct gateway *end[2];
	struct tunnel *next[2]; /* in the list of end[i] */
	uint64_t mod_rev;
	/* stored */
	bool has; /* there is a decision */
	uint8_t carrier;
	uint64_t rate_bps, reserved_bps; /* reserved: by networks, for jobs; 0: nothing */
	uint32_t weight;
	char rule[24];
	/* not stored */
	struct plan_hyst hyst;
	rwy_time again;
	struct link link[2][PLAN_CARRIER_COUNT];
	struct flow *flow; /* list */
	uint32_t flows;
	struct tunnel *plan_next, *plan_prev; /* those to be looked at */
	bool plan, changing;
};

/* Why a flow has its pair of gateways. X(enumerator, word, sentence) */
#define FLOW_WHYS(X)                                                                                         \
	X(FLOW_JOB, "job", "the plan of its job names the pair of gateways")                                 \
	X(FLOW_UNDER_WAY, "under-way", "it was on this pair of gateways when it was reported")               \
	X(FLOW_SPREAD, "spread", "weighted rendezvous with bounded loads, of the pairs that are up")

enum flow_why {
#define X(e, w, s) e,
	FLOW_WHYS(X)
#undef X
};

struct flow { /* what stays together on one tunnel */
	struct map_node node;
	char key[192];
	uint32_t vni;
	char addr[2][MDL_ADDR]; /* at end[0]'s site, at end[1]'s */
	uint32_t qpn[2];        /* of a job that is spread by them; 0: all between the addresses */
	uint64_t job;           /* that job: plan_id of its name */
	struct site *site[2];
	struct tunnel *tunnel;    /* NULL: none is there */
	enum flow_why why;        /* that one */
	struct flow *next, *prev; /* of the tunnel */
	uint64_t rate_bps;        /* a job's share; 0: none */
	unsigned refs;
};

struct session {
	struct map_node node;
	char key[MDL_NAME + MDL_ID]; /* "GATEWAY:ID" */
	struct gateway *gateway;
	struct session *next, *prev; /* of the gateway */
	struct flow *flow;           /* NULL: no decision */
	const char *reason;          /* why there is none */
	uint32_t vni, source_qpn, destination_qpn;
	uint16_t udp_port;
	char source[MDL_ADDR], destination[MDL_ADDR];
	uint64_t bytes, demand_bps;
	rwy_time opened;
};

struct net_tenant {
	struct map_node node;
	char name[MDL_NAME];
	json_t *json; /* as it was put */
	uint32_t vni;
	uint64_t mod_rev;
};

struct job {
	struct map_node node;
	char name[MDL_NAME];
	json_t *json; /* the record: job as it was posted, plan, takes, until_ms */
	struct plan_take *take;
	unsigned takes;
	uint32_t vni;
	uint64_t mod_rev, until_ms; /* of the wall's clock; 0: none */
};

struct push { /* what a network's controller said */
	struct map_node node;
	char key[3 * MDL_NAME];
	char site[2][MDL_NAME], source[MDL_NAME];
	struct model_link_push m;
	uint64_t at_ms, mod_rev; /* of the wall's clock */
	uint32_t id;
};

struct ctlr {
	const struct ctlr_conf *conf;
	struct store *store;
	rwy_time started;

	pthread_mutex_t lock;
	struct map gateways, sites, tunnels, sessions, flows, tenants, jobs, pushes, replicas, routed, grants,
	    reserved;
	struct lpm lpm;  /* prefix -> struct site */
	struct map vnis; /* "VNI" -> struct net_tenant: see fleet/tenant.c */
	struct plan_book *book;
	uint64_t rev;       /* applied */
	uint64_t guard_rev; /* of the key that every change of sites, tenants and jobs compares */
	uint64_t touch_rev; /* of what concerns all documents */
	unsigned up;
	unsigned least; /* sites whose weights follow their gateways' loads */
	uint32_t push_id;
	int store_rc; /* of the last call */
	bool loaded;
	struct req *polls;   /* of routes */
	struct req *again;   /* something else was first: when that is applied */
	uint64_t routes_gen; /* of all sites */
	struct {
		struct gateway *first, *last;
	} soon[SOON_KINDS];            /* queues */
	struct tunnel *plan;           /* queue */
	bool jobs_look, jobs_changing; /* jobs are looked at; a change of theirs is on the way */
	rwy_time jobs_at, jobs_broken_at;
	size_t swept, swept_gateways;
};

static inline void ctlr_lock(struct ctlr *c)
{
	pthread_mutex_lock(&c->lock);
}
static inline void ctlr_unlock(struct ctlr *c)
{
	pthread_mutex_unlock(&c->lock);
}
rwy_time ctlr_now(void);     /* monotonic */
uint64_t ctlr_wall_ms(void); /* since 1970 */

/* --- state.c: objects and how they hang together ----------------------------------------------------- */

struct site *site_need(struct ctlr *c, const char *name); /* found or made; NULL: out of memory */
void site_drop_unused(struct ctlr *c, struct site *s);    /* nobody names it any more */
struct gateway *gateway_need(struct ctlr *c, const char *name);
void gateway_set_site(struct ctlr *c, struct gateway *g, struct site *s);
void gateway_free(struct ctlr *c, struct gateway *g);
struct tunnel *tunnel_find(struct ctlr *c, const char *a, const char *b);
struct tunnel *tunnel_need(struct ctlr *c, struct gateway *a, struct gateway *b);
void tunnel_free(struct ctlr *c, struct tunnel *t);
bool tunnel_up(const struct tunnel *t);
static inline unsigned tunnel_side(const struct tunnel *t, const struct gateway *g)
{
	return t->end[1] == g;
}
void state_free(struct ctlr *c);

/* --- apply.c: the store's changes ------------------------------------------------------------------------
 */

int apply_load(struct ctlr *c);                           /* load.c: everything; takes the lock */
void apply_kv(struct ctlr *c, const struct store_kv *kv); /* locked */
bool replica_alive(const struct ctlr *c, const char *name);

/* --- soon.c: what is looked at with the next tick ---------------------------------------------------- */

void gateway_soon(struct ctlr *c, struct gateway *g, enum soon what);
void gateway_not_soon(struct ctlr *c, struct gateway *g, enum soon what);
struct gateway *gateway_next_soon(struct ctlr *c, enum soon what); /* off the queue; NULL: none is left */
void gateway_dirty(struct ctlr *c, struct gateway *g);             /* SOON_DOCUMENT, it and its siblings */
void site_dirty(struct ctlr *c, struct site *s); /* its gateways, and those with tunnels to them */
void tunnel_plan(struct ctlr *c, struct tunnel *t);
void tunnel_unplan(struct ctlr *c, struct tunnel *t);

/* --- writer.c: the way to the store ------------------------------------------------------------------------
 */

struct change;
/* Told once, locked, when the store has taken it and it is applied (0), or with the store's error. */
typedef void change_cb(void *ctx, int rc, uint64_t rev);
struct change *change_new(change_cb *cb, void *ctx);
void change_set(struct change *ch, change_cb *cb, void *ctx);
/* Of two for one key the later one counts. */
void change_put(struct change *ch, const char *key, json_t *value); /* its reference is taken */
void change_put_leased(struct change *ch, const char *key, const char *value, uint64_t lease);
void change_del(struct change *ch, const char *key);
void change_cmp(struct change *ch, const char *key, uint64_t mod_rev);
unsigned change_ops(const struct change *ch);
/* Takes ch. false: out of memory, or no place in the queue: cb is not called, ch is gone. */
bool change_submit(struct ctlr *c, struct change *ch);
void change_cancel(struct change *ch);
RWY_MUST_CHECK int writer_start(struct ctlr *c);
void writer_stop(struct ctlr *c);

/* --- server/req.c, server/http.c: requests
 * ---------------------------------------------------------------------------------- */

enum role { ROLE_NONE, ROLE_GATEWAY = 1, ROLE_OPERATOR = 2, ROLE_SCHEDULER = 4, ROLE_NETWORK = 8 };

struct identity {
	char name[MDL_NAME];
	enum role role;
};

#define REQ_ARGS   3
#define REQ_PARAMS 8

enum outcome {
	REQ_DONE, /* the reply is there */
	REQ_WAIT, /* somebody has it: req_finish later */
};

typedef enum outcome handler(struct ctlr *c, struct req *r);

struct param {
	char name[32], value[128];
};

struct req {
	struct ctlr *c;
	void *connection; /* MHD's */
	struct worker *worker;
	handler *run;
	const char *method;
	struct identity who;
	char arg[REQ_ARGS][MDL_NAME + MDL_ID]; /* of the path */
	struct param param[REQ_PARAMS];
	unsigned params;
	char *body;
	size_t len, cap;
	/* the reply */
	unsigned status;
	json_t *json;
	char *text; /* instead; malloced, or: */
	const void *data;
	size_t data_len;
	const char *type;
	char allow[64]; /* of a 405 */
	/* waiting */
	unsigned tries;
	bool waiting, finished;
	bool unsure;          /* the store's answer to it was lost once */
	uint64_t after, saw;  /* saw: the revision that the handler knew */
	rwy_time came, until; /* whole; at the latest */
	struct req *next;
	struct site *site;
	struct ask *ask; /* of networks' controllers: job/ask.c */
};

enum outcome req_fail(struct req *r, unsigned status, const char *field, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
enum outcome req_reply(struct req *r, unsigned status, json_t *json); /* takes json */
enum outcome req_done(struct req *r, unsigned status, uint64_t rev);  /* {"revision": rev} */
enum outcome req_wrong(struct req *r, const struct mdl_error *err);   /* 400 */
/* The body as a struct of table t; false: the reply says why not. *json (may be NULL): the caller's
 * reference. */
bool req_read(struct req *r, const struct mdl_table *t, void *out, json_t **json);
const char *req_param(const struct req *r, const char *name);
bool req_number(struct req *r, const char *name, uint64_t min, uint64_t max, uint64_t dflt, uint64_t *out);
/* Submits; the reply is `status` with the revision, or what the store says; the handler runs again when
 * something else was first. */
enum outcome req_commit(struct req *r, struct change *ch, unsigned status);
/* The same, with a reply of its own made once it is applied. */
enum outcome req_commit_then(struct req *r, struct change *ch, change_cb *then);
/* The same; then, in place of a reply, `next`, which makes it or waits. */
enum outcome req_commit_next(struct req *r, struct change *ch, handler *next);
void req_store_failed(struct req *r, int rc);
void req_run_again(struct req *r);             /* locked; its handler, from the beginning */
void req_over(struct req *r);                  /* locked; as req_finish, for a reply that may be a refusal */
void req_finish(struct req *r);                /* locked; the reply is there: it goes out */
void req_go_on(struct req *r);                 /* locked; its handler runs again, in its thread */
void req_again_all(struct ctlr *c, bool stop); /* locked; those that waited for what was first */
bool req_is(const struct req *r, const char *gateway); /* the caller is that gateway, or 403 */

RWY_MUST_CHECK int http_start(struct ctlr *c);
void http_stop(struct ctlr *c);
/* Any thread: connections that are open, requests that wait. */
void http_count(unsigned *connections, unsigned *waiting);
RWY_MUST_CHECK int trust_load(const struct ctlr_conf *conf); /* again for a new revocation list */

struct endpoint {
	const char *method, *path; /* "/v1/gateways/{}/lease" */
	unsigned roles;
	const char *params; /* known ones */
	handler *run;
};
const struct endpoint *endpoint_find(
    const char *method, const char *path, struct req *r, bool *other, char allow[64]);
const struct endpoint *endpoint_at(unsigned i);

/* --- gateways (fleet/gateway.c), documents (fleet/document.c), tunnels (fleet/tunnels.c)
 * ----------------------------------------- */

uint64_t document_generation(const struct ctlr *c, const struct gateway *g);
json_t *document_json(struct ctlr *c, struct gateway *g);
void gateway_tick(struct ctlr *c, rwy_time now); /* leases that run out, polls */
json_t *session_json(const struct session *s);
json_t *gateway_json(struct ctlr *c, const struct gateway *g);
json_t *gateway_record(const struct gateway *g, const char *owner, bool up);
uint32_t gateway_ttl_ms(const struct ctlr *c);
void tunnels_tick(struct ctlr *c, rwy_time now);
/* What is known between the ends, first end[from]. */
void tunnel_path(struct ctlr *c, const struct tunnel *t, unsigned from, struct plan_path *out, rwy_time now);
void tunnel_caps(const struct gateway *g, struct plan_caps *out);
void tunnel_question(struct ctlr *c, const struct tunnel *t, struct plan_question *q, rwy_time now);
bool sites_want(const struct site *a, const struct site *b);
static inline bool site_least(const struct site *s)
{
	return s->m.has_weighting && s->m.weighting == MODEL_LEAST;
}
/* The weights of a site's gateways, in its list's order; returns how many. */
unsigned site_weights(const struct site *s, struct gateway **g, uint32_t *w, unsigned max);

/* --- sessions (fleet/session.c), tenants (fleet/tenant.c), jobs (job/job.c), routes (fleet/routes.c)
 * ------------------------------------ */

/* now: the tunnel that it is on already, which it keeps; NULL: not known. QPNs of source and destination; 0:
 * not known. */
struct flow *flow_decide(struct ctlr *c, uint32_t vni, const char *source, const char *destination,
    const uint32_t qpn[2], struct site *at, struct tunnel *now, const char **reason);
/* Between two addresses, in any order, and these QPNs (0, 0: all of them); NULL: no session is open. */
struct flow *flow_find(
    struct ctlr *c, uint32_t vni, const char *a, const char *b, uint32_t a_qpn, uint32_t b_qpn);
void flow_settle(struct ctlr *c, struct flow *f); /* one without a tunnel that is up gets one */
void session_free(struct ctlr *c, struct session *s);
void flows_replan(struct ctlr *c, struct gateway *g); /* those whose tunnel is down */
void flow_lost_tunnel(struct ctlr *c, struct tunnel *t);
/* What a gateway of site s is told of a tenant; NULL: nothing of it is there. */
json_t *tenant_for(struct ctlr *c, const struct net_tenant *t, const struct gateway *g);
void tenant_apply(struct ctlr *c, const struct store_kv *kv, const char *name);
void tenant_free(struct ctlr *c, struct net_tenant *t);
void job_apply(struct ctlr *c, const struct store_kv *kv, const char *name);
void job_free(struct ctlr *c, struct job *j);
void grant_apply(struct ctlr *c, const struct store_kv *kv, const char *job);
void grant_free(struct ctlr *c, struct grant *g);
void ask_end(struct req *r);                                  /* the request is over */
void job_tenant(struct ctlr *c, const struct net_tenant *nt); /* its jobs have its VNI */
void job_tick(struct ctlr *c);
void job_assignments(struct ctlr *c, struct gateway *g, json_t *list);
/* The tunnel that a job gave to it; NULL: none did. */
struct tunnel *job_tunnel(struct ctlr *c, const struct flow *f);
void routes_changed(struct ctlr *c, struct site *s); /* NULL: of all sites */
void routes_tick(struct ctlr *c, rwy_time now);
void job_routes(struct ctlr *c, struct site *s, json_t *list);

/* --- events (event.c), metrics (server/metrics.c)
 * -------------------------------------------------------------------------- */

enum severity { EVENT_INFO, EVENT_WARNING, EVENT_ERROR };
/* Any thread; goes to the log as well. */
void event(enum severity severity, const char *what, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
json_t *events_json(uint64_t after, unsigned limit);

#define COUNTERS(X)                                                                                          \
	X(requests, "requests answered")                                                                     \
	X(refused, "requests refused: 4xx")                                                                  \
	X(store_errors, "requests that the store did not take: 503")                                         \
	X(unauthenticated, "requests without a certificate that holds")                                      \
	X(slow_clients, "connections ended because a request or an answer took too long")                    \
	X(too_large, "requests with a body above the limit")                                                 \
	X(registrations, "registrations taken")                                                              \
	X(leases, "leases renewed")                                                                          \
	X(expired, "leases that ran out")                                                                    \
	X(documents, "documents sent")                                                                       \
	X(sessions_opened, "sessions reported as opened")                                                    \
	X(sessions_refused, "sessions not kept: too many")                                                   \
	X(decisions, "decisions answered")                                                                   \
	X(links, "link measurements taken")                                                                  \
	X(links_unknown, "link measurements to gateways that there is no tunnel to")                         \
	X(tunnel_changes, "tunnels written")                                                                 \
	X(commits, "transactions that the store took")                                                       \
	X(commit_conflicts, "transactions that another one was before")                                      \
	X(network_calls, "calls to networks' controllers")                                                   \
	X(network_errors, "of those, calls that were not answered, or with nonsense")                        \
	X(network_refusals, "of those, calls that were refused")                                             \
	X(network_made, "tunnels in networks made or changed")                                               \
	X(network_dropped, "tunnels in networks given back")                                                 \
	X(watch_restarts, "times that the store's watch began again")

struct counters {
#define X(name, text) uint64_t name;
	COUNTERS(X)
#undef X
};
extern struct counters counters;
#define COUNT(name) __atomic_add_fetch(&counters.name, 1, __ATOMIC_RELAXED)
char *metrics_text(struct ctlr *c);
void metrics_decision(rwy_dur took); /* how long a report's decisions took, for the histogram */

/* What is served at /: made from controller/page at build time. */
struct page_file {
	const char *path, *type;
	const unsigned char *data;
	size_t len;
};
const struct page_file *page_find(const char *path);

#endif
