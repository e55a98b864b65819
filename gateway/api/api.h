/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to gateway/api/: a request, a reply, and helpers of several pages. api.c is the HTTP
 * server; each page is a function from request to reply. One page runs at a time, so pages need no
 * locks.
 */
#ifndef GATEWAY_API_API_H
#define GATEWAY_API_API_H

#include <jansson.h>

#include "gateway/api/role.h"
#include "gateway/app.h"

#define API_PARAMS_MAX      16
#define API_CONNECTIONS_MAX 32

/* Returns a socket that listens at path, or a negative error, logged. mode: gw_access_file(). */
RWY_MUST_CHECK int api_socket_open(const char *path, unsigned mode);

/* The same for a text of conf_listen_parse(), for the metrics. */
RWY_MUST_CHECK int api_listen_open(const char *text);

struct MHD_Connection;
struct MHD_Response;

struct api_req {
	struct gw_app *app;
	struct MHD_Connection *conn;
	const char *method; /* a method of the page; HEAD becomes GET */
	enum api_role role; /* who asks */
	const char *name;   /* NAME of a page /v1/.../NAME, else "" */
	const char *body;   /* body of the request, with a terminating 0 */
	size_t body_len;
	unsigned params;
	struct {
		const char *name, *value; /* "" if there is no value */
	} param[API_PARAMS_MAX];
};

struct api_reply {
	unsigned status; /* HTTP status; 200 unless api_fail or the page sets another one */
	json_t *json;    /* owned; or text: */
	char *text;      /* malloced, with its media type: */
	const char *type;
	const char *allow;         /* the supported methods, after an unsupported one */
	struct api_stream *stream; /* owned; instead of json and text: of the type above */
	/* called when the whole answer went out, by the library's thread; NULL: nothing */
	void (*sent)(struct gw_app *app);
};

/*
 * capture.c. A stream is of one of two kinds. In the body of the answer: the response owns it;
 * NULL: no memory, the stream is freed.
 */
struct MHD_Response *api_stream_response(struct api_stream *s);
/* In memory that the client has, too (base/slots.h), for one that asks with `Upgrade`: NULL as
 * above, else api_stream_end() frees it when the request is over. */
#define API_STREAM_SLOTS "roceway-capture"
bool api_stream_in_slots(const struct api_stream *s);
struct MHD_Response *api_stream_switch(struct api_stream *s);
void api_stream_end(struct api_stream *s); /* NULL is allowed */

typedef void api_page(const struct api_req *req, struct api_reply *reply);
api_page api_status, api_flows, api_tunnels, api_counters, api_ports, api_neighbours, api_workers,
    api_metrics, api_offload, api_memory, api_recorder;
api_page api_links, api_map, api_map_entry, api_siblings, api_reservations, api_controller, api_tenants,
    api_tenant, api_tunnel, api_reload, api_drain, api_capture, api_standby;
/* Writes the siblings' metrics; nothing without siblings. */
void api_metrics_siblings(FILE *f, const struct api_req *req);
/* Writes what jobs are promised and sent; nothing without reservations. */
void api_metrics_reservations(FILE *f, const struct api_req *req);
void api_metrics_memory(FILE *f, const struct api_req *req);
/* standby.c: this gateway as one of a pair, as JSON; null: it is not. */
json_t *api_standby_json(const struct api_req *req);
/* The line of `health` about the pair; NULL: none. *ok: the check passes. */
const char *api_standby_health(const struct api_req *req, bool *ok);
void api_metrics_standby(FILE *f, const struct api_req *req);
/* drain.c: the drain of this gateway; null while there is none. */
json_t *api_drain_json(const struct api_req *req);
/* Converts a time of gw_now() to UTC text. */
void api_utc(rwy_time t, char text[32]);
/* "running". */
const char *api_state_name(enum gw_state state);
/* The tunnel should be up: it exists, and it is not with the other gateway of a pair. */
bool api_tunnel_expected(const struct gw_app *a, unsigned tunnel);
/* Returns the number of tunnels: entries of conf->tunnel[] with a name. */
unsigned api_tunnels_count(const struct conf *c);
/* How many of them have `security: none`. */
unsigned api_tunnels_in_clear(const struct conf *c);
api_page api_livez, api_readyz, api_healthz;

