/* SPDX-License-Identifier: Apache-2.0 */
/* How a path finds its handler. */
#ifndef CONTROLLER_SERVER_ENDPOINT_H
#define CONTROLLER_SERVER_ENDPOINT_H

#include "controller/server/req.h"

struct ctlr_endpoint {
	const char *method, *path; /* "/v1/gateways/{}/lease"; {}: a name, {:}: GATEWAY:ID */
	unsigned roles;
	const char *params; /* known ones */
	ctlr_handler *run;
};
/* Looks into c->endpoints, which end with a method of NULL, and among the page's files. NULL: none; other:
 * the path has other methods, which allow lists. Fills r->arg. */
const struct ctlr_endpoint *ctlr_endpoint_find(
    const char *method, const char *path, struct ctlr_req *r, bool *other, char allow[64]);

#endif
