/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two or three sites in virtual time: hosts with RC NICs, leaf-spine fabrics, and at each site a
 * Roceway gateway (the engine's own objects) or a border switch. This header is for workloads:
 * connections, messages, timers, counts. Single-threaded; the scenario and its seed decide
 * everything.
 */
#ifndef SIM_DC_DC_H
#define SIM_DC_DC_H

#include <stdio.h>

#include "tests/sim/dc/ip.h"
#include "tests/sim/dc/net.h"
#include "tests/sim/dc/scen.h"
#include "tests/lib/rng.h"

struct gw;
struct host;
struct qp;
struct border;

/* --- messages --------------------------------------------------------------------------------------- */

/* One SEND or WRITE. The simulator owns it; it is valid until both delivery and completion have
 * happened. */
struct dc_msg {
	struct dc_msg *next;
	struct qp *qp;
	/* first: sequence number of its first packet in the queue pair */
	uint64_t bytes, pkts, first;
	rwy_time posted, delivered, completed; /* 0: not yet */
	/* on_delivered: the last byte is in order at the receiver. on_completed: the sender's
	 * completion, at delivery or, since a gateway acknowledges early, before it. failed: the
	 * queue pair is in error, so there is no completion and perhaps no delivery. Each is called
	 * at most once and may be NULL. */
	void (*on_delivered)(struct dc_msg *m, rwy_time now);
	void (*on_complete)(struct dc_msg *m, bool failed, rwy_time now);
	void *ctx;
};

/* Connects host src to host dst (numbers across both sites), with a queue pair at each end. Data
 * goes one way. New connections start at line rate. */
struct qp *dc_qp_new(struct dc *dc, unsigned src, unsigned dst);
/* Frees a connection within a site as soon as all its messages are done. Connections between sites
 * stay. */
void dc_qp_free(struct qp *qp);
bool dc_qp_failed(const struct qp *qp);
/* Posts a message of at least 1 byte. The caller limits the outstanding ones (depth). NULL: the
 * queue pair is in error. */
struct dc_msg *dc_post(struct qp *qp, uint64_t bytes, void (*on_delivered)(struct dc_msg *, rwy_time),
    void (*on_complete)(struct dc_msg *, bool, rwy_time), void *ctx, rwy_time now);

/* --- the simulation --------------------------------------------------------------------------------- */

#define DC_SITES_MAX 3

struct dc_counts {
	uint64_t delivered_pkts, delivered_bytes, posted, delivered, completed, failed;
	uint64_t resent, resent_warm, timeouts, naks, cnps, ce, qp_errors, out_of_order;
	uint64_t violations;
};

struct dc {
	struct scen s, given; /* resolved, and as given */
	struct evq evq;
	uint64_t rng_net, rng_work; /* separate, so that the same work meets different networks */
	unsigned sites, leaves, per_leaf, per_site, spines, hosts;
	struct host *host;
	struct sw *leaf[DC_SITES_MAX], *spine[DC_SITES_MAX];
	struct sw border[DC_SITES_MAX];
	struct gw *gw[DC_SITES_MAX];
	struct border *rules[2];
	/* A baseline's rule at a border switch, for a packet that has room there; false: the rule
	 * keeps the packet for now. */
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
	rwy_time zero; /* time 0 of the scenario */
	struct dc_counts c;
	struct dc_ip ip;
	uint64_t hash;
	char first_violation[160];
};

struct dc *dc_new(const struct scen *s);
/* Frees everything; adds what leaked to the violations in *c, which may be NULL. */
void dc_free(struct dc *dc, struct dc_counts *c);
/* Runs until `until` (absolute), or until stop() returns true after an event. */
void dc_run(struct dc *dc, rwy_time until, bool (*stop)(void *ctx), void *ctx);
/* True if nothing is queued, in flight or unanswered in the network and the gateways. */
bool dc_quiet(const struct dc *dc);
/* True if the tunnels of all gateways are up; there are gateways. */
bool dc_gws_up(const struct dc *dc);
void dc_violation(struct dc *dc, const char *what, uint64_t a, uint64_t b);
void *dc_alloc(struct dc *dc, size_t size); /* zeroed, until dc_free */

static inline double dc_unit(struct dc *dc)
{
	return rng_unit(&dc->rng_net);
}

/* The WAN loses everything that is sent now. */
static inline bool dc_outage(const struct dc *dc)
{
	double at = (double)(dc->evq.now - dc->zero) - dc->s.outage_at;

	return at >= 0 && at < dc->s.outage_len;
}

static inline unsigned dc_site(const struct dc *dc, unsigned host)
{
	return (host >= dc->per_site) + (host >= 2 * dc->per_site);
}

/* The k-th of the other sites, and which one a site is among those of another. A gateway's tunnels
 * and a border switch's links have these numbers. */
static inline unsigned dc_peer(unsigned site, unsigned k)
{
	return k < site ? k : k + 1;
}

static inline unsigned dc_peer_no(unsigned site, unsigned peer)
{
	return peer < site ? peer : peer - 1;
}

/* ns there and back between two sites. */
static inline double dc_rtt(const struct dc *dc, unsigned a, unsigned b)
{
	return dc->s.rtt * (a < b ? b - a : a - b);
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
struct port *dc_host_port(struct dc *dc, unsigned host); /* the host's end of its link */
/* Limits what its NIC receives, bit/s; 0: no limit. */
void dc_host_slow(struct dc *dc, unsigned host, double bits);

/* rules.c: baselines at the border switches. */
void dc_rules_init(struct dc *dc);
void dc_rules_fini(struct dc *dc);

#endif
