/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gateway's configuration (conf/samples/gateway.yaml), parsed and checked. No DPDK, no side
 * effects. The parser, `--check`, the fuzzer and the reference manual use one table of keys
 * (schema.c).
 *
 * Thread: any; a struct conf that is shared is not changed.
 */
#ifndef CONF_CONF_H
#define CONF_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "rwy/err.h"
#include "aead/aead.h"
#include "rwy/ip.h"
#include "rwy/time.h"
#include "tenant/tenant.h"
#include "wan/congest.h"

#define CONF_PORTS_MAX    16
#define CONF_TUNNELS_MAX  64
#define CONF_ADDRS_MAX    8
#define CONF_PREFIXES_MAX 64
#define CONF_EAL_ARGS_MAX 32
#define CONF_URLS_MAX     8
#define CONF_SIBLINGS_MAX 63
#define CONF_STR          128
#define CONF_RELAY_ADDRS  16
#define CONF_ALLOW_MAX    64
#define CONF_MAP_MAX      256
#define CONF_NAME         32
#define CONF_IFNAME       16     /* bytes of a kernel interface's name */
#define CONF_TAP          "rwy-" /* a port's interface in the kernel: this and the port's name */
#define CONF_PORT_NAME    (CONF_IFNAME - sizeof(CONF_TAP) + 1)

/* An address with a prefix length; IPv4 is mapped, len 0..128 (IPv4: 96 + n). */
struct conf_prefix {
	struct rwy_ip addr;
	uint8_t len;
};

enum conf_offload { CONF_OFFLOAD_OFF, CONF_OFFLOAD_RTE, CONF_OFFLOAD_TC };
enum conf_role { CONF_ROLE_LAN, CONF_ROLE_WAN };
enum conf_polling { CONF_POLL_ADAPTIVE, CONF_POLL_BUSY };
enum conf_steering { CONF_STEER_PAIR, CONF_STEER_QP };
enum conf_e2e { CONF_E2E_WINDOW, CONF_E2E_NONE };
enum conf_rp { CONF_RP_DCQCN, CONF_RP_NONE };
enum conf_ack_mode { CONF_ACK_NEAR, CONF_ACK_FAR, CONF_ACK_END, CONF_ACK_CAUSAL, CONF_ACK_SITE };
enum conf_fec { CONF_FEC_AUTO, CONF_FEC_OFF };
enum conf_ecn { CONF_ECN_AUTO, CONF_ECN_OFF };
enum conf_security { CONF_SEC_NONE, CONF_SEC_KEYS };
enum conf_carrier { CONF_CARRIER_NATIVE, CONF_CARRIER_TCP, CONF_CARRIER_QUIC, CONF_CARRIER_RDMA };
enum conf_quic_cc { CONF_QUIC_BBR2, CONF_QUIC_CUBIC };

struct conf_port {
	char name[CONF_PORT_NAME];
	char device[CONF_STR * 2]; /* PCI address, or a DPDK vdev string "net_x0,key=value" */
	enum conf_role role;
	/* the gateway's own addresses, with their host bits */
	struct conf_prefix addr[CONF_ADDRS_MAX];
	unsigned addrs;
	uint8_t mac[6];     /* all 0: the device's own */
	uint32_t mtu;       /* IP MTU, 576..9000 */
	uint16_t vlan;      /* 1..4094; 0: untagged */
	bool priority_tags; /* role LAN, without vlan: tags with VLAN 0 */
	bool source_check;  /* role LAN: of packets that are no tenant's */
	bool queue_rules;   /* role WAN: the device may be asked to sort datagrams by worker */
	enum conf_offload offload;
	char offload_device[CONF_IFNAME]; /* for CONF_OFFLOAD_TC: the kernel's switch port */
};

/* As enum wan_path_use. */
enum conf_use { CONF_USE_ALWAYS, CONF_USE_SPARE, CONF_USE_NEVER, CONF_USE_GRANTED };

/* A path of a tunnel besides path 0, which the tunnel's own keys describe. Both ends list the same
 * paths in the same order. */
#define CONF_PATHS_MAX 7
/* rate of a tunnel or path, and bandwidth that a gateway offers, bit/s */
#define CONF_TUNNEL_BPS_MAX UINT64_C(1000000000000)

struct conf_path {
	char port[CONF_NAME]; /* "": the tunnel's */
	unsigned port_idx;
	struct rwy_ip local, remote; /* all zeros: the tunnel's */
	uint16_t udp_port;           /* of worker 0; worker i uses udp_port + i */
	uint16_t source_port;        /* the same; 0: udp_port */
	uint8_t dscp;                /* 0: as the tunnel's datagrams */
	uint64_t rate_Bps;           /* bytes per second; 0: the tunnel's */
	enum conf_use use;
	char label[CONF_STR]; /* for people */
};

