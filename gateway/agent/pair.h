/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one of a pair of gateways (docs/standby.md) tells the control center of itself: which of the
 * two it is, and its state. Thread: the agent's.
 */
#ifndef GATEWAY_AGENT_PAIR_H
#define GATEWAY_AGENT_PAIR_H

#include <jansson.h>

#include "conf/conf.h"

struct gw_ctrl;

/* A digest of what both have in their files: ports, tunnels but the pair's own, ack mode. tunnel:
 * n tunnels that are the gateway's own. */
uint64_t ctrl_pair_digest(const struct conf *c, const struct conf_tunnel *tunnel, unsigned n);
/* agent_ops; ctx is the struct gw_ctrl. */
json_t *ctrl_pair(void *ctx);
bool ctrl_pair_news(void *ctx);

#endif
