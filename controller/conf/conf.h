/* SPDX-License-Identifier: Apache-2.0 */
/* The controller's configuration: conf/samples/controller.yaml, every key with its default there. */
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

/* A network's controller. */
struct ctlr_provider {
	char name[CONF_NAME], kind[CONF_NAME];
	unsigned line;
	/* It is asked about pairs of these sites; 0: about all, and where it knows no path the
	 * network is nobody's. Paths at these edges; 0: at all. */
	char site[CTLR_PROVIDER_NAMES_MAX][CONF_NAME], edge[CTLR_PROVIDER_NAMES_MAX][CONF_NAME];
	unsigned sites, edges;
	struct ctlr_option option[CTLR_OPTIONS_MAX]; /* of its kind */
	unsigned options;
};

struct ctlr_conf {
	char name[CONF_NAME]; /* of this replica */
	int log_level;
	char address[CTLR_TEXT]; /* "address:port" */
	char page[CTLR_TEXT];    /* plain HTTP on a loopback address; "": none */
	unsigned threads;
	char ca[CTLR_TEXT], cert[CTLR_TEXT], key[CTLR_TEXT], crl[CTLR_TEXT];
	enum ctlr_store store;
	char path[CTLR_TEXT];
	uint64_t max_size;
	char endpoint[CTLR_ENDPOINTS_MAX][CTLR_TEXT];
	unsigned endpoints;
	char prefix[CTLR_TEXT], etcd_ca[CTLR_TEXT], etcd_cert[CTLR_TEXT], etcd_key[CTLR_TEXT],
	    user[CTLR_TEXT], password[CTLR_TEXT];
	rwy_dur lease;       /* of gateways */
	rwy_dur grace;       /* for them to come back after a start, which none of them has to see at once */
	unsigned heartbeats; /* a second, at most: with many gateways their leases become longer */
	uint64_t body;       /* bytes */
	rwy_dur request;     /* for a client to send one */
	unsigned connections, sessions;
	struct plan_policy policy;
	struct ctlr_provider provider[CTLR_PROVIDERS_MAX];
	unsigned providers;
};

/* RWY_EINVAL with *err: file, line, what was expected. */
RWY_MUST_CHECK int ctlr_conf_load(struct ctlr_conf *out, const char *path, struct conf_error *err);
RWY_MUST_CHECK int ctlr_conf_parse(
    struct ctlr_conf *out, const char *text, size_t len, const char *name, struct conf_error *err);
/* Reads the list `providers` alone. */
struct conf_node;
RWY_MUST_CHECK int ctlr_conf_providers(
    struct ctlr_conf *c, const struct conf_node *list, struct conf_error *err);
/* Checks the providers' options and the files that they name; nothing is opened. */
RWY_MUST_CHECK int ctlr_conf_providers_check(
    const struct ctlr_conf *c, const char *file, struct conf_error *err);
struct provider_option; /* out: CTLR_OPTIONS_MAX */
unsigned ctlr_provider_options(const struct ctlr_provider *p, struct provider_option *out);
/* "127.0.0.1:80", "[::1]:80" -> a sockaddr's bytes; false when it is none. */
struct sockaddr_storage;
bool ctlr_address(const char *text, struct sockaddr_storage *out, unsigned *len);

#endif
