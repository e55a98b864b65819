/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two sites in virtual time: hosts, one gateway engine and one LAN each, one WAN between them. A
 * seed draws everything; the same seed gives the same run, bit for bit. The engines are the
 * gateway's own objects.
 */
#ifndef TESTS_SIM_WORLD_H
#define TESTS_SIM_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/steering.h"
#include "rwy/time.h"
#include "tests/sim/links.h"

#define SIM_HOSTS 2 /* per site */
/* Tenants of the world are 0 (the plain LAN) to SIM_TENANTS. Each site has another index for a
 * tenant. All have the same addresses. */
#define SIM_WORKERS      4
#define SIM_PAIR_WORKERS 3 /* of gateways of pairs */
#define SIM_TENANTS      2
#define SIM_TENANT_IDX   8

struct world;

struct sim_cfg {
	uint64_t seed;
	struct link_cfg wan[2]; /* [site]: away from that site */
	/* Paths of the tunnel; wan[] is path 0, path[1] the next one. 0 counts as 1. */
	unsigned paths;
	struct link_cfg path[SIM_PATHS][2];
	struct link_cfg lan;
	enum eng_ack_mode ack_mode;
	uint32_t wan_mtu;
	uint64_t custody_conn, custody_total, memory_conn, memory_total, unpaired_total;
	uint64_t reserve; /* of memory_total, of tenant 1 at the beginning */
	uint64_t read_cache_conn, read_cache_total;
	bool no_journal; /* a crash also loses the journal */
	uint32_t rx_window;
	/* Packet buffers of a gateway, of buf_cost bytes each (0: no limit). Its bounds follow from
	 * them as in the product, and a packet that finds no buffer is lost. */
	uint32_t buffers, buf_cost;
	bool pairs;   /* each site has a pair of gateways (engine/standby.h) */
	rwy_dur beat; /* of them; 0: 5 ms */
	/*
	 * Workers of each gateway, 1 .. SIM_WORKERS; more than one: they steer by queue pair
	 * (engine/directory.h), or, with by_pair, by address pair. Those of pairs, 1 .. SIM_PAIR_WORKERS,
	 * steer by address pair (engine/board.h). 0 counts as 1.
	 */
	unsigned workers;
	bool by_pair;
	/* A turn with packets takes up to so long, and 1 us at least; what comes meanwhile waits. 0: none
	 * takes any time, and each packet has its own. */
	rwy_dur turn;
	bool tenants;      /* SIM_TENANTS tenants besides the plain LAN */
	bool same_weights; /* of the tenants; else they have 1 to SIM_TENANTS */
	const char *cc;
	uint64_t rate_Bps;
	bool verbose;
	bool hash; /* hash every packet that is sent */
	/*
	 * The tunnel is sealed, by `aead` (NULL: the test's table): a new key each `rekey`, a new
	 * key set each `renew`.
	 */
	bool keys;
	const struct aead_ops *aead;
	rwy_dur rekey, renew;
	bool standby_keys; /* standbys are given keys before they claim the tunnel */
};
void sim_cfg_default(struct sim_cfg *c);

/* A tenant at one site. */
struct sim_tenant {
	uint32_t idx;  /* index in the engine, below SIM_TENANT_IDX */
	bool there;    /* its packets are admitted */
	bool removing; /* of a gateway: it was removed; the engine still has something of it */
	enum eng_ack_mode ack_mode;
	uint64_t custody, memory, reserve;
	struct wan_class_cfg share;
};

struct sim_ops {
	/* A packet for a host of the site. The callee may use the bytes during the call. */
	void (*host_rx)(void *ctx, unsigned site, unsigned tenant, uint8_t *ip, uint32_t len, rwy_time now);
	void (*tick)(void *ctx, rwy_time now); /* the hosts' timers */
	rwy_time (*next)(void *ctx);
	/* When the host that the packet is for takes it; 0: now. */
	rwy_time (*host_ready)(void *ctx, unsigned site, const uint8_t *ip, uint32_t len);
};