struct conf_tunnel {
	char name[CONF_NAME];
	char port[CONF_NAME]; /* a port of role wan */
	unsigned port_idx;
	struct rwy_ip local, remote;
	uint16_t udp_port; /* of worker 0; worker i uses udp_port + i */
	struct conf_prefix prefix[CONF_PREFIXES_MAX];
	unsigned prefixes;
	enum conf_security security;
	enum conf_fec fec;
	enum conf_ecn ecn;
	char cc[CONF_NAME];
	enum conf_carrier carrier; /* the carrier at start */
	enum conf_carrier detour;  /* of what is lost repeatedly; CONF_CARRIER_NATIVE: none */
	uint16_t detour_after;     /* losses; up to WAN_DETOUR_AFTER_MAX */
	uint16_t tcp_port;         /* 0: no TCP */
	uint16_t tcp_connections;
	char tcp_cc[CONF_NAME];
	uint16_t quic_port;                     /* 0: no QUIC */
	uint16_t rdma_port;                     /* 0: no RDMA */
	uint16_t rdma_buffers;                  /* messages of a connection in one direction */
	uint16_t keys_port;                     /* TCP */
	char peer_name[CONF_STR];               /* name in its certificate; "": `peer` */
	struct rwy_ip tcp_local, tcp_remote;    /* all zeros: local and remote */
	struct rwy_ip rdma_local, rdma_remote;  /* all zeros: tcp_local and tcp_remote */
	uint64_t rate_Bps;                      /* bytes per second */
	struct vxlan_dscp dscp, dscp_congested; /* by the DSCP of the inner packet */
	struct wan_congest_cfg congest;
	uint16_t weight;      /* compared with other tunnels of the same prefix */
	char peer[CONF_NAME]; /* name of the gateway at the other end; "": not given */
	bool shared;          /* the control center's: other tunnels may have its prefixes */
	struct conf_path path[CONF_PATHS_MAX];
	unsigned paths;
	enum conf_use own_path; /* of path 0; never CONF_USE_NEVER */
	rwy_dur path_probe;
	/* It leads to the other gateway of a pair (docs/standby.md). */
	bool standby;
	rwy_dur standby_beat, standby_wait;
};

/* Another gateway of this site (docs/gateway-control.md, "Several gateways at a site"). */
struct conf_sibling {
	char name[CONF_NAME];
	struct rwy_ip address; /* on a LAN port's subnet */
	uint16_t weight;
};

/* One tenant, as the file or the API describes it. */
struct conf_tenant {
	/* its arrays belong to the conf_tenant; conf_tenant_fini() frees them */
	struct tenant_cfg cfg;
	unsigned line, column; /* where it begins in its file, 1-based; 0: it is not from a file */
};

/* The control center (docs/gateway-control.md). Without a URL there is none. */
struct conf_controller {
	char *url[CONF_URLS_MAX]; /* https://host[:port], tried in this order; malloced */
	unsigned urls;
	char ca[CONF_STR], certificate[CONF_STR], key[CONF_STR]; /* PEM files */
	char site[CONF_NAME];
	/* bytes per second that the gateway offers; 0: its WAN port's speed */
	uint64_t bandwidth_Bps;
	uint64_t tcp_bandwidth_Bps;  /* the same for TCP; 0: bandwidth_Bps */
	uint64_t quic_bandwidth_Bps; /* the same for QUIC; 0: as measured */
	/* for the control center's tunnels: "auto" or a kernel's name */
	char tcp_cc[CONF_NAME];
	struct rwy_ip rdma_address; /* of an RDMA device; all zeros: no RDMA */
	uint16_t rdma_port;
	uint16_t rdma_buffers;       /* tunnels[].rdma_buffers of the control center's tunnels */
	uint64_t rdma_bandwidth_Bps; /* what the device sends; 0: bandwidth_Bps */
	char document[CONF_STR];     /* file that keeps the last document */
	char member[CONF_NAME];      /* its name in a pair; "": of its address on the cable */
};

/* An entry of the relay's access list: these hosts may connect to those. */
struct conf_allow {
	struct conf_prefix from, to;
	uint16_t ports[2]; /* first, last */
};

/* One entry of the listen map. */
struct conf_map {
	char name[CONF_NAME];
	struct rwy_ip listen, target;
	uint16_t port, target_port;
	uint32_t links; /* 0: not bounded */
};

