/* SPDX-License-Identifier: Apache-2.0 */
/* The fleet: gateways and their leases, documents, tunnels, sites, tenants, sessions, routes. Locked. */
#ifndef CONTROLLER_FLEET_FLEET_H
#define CONTROLLER_FLEET_FLEET_H

#include "controller/server/req.h"
#include "controller/state/ctlr.h"

ctlr_handler ctlr_api_gateway_list, ctlr_api_gateway_get, ctlr_api_gateway_put, ctlr_api_gateway_delete,
    ctlr_api_lease_post;            /* gateway.c */
ctlr_handler ctlr_api_document_get; /* gateway.c */
ctlr_handler ctlr_api_session_post, ctlr_api_session_list,
    ctlr_api_session_explain; /* session.c, explain.c */
ctlr_handler ctlr_api_link_post, ctlr_api_link_list, ctlr_api_link_put, ctlr_api_link_delete; /* link.c */
ctlr_handler ctlr_api_site_list, ctlr_api_site_get, ctlr_api_site_put, ctlr_api_site_delete;  /* site.c */
ctlr_handler ctlr_api_tenant_list, ctlr_api_tenant_get, ctlr_api_tenant_put,
    ctlr_api_tenant_delete;        /* tenant.c */
ctlr_handler ctlr_api_tunnel_list; /* list.c */
ctlr_handler ctlr_api_routes_get;  /* routes.c */

/* The lease of a report is the gateway's present one; false: the reply says 409. */
bool ctlr_gateway_lease_holds(struct ctlr_req *r, const struct ctlr_gateway *g, uint64_t lease);
uint64_t ctlr_document_generation(const struct ctlr *c, const struct ctlr_gateway *g);
json_t *ctlr_document_json(struct ctlr *c, struct ctlr_gateway *g);
void ctlr_gateway_tick(struct ctlr *c, rwy_time now); /* leases that run out, polls */
/* Ends the poll of a gateway that is removed: ctlr_ops.gateway_removed. */
void ctlr_gateway_end_poll(struct ctlr *c, struct ctlr_gateway *g);
json_t *ctlr_session_json(const struct ctlr_session *s);
json_t *ctlr_gateway_json(struct ctlr *c, const struct ctlr_gateway *g);
void ctlr_tunnels_tick(struct ctlr *c, rwy_time now);
bool ctlr_sites_want(
    const struct ctlr_site *a, const struct ctlr_site *b); /* tunnels between their gateways */
void ctlr_routes_tick(struct ctlr *c, rwy_time now);
/* A tenant's entry in the gateway's document; NULL: the tenant is not at its site. The caller's. */
json_t *ctlr_tenant_for(struct ctlr *c, const struct ctlr_tenant *t, const struct ctlr_gateway *g);
void ctlr_tenant_apply(struct ctlr *c, const struct store_kv *kv, const char *name);
void ctlr_tenants_free(struct ctlr *c); /* at the end */

#endif
