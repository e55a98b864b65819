/* SPDX-License-Identifier: Apache-2.0 */
/* The tables that model.h declares. */
#include "controller/model/model.h"

#define REQ            MDL_REQUIRED
#define OFF(s, member) offsetof(struct s, member)
#define COUNT(a)       (sizeof(a) / sizeof((a)[0]))
#define TABLE(name, text)                                                                                    \
	const struct mdl_table name##_table = {text, sizeof(struct name), name##_field, COUNT(name##_field)}

#define INT(s, m, fl, lo, hi)                                                                                \
	{                                                                                                    \
		.name = #m, .type = MDL_INT, .flags = fl, .offset = OFF(s, m), .min = lo, .max = hi          \
	}
#define KIND(s, m, fl, kind)                                                                                 \
	{                                                                                                    \
		.name = #m, .type = kind, .flags = fl, .offset = OFF(s, m)                                   \
	}
#define WORD(s, m, fl, list)                                                                                 \
	{                                                                                                    \
		.name = #m, .type = MDL_WORD, .flags = fl, .offset = OFF(s, m), .words = list                \
	}
#define TEXT(s, m, fl, lo, hi)                                                                               \
	{                                                                                                    \
		.name = #m, .type = MDL_TEXT, .flags = fl, .offset = OFF(s, m), .min = lo, .max = hi         \
	}
#define LIST(s, m, fl, lo, hi, table)                                                                        \
	{                                                                                                    \
		.name = #m, .type = MDL_LIST, .flags = fl, .offset = OFF(s, m), .min = lo, .max = hi,        \
		.of = &(table)                                                                               \
	}
#define ITEMS(s, m, fl, lo, hi, kind)                                                                        \
	{                                                                                                    \
		.name = #m, .type = MDL_LIST, .flags = fl, .offset = OFF(s, m), .min = lo, .max = hi,        \
		.item = kind                                                                                 \
	}

#define OPTIONAL(s, m, has, table)                                                                           \
	{                                                                                                    \
		.name = #m, .type = MDL_OBJECT, .flags = MDL_PRESENCE, .offset = OFF(s, m), .of = &(table),  \
		.aux = OFF(s, has)                                                                           \
	}

#define BPS_MAX   MODEL_BPS_MAX
#define US_MAX    3600000000u
#define GEN_MAX   ((uint64_t)INT64_MAX)
#define BYTES_MAX 1000000000000000000

/* --- registration ----------------------------------------------------------------------------- */

static const struct mdl_field model_port_field[] = {
    KIND(model_port, name, REQ, MDL_NAMED),
    INT(model_port, speed_bps, REQ, 1, BPS_MAX),
};
static TABLE(model_port, "a port");

static const struct mdl_field rocev2_field[] = {
    {.name = "bandwidth_bps", .type = MDL_INT, .flags = REQ, .offset = 0, .min = 1, .max = BPS_MAX},
    {.name = "cnp",
        .type = MDL_BOOL,
        .flags = REQ,
        .offset = OFF(model_caps, rocev2.cnp) - OFF(model_caps, rocev2)},
};
static const struct mdl_table rocev2_table = {
    "rocev2", sizeof(((struct model_caps *)0)->rocev2), rocev2_field, COUNT(rocev2_field)};
static const struct mdl_field tcp_field[] = {
    {.name = "bandwidth_bps", .type = MDL_INT, .flags = REQ, .offset = 0, .min = 1, .max = BPS_MAX},
    {.name = "algorithms",
        .type = MDL_LIST,
        .flags = REQ,
        .offset = OFF(model_caps, tcp.algorithms) - OFF(model_caps, tcp),
        .min = 1,
        .max = 8,
        .item = MDL_NAMED},
};
static const struct mdl_table tcp_table = {
    "tcp", sizeof(((struct model_caps *)0)->tcp), tcp_field, COUNT(tcp_field)};
