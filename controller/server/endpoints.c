/* SPDX-License-Identifier: Apache-2.0 */
/* The table of paths, and how one is found. */
#include "controller/server/endpoints.h"

#include <stdio.h>
#include <string.h>

#define GW   ROLE_GATEWAY
#define OP   ROLE_OPERATOR
#define SCH  ROLE_SCHEDULER
#define NET  ROLE_NETWORK
#define READ (OP | SCH | NET)

static const struct endpoint endpoints[] = {
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
};
#define ENDPOINTS (sizeof(endpoints) / sizeof(endpoints[0]))

/* {}: a name; {:}: GATEWAY:ID. */
static bool match(const char *path, const char *url, struct req *r)
{
	unsigned n = 0;

	while (*path) {
		size_t len;

		if (*path != '{') {
			if (*path++ != *url++)
				return false;
			continue;
		}
		len = strcspn(url, "/");
		if (!len || len >= sizeof(r->arg[0]))
			return false;
		memcpy(r->arg[n], url, len);
		r->arg[n][len] = 0;
		if (path[1] != ':' && !mdl_is_name(r->arg[n]))
			return false;
		n++;
		url += len;
		path = strchr(path, '}') + 1;
	}
	return !*url;
}

const struct endpoint *endpoint_find(
    const char *method, const char *url, struct req *r, bool *other, char allow[64])
{
	static const struct endpoint page = {"GET", "", OP | SCH | NET | GW, "", page_get};

	*other = false;
	*allow = 0;
	for (unsigned i = 0; i < ENDPOINTS; i++) {
		const size_t n = strlen(allow);

		if (!match(endpoints[i].path, url, r))
			continue;
		if (!strcmp(endpoints[i].method, method))
			return &endpoints[i];
		*other = true;
		snprintf(allow + n, 64 - n, "%s%s", n ? ", " : "", endpoints[i].method);
	}
	r->data = page_find(url);
	if (r->data && strcmp(method, "GET") != 0) {
		*other = true;
		snprintf(allow, 64, "GET");
		r->data = NULL;
	}
	return r->data ? &page : NULL;
}

const struct endpoint *endpoint_at(unsigned i)
{
	return i < ENDPOINTS ? &endpoints[i] : NULL;
}
