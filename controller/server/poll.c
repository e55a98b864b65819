/* SPDX-License-Identifier: Apache-2.0 */
/* Long polls; see poll.h. http.c ends those that are left when the program stops. */
#include "controller/server/poll.h"

enum ctlr_outcome ctlr_poll_wait(struct ctlr *c, struct ctlr_req *r, ctlr_req_news *news, uint64_t wait_ms)
{
	r->status = 304;
	if (!wait_ms)
		return REQ_DONE;
	if (!r->until) /* set in an earlier run of its handler otherwise */
		r->until = ctlr_now() + wait_ms * RWY_MS;
	r->news = news;
	r->next = c->polls;
	c->polls = r;
	return REQ_WAIT;
}

void ctlr_polls_tick(struct ctlr *c, rwy_time now)
{
	for (struct ctlr_req **p = &c->polls, *r; (r = *p);) {
		const bool news = r->news(c, r);

		if (!news && now < r->until) {
			p = &r->next;
			continue;
		}
		*p = r->next;
		if (news)
			ctlr_req_resume(r); /* its thread makes the reply, outside this tick */
		else
			ctlr_req_finish(r);
	}
}