#define QUIC(m) (OFF(model_caps, quic.m) - OFF(model_caps, quic))
static const struct mdl_field quic_field[] = {
    {.name = "bandwidth_bps", .type = MDL_INT, .flags = REQ, .offset = 0, .min = 1, .max = BPS_MAX},
    {.name = "congestion_control",
        .type = MDL_WORD,
        .flags = MDL_PRESENCE,
        .offset = QUIC(congestion_control),
        .words = MODEL_QUIC_CC,
        .aux = QUIC(has_congestion_control)},
};
static const struct mdl_table quic_table = {
    "quic", sizeof(((struct model_caps *)0)->quic), quic_field, COUNT(quic_field)};

#define RDMA(m) (OFF(model_caps, rdma.m) - OFF(model_caps, rdma))
static const struct mdl_field rdma_field[] = {
    {.name = "bandwidth_bps", .type = MDL_INT, .flags = REQ, .offset = 0, .min = 1, .max = BPS_MAX},
    {.name = "address", .type = MDL_IP_PORT, .flags = REQ, .offset = RDMA(address)},
    {.name = "qps", .type = MDL_INT, .flags = REQ, .offset = RDMA(qps), .min = 1, .max = 64},
    {.name = "window_bytes",
        .type = MDL_INT,
        .flags = REQ,
        .offset = RDMA(window_bytes),
        .min = 1,
        .max = UINT32_MAX},
};
static const struct mdl_table rdma_table = {
    "rdma", sizeof(((struct model_caps *)0)->rdma), rdma_field, COUNT(rdma_field)};

#define RELAY(m) (OFF(model_caps, relay.m) - OFF(model_caps, relay))
#define RELAY_INT(m, lo, hi)                                                                                 \
	{                                                                                                    \
		.name = #m, .type = MDL_INT, .flags = REQ, .offset = RELAY(m), .min = lo, .max = hi          \
	}
static const struct mdl_field relay_field[] = {
    {.name = "addresses",
        .type = MDL_LIST,
        .flags = REQ,
        .offset = RELAY(addresses),
        .min = 1,
        .max = MODEL_RELAY_ADDRS,
        .item = MDL_IP},
    RELAY_INT(ask_port, 0, 65535),
    RELAY_INT(redirect_port, 0, 65535),
    RELAY_INT(links_max, 1, UINT32_MAX),
};
static const struct mdl_table relay_table = {
    "relay", sizeof(((struct model_caps *)0)->relay), relay_field, COUNT(relay_field)};

#define CAP(m)                                                                                               \
	{                                                                                                    \
		.name = #m, .type = MDL_OBJECT, .flags = MDL_PRESENCE, .offset = OFF(model_caps, m),         \
		.of = &m##_table, .aux = OFF(model_caps, has_##m)                                            \
	}
static const struct mdl_field model_caps_field[] = {CAP(rocev2), CAP(tcp), CAP(quic), CAP(rdma), CAP(relay)};
TABLE(model_caps, "capabilities");

static const struct mdl_field model_member_field[] = {
    KIND(model_member, member, REQ, MDL_NAMED),
};
static TABLE(model_member, "one of a pair");

static const struct mdl_field model_registration_field[] = {
    KIND(model_registration, boot_id, REQ, MDL_IDENT),
    KIND(model_registration, site, REQ, MDL_NAMED),
    TEXT(model_registration, version, REQ, 1, 63),
    ITEMS(model_registration, lan, REQ, 0, 64, MDL_IP),
    ITEMS(model_registration, wan, REQ, 1, 64, MDL_IP_PORT),
    LIST(model_registration, ports, REQ, 0, 16, model_port_table),
    {.name = "capabilities",
        .type = MDL_OBJECT,
        .flags = REQ,
        .offset = OFF(model_registration, capabilities),
        .of = &model_caps_table},
    OPTIONAL(model_registration, pair, has_pair, model_member_table),
};
TABLE(model_registration, "a registration");

/* --- lease ------------------------------------------------------------------------------------ */

