/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the handler of a path. The table is in controller/tables.c. */
#include "controller/server/endpoint.h"

#include <stdio.h>
#include <string.h>

#include "controller/server/page.h"
#include "controller/server/req.h"

#define ANYBODY (ROLE_GATEWAY | ROLE_OPERATOR | ROLE_SCHEDULER | ROLE_NETWORK)

static bool match_path(const char *path, const char *url, struct ctlr_req *r)
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

const struct ctlr_endpoint *ctlr_endpoint_find(
    const char *method, const char *url, struct ctlr_req *r, bool *other, char allow[64])
{
	static const struct ctlr_endpoint page = {"GET", "", ANYBODY, "", ctlr_api_page_get};

	*other = false;
	*allow = 0;
	for (const struct ctlr_endpoint *e = r->c->endpoints; e->method; e++) {
		const size_t n = strlen(allow);

		if (!match_path(e->path, url, r))
			continue;
		if (!strcmp(e->method, method))
			return e;
		*other = true;
		snprintf(allow + n, 64 - n, "%s%s", n ? ", " : "", e->method);
	}
	r->data = ctlr_page_find(url);
	if (r->data && strcmp(method, "GET") != 0) {
		*other = true;
		snprintf(allow, 64, "GET");
		r->data = NULL;
	}
	return r->data ? &page : NULL;
}
