/* SPDX-License-Identifier: Apache-2.0 */
/* A reply's body and headers. */
#include "controller/server/http.h"
#include "controller/server/req.h"

#include <stdlib.h>
#include <string.h>

static const char *const page_csp = "default-src 'self'; img-src 'self' data:; style-src 'self'";

enum MHD_Result ctlr_http_reply(struct MHD_Connection *mhd, struct ctlr_req *r, bool end)
{
	struct MHD_Response *resp = NULL;
	enum MHD_Result rc;

	COUNT(r->c, requests);
	if (r->status >= 400 && r->status < 500)
		COUNT(r->c, refused);
	if (r->data) {
		resp = MHD_create_response_from_buffer(
		    r->data_len, (void *)(uintptr_t)r->data, MHD_RESPMEM_PERSISTENT);
	} else if (r->status == 304) {
		resp = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
	} else {
		char *text = r->text ? r->text : json_dumps(r->json, JSON_COMPACT);

		r->text = NULL;
		if (text)
			resp = MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE);
		if (!resp)
			free(text);
	}
	if (!resp)
		return MHD_NO;
	if (r->status != 304)
		MHD_add_response_header(
		    resp, MHD_HTTP_HEADER_CONTENT_TYPE, r->type ? r->type : "application/json");
	MHD_add_response_header(resp, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	MHD_add_response_header(resp, "X-Content-Type-Options", "nosniff");
	if (r->data)
		MHD_add_response_header(resp, "Content-Security-Policy", page_csp);
	if (*r->allow)
		MHD_add_response_header(resp, MHD_HTTP_HEADER_ALLOW, r->allow);
	if (end)
		MHD_add_response_header(resp, MHD_HTTP_HEADER_CONNECTION, "close");
	rc = MHD_queue_response(mhd, r->status, resp);
	MHD_destroy_response(resp);
	return rc;
}
