/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The objects that the controller knows, below struct ctlr; inside controller/ only.
 *
 * Everything below `lock` is in memory, indexed by hash. Records that outlive the process are in the store,
 * and have one way in, whoever wrote them: a change goes to the store (writer.c), comes back through the
 * watch, and is applied in the order of revisions (apply.c). So a change that the store did not take has
 * changed nothing, and replicas agree. Sessions, measurements and loads are not stored: gateways report them
 * again.
 *
 * Threads: HTTP's (requests), the writer's (the store's calls), the watcher's, the main thread (leases,
 * polls, tunnels), one for each network's controller. All take the lock for a short time; none holds it over
 * a call of the store or a network. A reply is made locked and sent unlocked: it has copies, never a
 * reference to JSON that is kept here (`make tsan`). "Locked" in a comment means: the caller holds the lock.
 */
#ifndef CONTROLLER_STATE_CTLR_H
#define CONTROLLER_STATE_CTLR_H

#include <jansson.h>
#include <pthread.h>

#include "controller/conf/conf.h"
#include "controller/state/counters.h"
#include "controller/state/lpm.h"
#include "controller/state/map.h"
#include "controller/model/model.h"
#include "controller/plan/book.h"
#include "controller/plan/decide.h"
#include "controller/plan/spread.h"
#include "controller/plan/weight.h"
#include "controller/store/store.h"
#include "rwy/time.h"

#define CTLR_TICK_MS 20 /* longest delay before an expired lease is noticed, or a poll answered */

struct ctlr;
struct ctlr_endpoint;
struct ctlr_events;
struct ctlr_flow;
struct ctlr_gateway;
struct ctlr_http;
struct ctlr_network;
struct ctlr_req;
struct ctlr_session;
struct ctlr_trust;
struct ctlr_tunnel;
struct ctlr_writer;

struct ctlr_site {
	struct ctlr_map_node node;
	char name[MDL_NAME];
	bool stored; /* false: only gateways or tenants name it */
	struct model_site m;
	uint64_t mod_rev;             /* the record's */
	uint64_t changed_rev;         /* the last change that its gateways' documents show */
	struct ctlr_gateway *gateway; /* list */
	unsigned gateways;
	uint64_t routes_gen;
};

enum ctlr_work {
	CTLR_WORK_DOCUMENT, /* its document may have changed: its poll is looked at */
	CTLR_WORK_TUNNELS,  /* it may have other tunnels now */
	CTLR_WORK_KINDS
};

struct ctlr_work_link {
	struct ctlr_gateway *next, *prev;
	bool queued;
};

struct ctlr_gateway {
	struct ctlr_map_node node;
	char name[MDL_NAME];
	struct model_registration reg;
	uint64_t lease, mod_rev, touch_rev, job_rev;
	char owner[MDL_NAME]; /* the replica that it talks to */
	bool up;
	struct ctlr_site *site;
	struct ctlr_gateway *site_next;
	struct ctlr_tunnel *tunnel; /* list */
	unsigned tunnels, sessions;
	struct ctlr_session *session; /* list */
	/* not stored */
	rwy_time heard, expires;
	uint64_t running, refused;
	char refusal[256];
	struct model_load load;
	struct ctlr_work_link work[CTLR_WORK_KINDS];
	bool changing;   /* a change of its record is on the way */
	unsigned missed; /* failed attempts to store that its lease ran out */
	struct ctlr_req *poll;
};

struct ctlr_link { /* as one end measured it, by one carrier */
	bool has;
	struct model_link m;
	rwy_time at;
};

struct ctlr_tunnel {
	struct ctlr_map_node node;
	char name[2 * MDL_NAME]; /* "A/B", A < B */
	struct ctlr_gateway *end[2];
	struct ctlr_tunnel *next[2]; /* in the list of end[i] */
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
	struct ctlr_link link[2][PLAN_CARRIER_COUNT];
	struct ctlr_flow *flow; /* list */
	uint32_t flows;
	struct ctlr_tunnel *plan_next, *plan_prev; /* those to be looked at */
	bool plan, changing;
};

/* Why a flow has its pair of gateways. X(enumerator, word, sentence) */
#define FLOW_WHYS(X)                                                                                         \
	X(FLOW_JOB, "job", "the plan of its job names the pair of gateways")                                 \
	X(FLOW_UNDER_WAY, "under-way", "it was on this pair of gateways when it was reported")               \
	X(FLOW_SPREAD, "spread", "weighted rendezvous with bounded loads, of the pairs that are up")

enum ctlr_flow_why {
#define X(e, w, s) e,
	FLOW_WHYS(X)
#undef X
};

struct ctlr_flow { /* what stays together on one tunnel */
	struct ctlr_map_node node;
	char key[192];
	uint32_t vni;
	char addr[2][MDL_ADDR]; /* at end[0]'s site, at end[1]'s */
	uint32_t qpn[2];        /* of a job that is spread by them; 0: all between the addresses */
	uint64_t job;           /* that job: plan_id of its name */
	struct ctlr_site *site[2];
	struct ctlr_tunnel *tunnel;    /* NULL: none is there */
	enum ctlr_flow_why why;        /* that one */
	struct ctlr_flow *next, *prev; /* of the tunnel */
	uint64_t rate_bps;             /* a job's share; 0: none */
	unsigned refs;
};

struct ctlr_session {
	struct ctlr_map_node node;
	char key[MDL_NAME + MDL_ID]; /* "GATEWAY:ID" */
	struct ctlr_gateway *gateway;
	struct ctlr_session *next, *prev; /* of the gateway */
	struct ctlr_flow *flow;           /* NULL: no decision */
	const char *reason;               /* why there is none */
	uint32_t vni, source_qpn, destination_qpn;
	uint16_t udp_port;
	char source[MDL_ADDR], destination[MDL_ADDR];
	uint64_t bytes, demand_bps;
	rwy_time opened;
};

struct ctlr_tenant {
	struct ctlr_map_node node;
	char name[MDL_NAME];
	json_t *json; /* as it was put */
	uint32_t vni;
	uint64_t mod_rev;
};

struct ctlr_job {
	struct ctlr_map_node node;
	char name[MDL_NAME];
	json_t *json; /* the record: job as it was posted, plan, claims, until_ms */
	struct plan_claim *claim;
	unsigned claims;
	uint32_t vni;
	uint64_t mod_rev, until_ms; /* of the wall's clock; 0: none */
};

struct ctlr_push { /* what a network's controller said */
	struct ctlr_map_node node;
	char key[3 * MDL_NAME];
	char site[2][MDL_NAME], source[MDL_NAME];
	struct model_link_push m;
	uint64_t at_ms, mod_rev; /* of the wall's clock */
	uint32_t id;
};

/* The state calls the rooms above it by these only. All of them locked. */
struct ctlr_ops {
	/* A record of the store that another room keeps. kv->value NULL: it is gone. */
	void (*tenant_apply)(struct ctlr *c, const struct store_kv *kv, const char *name);
	void (*job_apply)(struct ctlr *c, const struct store_kv *kv, const char *name);
	void (*reservation_apply)(struct ctlr *c, const struct store_kv *kv, const char *job);
	/* A gateway that has a poll is about to be freed. */
	void (*gateway_removed)(struct ctlr *c, struct ctlr_gateway *g);
	/* The watch has applied all that came; stop: nothing more will come. */
	void (*applied)(struct ctlr *c, bool stop);
};

struct ctlr {
	const struct ctlr_conf *conf;
	const struct ctlr_ops *ops;
	const struct ctlr_endpoint *endpoints; /* the table of the API */
	struct store *store;
	rwy_time started;
	struct ctlr_writer *writer;    /* writer.c */
	struct ctlr_trust *trust;      /* server/trust.c */
	struct ctlr_http *http;        /* server/ */
	struct ctlr_network *networks; /* job/network.c */
	struct ctlr_counters counters;
	struct ctlr_events *events; /* event.c */

	pthread_mutex_t lock;
	struct ctlr_map gateways, sites, tunnels, sessions, flows, tenants, jobs, pushes, replicas, routes,
	    reservations, reserved;
	struct ctlr_lpm lpm;  /* prefix -> struct ctlr_site */
	struct ctlr_map vnis; /* "VNI" -> struct ctlr_tenant: see fleet/tenant.c */
	struct plan_book *book;
	uint64_t rev;       /* applied */
	uint64_t guard_rev; /* the key's that every change of sites, tenants and jobs compares */
	uint64_t touch_rev; /* the last change that concerns all documents */
	unsigned up;
	unsigned least; /* sites whose weights follow their gateways' loads */
	uint32_t push_id;
	int store_rc; /* the last call's result */
	bool loaded;
	struct ctlr_req *polls; /* of routes */
	struct ctlr_req *retry; /* another change was first: they run when that is applied */
	uint64_t routes_gen;    /* of all sites */
	struct {
		struct ctlr_gateway *first, *last;
	} work[CTLR_WORK_KINDS];       /* queues */
	struct ctlr_tunnel *plan;      /* queue */
	bool jobs_look, jobs_changing; /* jobs are to be checked; a change of jobs is on the way */
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

/* --- state.c: objects and how they hang together ---------------------------------------------- */

struct ctlr_site *ctlr_site_need(struct ctlr *c, const char *name); /* found or made; NULL: out of memory */
void ctlr_site_drop_unused(struct ctlr *c, struct ctlr_site *s);    /* nobody names it any more */
struct ctlr_gateway *ctlr_gateway_need(struct ctlr *c, const char *name);
void ctlr_gateway_set_site(struct ctlr *c, struct ctlr_gateway *g, struct ctlr_site *s);
void ctlr_gateway_free(struct ctlr *c, struct ctlr_gateway *g);
struct ctlr_tunnel *ctlr_tunnel_find(struct ctlr *c, const char *a, const char *b);
struct ctlr_tunnel *ctlr_tunnel_need(struct ctlr *c, struct ctlr_gateway *a, struct ctlr_gateway *b);
void ctlr_tunnel_free(struct ctlr *c, struct ctlr_tunnel *t);
bool ctlr_tunnel_up(const struct ctlr_tunnel *t);
static inline unsigned ctlr_tunnel_side(const struct ctlr_tunnel *t, const struct ctlr_gateway *g)
{
	return t->end[1] == g;
}
/* The tunnel of "GATEWAY/GATEWAY", in any order; NULL: none. */
struct ctlr_tunnel *ctlr_tunnel_of_pair(struct ctlr *c, const char *pair);
/* All of them: the same order at every replica. NULL at the end; to free; NULL: out of memory. */
struct ctlr_job **ctlr_jobs_by_name(struct ctlr *c);
uint32_t ctlr_gateway_ttl_ms(const struct ctlr *c);
static inline bool ctlr_site_least(const struct ctlr_site *s)
{
	return s->m.has_weighting && s->m.weighting == MODEL_LEAST;
}
void ctlr_state_free(struct ctlr *c); /* after jobs and tenants */

/* --- apply.c: the store's changes ------------------------------------------------------------- */

int ctlr_load_all(struct ctlr *c);                                 /* load.c: everything; takes the lock */
void ctlr_apply_record(struct ctlr *c, const struct store_kv *kv); /* locked */
bool ctlr_replica_alive(const struct ctlr *c, const char *name);

/* --- writer.c --------------------------------------------------------------------------------- */

/* Starts the thread that writes and the one that watches. RWY_ENOMEM. */
RWY_MUST_CHECK int ctlr_writer_start(struct ctlr *c);
/* Writes what is queued, ends both threads and whatever waits. */
void ctlr_writer_stop(struct ctlr *c);
void ctlr_writer_free(struct ctlr *c); /* at the end: until then a change that is submitted is refused */

#endif