static const struct mdl_field model_load_field[] = {
    INT(model_load, sessions, REQ, 0, UINT32_MAX),
    INT(model_load, rate_bps, REQ, 0, BPS_MAX),
    INT(model_load, cpu_ppm, REQ, 0, 1000000),
    INT(model_load, custody_ppm, REQ, 0, 1000000),
    INT(model_load, links, 0, 0, UINT32_MAX),
};
static TABLE(model_load, "load");

static const struct mdl_field model_pair_event_field[] = {
    WORD(model_pair_event, by, REQ, MODEL_PAIR_EVENTS),
    INT(model_pair_event, age_ms, REQ, 0, GEN_MAX),
};
static TABLE(model_pair_event, "an event");

static const struct mdl_field model_standby_field[] = {
    KIND(model_standby, member, REQ, MDL_NAMED),
    KIND(model_standby, configuration, REQ, MDL_HEX),
    WORD(model_standby, state, REQ, MODEL_PAIR_STATES),
    {.name = "other",
        .type = MDL_WORD,
        .flags = MDL_PRESENCE,
        .offset = OFF(model_standby, other),
        .words = MODEL_PAIR_STATES,
        .aux = OFF(model_standby, has_other)},
    INT(model_standby, epoch, REQ, 0, GEN_MAX),
    INT(model_standby, age_ms, REQ, 0, GEN_MAX),
    OPTIONAL(model_standby, served, has_served, model_pair_event_table),
    OPTIONAL(model_standby, lost, has_lost, model_pair_event_table),
};
static TABLE(model_standby, "one of a pair");

static const struct mdl_field model_lease_field[] = {
    KIND(model_lease, lease, REQ, MDL_HEX),
    KIND(model_lease, boot_id, REQ, MDL_IDENT),
    INT(model_lease, generation_running, REQ, 0, GEN_MAX),
    {.name = "generation_refused",
        .type = MDL_INT,
        .flags = MDL_PRESENCE,
        .offset = OFF(model_lease, generation_refused),
        .max = GEN_MAX,
        .aux = OFF(model_lease, has_refused)},
    TEXT(model_lease, refusal, 0, 0, 511),
    {.name = "load",
        .type = MDL_OBJECT,
        .flags = REQ,
        .offset = OFF(model_lease, load),
        .of = &model_load_table},
    OPTIONAL(model_lease, pair, has_pair, model_standby_table),
};
TABLE(model_lease, "a lease");

/* --- reports ---------------------------------------------------------------------------------- */

static const struct mdl_field model_session_field[] = {
    KIND(model_session, id, REQ, MDL_IDENT),
    WORD(model_session, event, REQ, "opened closed load"),
    INT(model_session, vni, 0, 0, 0xffffff),
    KIND(model_session, source, 0, MDL_IP),
    KIND(model_session, destination, 0, MDL_IP),
    INT(model_session, source_qpn, 0, 0, 0xffffff),
    INT(model_session, destination_qpn, 0, 0, 0xffffff),
    INT(model_session, udp_port, 0, 0, 65535),
    KIND(model_session, tunnel, 0, MDL_NAMED),
    {.name = "bytes",
        .type = MDL_INT,
        .flags = MDL_PRESENCE,
        .offset = OFF(model_session, bytes),
        .max = GEN_MAX,
        .aux = OFF(model_session, has_bytes)},
    {.name = "link",
        .type = MDL_HEX,
        .flags = MDL_PRESENCE,
        .offset = OFF(model_session, link),
        .aux = OFF(model_session, has_link)},
    KIND(model_session, relay, 0, MDL_IP),
};
static TABLE(model_session, "a session");

#define LEASE(s)                                                                                             \
	{                                                                                                    \
		.name = "lease", .type = MDL_HEX, .flags = MDL_PRESENCE, .offset = OFF(s, lease),            \
		.aux = OFF(s, has_lease)                                                                     \
	}
