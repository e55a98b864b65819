/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the handler of a path. */
#ifndef CONTROLLER_SERVER_ENDPOINT_H
#define CONTROLLER_SERVER_ENDPOINT_H

#include "controller/server/req.h"

struct ctlr_endpoint {
	const char *method, *path; /* "/v1/gateways/{}/lease"; {} is a name, {:} is GATEWAY:ID */
	unsigned roles;
	const char *params; /* known query parameters, separated by blanks */
	ctlr_handler *run;
};
/* Finds the endpoint of a path in c->endpoints, or a file of the page, and fills r->arg. NULL:
 * there is none; with *other the path has other methods, which `allow` lists. */
const struct ctlr_endpoint *ctlr_endpoint_find(
    const char *method, const char *path, struct ctlr_req *r, bool *other, char allow[64]);

#endif
