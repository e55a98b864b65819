/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The running gateway as its parts see each other: configuration, ports, workers, and how another
 * thread (API, telemetry) gets data that a worker owns. No DPDK type appears here.
 *
 * Threads: the control thread (the process's main thread); `workers` packet threads; the API's
 * thread, and another one for the metrics' socket, if it is configured; the carriers' thread; the
 * keys' thread; the capture's thread while a capture runs; the control center's thread, if one is
 * configured; a thread for each reload. Every function here may be called from any thread except a
 * worker's own, unless noted.
 */
#ifndef GATEWAY_APP_H
#define GATEWAY_APP_H

#include <stdio.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "conf/conf.h"
#include "gateway/counters.h"
#include "engine/engine.h"
#include "engine/hosts.h"
#include "engine/lanes.h"
#include "rwy/ip.h"
#include "rwy/time.h"

#define GW_WORKERS_MAX 64

struct gw_worker;
struct gw_port;
struct gw_neigh;
struct gw_publisher;
struct gw_carriers;
struct gw_keys;
struct gw_control;
struct gw_kernel;
struct gw_tenant_count;
struct gw_ctrl;
struct gw_tenants;
struct gw_tunnels;
struct gw_tunnel_log;
struct gw_siblings;
struct gw_reservations;
struct gw_drain;
struct gw_offload;
struct gw_offload_hooks;
struct gw_queue_rules;

/*
 * One of a pair of gateways (docs/standby.md). NONE: it is not. HIDES: the other one has the
 * addresses of both, and nothing passes the LAN and WAN ports. ASKS: the WAN ports are open, for
 * the witness. REPLACED: the process ends.
 */
enum gw_pair { GW_PAIR_NONE, GW_PAIR_HIDES, GW_PAIR_ASKS, GW_PAIR_SERVES, GW_PAIR_REPLACED };

/* Neither hosts nor the WAN can reach it, and it must not try. */
static inline bool gw_pair_hides(int pair)
{
	return pair == GW_PAIR_HIDES || pair == GW_PAIR_REPLACED;
}

enum gw_state { GW_STARTING, GW_RUNNING, GW_DRAINING, GW_STOPPING };

struct eng_board;
struct eng_directory;
struct wan_leases;

struct gw_app {
	const struct conf *conf; /* its tunnels change: gateway/control/tunnels.h */
	const char *conf_path;
	const char *version;
	time_t start_wall;             /* UTC */
	rwy_time start;                /* gw_now() at the end of start-up */
	_Atomic int state;             /* enum gw_state */
	_Atomic int pair;              /* enum gw_pair; written by worker 0, with gw_pair_set() */
	_Atomic uint32_t pair_gave_up; /* times that it asked the witness, and hid again; wraps */
	unsigned workers;              /* == conf->workers */
	unsigned ports;                /* == conf->ports; index is that of conf->port[] */
	struct gw_worker *worker[GW_WORKERS_MAX];
	struct gw_port *port[CONF_PORTS_MAX];
	struct gw_publisher *publisher; /* publish.h */
	struct gw_neigh *neigh;
	struct gw_kernel *kernel;                             /* port/kernel.h */
	struct gw_tenant_count *tenant_count[GW_WORKERS_MAX]; /* datapath/tenants.h */
	struct gw_tenants *tenants;
	struct gw_tunnels *tunnels;
	struct gw_tunnel_log *tunnel_log; /* control/tunnel_log.c */
	struct wan_leases *leases;        /* datapath/lease.h, by tunnel; NULL: one worker */
	struct gw_siblings *siblings;     /* gateway/control/siblings.h */
	struct gw_reservations *reservations;
	struct gw_drain *drain; /* gateway/control/drain.h */
	struct gw_offload *offload;
	/* offload/offload.h; NULL: no port has offload */
	const struct gw_offload_hooks *offload_hooks;
	struct gw_queue_rules *queue_rules; /* offload/queues.h; NULL: one worker */
	struct gw_control *control;
	struct gw_ctrl *ctrl;            /* NULL: no control center */
	struct gw_jfile *jfile;          /* NULL: none */
	struct eng_directory *directory; /* workers steer by queue pair; NULL: by address pair */
	struct eng_board *board;         /* several workers of one of a pair; NULL: else */
	struct eng_lanes lanes;          /* of tunnels, if there are several workers */
	struct eng_hosts hosts;          /* what they know of local hosts */
	struct gw_recorders *recorders;  /* the file of the flight recorders; NULL: none */
	/* Control thread: numbers of the recorders' entries up to which failures are logged. */
	uint32_t recorder_told[GW_WORKERS_MAX];
	struct gw_carriers *carriers; /* gateway/carrier/carrier.h; NULL: not started */
	struct gw_keys *keys;         /* gateway/keys/keys.h; NULL: not started */
};

/* Worker 0: the state of this gateway as one of a pair. */
static inline void gw_pair_set(struct gw_app *app, enum gw_pair to)
{
	if (to == GW_PAIR_HIDES && atomic_load(&app->pair) == GW_PAIR_ASKS)
		atomic_fetch_add(&app->pair_gave_up, 1);
	atomic_store(&app->pair, to);
}

/* The clock of the engines: monotonic ns. Flow times (eng_flow_info.last) use it. Any thread. */
rwy_time gw_now(void);
/* utc.c: UTC of an instant of this clock, ns since 1970. From both clocks as they are now, so
 * that its error is what they drift in the age of the instant: 50 ppm or less. Any
 * thread. */
uint64_t gw_utc(rwy_time t);

/* Runs fn(engine, arg) on the worker's thread between two of its loop turns and waits until it
 * ends. Returns 0, or RWY_EAGAIN when the worker did not start it within 500 ms: fn then never
 * runs. fn must be short (<= 100 us): packets wait. */
RWY_MUST_CHECK int gw_call(
    struct gw_app *app, unsigned worker, void (*fn)(struct eng *e, void *arg), void *arg);

/* Reads the counters of one worker, or of all when worker == app->workers. Fields are read one by
 * one: they are monotonic, not a snapshot. */
void gw_counters_get(const struct gw_app *app, unsigned worker, struct gw_counters *out);
/* The same for the counters of tenants' hosts. */
void gw_overlay_counters_get(const struct gw_app *app, unsigned worker, struct gw_overlay_counters *out);

struct gw_worker_stats {
	uint64_t turns, busy_turns; /* loop turns; those with work */
	uint64_t sleeps;            /* number of sleeps (adaptive polling) */
	/* time since start in turns with work, in turns without, and asleep */
	rwy_dur busy, idle, asleep;
	rwy_dur turn_max;               /* longest turn since start */
	uint64_t rx_bursts, rx_packets; /* receive bursts with packets, and their packets */
	uint64_t heartbeat;             /* advances while the worker is alive */
	int lcore;
};
/* Copies the figures of one worker; each is monotonic, but they are no snapshot. */
void gw_worker_stats_get(const struct gw_app *app, unsigned worker, struct gw_worker_stats *out);

/* The flight recorder of a worker's engine (engine/recorder.h), to be read at any time, also while
 * the worker hangs. NULL: no such worker. */
const struct eng_recorder_ring *gw_recorder(const struct gw_app *app, unsigned worker);

struct gw_port_stats {
	bool up;
	uint32_t speed_mbps; /* 0: unknown */
	uint8_t mac[6];
	char driver[32];
	char tap[16]; /* the kernel's interface of this port */
	unsigned rx_queues, tx_queues;
	uint64_t rx_packets, rx_bytes, tx_packets, tx_bytes;
	uint64_t rx_missed, rx_errors, rx_nombuf, tx_errors; /* as counted by the driver */
};
/* Returns 0, or RWY_EINVAL: unknown port. */
int gw_port_stats_get(const struct gw_app *app, unsigned port, struct gw_port_stats *out);

struct gw_neigh_info {
	struct rwy_ip addr;
	uint8_t mac[6];
	unsigned port; /* index */
	/* the kernel's state: "reachable", "stale", "delay", "probe", "permanent", "incomplete",
	 * "failed", "noarp" */
	const char *state;
	bool used; /* a flow used it recently */
};
/* Fills up to max entries. Returns the number that exist. */
size_t gw_neighs_get(const struct gw_app *app, struct gw_neigh_info *out, size_t max);

/* Returns the number of packet buffers, and how many are free now (an estimate: caches count as
 * free). */
void gw_buffers_get(const struct gw_app *app, uint32_t *total, uint32_t *avail);

/* The local HTTP/JSON API on conf->api_socket, on a thread of its own (gateway/api/). Started by
 * the control thread after the workers run and before READY; stopped before the workers end.
 * Returns 0 or RWY_E*; errors are logged. */
int gw_api_start(struct gw_app *app);
void gw_api_stop(struct gw_app *app);
/* Writes a HELP and a TYPE line for each metric of /metrics, of a gateway that was not started.
 * Returns 0 or RWY_ENOMEM. */
int gw_metrics_print(FILE *out);

#endif
