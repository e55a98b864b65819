/* SPDX-License-Identifier: Apache-2.0 */
/* Private to gateway/api/: the table of pages, which also says who may ask for which. */
#ifndef GATEWAY_API_ROUTES_H
#define GATEWAY_API_ROUTES_H

#include <stdbool.h>

#include "gateway/api/api.h"
#include "gateway/api/role.h"

struct api_route {
	const char *methods;              /* GET includes HEAD */
	const char *path, *params, *text; /* NAME at the end of path matches any name */
	api_page *page;
	/* Readers may GET it: it changes nothing, and has neither payload nor secrets. */
	bool readers;
	const char *changing; /* parameters of a GET that count from operators only; NULL: none */
	bool anybody;         /* api.metrics serves it as well, to whoever reaches that */
};

/* By number; NULL behind the last one. */
const struct api_route *api_route_at(unsigned i);
/* NULL: there is no such page. *name: the part of the URL at NAME, else "". */
const struct api_route *api_route_find(const char *url, const char **name);
/* The least role for this method of the page; HEAD is GET. Never API_NOBODY. */
enum api_role api_route_needs(const struct api_route *r, const char *method);
/* True: a GET with this parameter changes something. */
bool api_route_changes(const struct api_route *r, const char *param);

#endif
