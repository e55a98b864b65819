/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside gateway/api/ only: a request, a reply, and what several pages need. The HTTP server is api.c; each
 * page is a function from request to reply. All of it runs on the API's one thread: pages need no locks.
 */
#ifndef GATEWAY_API_API_H
#define GATEWAY_API_API_H

#include <jansson.h>

#include "gateway/app.h"

#define API_PARAMS_MAX      16
#define API_CONNECTIONS_MAX 32

/* A socket that listens at path, or a negative error, logged. */
RWY_MUST_CHECK int api_socket_open(const char *path);

struct api_req {
	struct gw_app *app;
	const char *method; /* one of the page's; HEAD is GET */
	const char *name;   /* of a page /v1/.../NAME, else "" */
	const char *body;   /* what the client sent, with a 0 behind it */
	size_t body_len;
	unsigned params;
	struct {
		const char *name, *value; /* "" when there is no value */
	} param[API_PARAMS_MAX];
};

struct api_reply {
	unsigned status; /* HTTP; 200 until api_fail, or the page says otherwise at its end */
	json_t *json;    /* owned; or: */
	char *text;      /* malloced, with its media type: */
	const char *type;
	const char *allow; /* the methods that there are, when it is another one */
};

typedef void api_page(const struct api_req *req, struct api_reply *reply);
api_page api_status, api_flows, api_tunnels, api_counters, api_ports, api_neighbours, api_workers,
    api_metrics, api_offload;
api_page api_siblings, api_controller, api_tenants, api_tenant, api_tunnel, api_reload;
/* Siblings' metrics: nothing when there are none. */
void api_metrics_siblings(FILE *f, const struct api_req *req);
/* Tunnels that there are: places of conf->tunnel[] with a name. */
unsigned api_tunnels_count(const struct conf *c);
api_page api_livez, api_readyz, api_healthz;

/* The reply becomes {"error": ...} with that status. */
void api_fail(struct api_reply *reply, unsigned status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* A parameter's value, or NULL. */
const char *api_param(const struct api_req *req, const char *name);
/* ?name, ?name=1: true; absent, ?name=0: false; else fails the reply. */
bool api_flag(const struct api_req *req, struct api_reply *reply, const char *name);
/* A decimal or 0x number up to max; dflt when absent; fails the reply when it is none. */
uint64_t api_number(
    const struct api_req *req, struct api_reply *reply, const char *name, uint64_t dflt, uint64_t max);

json_t *api_json_ip(const struct rwy_ip *a);
json_t *api_json_prefix(const struct conf_prefix *p);
json_t *api_json_mac(const uint8_t mac[6]);

/* One worker's figures, copied on its thread. */
struct api_snap {
	struct eng_counters eng;
	uint32_t flows;
	uint64_t custody;
	struct wan_stats wan[ENG_TUNNELS_MAX];
};
/* 0 or RWY_EAGAIN: the worker does not answer. */
RWY_MUST_CHECK int api_snap_worker(struct gw_app *app, unsigned worker, struct api_snap *out);
/* Those of all workers, malloced; NULL, with the reply failed, when one does not answer. */
struct api_snap *api_snap_all(const struct api_req *req, struct api_reply *reply);

/* One tunnel over all workers. */
struct api_tunnel {
	unsigned workers_up;
	rwy_time since;                    /* it is up on all workers, or not */
	rwy_dur srtt, min_rtt;             /* the slowest worker's; the least; 0: not measured */
	uint64_t rate_Bps, cwnd, inflight; /* sums */
	uint64_t tx_queued_bytes, rx_held_bytes;
	uint32_t tx_flows, rx_flows;
	uint32_t loss_ppm;                /* the worst worker's */
	struct wan_congest_state congest; /* of the worker whose path is congested longest; else the last's */
	struct wan_counters c;
};
void api_tunnel_sum(const struct api_snap *snap, unsigned workers, unsigned tunnel, struct api_tunnel *out);

#define API_PORT_COUNTERS(X)                                                                                 \
	X(rx_packets, "packets received by the port")                                                        \
	X(rx_bytes, "bytes received by the port")                                                            \
	X(tx_packets, "packets sent by the port")                                                            \
	X(tx_bytes, "bytes sent by the port")                                                                \
	X(rx_missed, "packets the port dropped because its receive queue was full")                          \
	X(rx_errors, "packets received with errors")                                                         \
	X(rx_nombuf, "receive attempts without a free packet buffer")                                        \
	X(tx_errors, "packets the port failed to send")

#endif
