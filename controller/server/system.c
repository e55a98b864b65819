/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers of the server itself: events, health, metrics, the page's files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/server/metrics.h"
#include "controller/server/page.h"
#include "controller/server/req.h"
#include "controller/state/ctlr.h"
#include "controller/state/event.h"
#include "controller/state/pair.h"

enum ctlr_outcome ctlr_api_event_list(struct ctlr *c, struct ctlr_req *r)
{
	uint64_t limit, after;

	if (!ctlr_req_number(r, "limit", 1, 1000, 100, &limit) ||
	    !ctlr_req_number(r, "after", 0, INT64_MAX, 0, &after))
		return REQ_DONE;
	return ctlr_req_reply(r, 200, ctlr_events_json(c, after, (unsigned)limit));
}

enum ctlr_outcome ctlr_api_health_get(struct ctlr *c, struct ctlr_req *r)
{
	return ctlr_req_reply(r, c->store_rc ? 503 : 200,
	    json_pack("{s:b, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "ok", !c->store_rc,
	        "version", RWY_VERSION, "replica", c->conf->name, "store",
	        c->store_rc ? store_strerror(c->store_rc) : "ok", "revision", (json_int_t)c->rev, "gateways",
	        (json_int_t)c->gateways.n, "gateways_up", (json_int_t)c->up, "sessions",
	        (json_int_t)c->sessions.n, "pairs", (json_int_t)c->pairs.n, "pairs_protected",
	        (json_int_t)c->pairs_protected, "pair_problems", ctlr_pairs_problems(c)));
}

enum ctlr_outcome ctlr_api_metrics_get(struct ctlr *c, struct ctlr_req *r)
{
	ctlr_req_reply(r, 200, json_object());
	r->text = ctlr_metrics_text(c);
	r->type = "text/plain; version=0.0.4; charset=utf-8";
	return r->text ? REQ_DONE : ctlr_req_fail(r, 503, "", "out of memory");
}

enum ctlr_outcome ctlr_api_page_get(struct ctlr *c, struct ctlr_req *r)
{
	const struct ctlr_page_file *f = r->data;

	r->status = 200;
	r->data = f->data;
	r->data_len = f->len;
	r->type = f->type;
	return REQ_DONE;
}
