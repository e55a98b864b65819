/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two sites in virtual time: hosts, a gateway engine each, a LAN each, one WAN between. Everything is drawn
 * from a seed; the same seed is the same run, bit for bit. The engines are the gateway's own objects.
 */
#ifndef TESTS_SIM_WORLD_H
#define TESTS_SIM_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"
#include "rwy/time.h"
#include "tests/sim/links.h"

#define SIM_HOSTS 2 /* a site */
/* Tenants of the world are 0, the plain LAN, .. SIM_TENANTS; a site has another index for each. All have the
 * same addresses. */
#define SIM_TENANTS    2
#define SIM_TENANT_IDX 8

struct world;

struct sim_cfg {
	uint64_t seed;
	struct sim_link_cfg wan[2]; /* [site]: away from that site */
	struct sim_link_cfg lan;
	enum eng_ack_mode ack_mode;
	uint32_t wan_mtu;
	uint64_t custody_conn, custody_total, read_cache_conn, read_cache_total;
	bool no_journal; /* crashes are of the machine */
	uint32_t rx_window;
	bool tenants; /* SIM_TENANTS of them besides the plain LAN */
	const char *cc;
	uint64_t rate_Bps;
	bool verbose;
	bool hash; /* of every packet that is sent */
};
void sim_cfg_default(struct sim_cfg *c);

/* A tenant at one site. */
struct sim_tenant {
	uint32_t idx;  /* in the engine, below SIM_TENANT_IDX */
	bool there;    /* its packets are admitted */
	bool removing; /* and it was; the engine still has something of it */
	enum eng_ack_mode ack_mode;
	uint64_t custody;
	struct wan_class_cfg share;
};

struct sim_ops {
	/* A packet for a host of the site. The bytes are the callee's for the call only. */
	void (*host_rx)(void *ctx, unsigned site, unsigned tenant, uint8_t *ip, uint32_t len, rwy_time now);
	void (*tick)(void *ctx, rwy_time now); /* hosts' timers */
	rwy_time (*next)(void *ctx);
};

struct world *sim_new(const struct sim_cfg *cfg, const struct sim_ops *ops, void *ctx);
/* Frees the world; returns how many buffers its engines leaked. */
uint64_t sim_end(struct world *w);
/* A host of `site` sends an IP packet to its gateway. */
void sim_host_tx(struct world *w, unsigned site, unsigned tenant, const uint8_t *ip, uint32_t len);
/* Runs until `until` or until stop() says so. */
void sim_run(struct world *w, rwy_time until, bool (*stop)(void *ctx), void *ctx);
rwy_time sim_now(const struct world *w);
struct eng *sim_engine(struct world *w, unsigned site);
uint64_t sim_buffers(const struct world *w, unsigned site); /* that its engine has */
/* To be changed (idx: only while it is neither there nor being removed), then applied. */
struct sim_tenant *sim_tenant(struct world *w, unsigned site, unsigned t);
void sim_tenant_apply(struct world *w, unsigned site, unsigned t);
bool sim_tenant_gone(
    struct world *w, unsigned site, unsigned t); /* asks the engine, if it is being removed */
void sim_wan_down(struct world *w, bool down);
/* The gateway of the site dies and starts again `after` later: all its state is gone. */
void sim_crash(struct world *w, unsigned site, rwy_dur after);
/* The gateway of the site stands still so long (its process stopped, its virtual machine moved): its clock
 * has jumped afterwards, and of what arrived meanwhile only what fits a receive ring is there. */
void sim_pause(struct world *w, unsigned site, rwy_dur d);
/* The site sends by a reliable carrier (wan/stream.h), or natively again. The carrier is three
 * connections, each in order, each with the link's delay, a third of its rate and pauses of its own; nothing
 * of it is lost until it breaks. */
void sim_stream(struct world *w, unsigned site, bool on);
bool sim_stream_on(const struct world *w, unsigned site);
void sim_stream_break(
    struct world *w); /* with all that is on it; both gateways are told, one somewhat later */
uint64_t sim_streamed(const struct world *w); /* datagrams that arrived by it */
/* With cfg.hash: of the time, link and bytes of every packet sent so far. */
uint64_t sim_hash(const struct world *w);
struct rwy_ip sim_host_ip(unsigned site, unsigned host);

#endif
