/* SPDX-License-Identifier: Apache-2.0 */
/* The controller's configuration: conf/controller.yaml, every key with its default there. */
#ifndef CONTROLLER_CONF_H
#define CONTROLLER_CONF_H

#include "controller/plan/decide.h"
#include "gateway/conf/conf.h"

#define CTLR_ENDPOINTS_MAX 16
#define CTLR_OPTIONS_MAX   8
#define CTLR_TEXT          256

enum ctlr_store { CTLR_SQLITE, CTLR_ETCD };

struct ctlr_option {
	char name[CONF_NAME], value[CTLR_TEXT];
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
	unsigned heartbeats; /* a second, at most: with many gateways their leases become longer */
	uint64_t body;       /* bytes */
	rwy_dur request;     /* for a client to send one */
	unsigned connections, sessions;
	struct plan_policy policy;
	char provider[CONF_NAME]; /* "": none */
	struct ctlr_option option[CTLR_OPTIONS_MAX];
	unsigned options;
};

/* RWY_EINVAL with *err: file, line, what was expected. */
RWY_MUST_CHECK int ctlr_conf_load(struct ctlr_conf *out, const char *path, struct conf_error *err);
RWY_MUST_CHECK int ctlr_conf_parse(
    struct ctlr_conf *out, const char *text, size_t len, const char *name, struct conf_error *err);
/* "127.0.0.1:80", "[::1]:80" -> a sockaddr's bytes; false when it is none. */
struct sockaddr_storage;
bool ctlr_address(const char *text, struct sockaddr_storage *out, unsigned *len);

#endif
