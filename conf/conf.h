/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gateway's configuration: what conf/samples/gateway.yaml says, parsed and checked. No DPDK, no side
 * effects: the parser, `--check`, the fuzzer and the reference manual come from one schema table (schema.c).
 */
#ifndef CONF_CONF_H
#define CONF_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "rwy/err.h"
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
#define CONF_NAME         32
#define CONF_IFNAME       16 /* of a kernel interface */

struct conf_prefix { /* an address with a prefix length; IPv4 is mapped, len counts 0..128 (IPv4: 96 + n) */
	struct rwy_ip addr;
	uint8_t len;
};

enum conf_offload { CONF_OFFLOAD_OFF, CONF_OFFLOAD_RTE, CONF_OFFLOAD_TC };
enum conf_role { CONF_ROLE_LAN, CONF_ROLE_WAN };
enum conf_polling { CONF_POLL_ADAPTIVE, CONF_POLL_BUSY };
enum conf_e2e { CONF_E2E_WINDOW, CONF_E2E_NONE };
enum conf_rp { CONF_RP_DCQCN, CONF_RP_NONE };
enum conf_ack_mode { CONF_ACK_NEAR, CONF_ACK_FAR, CONF_ACK_END };
enum conf_fec { CONF_FEC_AUTO, CONF_FEC_OFF };
enum conf_ecn { CONF_ECN_AUTO, CONF_ECN_OFF };
enum conf_security { CONF_SEC_NONE };
enum conf_carrier { CONF_CARRIER_NATIVE, CONF_CARRIER_TCP };

struct conf_port {
	char name[CONF_NAME];
	char device[CONF_STR * 2]; /* PCI address, or a DPDK vdev string "net_x0,key=value" */
	enum conf_role role;
	struct conf_prefix addr[CONF_ADDRS_MAX]; /* the gateway's own addresses, host bits kept */
	unsigned addrs;
	uint32_t mtu;  /* 576..9000: IP MTU */
	uint16_t vlan; /* 0: untagged, 1..4094 */
	enum conf_offload offload;
	char offload_device[CONF_IFNAME]; /* CONF_OFFLOAD_TC: the kernel's switch port */
};

struct conf_tunnel {
	char name[CONF_NAME];
	char port[CONF_NAME]; /* a port of role wan */
	unsigned port_idx;
	struct rwy_ip local, remote;
	uint16_t udp_port; /* worker i uses udp_port + i */
	struct conf_prefix prefix[CONF_PREFIXES_MAX];
	unsigned prefixes;
	enum conf_security security;
	enum conf_fec fec;
	enum conf_ecn ecn;
	char cc[CONF_NAME];
	enum conf_carrier carrier; /* what it begins with */
	uint16_t tcp_port;         /* 0: no TCP */
	uint16_t tcp_connections;
	char tcp_cc[CONF_NAME];
	struct rwy_ip tcp_local, tcp_remote;    /* all zeros: local and remote */
	uint64_t rate_Bps;                      /* bytes per second */
	struct vxlan_dscp dscp, dscp_congested; /* of its datagrams, by the DSCP of the packet inside */
	struct wan_congest_cfg congest;
	uint16_t weight;      /* beside others with the same prefix */
	char peer[CONF_NAME]; /* the gateway at the other end, by its name; "": not said */
	bool shared;          /* of the control center: others of its tunnels may have the same prefixes */
};

/* Another gateway of this site (docs/gateway-control.md, "Several gateways at a site"). */
struct conf_sibling {
	char name[CONF_NAME];
	struct rwy_ip address; /* on a LAN port's subnet */
	uint16_t weight;
};

/* One tenant as the file or the API says it. */
struct conf_tenant {
	struct tenant_cfg cfg; /* its arrays are the conf_tenant's: conf_tenant_fini */
	unsigned line, column; /* where it begins in its file, 1-based; 0: not from a file */
};

/* The control center (docs/gateway-control.md). No URL: there is none. */
struct conf_controller {
	char *url[CONF_URLS_MAX]; /* https://host[:port], tried in this order; malloced */
	unsigned urls;
	char ca[CONF_STR], certificate[CONF_STR], key[CONF_STR]; /* PEM files */
	char site[CONF_NAME];
	uint64_t bandwidth_Bps;     /* what it offers, bytes a second; 0: its WAN port's speed */
	uint64_t tcp_bandwidth_Bps; /* the same by TCP; 0: as above */
	char tcp_cc[CONF_NAME];     /* of the control center's tunnels: "auto", or the kernel's name */
	char document[CONF_STR];    /* the last document is kept here */
};