/* Turns the reply into {"error": ...} with that status. */
void api_fail(struct api_reply *reply, unsigned status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Fails the reply with 400: the body is wrong, at the place in err. */
void api_fail_body(struct api_reply *reply, const struct conf_error *err);
/* Returns a parameter's value, or NULL. */
const char *api_param(const struct api_req *req, const char *name);
/* The parameter of this name, NULL when absent. The reply fails with 404 if there is no such
 * tunnel, or tenant. "" is of those without one, and GW_TENANT_REMOVED is a tenant. */
const char *api_tunnel_param(const struct api_req *req, struct api_reply *reply);
const char *api_tenant_param(const struct api_req *req, struct api_reply *reply);
/* Returns true for ?name and ?name=1, false when absent or ?name=0; any other value fails the
 * reply. */
bool api_flag(const struct api_req *req, struct api_reply *reply, const char *name);
/* Returns a decimal or 0x number up to max; dflt when absent; a malformed one fails the reply. */
uint64_t api_number(
    const struct api_req *req, struct api_reply *reply, const char *name, uint64_t dflt, uint64_t max);

/* True: the parameter is there, and *out gets its address, or the reply is failed. */
bool api_ip(const struct api_req *req, struct api_reply *reply, const char *name, struct rwy_ip *out);

/* Text of an address, prefix or MAC address; NULL: no memory. */
json_t *api_json_ip(const struct rwy_ip *a);
json_t *api_json_prefix(const struct conf_prefix *p);
json_t *api_json_mac(const uint8_t mac[6]);

/* Values of one worker, copied on its thread. */
struct api_snap {
	struct eng_counters eng;
	uint32_t flows;
	uint64_t custody, custody_max; /* above custody_max its ACKs wait */
	struct wan_stats wan[ENG_TUNNELS_MAX];
	struct wan_path_stats path[ENG_TUNNELS_MAX][WAN_PATHS_MAX];
};
/* Returns 0, or RWY_EAGAIN: the worker does not answer. */
RWY_MUST_CHECK int api_snap_worker(struct gw_app *app, unsigned worker, struct api_snap *out);
/* Returns the values of all workers, malloced; NULL, with the reply failed, when one does not
 * answer. */
struct api_snap *api_snap_all(const struct api_req *req, struct api_reply *reply);

/* One tunnel, summed over all workers. */
struct api_tunnel {
	unsigned workers_up;
	rwy_time since; /* time since which it is up on all workers, or is not */
	/* RTT of the slowest worker; smallest RTT; 0: not measured */
	rwy_dur srtt, min_rtt;
	uint64_t rate_Bps, cwnd, inflight; /* sums */
	uint64_t tx_queued_bytes, rx_held_bytes;
	uint32_t tx_flows, rx_flows;
	uint32_t loss_ppm;     /* loss of the worst worker */
	unsigned detour_ready; /* workers whose detours the carrier answers in time */
	/* congestion of the worker that has it longest; else the one that ended last */
	struct wan_congest_state congest;
	struct wan_counters c;
};
/* Sums a tunnel over the snapshots of `workers` workers. */
void api_tunnel_sum(const struct api_snap *snap, unsigned workers, unsigned tunnel, struct api_tunnel *out);

/* paths.c: the paths of a tunnel, as a list; metrics of all tunnels with several paths. */
json_t *api_paths_json(const struct api_req *req, const struct api_snap *snap, unsigned tunnel);
void api_paths_metrics(FILE *f, const struct api_req *req, const struct api_snap *snap);

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
