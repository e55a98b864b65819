/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two tables by which a lower room calls an upper one: the API's paths with their handlers, for
 * server/, and the operations of struct ctlr_ops, for state/. Also the end of the program, which
 * frees all rooms' objects. openapi.yaml says what the handlers do.
 */
#include "controller/tables.h"

#include "controller/fleet/fleet.h"
#include "controller/job/reservation.h"
#include "controller/job/jobs.h"
#include "controller/job/split.h"
#include "controller/server/endpoint.h"
#include "controller/state/pair.h"

#define GW   ROLE_GATEWAY
#define OP   ROLE_OPERATOR
#define SCH  ROLE_SCHEDULER
#define NET  ROLE_NETWORK
#define CON  ROLE_CONTAINER
#define HOST ROLE_HOST
#define READ (OP | SCH | NET)

const struct ctlr_endpoint ctlr_endpoints[] = {
    {"GET", "/v1/gateways", READ, "limit after", ctlr_api_gateway_list},
    {"GET", "/v1/gateways/{}", READ | GW, "", ctlr_api_gateway_get},
    {"PUT", "/v1/gateways/{}", GW, "", ctlr_api_gateway_put},
    {"DELETE", "/v1/gateways/{}", GW | OP, "", ctlr_api_gateway_delete},
    {"POST", "/v1/gateways/{}/lease", GW, "", ctlr_api_lease_post},
    {"GET", "/v1/gateways/{}/document", GW | OP, "after wait_ms member", ctlr_api_document_get},
    {"POST", "/v1/gateways/{}/sessions", GW, "", ctlr_api_session_post},
    {"POST", "/v1/gateways/{}/links", GW, "", ctlr_api_link_post},
    {"GET", "/v1/links", READ, "limit after", ctlr_api_link_list},
    {"PUT", "/v1/links/{}/{}/{}", NET | OP, "", ctlr_api_link_put},
    {"DELETE", "/v1/links/{}/{}/{}", NET | OP, "", ctlr_api_link_delete},
    {"PUT", "/v1/detours/{}/{}", OP, "", ctlr_api_detour_put},
    {"DELETE", "/v1/detours/{}/{}", OP, "", ctlr_api_detour_delete},
    {"GET", "/v1/sites", READ, "", ctlr_api_site_list},
    {"GET", "/v1/sites/{}", READ, "", ctlr_api_site_get},
    {"PUT", "/v1/sites/{}", OP, "", ctlr_api_site_put},
    {"DELETE", "/v1/sites/{}", OP, "", ctlr_api_site_delete},
    {"GET", "/v1/tenants", OP | SCH, "", ctlr_api_tenant_list},
    {"GET", "/v1/tenants/{}", OP | SCH, "", ctlr_api_tenant_get},
    {"PUT", "/v1/tenants/{}", OP, "", ctlr_api_tenant_put},
    {"DELETE", "/v1/tenants/{}", OP, "", ctlr_api_tenant_delete},
    {"GET", "/v1/jobs", OP | SCH, "", ctlr_api_job_list},
    {"POST", "/v1/jobs", OP | SCH, "", ctlr_api_job_post},
    {"GET", "/v1/jobs/{}", OP | SCH, "", ctlr_api_job_get},
    {"PUT", "/v1/jobs/{}", OP | SCH, "", ctlr_api_job_put},
    {"DELETE", "/v1/jobs/{}", OP | SCH, "", ctlr_api_job_delete},
    {"GET", "/v1/jobs/{}/ranks", OP | SCH | CON, "container after wait_ms", ctlr_api_job_ranks_get},
    {"POST", "/v1/jobs/{}/failures", OP | SCH, "", ctlr_api_job_failures_post},
    {"GET", "/v1/tunnels", READ, "limit after", ctlr_api_tunnel_list},
    {"GET", "/v1/sessions", OP | SCH, "limit after gateway", ctlr_api_session_list},
    {"GET", "/v1/sessions/{:}/explain", OP | SCH, "", ctlr_api_session_explain},
    {"GET", "/v1/routes", READ | GW, "site after wait_ms", ctlr_api_routes_get},
    {"GET", "/v1/relay-links", OP | SCH, "limit after", ctlr_api_relay_link_list},
    {"GET", "/v1/redirects", READ | HOST, "site after wait_ms", ctlr_api_redirects_get},
    {"GET", "/v1/hosts", READ, "limit after", ctlr_api_host_list},
    {"POST", "/v1/hosts/{}/lease", HOST, "", ctlr_api_host_lease_post},
    {"GET", "/v1/events", OP | SCH, "limit after", ctlr_api_event_list},
    {"GET", "/v1/health", READ | GW, "", ctlr_api_health_get},
    {"GET", "/metrics", OP, "", ctlr_api_metrics_get},
    {NULL, NULL, 0, NULL, NULL},
};

const struct ctlr_ops ctlr_ops = {
    .tenant_apply = ctlr_tenant_apply,
    .job_apply = ctlr_job_apply,
    .reservation_apply = ctlr_reservation_apply,
    .gateway_removed = ctlr_gateway_end_poll,
    .applied = ctlr_req_retry_all,
};

void ctlr_free(struct ctlr *c)
{
	ctlr_jobs_free(c);
	ctlr_tenants_free(c);
	ctlr_hosts_free(c);
	ctlr_pairs_free(c);
	ctlr_state_free(c);
	ctlr_reservations_free(c);
	ctlr_writer_free(c);
}