struct conf {
	char name[CONF_NAME];
	uint16_t weight;  /* beside siblings' */
	unsigned workers; /* 1..64 */
	enum conf_polling polling;
	int log_level; /* 0 error .. 4 debug */
	char *eal_args[CONF_EAL_ARGS_MAX];
	unsigned eal_argc;
	char cores[CONF_STR];
	struct conf_port port[CONF_PORTS_MAX];
	unsigned ports;
	struct conf_tunnel tunnel[CONF_TUNNELS_MAX];
	unsigned tunnels;
	struct conf_tenant *tenant; /* malloced; NULL when there is none */
	unsigned tenants;
	struct conf_sibling sibling[CONF_SIBLINGS_MAX];
	unsigned siblings;
	enum conf_ack_mode ack_mode;
	uint32_t conns_max, half_open_max;
	rwy_dur idle_expiry;
	uint8_t rnr_retry, retry;
	uint32_t host_window;
	uint32_t buffers;
	uint64_t custody_conn, custody_total, read_cache_conn;
	uint64_t np_min, np_max; /* near source: a flow's queue, bytes */
	uint32_t np_percent;
	enum conf_rp near_destination;
	enum conf_e2e end_to_end;
	char api_socket[CONF_STR];
	struct conf_controller controller;
	char journal_dir[CONF_STR];
};

struct conf_error {
	char file[CONF_STR];
	unsigned line, column; /* 1-based; 0: the file as a whole */
	char msg[512];         /* "expected ..., found ..." */
};

/* Reads, parses and checks a file (or a memory image, for tests and fuzzing). On success *out is malloced:
 * conf_free. On failure returns RWY_EINVAL and fills *err with one message; nothing is left allocated. */
RWY_MUST_CHECK int conf_load(struct conf **out, const char *path, struct conf_error *err);
RWY_MUST_CHECK int conf_parse(
    struct conf **out, const char *text, size_t len, const char *name, struct conf_error *err);
/* The file again, while the gateway runs with `running`: refused, too, when a key differs that needs a
 * restart. Then *err names it. */
RWY_MUST_CHECK int conf_reload(
    struct conf **out, const char *path, const struct conf *running, struct conf_error *err);
void conf_free(struct conf *c);
void conf_tenant_fini(struct conf_tenant *t);
/* A deep copy: conf_tenant_fini. RWY_ENOMEM. */
RWY_MUST_CHECK int conf_tenant_copy(struct conf_tenant *out, const struct conf_tenant *t);

#define CONF_TENANT_MAX (1u << 20) /* bytes of one tenant's text */
/* One tenant's keys by themselves, YAML or JSON (JSON is YAML's flow style), as a client of the local API
 * sends them: the keys of `tenants[]`, with the tunnels of `c` as places for prefixes. name: what the tenant
 * is called; the text may then leave it out, but not say otherwise; NULL: the text says it. base: keys that
 * are left out stay as they are there (a change); NULL: their defaults (a new tenant). What takes all tenants
 * together is checked where they are (tenant_txn). 0 with *out filled: conf_tenant_fini; RWY_EINVAL with
 * *err, of which file stays empty. */
RWY_MUST_CHECK int conf_tenant_parse(const struct conf *c, const char *text, size_t len, const char *name,
    const struct conf_tenant *base, struct conf_tenant *out, struct conf_error *err);
/* The reverse: one tenant's keys. JSON: all of them, one object on one line. YAML: an entry of the file's
 * `tenants:`, without what is as its default. c as above: the one that the tenant was parsed with. */
enum conf_format { CONF_YAML, CONF_JSON };
void conf_tenant_print(FILE *f, const struct conf *c, const struct conf_tenant *t, enum conf_format format);
/* One tunnel's keys, the same way. base as above. What takes the other tunnels together is
 * conf_tunnels_check's. */
RWY_MUST_CHECK int conf_tunnel_parse(const char *text, size_t len, const char *name,
    const struct conf_tunnel *base, struct conf_tunnel *out, struct conf_error *err);
/* The number of a worker's half of a tunnel: the same at both ends, another for each worker. */
uint64_t conf_tunnel_id(const struct conf_tunnel *t, unsigned worker);
/* Whether c's tunnels can be together with its ports, workers and one another; port_idx is filled in. A place
 * without a name is free. */
RWY_MUST_CHECK int conf_tunnels_check(struct conf *c, struct conf_error *err);
/* Parses a control center's text: the keys `tunnels` and `tenants` of a file and no other. Its tunnels
 * come after `own` in *out, which is like base otherwise; its tenants are all of *out's. Checked as a file
 * is. conf_free. */
RWY_MUST_CHECK int conf_network_parse(struct conf **out, const struct conf *base,
    const struct conf_tunnel *own, unsigned owns, const char *text, size_t len, struct conf_error *err);
/* Whether c's tenants can be together, and with its tunnels. */
RWY_MUST_CHECK int conf_tenants_check(const struct conf *c, struct conf_error *err);
/* base without its tunnels, tenants and other lists of its own: conf_free. NULL: no memory. */
struct conf *conf_network_new(const struct conf *base);
/* "file:line: message" */
void conf_error_print(FILE *f, const struct conf_error *err);
/* The reference (all keys: type, range, default, restart needed, sentence) as Markdown: docs/configuration.md
 * is its output. */
void conf_print_reference(FILE *f);

#endif
