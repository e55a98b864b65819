/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The objects that the controller knows. All hang on struct ctlr; only controller/ includes this.
 *
 * The objects are in memory, indexed by hash, and `lock` protects them. Records that outlive the
 * process are in the store, and have one way in, whoever wrote them: a change goes to the store
 * (writer.c), comes back through the watch, and is applied in the order of revisions (apply.c). So
 * a change that the store did not accept has no effect, and replicas agree. Sessions, measurements
 * and loads are not stored; gateways report them again.
 *
 * Threads: HTTP's (requests), the writer's (calls to the store), the watcher's, the main thread
 * (leases, polls, tunnels), and one for each network's controller. Each holds the lock for a short
 * time, never over a call to the store or a network. A reply is made locked and sent unlocked, so
 * it holds copies and no reference to JSON that is kept here (`make tsan`).
 *
 * "Locked" in a comment means: the caller holds the lock. "List" and "queue" mark a list's head.
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

#define CTLR_MEMBERS     2 /* gateways of a pair, pair.h */
#define CTLR_ALL_MEMBERS CTLR_MEMBERS
#define CTLR_REPLICA_TTL 3000u /* ms; of a replica's lease in the store */

#define CTLR_TICK_MS 20 /* longest delay before an expired lease is noticed or a poll answered */

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
	uint64_t mod_rev;             /* of its record */
	uint64_t changed_rev;         /* of the last change that its gateways' documents show */
	struct ctlr_gateway *gateway; /* list */
	unsigned gateways;
	uint64_t routes_gen;
	json_t *redirects; /* fleet/redirect.c; NULL: nobody has asked */
	uint64_t redirects_gen;
	rwy_time redirects_at;
	unsigned redirects_left; /* prefixes that are not in it */
};

struct ctlr_host { /* fleet/host.c; not stored */
	struct ctlr_map_node node;
	char name[MDL_NAME];
	struct model_host_lease m;
	/* boot_id of the agent that it had before; "": none. Two agents with one name were seen. */
	char before[MDL_ID];
	bool twice;
	rwy_time heard;
};

enum ctlr_work {
	CTLR_WORK_DOCUMENT, /* its document may have changed, and its poll may be answered */
	CTLR_WORK_TUNNELS,  /* it may need other tunnels */
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
	/* The rest is not stored. */
	rwy_time heard, expires;
	uint64_t running, refused;
	char refusal[256];
	struct model_load load;
	struct ctlr_work_link work[CTLR_WORK_KINDS];
	bool changing;   /* a change of its record is submitted and not yet applied */
	unsigned missed; /* failed attempts to store the end of its lease */
	/* of one of a pair at its index, else at 0 */
	struct ctlr_req *poll[CTLR_MEMBERS];
	/* Reports of all its sessions (fleet/session.c), by the same index */
	struct {
		uint32_t round; /* number of the series */
		uint64_t part;  /* of it, the last one that came; 0: one is missing */
	} all[CTLR_MEMBERS];
};

struct ctlr_link { /* a measurement by one end, for one carrier */
	bool has;
	struct model_link m;
	rwy_time at;
};

struct ctlr_tunnel {
	struct ctlr_map_node node;
	char name[2 * MDL_NAME]; /* "A/B", A < B */
	struct ctlr_gateway *end[2];
	struct ctlr_tunnel *next[2]; /* next in the list of end[i] */
	uint64_t mod_rev;
	/* These are stored. */
	bool has; /* a decision exists */
	uint8_t carrier;
	uint64_t rate_bps, reserved_bps; /* reserved: by networks for jobs; 0: none */
	uint32_t weight;
	char rule[24];
	/* [{edge, path, bandwidth_bps, rate_bps, first, second, dscp, source_port}] in networks'
	 * tunnels, by number (fleet/steer.c); NULL: none */
	json_t *paths;
	char unsteered[192]; /* why it has none of what was granted */
	/* The rest is not stored. */
	json_t *along[2]; /* what each end says of its paths, [{label, ...}]; NULL: nothing */
	struct plan_hyst hyst;
	rwy_time again;
	struct ctlr_link link[2][PLAN_CARRIER_COUNT];
	struct ctlr_flow *flow; /* list */
	uint32_t flows;
	struct ctlr_tunnel *plan_next, *plan_prev; /* queue of tunnels to decide again */
	bool plan, changing;
};