/* roceway-proxy (docs/proxy.md). Without an address it is a gateway. */
struct conf_relay {
	struct rwy_ip addr[CONF_RELAY_ADDRS];
	unsigned addrs;
	uint16_t redirect_port, ask_port; /* 0: none */
	uint32_t links_max, half_open_max, host_max;
	rwy_dur idle_expiry;
	struct conf_allow allow[CONF_ALLOW_MAX];
	unsigned allows;
	struct conf_map map[CONF_MAP_MAX];
	unsigned maps;
};

/* Keys of tunnels, and the certificates by which gateways know each other. */
struct conf_tunnel_keys {
	char certificate[CONF_STR], key[CONF_STR], ca[CONF_STR], crl[CONF_STR]; /* PEM; "": none */
	enum aead_alg alg;
	rwy_dur rekey;    /* a key seals for this long */
	rwy_dur lifetime; /* of what a handshake gave */
};

/* QUIC connections of tunnels. Without a certificate there are none. */
struct conf_quic {
	enum conf_quic_cc cc;
	uint64_t window; /* bytes */
};

#define CONF_NO_GID UINT32_MAX /* no group has this number */

struct conf {
	char name[CONF_NAME];
	uint16_t weight;         /* compared with siblings' weights */
	char site_key[CONF_STR]; /* file with the key of the site's gateways; "": none */
	unsigned workers;        /* 1..64 */
	enum conf_steering steering;
	enum conf_polling polling;
	int log_level; /* 0 error .. 4 debug */
	int log_json;  /* 0 text, 1 json */
	char *eal_args[CONF_EAL_ARGS_MAX];
	unsigned eal_argc;
	char cores[CONF_STR];
	struct conf_port port[CONF_PORTS_MAX];
	unsigned ports;
	struct conf_tunnel_keys keys;
	struct conf_quic quic;
	struct conf_tunnel tunnel[CONF_TUNNELS_MAX];
	unsigned tunnels;
	struct conf_tenant *tenant; /* malloced; NULL: no tenant */
	unsigned tenants;
	struct conf_sibling sibling[CONF_SIBLINGS_MAX];
	unsigned siblings;
	enum conf_ack_mode ack_mode;
	enum tenant_admission admission;
	struct tenant_mode mode[TENANT_MODES_MAX]; /* exceptions */
	unsigned modes;
	uint32_t conns_max, half_open_max;
	rwy_dur idle_expiry;
	/* How long a local host may be silent, unless CM says it. */
	rwy_dur ack_timeout_min, ack_timeout_max;
	uint8_t rnr_retry, retry;
	uint32_t host_window;
	uint32_t buffers;
	uint64_t custody_conn, custody_total, read_cache_conn;
	uint64_t np_min, np_max; /* bytes of a flow's queue, for CNPs near the source */
	uint32_t np_percent;
	enum conf_rp near_destination;
	enum conf_e2e end_to_end;
	char api_socket[CONF_STR];
	char api_metrics[CONF_STR]; /* conf_listen_parse(); "": none */
	char api_read_group[CONF_STR], api_operator_group[CONF_STR];
	uint32_t api_read_gid, api_operator_gid; /* CONF_NO_GID: none */
	struct conf_controller controller;
	struct conf_relay relay;
	char journal_dir[CONF_STR];
	uint64_t recorder_size; /* bytes, of each worker */
	bool sandbox;           /* gives up system calls */
	rwy_dur drain_timeout;  /* of SIGTERM; 0: it stops at once */
};

struct conf_error {
	char file[CONF_STR];
	unsigned line, column; /* 1-based; 0: the whole file */
	char msg[512];         /* "expected ..., found ..." */
};

/* Opens a file to read it, or a pipe (/dev/stdin). A FIFO that nobody writes is empty: fopen()
 * would wait for a writer, and nobody knows for what. NULL: errno. */
FILE *conf_open(const char *path);
/* Reads, parses and checks a file, or text in memory. On success the caller owns *out (conf_free).
 * On failure returns RWY_EINVAL and fills *err with one message. */
RWY_MUST_CHECK int conf_load(struct conf **out, const char *path, struct conf_error *err);
RWY_MUST_CHECK int conf_parse(
    struct conf **out, const char *text, size_t len, const char *name, struct conf_error *err);
/* Reads the file again while the gateway runs with `running`. RWY_EINVAL also if a key differs that
 * needs a restart; *err names it. */
RWY_MUST_CHECK int conf_reload(
    struct conf **out, const char *path, const struct conf *running, struct conf_error *err);
