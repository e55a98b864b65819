/* SPDX-License-Identifier: Apache-2.0 */
/* The objects of the API as structs, with their tables for json.h. controller/openapi.yaml
 * describes the same objects to clients. */
#ifndef CONTROLLER_MODEL_MODEL_H
#define CONTROLLER_MODEL_MODEL_H

#include "controller/model/json.h"

#define MODEL_BPS_MAX      1000000000000000ull
#define MODEL_TUNNEL_BPS   1000000000000ull /* what a gateway takes as a rate of a tunnel or path */
#define MODEL_WAIT_MAX_MS  300000u
#define MODEL_SESSIONS_MAX 1000u /* sessions in one report */
#define MODEL_CARRIERS     "native tcp quic rdma"
#define MODEL_QUIC_CC      "bbr2 cubic"
#define MODEL_CLASSES      "internet deterministic reserved"

#define MODEL_DETOURS    "tcp quic"
#define MODEL_WEIGHTINGS "equal bandwidth least"
#define MODEL_GRAINS     "address-pair nic qp"

#define MODEL_HOLD_MS     60000u /* default of split.hold_ms */
#define MODEL_MASTER_PORT 29500u /* PyTorch's */

/* States and events of one of a pair, in the order of plan_standby_state and plan_standby_event. */
#define MODEL_PAIR_STATES "alone copying pairing paired losing yielding asking storing ready taking replaced"
#define MODEL_PAIR_EVENTS                                                                                    \
	"serves copied loses stores takes asks yields silent walked granted refused over stuck timer order"

enum model_carrier { MODEL_NATIVE, MODEL_TCP, MODEL_QUIC, MODEL_RDMA };
enum model_class { MODEL_INTERNET, MODEL_DETERMINISTIC, MODEL_RESERVED };
enum model_event { MODEL_OPENED, MODEL_CLOSED, MODEL_LOAD };
enum model_quic_cc { MODEL_BBR2, MODEL_CUBIC };
enum model_detouring { MODEL_DETOUR_TCP, MODEL_DETOUR_QUIC };
enum model_granularity { MODEL_ADDRESS_PAIR, MODEL_NIC, MODEL_QP };
enum model_weighting { MODEL_EQUAL, MODEL_BANDWIDTH, MODEL_LEAST };

struct model_port {
	char name[MDL_NAME];
	uint64_t speed_bps;
};

#define MODEL_RELAY_ADDRS 16

struct model_caps {
	bool has_rocev2, has_tcp, has_quic, has_rdma, has_relay;
	struct {
		uint64_t bandwidth_bps;
		bool cnp;
	} rocev2;
	struct {
		uint64_t bandwidth_bps;
		struct mdl_list algorithms; /* char[MDL_NAME] */
	} tcp;
	struct {
		uint64_t bandwidth_bps;
		uint8_t congestion_control; /* enum model_quic_cc */
		bool has_congestion_control;
	} quic;
	struct {
		uint64_t bandwidth_bps;     /* what the device sends: nothing paces it */
		char address[MDL_ADDR];     /* of the device, with the port */
		uint64_t qps, window_bytes; /* of a tunnel: queue pairs, bytes in flight */
	} rdma;
	struct {                                  /* it is a relay (docs/proxy.md) */
		struct mdl_list addresses;        /* char[MDL_ADDR]: hosts connect there */
		uint64_t ask_port, redirect_port; /* 0: none */
		uint64_t links_max;
	} relay;
};

struct model_member { /* of a pair (docs/standby.md) */
	char member[MDL_NAME];
};

struct model_registration {
	char boot_id[MDL_ID], site[MDL_NAME];
	char *version;
	struct mdl_list lan;   /* char[MDL_ADDR] */
	struct mdl_list wan;   /* char[MDL_ADDR] */
	struct mdl_list ports; /* struct model_port */
	struct model_caps capabilities;
	bool has_pair; /* it is one of a pair */
	struct model_member pair;
};

struct model_load {
	uint64_t sessions, rate_bps, cpu_ppm, custody_ppm;
	uint64_t links; /* of a relay: open ones */
};

struct model_pair_event {
	uint8_t by; /* index into MODEL_PAIR_EVENTS */
	uint64_t age_ms;
};

struct model_standby { /* one of a pair */
	char member[MDL_NAME];
	uint64_t configuration; /* a digest of what both have in their files */
	uint8_t state, other;   /* indices into MODEL_PAIR_STATES */
	bool has_other;         /* false: the other one is silent */
	uint64_t epoch, age_ms;
	bool has_served, has_lost; /* since its start it came to serve; it lost its standby */
	struct model_pair_event served, lost;
};

struct model_lease {
	uint64_t lease;
	char boot_id[MDL_ID];
	uint64_t generation_running;
	bool has_refused;
	uint64_t generation_refused;
	char *refusal;
	struct model_load load;
	bool has_pair;
	struct model_standby pair;
};

struct model_session {
	char id[MDL_ID];
	uint8_t event; /* enum model_event */
	uint64_t vni;
	char source[MDL_ADDR], destination[MDL_ADDR];
	uint64_t source_qpn, destination_qpn, udp_port;
	char tunnel[MDL_NAME];
	bool has_bytes;
	uint64_t bytes;
	bool has_link; /* a relay's: the link's identifier, the relay's address for the host */
	uint64_t link;
	char relay[MDL_ADDR];
};

struct model_session_report {
	bool has_lease;
	uint64_t lease;
	struct mdl_list sessions; /* struct model_session */
	/*
	 * The reports that together open all sessions of the gateway are numbered from 1; 0:
	 * another report. all_last: of the last one.
	 */
	uint64_t all_part;
	bool all_last;
};