/* The reason for a flow's pair of gateways. X(enumerator, word, sentence) */
#define FLOW_WHYS(X)                                                                                         \
	X(FLOW_JOB, "job", "the plan of its job names the pair of gateways")                                 \
	X(FLOW_UNDER_WAY, "under-way", "it was on this pair of gateways when it was reported")               \
	X(FLOW_SPREAD, "spread", "weighted rendezvous with bounded loads, of the pairs that are up")

enum ctlr_flow_why {
#define X(e, w, s) e,
	FLOW_WHYS(X)
#undef X
};

struct ctlr_flow { /* traffic that stays together on one tunnel */
	struct ctlr_map_node node;
	char key[192];
	uint32_t vni;
	char addr[2][MDL_ADDR]; /* at end[0]'s site, at end[1]'s */
	uint32_t qpn[2];        /* of a job spread by queue pairs; 0: all between the addresses */
	uint64_t job;           /* plan_id() of that job's name */
	struct ctlr_site *site[2];
	struct ctlr_tunnel *tunnel;    /* NULL: no tunnel is up */
	enum ctlr_flow_why why;        /* why that tunnel */
	struct ctlr_flow *next, *prev; /* in the tunnel's list */
	uint64_t rate_bps;             /* share of a job's rate; 0: none */
	unsigned refs;
};

struct ctlr_session {
	struct ctlr_map_node node;
	char key[MDL_NAME + MDL_ID]; /* "GATEWAY:ID" */
	struct ctlr_gateway *gateway;
	uint8_t member;                   /* of a pair: index of the one that reported it */
	uint32_t round;                   /* ctlr_gateway.all.round when it was opened */
	struct ctlr_session *next, *prev; /* in the gateway's list */
	struct ctlr_flow *flow;           /* NULL: no decision */
	const char *reason;               /* why there is no decision */
	uint32_t vni, source_qpn, destination_qpn;
	uint16_t udp_port;
	char source[MDL_ADDR], destination[MDL_ADDR];
	uint64_t bytes, demand_bps;
	rwy_time opened;
	struct ctlr_relay_link *link;   /* relay_link.h; NULL: of none */
	struct ctlr_session *link_next; /* in the link's list */
	char relay[MDL_ADDR];           /* for the host at `source` */
};

struct ctlr_relay_link {
	struct ctlr_map_node node;
	char key[17];                 /* 16 hexadecimal digits */
	struct ctlr_session *session; /* list: what its relays reported, the newest first */
};

struct ctlr_tenant {
	struct ctlr_map_node node;
	char name[MDL_NAME];
	json_t *json; /* as a client put it */
	uint32_t vni;
	uint64_t mod_rev;
};

struct ctlr_job {
	struct ctlr_map_node node;
	char name[MDL_NAME];
	json_t *json; /* the record: the job as posted, plan, claims, until_ms */
	struct plan_claim *claim;
	unsigned claims;
	uint32_t vni;
	uint64_t mod_rev, until_ms; /* until_ms: wall clock; 0: no end */
	/* job/react.h: since when it would be planned otherwise (0: it would not); whether its plan
	 * is to be made anew */
	rwy_time differs_at;
	bool stale;
	bool too_large; /* job/move.c: the store does not take its new plan */
};

static inline uint64_t ctlr_job_priority(const struct ctlr_job *j)
{
	return mdl_number_of(json_object_get(j->json, "job"), "priority");
}

struct ctlr_push { /* a report by a network's controller */
	struct ctlr_map_node node;
	char key[3 * MDL_NAME];
	char site[2][MDL_NAME], source[MDL_NAME];
	struct model_link_push m;
	uint64_t at_ms, mod_rev; /* at_ms: wall clock */
	uint32_t id;
};

struct ctlr_detour { /* of a tunnel, whether or not it is there */
	struct ctlr_map_node node;
	char key[2 * MDL_NAME]; /* as the tunnel's name */
	struct model_detour m;
	uint64_t mod_rev;
};

/* The calls of state/ to the rooms above it, which fill this table. All run locked. */
struct ctlr_ops {
	/* Applies a record of an object that another room keeps. kv->value NULL: it was deleted. */
	void (*tenant_apply)(struct ctlr *c, const struct store_kv *kv, const char *name);
	void (*job_apply)(struct ctlr *c, const struct store_kv *kv, const char *name);
	void (*reservation_apply)(struct ctlr *c, const struct store_kv *kv, const char *job);
	/* A gateway that has a poll is about to be freed. */
	void (*gateway_removed)(struct ctlr *c, struct ctlr_gateway *g);
	/* The watch has applied all that arrived. `stop`: nothing more will arrive. */
	void (*applied)(struct ctlr *c, bool stop);
};

