/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gateway and its control center (docs/gateway-control.md): one thread, not a worker, with the
 * last document and the reports. agent.h has the conversation itself.
 */
#ifndef GATEWAY_AGENT_CTRL_H
#define GATEWAY_AGENT_CTRL_H

#include "gateway/app.h"
#include "gateway/agent/agent.h"
#include "gateway/agent/document.h"

/* Adds the stored last document to conf, which then owns its first *tunnels and *tenants. Call it
 * before anything runs. A wrong document is logged and ignored. d: for gw_ctrl_start, which takes
 * it. */
struct gw_ctrl_first {
	uint64_t generation;
	struct document d; /* conf is NULL */
};
void gw_ctrl_first(struct conf *conf, struct gw_ctrl_first *out);

/* Does nothing without controllers in the configuration. Start it after the workers run; stop it
 * before they end. */
RWY_MUST_CHECK int gw_ctrl_start(struct gw_app *app, struct gw_ctrl_first *first);
void gw_ctrl_stop(struct gw_app *app);
/* Returns false when there is no control center. */
bool gw_ctrl_status(const struct gw_app *app, struct agent_status *out);

#endif