struct world *sim_new(const struct sim_cfg *cfg, const struct sim_ops *ops, void *ctx);
/* Frees the world. Returns how many buffers its engines leaked. */
uint64_t sim_end(struct world *w);
/* A host of `site` sends an IP packet to its gateway. */
void sim_host_tx(struct world *w, unsigned site, unsigned tenant, const uint8_t *ip, uint32_t len);
/* Runs until `until`, or until stop() returns true. */
void sim_run(struct world *w, rwy_time until, bool (*stop)(void *ctx), void *ctx);
rwy_time sim_now(const struct world *w);
/* With pairs: of the gateway that serves, or else of one that is there. NULL: none is. */
struct eng *sim_engine(struct world *w, unsigned site);
/* Workers of each gateway, and the engine of one of them; NULL: the gateway is away. */
unsigned sim_workers(const struct world *w);
struct eng *sim_worker(struct world *w, unsigned site, unsigned worker);
/* Bytes in custody of all workers of the site's gateway, which must be there. */
uint64_t sim_custody(struct world *w, unsigned site);
uint64_t sim_buffers(const struct world *w, unsigned site); /* buffers that its engines hold */
/* The same of one worker. */
uint64_t sim_worker_buffers(const struct world *w, unsigned site, unsigned worker);
uint64_t sim_no_buffer(const struct world *w); /* packets that found no buffer (cfg.buffers) */
/* NULL, or what was wrong first with what an engine was charged for (accounts.h). */
const char *sim_accounts(const struct world *w);
/* The tenant as the site is to have it, to be changed and then applied. Its idx may change only while
 * it is neither there nor being removed. */
struct sim_tenant *sim_tenant(struct world *w, unsigned site, unsigned t);
void sim_tenant_apply(struct world *w, unsigned site, unsigned t);
/* The same at one gateway of a pair: gateway `site`, or `site` + 2. */
void sim_tenant_apply_at(struct world *w, unsigned gateway, unsigned t);
/* The assignments of the site's gateways, instead of those before; also after a restart. */
void sim_steer(struct world *w, unsigned site, const struct eng_steer_cfg *v, unsigned n);
/* True if nothing is left of a removed tenant; asks the engine. */
bool sim_tenant_gone(struct world *w, unsigned site, unsigned t);
void sim_wan_down(struct world *w, bool down);
/* The same of one path, and another behaviour of its links. */
void sim_path_down(struct world *w, unsigned path, bool down);
void sim_path_set(struct world *w, unsigned path, const struct link_cfg cfg[2]);
/* The gateway of the site dies and starts again `after` later, without its state. */
void sim_crash(struct world *w, unsigned site, rwy_dur after);
/* The same, but the journal stays in any case. */
void sim_process_dies(struct world *w, unsigned site, rwy_dur after);
/* Pairs: the gateway that serves, or its standby, as sim_crash and sim_pause. */
void sim_crash_standby(struct world *w, unsigned site, rwy_dur after);
/* An operator's order to the serving gateway. Returns the standby's index; < 0: there is none. */
int sim_hand_over(struct world *w, unsigned site);
void sim_crash_gateway(struct world *w, unsigned gateway, rwy_dur after);
void sim_cable_down(struct world *w, unsigned site, bool down);
/* A gateway serves the site, as one without a pair always does. */
bool sim_served(const struct world *w, unsigned site);
/* The site has an active gateway and a standby with all copies. */
bool sim_paired(const struct world *w, unsigned site);
/* Both gateways of the pair believe that they serve: one stands still, and does not know yet. */
bool sim_stale_twin(const struct world *w, unsigned site);
/* Its standby has the keys that it was to be given (keys.c). */
bool sim_standby_keyed(const struct world *w, unsigned site);
/* Both gateways of a site acknowledge alone, now or at an earlier time. */
bool sim_two_served(const struct world *w);
/* The gateway of the site, which runs, is drained; or it is not, and serves again. */
void sim_settle(struct world *w, unsigned site, bool on);
/* Each worker of the site's gateway, which runs, is drained and owes nothing. */
bool sim_settled(struct world *w, unsigned site);
/* The gateway of the site stands still for `d` (its process was stopped, its virtual machine
 * moved). Then its clock has jumped, and of the packets since only those that fit its receive ring
 * are there. */
void sim_pause(struct world *w, unsigned site, rwy_dur d);
/* The site sends over a reliable carrier (wan/stream.h), or natively again. The carrier is three
 * connections, each in order, with the link's delay, a third of its rate and pauses of its own; it
 * loses nothing until it breaks. */
void sim_stream(struct world *w, unsigned site, bool on);
bool sim_stream_on(const struct world *w, unsigned site);
/* What the native path has lost `after` times goes by the carrier; 0: nothing does. */
void sim_stream_detour(struct world *w, unsigned site, unsigned after);
/* The carrier delivers nothing that it gets from now on until `d` is over. */
void sim_stream_stall(struct world *w, rwy_dur d);
/* Breaks the carrier with all its packets. Both gateways learn of it, one somewhat later. It breaks
 * by itself when a gateway at its end stops, or of a pair the other one serves. */
void sim_stream_break(struct world *w);
uint64_t sim_streamed(const struct world *w); /* datagrams that arrived over it */
/* With cfg.hash: hash of the time, link and bytes of every packet sent so far. */
uint64_t sim_hash(const struct world *w);
struct rwy_ip sim_host_ip(unsigned site, unsigned host);

#endif