struct ctlr {
	const struct ctlr_conf *conf;
	const struct ctlr_ops *ops;
	const struct ctlr_endpoint *endpoints; /* the API's paths */
	struct store *store;
	rwy_time started;
	struct ctlr_writer *writer;    /* writer.c */
	struct ctlr_trust *trust;      /* server/trust.c */
	struct ctlr_http *http;        /* server/ */
	struct ctlr_network *networks; /* job/network.c */
	struct ctlr_counters counters;
	struct ctlr_events *events; /* event.c */

	pthread_mutex_t lock;
	struct ctlr_map gateways, pairs, sites, tunnels, sessions, flows, tenants, jobs, pushes, replicas,
	    routes, reservations, reserved, pinned, containers, hosts, relay_links, detours;
	struct ctlr_lpm lpm;  /* (VNI, prefix) -> struct ctlr_site */
	struct ctlr_map vnis; /* "VNI" -> struct ctlr_tenant; fleet/tenant.c */
	struct plan_book *book;
	uint64_t rev;       /* the store's revision that is applied */
	uint64_t guard_rev; /* of the key that every change of sites, tenants and jobs compares */
	uint64_t touch_rev; /* of the last change that concerns all documents */
	unsigned up;
	unsigned pairs_protected; /* pairs of gateways: the other one could take over */
	unsigned least;           /* sites whose weights follow their gateways' loads */
	uint32_t push_id;
	int store_rc; /* result of the last call */
	bool loaded;
	struct ctlr_req *polls; /* for routes and ranks; server/poll.h */
	/* requests that lost against another change; they run again when that one is applied */
	struct ctlr_req *retry;
	uint64_t routes_gen; /* generation of the routes of all sites */
	struct {
		struct ctlr_gateway *first, *last;
	} work[CTLR_WORK_KINDS];    /* queues of gateways */
	struct ctlr_tunnel *plan;   /* queue of tunnels */
	struct ctlr_orphan *orphan; /* orphan.h */
	rwy_time orphans_at;        /* when they are tried again */
	/* jobs must be checked; a change of jobs is submitted and not yet applied */
	bool jobs_look, jobs_changing;
	rwy_time jobs_at, jobs_broken_at;
	/* job/end.c: a change that withdraws jobs is submitted; the next one has one job only */
	bool jobs_ending, jobs_end_alone;
	/*
	 * job/move.c: jobs_alone: jobs move one by one; jobs_tries: broken jobs that may still be
	 * planned before jobs_broken_at; moved: the last job of the present change; tried: where
	 * the next turn of broken jobs begins
	 */
	bool jobs_alone;
	unsigned jobs_tries;
	char moved[MDL_NAME], tried[MDL_NAME];
	uint64_t tried_priority;
	/* job/react.h: when the next job is looked at, and the last one; the same of each network's
	 * round in which it is asked for the tunnels of all jobs */
	rwy_time react_at;
	char reacted[MDL_NAME];
	struct {
		rwy_time at;
		char last[MDL_NAME];
	} ask[CTLR_PROVIDERS_MAX];
	size_t swept, swept_gateways;
	rwy_time hosts_at; /* when silent hosts were last looked for */
	/* replica.c: the last time that others were sure to see this replica; until when gateways
	 * that found none have time */
	rwy_time renewed, grace_until;
	bool had_others; /* there were other replicas when the lease was renewed last */
};

static inline void ctlr_lock(struct ctlr *c)
{
	pthread_mutex_lock(&c->lock);
}
static inline void ctlr_unlock(struct ctlr *c)
{
	pthread_mutex_unlock(&c->lock);
}
rwy_time ctlr_now(void);     /* monotonic, ns */
uint64_t ctlr_wall_ms(void); /* ms since 1970 */

/* --- state.c: objects and their links. All locked --------------------------------------------- */

