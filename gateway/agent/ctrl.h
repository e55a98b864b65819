/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gateway and its control center (docs/gateway-control.md): one thread that is no worker, the document
 * that came last, what is reported. Not here: the conversation itself (agent.h).
 */
#ifndef GATEWAY_AGENT_CTRL_H
#define GATEWAY_AGENT_CTRL_H

#include "gateway/app.h"
#include "gateway/agent/agent.h"
#include "gateway/agent/document.h"

/* Adds the last document, as it was kept, to conf, whose first *tunnels and *tenants are then its own. Before
 * anything runs. A document that is wrong is logged and ignored. d: for gw_ctrl_start, which takes it. */
struct gw_ctrl_first {
	uint64_t generation;
	struct document d; /* conf is NULL */
};
void gw_ctrl_first(struct conf *conf, struct gw_ctrl_first *out);

/* Nothing without controllers in the configuration. After the workers run; stop before they end. */
RWY_MUST_CHECK int gw_ctrl_start(struct gw_app *app, struct gw_ctrl_first *first);
void gw_ctrl_stop(struct gw_app *app);
/* False: there is none. */
bool gw_ctrl_status(const struct gw_app *app, struct agent_status *out);

#endif
