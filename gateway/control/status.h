/* SPDX-License-Identifier: Apache-2.0 */
/* The gateway's STATUS= for systemd (sd_notify(3)). Drains say more (drain.c). */
#ifndef GATEWAY_CONTROL_STATUS_H
#define GATEWAY_CONTROL_STATUS_H

#include "gateway/app.h"

/*
 * Says what it does as one of a pair, or of none: "forwarding" and the like. It says nothing while
 * the gateway is drained or stops: what was said of that stays. ready: READY=1 as well, for the end
 * of the start or of a reload. more: behind the words; NULL: nothing. Any thread.
 */
void gw_status_say(const struct gw_app *app, bool ready, const char *more);

#endif
