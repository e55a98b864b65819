/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A controller's document (controller/openapi.yaml: Document) translated into the gateway's own
 * configuration, the assignments in it, and the other gateways of the site. Strict: unknown keys
 * and wrong types are refused by name. Elsewhere: the meaning of tunnels and tenants (conf/),
 * applying a document (ctrl.c).
 */
#ifndef GATEWAY_AGENT_DOCUMENT_H
#define GATEWAY_AGENT_DOCUMENT_H

#include <jansson.h>

#include "conf/conf.h"
#include "gateway/control/siblings.h"

/* A flow of an address pair (and, where they are not 0, of these queue pairs) uses a tunnel of its
 * own. source and destination are as seen by one end; both directions are meant. */
struct document_assignment {
	uint32_t vni;
	struct rwy_ip source, destination;
	uint32_t source_qpn, destination_qpn;
	char tunnel[CONF_NAME]; /* "": a permit, which only admits its pair */
	char job[CONF_NAME];    /* for people */
	uint64_t rate_bps;      /* 0: no rate of its own */
	uint8_t priority;
	bool has_dscp; /* of its datagrams on the WAN */
	uint8_t dscp;
};

struct document {
	struct conf *conf; /* the input of gw_network_apply for GW_SIDE_CONTROLLER */
	struct document_assignment *assignment;
	unsigned assignments;
	struct gw_sibling *sibling; /* other gateways of the site */
	unsigned siblings;
	/* assigned address pairs of the plain LAN, of this gateway and of siblings */
	struct gw_sibling_pair *pair;
	unsigned pairs;
	char (*peer)[CONF_NAME]; /* peers of conf's tunnels, by index; "" for the gateway's own */
};

/* base: the running configuration; own: its own tunnels (gw_tunnels_own). RWY_EINVAL with *err;
 * RWY_ENOMEM. */
RWY_MUST_CHECK int document_parse(struct document *out, const struct conf *base,
    const struct conf_tunnel *own, unsigned owns, const json_t *doc, struct conf_error *err);
void document_fini(struct document *d);

#endif
