/* SPDX-License-Identifier: Apache-2.0 */
/* Every handler of the API, by the file that has it. The table is endpoints.c; openapi.yaml says what they
 * do. */
#ifndef CONTROLLER_SERVER_ENDPOINTS_H
#define CONTROLLER_SERVER_ENDPOINTS_H

#include "controller/state/ctlr.h"

handler gateway_get, gateway_put, gateway_delete, lease_post, document_get; /* fleet/gateway.c */
handler session_post, session_list, session_explain;        /* fleet/session.c, fleet/explain.c */
handler link_post, link_list, link_put, link_delete;        /* fleet/link.c */
handler site_list, site_get, site_put, site_delete;         /* fleet/site.c */
handler tenant_list, tenant_get, tenant_put, tenant_delete; /* fleet/tenant.c */
handler job_list, job_get, job_post, job_put, job_delete;   /* job/job.c */
handler gateway_list, tunnel_list, event_list, health_get, metrics_get, page_get; /* list.c */
handler routes_get;                                                               /* fleet/routes.c */

/* A report's lease, if it names one; else the reply says 409. */
bool gateway_lease_holds(struct req *r, const struct gateway *g, uint64_t lease);

#endif
