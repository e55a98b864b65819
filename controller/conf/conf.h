/* SPDX-License-Identifier: Apache-2.0 */
/* The controller's configuration. conf/samples/controller.yaml lists every key with its default. */
#ifndef CONTROLLER_CONF_CONF_H
#define CONTROLLER_CONF_CONF_H

#include "controller/plan/decide.h"
#include "conf/conf.h"

#define CTLR_ENDPOINTS_MAX      16
#define CTLR_OPTIONS_MAX        8
#define CTLR_PROVIDERS_MAX      16
#define CTLR_PROVIDER_NAMES_MAX 64
#define CTLR_TEXT               256

enum ctlr_store { CTLR_SQLITE, CTLR_ETCD };

struct ctlr_option {
	char name[CONF_NAME], value[CTLR_TEXT];
};

/* One network's controller. */
struct ctlr_provider {
	char name[CONF_NAME], kind[CONF_NAME];
	unsigned line;
	/* The sites and edges it is responsible for. It is asked about pairs of these sites; none
	 * given: about all pairs, and a pair for which it knows no path is no network's. It offers
	 * paths at these edges; none given: at all edges. */
	char site[CTLR_PROVIDER_NAMES_MAX][CONF_NAME], edge[CTLR_PROVIDER_NAMES_MAX][CONF_NAME];
	unsigned sites, edges;
	struct ctlr_option option[CTLR_OPTIONS_MAX]; /* options of its kind */
	unsigned options;
};

struct ctlr_conf {
	char name[CONF_NAME]; /* of this replica */
	int log_level;
	int sandbox;             /* 0, or 1: it gives up system calls */
	char address[CTLR_TEXT]; /* "address:port" of the API */
	char page[CTLR_TEXT];    /* loopback "address:port" of the page, plain HTTP; "": none */
	unsigned threads;
	char ca[CTLR_TEXT], cert[CTLR_TEXT], key[CTLR_TEXT], crl[CTLR_TEXT];
	enum ctlr_store store;
	char path[CTLR_TEXT];
	uint64_t max_size;
	char endpoint[CTLR_ENDPOINTS_MAX][CTLR_TEXT];
	unsigned endpoints;
	char prefix[CTLR_TEXT], etcd_ca[CTLR_TEXT], etcd_cert[CTLR_TEXT], etcd_key[CTLR_TEXT],
	    user[CTLR_TEXT], password[CTLR_TEXT];
	rwy_dur lease; /* term of a gateway's lease */
	/* time for gateways to come back after a start, before their leases run out */
	rwy_dur grace;
	/* per second at most: with many gateways their leases become longer */
	unsigned heartbeats;
	enum conf_security security; /* of the tunnels that it names */
	/* VNIs of tenants that name none, both included */
	unsigned vni_first, vni_last;
	uint64_t body;   /* bytes of a request's body, at most */
	rwy_dur request; /* time for a client to send a request */
	unsigned connections, sessions;
	struct plan_policy policy;
	rwy_dur ask_networks; /* how often they are asked for the tunnels that they made */
	struct ctlr_provider provider[CTLR_PROVIDERS_MAX];
	unsigned providers;
};

/* Reads the file and checks it. RWY_EINVAL: *err has file, line and what was expected.
 * RWY_ENOMEM. */
RWY_MUST_CHECK int ctlr_conf_load(struct ctlr_conf *out, const char *path, struct conf_error *err);
/* The same from text; `name` stands for the file in messages. */
RWY_MUST_CHECK int ctlr_conf_parse(
    struct ctlr_conf *out, const char *text, size_t len, const char *name, struct conf_error *err);
/* Reads the list `providers` alone. Errors as ctlr_conf_load(). */
struct conf_node;
RWY_MUST_CHECK int ctlr_conf_providers(
    struct ctlr_conf *c, const struct conf_node *list, struct conf_error *err);
/* Checks the providers' options and the files that they name; opens nothing. Errors as
 * ctlr_conf_load(). */
RWY_MUST_CHECK int ctlr_conf_providers_check(
    const struct ctlr_conf *c, const char *file, struct conf_error *err);
struct provider_option; /* out: CTLR_OPTIONS_MAX entries */
unsigned ctlr_provider_options(const struct ctlr_provider *p, struct provider_option *out);
/* Parses "127.0.0.1:80" or "[::1]:80"; *len is the socket address's length. false: it is
 * neither. */
struct sockaddr_storage;
/* Parses "127.0.0.1:80" or "[::1]:80"; *len is the socket address's length. false: it is
 * neither. */
bool ctlr_address(const char *text, struct sockaddr_storage *out, unsigned *len);

#endif
