/* SPDX-License-Identifier: Apache-2.0 */
/* Long polls: requests that wait until there is news. All locked. */
#ifndef CONTROLLER_SERVER_POLL_H
#define CONTROLLER_SERVER_POLL_H

#include "controller/server/req.h"

/* Makes the request, whose reply is a 304, wait until news() is true, and then runs its handler
 * again on its worker's thread; or until wait_ms are over, and then sends the 304. Without wait_ms
 * it is sent at once. */
enum ctlr_outcome ctlr_poll_wait(struct ctlr *c, struct ctlr_req *r, ctlr_req_news *news, uint64_t wait_ms);
/* Ends the polls that have news or waited long enough. */
void ctlr_polls_tick(struct ctlr *c, rwy_time now);

#endif