struct model_link {
	char peer[MDL_NAME];
	uint8_t carrier; /* enum model_carrier */
	uint64_t rtt_us, rtt_min_us, jitter_us, loss_ppm;
	uint64_t burst, bandwidth_bps, age_ms;
	struct mdl_list paths; /* struct model_link_path */
};

struct model_link_path { /* that a network granted */
	char *label;
	bool answers;
	uint64_t rate_bps, rtt_us, loss_ppm;
};
extern const struct mdl_table model_link_path_table;

struct model_link_report {
	bool has_lease;
	uint64_t lease;
	struct mdl_list links; /* struct model_link */
};

struct model_link_push {
	uint8_t class; /* enum model_class */
	uint64_t bandwidth_bps, delay_us, jitter_us, loss_ppm, ttl_ms;
};

struct model_detour {          /* of a tunnel */
	uint8_t detour;        /* enum model_detouring */
	uint64_t detour_after; /* losses of a packet; 0: the default */
};

#define MODEL_RELAYS_MAX 16
#define MODEL_ORDER_MAX  3
#define MODEL_WEIGHT_MAX 100
#define MODEL_DOWN_MAX   256

struct model_site_relay { /* that the site's hosts go by */
	char gateway[MDL_NAME];
	uint64_t order;  /* 0: asked first */
	uint64_t weight; /* 1..100; 0: by its load */
};

struct model_host_lease {
	char boot_id[MDL_ID], site[MDL_NAME];
	char *version;
	uint64_t generation;  /* of the redirects that it follows; 0: none */
	struct mdl_list down; /* char[MDL_ADDR]: relays that do not answer it */
};

struct model_site {
	char name[MDL_NAME];      /* "" when the request's path names it */
	struct mdl_list prefixes; /* char[MDL_ADDR] */
	char *location;
	bool has_latitude, has_longitude;
	int64_t latitude_udeg, longitude_udeg;
	bool has_peers;
	struct mdl_list peers; /* char[MDL_NAME] */
	bool has_weighting;
	uint8_t weighting; /* enum model_weighting */
	bool has_relays;
	struct mdl_list relays; /* struct model_site_relay */
};

struct model_pair {
	char source[MDL_ADDR], destination[MDL_ADDR];
	uint64_t bandwidth_bps, delay_us, jitter_us;
	/* instead of a rate: bytes by the job's deadline, or in each period */
	uint64_t bytes, period_us, window_us;
	uint64_t source_qpn, destination_qpn; /* 0: not given */
};

struct model_rank {
	uint64_t rank;
	char address[MDL_ADDR];
	uint64_t stage;
};

struct model_demand {
	uint64_t bandwidth_bps, delay_us, jitter_us;
	uint64_t bytes, period_us, window_us; /* as of a pair */
};

/* How a training job is cut: pipeline x data x tensor ranks, some at each site. */
struct model_cluster {
	char site[MDL_NAME];
	uint64_t ranks, first;
	bool has_first;
};

struct model_training { /* what decides the bytes between two stages; plan/ranks.h */
	uint64_t sequence_length, hidden_size, micro_batch_size, global_batch_size, element_bytes;
	uint64_t step_us, transfer_us;
	bool sequence_parallel;
};

struct model_split {
	uint64_t pipeline, data, tensor;
	struct mdl_list clusters; /* struct model_cluster */
	bool has_model;
	struct model_training model;
	/* between ranks; bandwidth 0: from the model */
	uint64_t bandwidth_bps, delay_us, jitter_us;
	uint64_t hold_ms, master_port; /* 0: the default */
};

struct model_nic {
	char name[MDL_NAME], address[MDL_ADDR], hca[MDL_NAME];
};

struct model_container {
	char name[MDL_ID], node[MDL_ID];
	char *zone; /* "row/rack", from the largest */
	uint64_t ranks;
	struct mdl_list nics; /* struct model_nic */
};

struct model_failure {                     /* containers, or all of these servers, that died */
	struct mdl_list containers, nodes; /* char[MDL_ID] */
};

#define MODEL_PRIORITY_MAX 7
#define MODEL_DSCP_MAX     63

struct model_job {
	char name[MDL_NAME], tenant[MDL_NAME];
	uint8_t granularity; /* enum model_granularity */
	uint64_t duration_ms;
	uint64_t deadline_ms, within_ms; /* of bytes: wall clock; since the request */
	uint64_t priority;               /* of its rates at the gateways; higher first */
	uint64_t dscp;                   /* of its datagrams on the WAN */
	uint8_t carrier;                 /* enum model_carrier: its tunnels' */
	struct mdl_list pairs;           /* struct model_pair */
	struct mdl_list ranks;           /* struct model_rank */
	bool ring, has_demand, has_split, has_dscp, has_carrier, preempt;
	struct model_demand demand;
	struct model_split split;
	struct mdl_list containers; /* struct model_container */
};

/* The gateway defines a tenant's keys, both the ones common to all sites and those of one site. So
 * they are passed on unchanged, and the gateway's own parser checks them
 * (controller/fleet/tenant.c). */
struct model_tenant {
	char name[MDL_NAME];
	uint64_t vni;
	json_t *sites; /* a JSON object */
};

extern const struct mdl_table model_registration_table, model_lease_table, model_session_report_table,
    model_link_report_table, model_link_push_table, model_detour_table, model_site_table, model_job_table,
    model_caps_table, model_failure_table, model_host_lease_table;

#endif
