/* SPDX-License-Identifier: Apache-2.0 */
/* Gateways and their leases, documents, tunnels, sites, tenants, sessions, routes. All locked. */
#ifndef CONTROLLER_FLEET_FLEET_H
#define CONTROLLER_FLEET_FLEET_H

#include "controller/server/req.h"
#include "controller/state/ctlr.h"

ctlr_handler ctlr_api_gateway_list, ctlr_api_gateway_get, ctlr_api_gateway_put, ctlr_api_gateway_delete,
    ctlr_api_lease_post;            /* gateway.c */
ctlr_handler ctlr_api_document_get; /* gateway.c */
ctlr_handler ctlr_api_session_post, ctlr_api_session_list,
    ctlr_api_session_explain; /* session.c, explain.c */
/* link.c */
ctlr_handler ctlr_api_link_post, ctlr_api_link_list, ctlr_api_link_put, ctlr_api_link_delete;
/* detour.c */
ctlr_handler ctlr_api_detour_put, ctlr_api_detour_delete;
/* site.c */
ctlr_handler ctlr_api_site_list, ctlr_api_site_get, ctlr_api_site_put, ctlr_api_site_delete;
ctlr_handler ctlr_api_tenant_list, ctlr_api_tenant_get, ctlr_api_tenant_put,
    ctlr_api_tenant_delete; /* tenant.c */
/* list.c */
ctlr_handler ctlr_api_tunnel_list, ctlr_api_host_list, ctlr_api_relay_link_list;
ctlr_handler ctlr_api_routes_get;      /* routes.c */
ctlr_handler ctlr_api_redirects_get;   /* redirect.c */
ctlr_handler ctlr_api_host_lease_post; /* host.c */

/* True if `lease` is the gateway's present one, or a member's; else the reply is a 409. */
bool ctlr_gateway_lease_holds(struct ctlr_req *r, const struct ctlr_gateway *g, uint64_t lease);
struct ctlr_change;
/* Adds the record of a gateway that is up; g: as it is known, or NULL. */
void ctlr_gateway_put(struct ctlr_change *ch, const char *name, const struct ctlr_gateway *g,
    const struct model_registration *reg, uint64_t lease, const char *owner);
uint64_t ctlr_gateway_new_lease(void); /* random, not 0 */
/* Takes what it said with its lease. */
void ctlr_gateway_heard(struct ctlr *c, struct ctlr_gateway *g, const struct model_lease *m);
/* True, with a reply (503): other replicas take this one for gone, and its gateways have one term
 * to come to another one. */
bool ctlr_replica_unfit(struct ctlr_req *r);
/* Replies that the lease is renewed, or that the gateway must go to another replica. */
void ctlr_gateway_renewed(struct ctlr *c, struct ctlr_req *r, const struct ctlr_gateway *g);
/* The document's generation: the last revision that changed it. */
uint64_t ctlr_document_generation(const struct ctlr *c, const struct ctlr_gateway *g);
/* The gateway's document; the caller owns it. NULL: out of memory. */
json_t *ctlr_document_json(struct ctlr *c, struct ctlr_gateway *g);
/* Ends expired leases and polls, answers polls with new documents. */
void ctlr_gateway_tick(struct ctlr *c, rwy_time now);
/* Ends the poll of a gateway that is removed; ctlr_ops.gateway_removed. */
void ctlr_gateway_end_poll(struct ctlr *c, struct ctlr_gateway *g);
/* address.c: an entry "ADDRESS:PORT" or "[ADDRESS]:PORT" without its port. True: it is IPv6. */
bool ctlr_wan_address(char out[MDL_ADDR], const char *at);
/* The first WAN addresses of both in one family: fills local, returns the peer's with its port.
 * NULL: there are none. */
const char *ctlr_wan_pair(
    const struct ctlr_gateway *g, const struct ctlr_gateway *peer, char local[MDL_ADDR]);
/* steer.c: the paths of a tunnel's record with this carrier, which the caller owns; NULL: none.
 * *why: for what reason, if networks granted something; else empty. */
json_t *ctlr_steer_decide(
    struct ctlr *c, const struct ctlr_tunnel *t, enum plan_carrier carrier, char *why, size_t size);
/* Adds `paths` and `own_path` to the tunnel's entry in g's document, if it has any. remote: the
 * tunnel's, with its port. */
void ctlr_steer_add(const struct ctlr_gateway *g, const struct ctlr_tunnel *t, const char *remote, json_t *j);
/* Adds `detour` and `detour_after` of the tunnel to j, if an operator has set them. */
void ctlr_detour_add(struct ctlr *c, const struct ctlr_tunnel *t, json_t *j);
/* A session, or a gateway, as the API shows it; the caller owns it. */
json_t *ctlr_session_json(const struct ctlr_session *s);
json_t *ctlr_gateway_json(struct ctlr *c, const struct ctlr_gateway *g);
/* A link of relays as the API shows it; the caller owns it. */
json_t *ctlr_relay_link_json(struct ctlr *c, const struct ctlr_relay_link *l);
/* The newer of both ends' measurements for the carrier in use; NULL: there is none. */
const struct ctlr_link *ctlr_link_latest(const struct ctlr_tunnel *t);
/* A host as the API shows it; the caller owns it. */
json_t *ctlr_host_json(struct ctlr *c, const struct ctlr_host *h);
/* Forgets hosts that are silent for long. */
void ctlr_hosts_tick(struct ctlr *c, rwy_time now);
void ctlr_hosts_free(struct ctlr *c); /* frees all hosts */
/* Makes, decides and removes tunnels that are queued. */
void ctlr_tunnels_tick(struct ctlr *c, rwy_time now);
/* A tenant's entry in the gateway's document, which the caller owns. NULL: the tenant is not at the
 * gateway's site. */
json_t *ctlr_tenant_for(struct ctlr *c, const struct ctlr_tenant *t, const struct ctlr_gateway *g);
/* permit.c: checks the `permits` of a tenant; NULL: it has none. False: the reply says why. */
bool ctlr_permits_acceptable(struct ctlr_req *r, const json_t *list);
/*
 * At each site of the tenant `own` the gateways' documents have room for its permits beside those
 * of the other tenants. False: the reply says where not.
 */
bool ctlr_permits_fit(struct ctlr *c, struct ctlr_req *r, const json_t *tenant, const char *own);
/* Appends the tenant's permits, as a document has them. */
void ctlr_permits_add(const struct ctlr_tenant *t, json_t *list);
/*
 * tenant_conflict.c. True, with a reply that names it: another tenant than `own` has the VNI or a
 * VLAN of j; a prefix is at two of these sites.
 */
bool ctlr_tenant_clashes(struct ctlr *c, struct ctlr_req *r, const json_t *j, const char *own);
bool ctlr_tenant_prefix_twice(struct ctlr_req *r, const json_t *sites);
/* Applies a record tenants/NAME of the store. */
void ctlr_tenant_apply(struct ctlr *c, const struct store_kv *kv, const char *name);
void ctlr_tenants_free(struct ctlr *c); /* frees all tenants */

#endif
