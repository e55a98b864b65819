/* SPDX-License-Identifier: Apache-2.0 */
/* The fleet: gateways and their leases, documents, tunnels, sites, tenants, sessions, routes. Locked. */
#ifndef CONTROLLER_FLEET_FLEET_H
#define CONTROLLER_FLEET_FLEET_H

#include "controller/server/req.h"
#include "controller/state/ctlr.h"

handler gateway_list, gateway_get, gateway_put, gateway_delete, lease_post; /* gateway.c */
handler document_get;                                                       /* gateway.c */
handler session_post, session_list, session_explain;                        /* session.c, explain.c */
handler link_post, link_list, link_put, link_delete;                        /* link.c */
handler site_list, site_get, site_put, site_delete;                         /* site.c */
handler tenant_list, tenant_get, tenant_put, tenant_delete;                 /* tenant.c */
handler tunnel_list;                                                        /* list.c */
handler routes_get;                                                         /* routes.c */

/* A report's lease, if it names one; else the reply says 409. */
bool gateway_lease_holds(struct req *r, const struct gateway *g, uint64_t lease);
uint64_t document_generation(const struct ctlr *c, const struct gateway *g);
json_t *document_json(struct ctlr *c, struct gateway *g);
void gateway_tick(struct ctlr *c, rwy_time now); /* leases that run out, polls */
/* Ends the poll of a gateway that is removed: ctlr_ops.gateway_removed. */
void gateway_poll_removed(struct ctlr *c, struct gateway *g);
json_t *session_json(const struct session *s);
json_t *gateway_json(struct ctlr *c, const struct gateway *g);
void tunnels_tick(struct ctlr *c, rwy_time now);
bool sites_want(const struct site *a, const struct site *b); /* tunnels between their gateways */
void routes_tick(struct ctlr *c, rwy_time now);
/* What a gateway of site s is told of a tenant; NULL: nothing of it is there. */
json_t *tenant_for(struct ctlr *c, const struct net_tenant *t, const struct gateway *g);
void tenant_apply(struct ctlr *c, const struct store_kv *kv, const char *name);
void tenants_free(struct ctlr *c); /* at the end */

#endif
