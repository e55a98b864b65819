/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server from outside. */
#ifndef CONTROLLER_SERVER_SERVER_H
#define CONTROLLER_SERVER_SERVER_H

#include "controller/state/ctlr.h"

/* Listens and starts the threads. RWY_EINVAL (the log says why) or RWY_ENOMEM; ctlr_http_stop()
 * frees after a failure, too. */
RWY_MUST_CHECK int ctlr_http_start(struct ctlr *c);
/* Every request that comes from now on gets 503, and so do those that wait for news. Requests that
 * wait for the store get its answer. */
void ctlr_http_refuse(struct ctlr *c);
/* Stops the threads and frees the server, after ctlr_writer_stop(): no request waits for the
 * store. */
void ctlr_http_stop(struct ctlr *c);

#endif