static const struct mdl_field model_session_report_field[] = {
    LEASE(model_session_report),
    LIST(model_session_report, sessions, REQ, 0, MODEL_SESSIONS_MAX, model_session_table),
    INT(model_session_report, all_part, 0, 0, UINT32_MAX),
    KIND(model_session_report, all_last, 0, MDL_BOOL),
};
TABLE(model_session_report, "a session report");

static const struct mdl_field model_link_path_field[] = {
    TEXT(model_link_path, label, REQ, 1, 127),
    KIND(model_link_path, answers, REQ, MDL_BOOL),
    INT(model_link_path, rate_bps, REQ, 0, BPS_MAX),
    INT(model_link_path, rtt_us, REQ, 0, US_MAX),
    INT(model_link_path, loss_ppm, REQ, 0, 1000000),
};
TABLE(model_link_path, "a path");

static const struct mdl_field model_link_field[] = {
    KIND(model_link, peer, REQ, MDL_NAMED),
    WORD(model_link, carrier, REQ, MODEL_CARRIERS),
    INT(model_link, rtt_us, REQ, 0, US_MAX),
    INT(model_link, rtt_min_us, REQ, 0, US_MAX),
    INT(model_link, jitter_us, REQ, 0, US_MAX),
    INT(model_link, loss_ppm, REQ, 0, 1000000),
    INT(model_link, burst, REQ, 0, 65535),
    INT(model_link, bandwidth_bps, REQ, 0, BPS_MAX),
    INT(model_link, age_ms, REQ, 0, 3600000),
    LIST(model_link, paths, 0, 1, 7, model_link_path_table),
};
static TABLE(model_link, "a link");

static const struct mdl_field model_link_report_field[] = {
    LEASE(model_link_report),
    LIST(model_link_report, links, REQ, 1, 256, model_link_table),
};
TABLE(model_link_report, "a link report");

static const struct mdl_field model_link_push_field[] = {
    WORD(model_link_push, class, REQ, MODEL_CLASSES),
    INT(model_link_push, bandwidth_bps, REQ, 1, BPS_MAX),
    INT(model_link_push, delay_us, REQ, 0, US_MAX),
    INT(model_link_push, jitter_us, REQ, 0, US_MAX),
    INT(model_link_push, loss_ppm, REQ, 0, 1000000),
    INT(model_link_push, ttl_ms, REQ, 100, 86400000),
};
TABLE(model_link_push, "a link");

static const struct mdl_field model_detour_field[] = {
    WORD(model_detour, detour, REQ, MODEL_DETOURS),
    INT(model_detour, detour_after, 0, 1, 8),
};
TABLE(model_detour, "a detour");

/* --- sites, jobs ------------------------------------------------------------------------------ */

static const struct mdl_field model_site_relay_field[] = {
    KIND(model_site_relay, gateway, REQ, MDL_NAMED),
    INT(model_site_relay, order, 0, 0, MODEL_ORDER_MAX),
    INT(model_site_relay, weight, 0, 1, MODEL_WEIGHT_MAX),
};
static TABLE(model_site_relay, "a relay of a site");

static const struct mdl_field model_host_lease_field[] = {
    KIND(model_host_lease, boot_id, REQ, MDL_IDENT),
    KIND(model_host_lease, site, REQ, MDL_NAMED),
    TEXT(model_host_lease, version, REQ, 1, 63),
    INT(model_host_lease, generation, REQ, 0, GEN_MAX),
    ITEMS(model_host_lease, down, REQ, 0, MODEL_DOWN_MAX, MDL_IP),
};
TABLE(model_host_lease, "a host's lease");