/* Finds or makes; NULL: out of memory. */
struct ctlr_site *ctlr_site_need(struct ctlr *c, const char *name);
void ctlr_site_drop_unused(struct ctlr *c, struct ctlr_site *s); /* frees it if nothing names it */
/* Finds or makes the gateway; NULL: out of memory. */
struct ctlr_gateway *ctlr_gateway_need(struct ctlr *c, const char *name);
/* Moves the gateway to a site; NULL: to none. */
void ctlr_gateway_set_site(struct ctlr *c, struct ctlr_gateway *g, struct ctlr_site *s);
/* Frees the sessions that a member of a pair reported, or with CTLR_ALL_MEMBERS all of them. g may
 * be NULL. */
void ctlr_gateway_drop_sessions(struct ctlr *c, struct ctlr_gateway *g, unsigned member);
/* Frees the gateway with its tunnels and sessions. */
void ctlr_gateway_free(struct ctlr *c, struct ctlr_gateway *g);
/* The name of the tunnel of two gateways, in any order: "GATEWAY/GATEWAY". */
void ctlr_tunnel_key(char out[2 * MDL_NAME], const char *a, const char *b);
/* The tunnel of two gateways, in any order; NULL: there is none. */
struct ctlr_tunnel *ctlr_tunnel_find(struct ctlr *c, const char *a, const char *b);
/* Finds or makes it; NULL: out of memory. */
struct ctlr_tunnel *ctlr_tunnel_need(struct ctlr *c, struct ctlr_gateway *a, struct ctlr_gateway *b);
/* Frees the tunnel; its flows are on none then. */
void ctlr_tunnel_free(struct ctlr *c, struct ctlr_tunnel *t);
/* True if both gateways' leases are valid and the tunnel has a carrier. */
bool ctlr_tunnel_up(const struct ctlr_tunnel *t);
/* A relay has hosts that connect to its address; no host's route leads to it. */
static inline bool ctlr_is_relay(const struct ctlr_gateway *g)
{
	return g->reg.capabilities.has_relay;
}
static inline unsigned ctlr_tunnel_side(const struct ctlr_tunnel *t, const struct ctlr_gateway *g)
{
	return t->end[1] == g;
}
/* The tunnel of "GATEWAY/GATEWAY", in any order; NULL: there is none. */
struct ctlr_tunnel *ctlr_tunnel_of_pair(struct ctlr *c, const char *pair);
/* All jobs in the order of their names, which all replicas share; NULL-terminated. The caller frees
 * the array. NULL: out of memory. */
struct ctlr_job **ctlr_jobs_by_name(struct ctlr *c);
/* The term of gateways' leases in ms; it grows with their number. */
uint32_t ctlr_gateway_ttl_ms(const struct ctlr *c);
static inline bool ctlr_site_least(const struct ctlr_site *s)
{
	return s->m.has_weighting && s->m.weighting == MODEL_LEAST;
}
void ctlr_state_free(struct ctlr *c); /* frees all objects; jobs and tenants are freed before */

/* --- apply.c, load.c: the store's records ----------------------------------------------------- */

int ctlr_load_all(struct ctlr *c); /* reads and applies everything; takes the lock */
void ctlr_apply_record(struct ctlr *c, const struct store_kv *kv); /* locked */
/* When a lease that begins now runs out. After a start, or a time without the store, it includes
 * the grace: gateways must first notice that this controller is back. */
rwy_time ctlr_lease_expiry(const struct ctlr *c);
/* True if the replica's lease is valid. Locked. */
bool ctlr_replica_alive(const struct ctlr *c, const char *name);
/* True if this replica decides about the tunnel: the first of its gateways that is up talks to
 * it. */
bool ctlr_tunnel_is_ours(const struct ctlr *c, const struct ctlr_tunnel *t);

/* --- replica.c -------------------------------------------------------------------------------- */

/* True if other replicas take this one for gone: it could not renew its lease in time. Locked. */
bool ctlr_replica_cut_off(const struct ctlr *c);
/* The lease was renewed by a request that began then. Locked. */
void ctlr_replica_renewed(struct ctlr *c, rwy_time at);

/* --- writer.c --------------------------------------------------------------------------------- */

/* Starts the writer's thread and the watcher's. RWY_ENOMEM. */
RWY_MUST_CHECK int ctlr_writer_start(struct ctlr *c);
/* Writes what is queued, ends both threads, and ends the changes that still wait. */
void ctlr_writer_stop(struct ctlr *c);
/* The last call: until then changes are still submitted, and refused. */
void ctlr_writer_free(struct ctlr *c);

#endif
