/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of the API's pages: path, methods, parameters, and who may ask. api.c asks it about
 * each request, and nothing else decides about roles. Each row says whether readers may GET it;
 * all else needs an operator.
 */
#include "gateway/api/routes.h"

#include <stdio.h>
#include <string.h>

#include "base/word.h"

static api_page index_page;

static const struct api_route routes[] = {
    {"GET", "/v1", "", "this list", index_page, .readers = true},
    {"GET", "/v1/status", "", "the gateway in one object", api_status, .readers = true},
    {"GET", "/v1/flows", "limit cursor sort local remote qpn state tunnel tenant",
        "connections, by pages: follow `next` as `cursor` until it is null; ?sort=recent: the last active",
        api_flows, .readers = true},
    {"GET", "/v1/recorder", "limit worker local remote qpn vni kind",
        "the last decisions of the workers, oldest first: the newest `limit` of those that match",
        api_recorder, .readers = true},
    {"GET", "/v1/tunnels", "workers", "tunnels over all workers; ?workers=1 adds each worker's half",
        api_tunnels, .readers = true},
    {"PUT PATCH DELETE", "/v1/tunnels/NAME", "",
        "one tunnel: PUT adds it, PATCH changes the keys that are sent, DELETE", api_tunnel,
        .readers = false},
    {"GET", "/v1/tenants", "limit after yaml",
        "tenants by name, by pages: follow `next` as `after` until it is null; ?yaml=1: all, for the file",
        api_tenants, .readers = true},
    {"GET PUT PATCH DELETE", "/v1/tenants/NAME", "yaml",
        "one tenant: GET, PUT adds it, PATCH changes the keys that are sent, DELETE", api_tenant,
        .readers = true},
    {"POST", "/v1/reload", "", "POST: read the configuration again", api_reload, .readers = false},
    {"GET", "/v1/memory", "limit",
        "who holds packet buffers: workers by kind, tenants, and the hosts and connections that hold most",
        api_memory, .readers = true},
    {"GET POST DELETE", "/v1/drain", "keep hand_over timeout told",
        "draining: GET the progress, POST begins it (?keep=1: no stop, ?hand_over=1: no stop, but a new "
        "start as the standby, ?timeout=SECONDS), DELETE cancels it",
        api_drain, .readers = true, .changing = "told"},
    {"GET", "/v1/standby", "", "this gateway as one of a pair: its state, and the other one's", api_standby,
        .readers = true},
    {"GET DELETE", "/v1/capture", "filter snap rate count seconds check",
        "packets of all stages as pcapng, until DELETE or the client ends it; ?check=1: is the filter good?",
        api_capture, .readers = false},
    {"GET", "/v1/counters", "nonzero workers",
        "every counter with its sentence; ?nonzero=1, ?workers=1: not summed", api_counters, .readers = true},
    {"GET", "/v1/ports", "", "ports with addresses, link and counters", api_ports, .readers = true},
    {"GET", "/v1/neighbours", "", "next hops on the ports' subnets", api_neighbours, .readers = true},
    {"GET", "/v1/links", "limit", "links of a relay, and how many are half-open, open and closed", api_links,
        .readers = true},
    {"GET", "/v1/map", "", "the listen map of a relay", api_map, .readers = true},
    {"PUT DELETE", "/v1/map/NAME", "", "one entry of it: PUT adds it, DELETE", api_map_entry,
        .readers = false},
    {"GET", "/v1/siblings", "", "other gateways of this site, and packets forwarded to them", api_siblings,
        .readers = true},
    {"GET", "/v1/reservations", "", "rates that jobs' plans give to pairs of hosts, and what they sent",
        api_reservations, .readers = true},
    {"GET", "/v1/workers", "", "packet threads and how busy they are", api_workers, .readers = true},
    {"GET", "/v1/controller", "", "the control center: URL, state and generation", api_controller,
        .readers = true},
    {"GET", "/v1/offload", "tenant summary", "tenants' rules in hardware, and why others are in software",
        api_offload, .readers = true},
    {"GET", "/metrics", "", "Prometheus text", api_metrics, .readers = true, .anybody = true},
    {"GET", "/livez", "", "200: the workers answer", api_livez, .readers = true, .anybody = true},
    {"GET", "/readyz", "", "200: running, ports up, a tunnel up", api_readyz, .readers = true,
        .anybody = true},
    {"GET", "/healthz", "", "both, and every tunnel", api_healthz, .readers = true, .anybody = true},
};
#define ROUTES (sizeof(routes) / sizeof(routes[0]))

const struct api_route *api_route_at(unsigned i)
{
	return i < ROUTES ? &routes[i] : NULL;
}

const struct api_route *api_route_find(const char *url, const char **name)
{
	for (unsigned i = 0; i < ROUTES; i++) {
		const char *path = routes[i].path, *at = strstr(path, "NAME");
		const size_t n = at ? (size_t)(at - path) : 0;

		*name = at ? url + n : "";
		/* a name may have any letter, also a slash: the page says that nothing has it */
		if (at ? !strncmp(path, url, n) && url[n] : !strcmp(path, url))
			return &routes[i];
	}
	return NULL;
}

enum api_role api_route_needs(const struct api_route *r, const char *method)
{
	return r->readers && !strcmp(method, "GET") ? API_READER : API_OPERATOR;
}

bool api_route_changes(const struct api_route *r, const char *param)
{
	return r->changing && base_word_in(param, r->changing);
}

/* {"GET": "reader", "PUT": "operator"} */
static json_t *needs_json(const struct api_route *r)
{
	json_t *o = json_object();
	char method[16];

	for (const char *m = r->methods; *m; m += strspn(m, " ")) {
		const size_t n = strcspn(m, " ");

		snprintf(method, sizeof(method), "%.*s", (int)n, m);
		json_object_set_new(o, method, json_string(api_role_name(api_route_needs(r, method))));
		m += n;
	}
	return o;
}

static void index_page(const struct api_req *req, struct api_reply *reply)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < ROUTES; i++)
		json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s, s:o}", "path", routes[i].path,
		                                "methods", routes[i].methods, "parameters", routes[i].params,
		                                "text", routes[i].text, "role", needs_json(&routes[i])));
	reply->json = json_pack("{s:s, s:o}", "role", api_role_name(req->role), "pages", list);
}