/* Free all that a configuration or tenant owns; conf_free() also frees c itself. */
void conf_free(struct conf *c);
void conf_tenant_fini(struct conf_tenant *t);
/* Makes a deep copy, which conf_tenant_fini() frees. RWY_ENOMEM. */
RWY_MUST_CHECK int conf_tenant_copy(struct conf_tenant *out, const struct conf_tenant *t);

#define CONF_TENANT_MAX (1u << 20) /* bytes of one tenant's text */
/* Assignments of a document of the controller, and as many permits. */
#define CONF_DOCUMENT_PAIRS_MAX 100000u
/* Parses the keys of one tenant, as a client of the local API sends them, in YAML or JSON (which is
 * YAML's flow style). The tunnels of c are places for prefixes. name: the tenant's name, which the
 * text may repeat but not contradict; NULL: the text has the name. base: keys that the text omits
 * keep base's values (a change); NULL: they get their defaults (a new tenant). Rules over all
 * tenants are checked by conf_tenants_check(). Returns 0 with *out (conf_tenant_fini), or
 * RWY_EINVAL with *err, whose file is empty. */
RWY_MUST_CHECK int conf_tenant_parse(const struct conf *c, const char *text, size_t len, const char *name,
    const struct conf_tenant *base, struct conf_tenant *out, struct conf_error *err);
/* Prints one tenant's keys so that parsing gives the same tenant. JSON: all keys, one object on one
 * line. YAML: an entry of `tenants:`, without the keys that have their default. c: as in
 * parsing. */
enum conf_format { CONF_YAML, CONF_JSON };
void conf_tenant_print(FILE *f, const struct conf *c, const struct conf_tenant *t, enum conf_format format);
/* Parses the keys of one tunnel in the same way. conf_tunnels_check() checks the rules over several
 * tunnels. */
RWY_MUST_CHECK int conf_tunnel_parse(const char *text, size_t len, const char *name,
    const struct conf_tunnel *base, struct conf_tunnel *out, struct conf_error *err);
/* Parses the keys of one entry of the listen map, `relay.map[]`, and checks it by c's `relay`, but
 * not against other entries. */
RWY_MUST_CHECK int conf_map_parse(const struct conf *c, const char *text, size_t len, const char *name,
    struct conf_map *out, struct conf_error *err);
/* Path k of a tunnel, 0 .. t->paths, with what it has of the tunnel filled in. */
struct conf_path conf_tunnel_path(const struct conf_tunnel *t, unsigned k);
/* The number of a worker's part of a tunnel: equal at both ends, different for each worker. */
uint64_t conf_tunnel_id(const struct conf_tunnel *t, unsigned worker);
/* The name that the peer's certificate must have: `peer_name`, or `peer`; "": none. */
const char *conf_tunnel_peer_name(const struct conf_tunnel *t);
/* The number of the tunnel to the other gateway of a pair; -1: it is not one of a pair. */
int conf_standby(const struct conf *c);
/* The name that tells the two gateways of a pair apart; "": it is not one of a pair. */
void conf_member(const struct conf *c, char out[CONF_NAME]);
/* Some request may be acknowledged by mode `site`: of the plain LAN, or of a tenant. */
bool conf_wants_site(const struct conf *c);
/* Checks c's tunnels together with its ports and workers, and fills port_idx. An entry without a
 * name is free. */
RWY_MUST_CHECK int conf_tunnels_check(struct conf *c, struct conf_error *err);
/* Parses a control center's text, which has the keys `tunnels` and `tenants` and no other. *out is
 * a copy of base with these tenants, and with these tunnels after `own`. It is checked as a file
 * is. The caller owns it (conf_free). */
RWY_MUST_CHECK int conf_network_parse(struct conf **out, const struct conf *base,
    const struct conf_tunnel *own, unsigned owns, const char *text, size_t len, struct conf_error *err);
/* Checks c's tenants together, and with its tunnels. */
RWY_MUST_CHECK int conf_tenants_check(const struct conf *c, struct conf_error *err);
/* A copy of base without tunnels, tenants and other lists; conf_free(). NULL: no memory. */
struct conf *conf_network_new(const struct conf *base);
/* A second place that serves the metrics, besides the API's socket. */
struct conf_listen {
	const char *path; /* of a Unix socket, inside the text; NULL: addr and port */
	struct rwy_ip addr;
	uint16_t port;
};
/* Reads "127.0.0.1:9464", "[::1]:9464" or "unix:/path"; false: it is none of these. */
bool conf_listen_parse(const char *s, struct conf_listen *out);

/* Prints "file:line:column: message". */
void conf_error_print(FILE *f, const struct conf_error *err);
/* Prints the reference in Markdown: type, range, default, restart and a sentence for each key.
 * docs/configuration.md is its output. */
void conf_print_reference(FILE *f);

#endif