static const struct mdl_field model_site_field[] = {
    KIND(model_site, name, 0, MDL_NAMED),
    ITEMS(model_site, prefixes, REQ, 0, 64, MDL_PREFIX),
    TEXT(model_site, location, 0, 0, 127),
    {.name = "latitude_udeg",
        .type = MDL_INT,
        .flags = MDL_SIGNED | MDL_PRESENCE,
        .offset = OFF(model_site, latitude_udeg),
        .min = (uint64_t)-90000000,
        .max = 90000000,
        .aux = OFF(model_site, has_latitude)},
    {.name = "longitude_udeg",
        .type = MDL_INT,
        .flags = MDL_SIGNED | MDL_PRESENCE,
        .offset = OFF(model_site, longitude_udeg),
        .min = (uint64_t)-180000000,
        .max = 180000000,
        .aux = OFF(model_site, has_longitude)},
    {.name = "peers",
        .type = MDL_LIST,
        .flags = MDL_PRESENCE,
        .offset = OFF(model_site, peers),
        .max = 256,
        .item = MDL_NAMED,
        .aux = OFF(model_site, has_peers)},
    {.name = "weighting",
        .type = MDL_WORD,
        .flags = MDL_PRESENCE,
        .offset = OFF(model_site, weighting),
        .words = MODEL_WEIGHTINGS,
        .aux = OFF(model_site, has_weighting)},
    {.name = "relays",
        .type = MDL_LIST,
        .flags = MDL_PRESENCE,
        .offset = OFF(model_site, relays),
        .max = MODEL_RELAYS_MAX,
        .of = &model_site_relay_table,
        .aux = OFF(model_site, has_relays)},
};
TABLE(model_site, "a site");

static const struct mdl_field model_pair_field[] = {
    KIND(model_pair, source, REQ, MDL_IP),
    KIND(model_pair, destination, REQ, MDL_IP),
    INT(model_pair, bandwidth_bps, 0, 1, BPS_MAX),
    INT(model_pair, bytes, 0, 1, BYTES_MAX),
    INT(model_pair, period_us, 0, 1, US_MAX),
    INT(model_pair, window_us, 0, 1, US_MAX),
    INT(model_pair, delay_us, 0, 0, US_MAX),
    INT(model_pair, jitter_us, 0, 0, US_MAX),
    INT(model_pair, source_qpn, 0, 1, 0xffffff),
    INT(model_pair, destination_qpn, 0, 1, 0xffffff),
};
static TABLE(model_pair, "a pair");

static const struct mdl_field model_rank_field[] = {
    INT(model_rank, rank, REQ, 0, 0xfffff),
    KIND(model_rank, address, REQ, MDL_IP),
    INT(model_rank, stage, REQ, 0, 65535),
};
static TABLE(model_rank, "a rank");

static const struct mdl_field model_demand_field[] = {
    INT(model_demand, bandwidth_bps, 0, 1, BPS_MAX),
    INT(model_demand, bytes, 0, 1, BYTES_MAX),
    INT(model_demand, period_us, 0, 1, US_MAX),
    INT(model_demand, window_us, 0, 1, US_MAX),
    INT(model_demand, delay_us, 0, 0, US_MAX),
    INT(model_demand, jitter_us, 0, 0, US_MAX),
};
static TABLE(model_demand, "a demand");

static const struct mdl_field model_cluster_field[] = {
    KIND(model_cluster, site, REQ, MDL_NAMED),
    INT(model_cluster, ranks, REQ, 1, 65536),
    {.name = "first",
        .type = MDL_INT,
        .flags = MDL_PRESENCE,
        .offset = OFF(model_cluster, first),
        .max = 65535,
        .aux = OFF(model_cluster, has_first)},
};
static TABLE(model_cluster, "a cluster");

static const struct mdl_field model_training_field[] = {
    INT(model_training, sequence_length, REQ, 1, GEN_MAX),
    INT(model_training, hidden_size, REQ, 1, GEN_MAX),
    INT(model_training, micro_batch_size, REQ, 1, UINT32_MAX),
    INT(model_training, global_batch_size, REQ, 1, UINT32_MAX),
    INT(model_training, element_bytes, REQ, 1, 16),
    INT(model_training, step_us, REQ, 1, US_MAX),
    INT(model_training, transfer_us, 0, 0, US_MAX),
    KIND(model_training, sequence_parallel, 0, MDL_BOOL),
};
static TABLE(model_training, "a model");

