/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the HTTP server (http.c). */
#ifndef CONTROLLER_HTTP_REPLY_H
#define CONTROLLER_HTTP_REPLY_H

#include <microhttpd.h>

#include "controller/ctlr.h"

/* Queues what r says. end: and closes the connection behind it. MHD_NO: out of memory. */
enum MHD_Result http_reply(struct MHD_Connection *mhd, struct req *r, bool end);

#endif
