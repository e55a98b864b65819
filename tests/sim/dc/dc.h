/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two sites in virtual time: hosts with RC NICs, leaf-spine fabrics, and between them either two Roceway
 * gateways (the engine's own objects) or two border switches. This header is what workloads use: connections,
 * messages, timers, counts. Single threaded; everything follows from the scenario and its seed.
 */
#ifndef SIM_DC_DC_H
#define SIM_DC_DC_H

#include <stdio.h>

#include "tests/sim/dc/net.h"
#include "tests/sim/dc/scen.h"
#include "tests/sim/wan/rng.h"

struct gw;
struct host;
struct qp;
struct border;

/* --- messages --------------------------------------------------------------------------------------- */

/* One SEND or WRITE. Its memory is the simulator's: valid until both have happened, delivery and completion.
 */
struct dc_msg {
	struct dc_msg *next;
	struct qp *qp;
	uint64_t bytes, pkts, first;           /* first packet's sequence number in the queue pair */
	rwy_time posted, delivered, completed; /* 0: not yet */
	/* The last byte is in order at the receiver; then, or before it (a gateway acknowledges early): the
	 * sender's completion. `failed`: the queue pair is in error, there is no completion and perhaps no
	 * delivery. Each at most once. May be NULL. */
	void (*on_delivered)(struct dc_msg *m, rwy_time now);
	void (*on_complete)(struct dc_msg *m, bool failed, rwy_time now);
	void *ctx;
};

/* A connection from host src to host dst (numbers through both sites), with a queue pair at each end; data
 * goes one way. New connections start at line rate. */
struct qp *dc_qp_new(struct dc *dc, unsigned src, unsigned dst);
/* Gives a connection within a site back as soon as all its messages are done; between sites they stay. */
void dc_qp_free(struct qp *qp);
bool dc_qp_failed(const struct qp *qp);
/* Posts a message of 1 byte and more. The caller bounds how many are outstanding (depth). NULL: the queue
 * pair is in error. */
struct dc_msg *dc_post(struct qp *qp, uint64_t bytes, void (*on_delivered)(struct dc_msg *, rwy_time),
    void (*on_complete)(struct dc_msg *, bool, rwy_time), void *ctx, rwy_time now);

/* --- the simulation --------------------------------------------------------------------------------- */

struct dc_counts {
	uint64_t delivered_pkts, delivered_bytes, posted, delivered, completed, failed;
	uint64_t resent, resent_warm, timeouts, naks, cnps, ce, qp_errors, out_of_order;
	uint64_t violations;
};

struct dc {
	struct scen s, given; /* resolved, and as it was said */
	struct evq evq;
	uint64_t rng_net, rng_work; /* apart, so that the same work meets different networks */
	unsigned leaves, per_leaf, per_site, spines, hosts;
	struct host *host;
	struct sw *leaf[2], *spine[2];
	struct sw border[2];
	struct gw *gw[2];
	struct border *rules[2];
	/* A baseline's rule at a border, of a packet that there is room for: false when it keeps it for now.
	 */
	bool (*border_rule)(
	    struct dc *dc, struct sw *s, struct port *in, struct port *out, struct dc_pkt *p, rwy_time now);
	struct qp **qps;
	uint32_t qp_n, qp_cap;
	struct qp *qp_free;
	struct dc_msg *msg_free;
	struct dc_pkt *pkt_free;
	void *chunks; /* memory of the pools */
	uint64_t pkts_live, pkts_peak, msgs_live, qps_live;
	bool warm;     /* connections between the sites are still being made */
	rwy_time zero; /* the scenario's time 0 */
	struct dc_counts c;
	uint64_t hash;
	char first_violation[160];
};

struct dc *dc_new(const struct scen *s);
/* Ends it; counts what leaked as violations in *c (may be NULL). */
void dc_free(struct dc *dc, struct dc_counts *c);
/* Until `until` (absolute), or until stop() says so after an event. */
void dc_run(struct dc *dc, rwy_time until, bool (*stop)(void *ctx), void *ctx);
/* What is queued, in flight or unanswered in the network and in the gateways; true: nothing. */
bool dc_quiet(const struct dc *dc);
void dc_violation(struct dc *dc, const char *what, uint64_t a, uint64_t b);
void *dc_alloc(struct dc *dc, size_t size); /* zeroed, until dc_free */

static inline double dc_unit(struct dc *dc)
{
	return rng_unit(&dc->rng_net);
}

static inline unsigned dc_site(const struct dc *dc, unsigned host)
{
	return host >= dc->per_site;
}

static inline void dc_hash(struct dc *dc, uint64_t v)
{
	dc->hash = (dc->hash ^ v) * 0x100000001b3u;
	dc->hash ^= dc->hash >> 29;
}

/* --- parts ------------------------------------------------------------------------------------------ */

/* host.c */
void dc_hosts_init(struct dc *dc);
void dc_hosts_fini(struct dc *dc);
struct port *dc_host_port(struct dc *dc, unsigned host);      /* the host's own end of its link */
void dc_host_slow(struct dc *dc, unsigned host, double bits); /* its NIC takes no more than this; 0: all */

/* rules.c: baselines at the border switches */
void dc_rules_init(struct dc *dc);
void dc_rules_fini(struct dc *dc);

#endif