static const struct mdl_field model_split_field[] = {
    INT(model_split, pipeline, REQ, 1, 65536),
    INT(model_split, data, 0, 1, 65536),
    INT(model_split, tensor, 0, 1, 65536),
    LIST(model_split, clusters, REQ, 1, 64, model_cluster_table),
    {.name = "model",
        .type = MDL_OBJECT,
        .flags = MDL_PRESENCE,
        .offset = OFF(model_split, model),
        .of = &model_training_table,
        .aux = OFF(model_split, has_model)},
    INT(model_split, bandwidth_bps, 0, 1, BPS_MAX),
    INT(model_split, delay_us, 0, 0, US_MAX),
    INT(model_split, jitter_us, 0, 0, US_MAX),
    INT(model_split, hold_ms, 0, 1000, 86400000),
    INT(model_split, master_port, 0, 1, 65535),
};
static TABLE(model_split, "a split");

static const struct mdl_field model_nic_field[] = {
    KIND(model_nic, name, REQ, MDL_NAMED),
    KIND(model_nic, address, REQ, MDL_IP),
    KIND(model_nic, hca, 0, MDL_NAMED),
};
static TABLE(model_nic, "a NIC");

static const struct mdl_field model_container_field[] = {
    KIND(model_container, name, REQ, MDL_IDENT),
    KIND(model_container, node, 0, MDL_IDENT),
    TEXT(model_container, zone, 0, 0, 255),
    INT(model_container, ranks, REQ, 1, 1024),
    LIST(model_container, nics, REQ, 1, 64, model_nic_table),
};
static TABLE(model_container, "a container");

static const struct mdl_field model_failure_field[] = {
    ITEMS(model_failure, containers, 0, 1, 4096, MDL_IDENT),
    ITEMS(model_failure, nodes, 0, 1, 4096, MDL_IDENT),
};
TABLE(model_failure, "a failure");

static const struct mdl_field model_job_field[] = {
    KIND(model_job, name, 0, MDL_NAMED),
    KIND(model_job, tenant, 0, MDL_NAMED),
    WORD(model_job, granularity, 0, MODEL_GRAINS),
    INT(model_job, duration_ms, 0, 0, 31536000000),
    INT(model_job, deadline_ms, 0, 1, GEN_MAX),
    INT(model_job, within_ms, 0, 1, 31536000000),
    INT(model_job, priority, 0, 0, MODEL_PRIORITY_MAX),
    KIND(model_job, preempt, 0, MDL_BOOL),
    {.name = "dscp",
        .type = MDL_INT,
        .flags = MDL_PRESENCE,
        .offset = OFF(model_job, dscp),
        .max = MODEL_DSCP_MAX,
        .aux = OFF(model_job, has_dscp)},
    {.name = "carrier",
        .type = MDL_WORD,
        .flags = MDL_PRESENCE,
        .offset = OFF(model_job, carrier),
        .words = MODEL_CARRIERS,
        .aux = OFF(model_job, has_carrier)},
    LIST(model_job, pairs, 0, 1, 4096, model_pair_table),
    LIST(model_job, ranks, 0, 2, 4096, model_rank_table),
    KIND(model_job, ring, 0, MDL_BOOL),
    {.name = "demand",
        .type = MDL_OBJECT,
        .flags = MDL_PRESENCE,
        .offset = OFF(model_job, demand),
        .of = &model_demand_table,
        .aux = OFF(model_job, has_demand)},
    {.name = "split",
        .type = MDL_OBJECT,
        .flags = MDL_PRESENCE,
        .offset = OFF(model_job, split),
        .of = &model_split_table,
        .aux = OFF(model_job, has_split)},
    LIST(model_job, containers, 0, 1, 4096, model_container_table),
};
TABLE(model_job, "a job");
