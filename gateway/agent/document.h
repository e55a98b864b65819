/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A controller's document (controller/openapi.yaml: Document) in the words of the gateway's own
 * configuration, the assignments in it, and the other gateways of the site. Strict: unknown keys and wrong
 * types are refused by name. Not here: what tunnels and tenants mean (conf/), coming into effect
 * (ctrl.c).
 */
#ifndef GATEWAY_AGENT_DOCUMENT_H
#define GATEWAY_AGENT_DOCUMENT_H

#include <jansson.h>

#include "conf/conf.h"
#include "gateway/control/siblings.h"

#define DOCUMENT_ASSIGNMENTS_MAX 100000

/* A flow of an address pair (and, where they are not 0, of these queue pairs) goes through a tunnel of its
 * own. source and destination as one of its ends sees them: both directions are meant. */
struct document_assignment {
	uint32_t vni;
	struct rwy_ip source, destination;
	uint32_t source_qpn, destination_qpn;
	char tunnel[CONF_NAME];
};

struct document {
	struct conf *conf; /* what gw_network_apply takes for GW_SIDE_CONTROLLER */
	struct document_assignment *assignment;
	unsigned assignments;
	struct gw_sibling *sibling; /* other gateways of the site */
	unsigned siblings;
	struct gw_sibling_pair *pair; /* assigned address pairs of the plain LAN, ours and theirs */
	unsigned pairs;
	char (*peer)[CONF_NAME]; /* of the tunnels of conf, by place; "" of the gateway's own */
};

/* base: the running configuration; own: its own tunnels (gw_tunnels_own). RWY_EINVAL with *err, RWY_ENOMEM.
 */
RWY_MUST_CHECK int document_parse(struct document *out, const struct conf *base,
    const struct conf_tunnel *own, unsigned owns, const json_t *doc, struct conf_error *err);
void document_fini(struct document *d);

#endif
