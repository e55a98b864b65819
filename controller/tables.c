/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two tables by which a lower room calls an upper one: the API's paths with their handlers, for server/,
 * and the operations that state/ needs; and the end of it all. openapi.yaml says what the handlers do.
 */
#include "controller/tables.h"

#include "controller/fleet/fleet.h"
#include "controller/job/grant.h"
#include "controller/job/jobs.h"
#include "controller/server/endpoint.h"

#define GW   ROLE_GATEWAY
#define OP   ROLE_OPERATOR
#define SCH  ROLE_SCHEDULER
#define NET  ROLE_NETWORK
#define READ (OP | SCH | NET)

const struct endpoint ctlr_endpoints[] = {
    {"GET", "/v1/gateways", READ, "limit after", gateway_list},
    {"GET", "/v1/gateways/{}", READ | GW, "", gateway_get},
    {"PUT", "/v1/gateways/{}", GW, "", gateway_put},
    {"DELETE", "/v1/gateways/{}", GW | OP, "", gateway_delete},
    {"POST", "/v1/gateways/{}/lease", GW, "", lease_post},
    {"GET", "/v1/gateways/{}/document", GW | OP, "after wait_ms", document_get},
    {"POST", "/v1/gateways/{}/sessions", GW, "", session_post},
    {"POST", "/v1/gateways/{}/links", GW, "", link_post},
    {"GET", "/v1/links", READ, "limit after", link_list},
    {"PUT", "/v1/links/{}/{}/{}", NET | OP, "", link_put},
    {"DELETE", "/v1/links/{}/{}/{}", NET | OP, "", link_delete},
    {"GET", "/v1/sites", READ, "", site_list},
    {"GET", "/v1/sites/{}", READ, "", site_get},
    {"PUT", "/v1/sites/{}", OP, "", site_put},
    {"DELETE", "/v1/sites/{}", OP, "", site_delete},
    {"GET", "/v1/tenants", OP | SCH, "", tenant_list},
    {"GET", "/v1/tenants/{}", OP | SCH, "", tenant_get},
    {"PUT", "/v1/tenants/{}", OP, "", tenant_put},
    {"DELETE", "/v1/tenants/{}", OP, "", tenant_delete},
    {"GET", "/v1/jobs", OP | SCH, "", job_list},
    {"POST", "/v1/jobs", OP | SCH, "", job_post},
    {"GET", "/v1/jobs/{}", OP | SCH, "", job_get},
    {"PUT", "/v1/jobs/{}", OP | SCH, "", job_put},
    {"DELETE", "/v1/jobs/{}", OP | SCH, "", job_delete},
    {"GET", "/v1/tunnels", READ, "limit after", tunnel_list},
    {"GET", "/v1/sessions", OP | SCH, "limit after gateway", session_list},
    {"GET", "/v1/sessions/{:}/explain", OP | SCH, "", session_explain},
    {"GET", "/v1/routes", READ | GW, "site after wait_ms", routes_get},
    {"GET", "/v1/events", OP | SCH, "limit after", event_list},
    {"GET", "/v1/health", READ | GW, "", health_get},
    {"GET", "/metrics", OP, "", metrics_get},
    {NULL, NULL, 0, NULL, NULL},
};

const struct ctlr_ops ctlr_ops = {
    .tenant_apply = tenant_apply,
    .job_apply = job_apply,
    .grant_apply = grant_apply,
    .gateway_removed = gateway_poll_removed,
    .applied = req_again_all,
};

void ctlr_free(struct ctlr *c)
{
	jobs_free(c);
	tenants_free(c);
	state_free(c);
	grants_free(c);
	writer_free(c);
}
