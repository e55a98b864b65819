/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server from outside. */
#ifndef CONTROLLER_SERVER_SERVER_H
#define CONTROLLER_SERVER_SERVER_H

#include "controller/state/ctlr.h"

/* Listens and starts its threads. RWY_EINVAL or RWY_ENOMEM, told in the log; ctlr_http_stop() frees in any
 * case.
 */
RWY_MUST_CHECK int ctlr_http_start(struct ctlr *c);
/* After the writer's end: nobody waits for the store any more. */
void ctlr_http_stop(struct ctlr *c);

#endif
