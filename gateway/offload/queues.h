/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queue rules: with several workers each has a UDP port of its own on the WAN, and the device of a
 * WAN port is asked (rte_flow) to put datagrams to worker k's port into receive queue k, which
 * worker k polls. Without such rules RSS spreads datagrams over all queues, and workers hand them
 * to their owner: a rule that a device refuses, loses or keeps too long costs time, never a
 * datagram.
 *
 * Thread: any except a worker's; calls wait for each other.
 */
#ifndef GATEWAY_OFFLOAD_QUEUES_H
#define GATEWAY_OFFLOAD_QUEUES_H

#include "gateway/app.h"
#include "offload/sync.h"

struct gw_queue_rules;

/* Installs the rules of app->conf's tunnels, and logs for each WAN port what its device says. Call
 * it after gw_ports_start and gw_tunnels_new, before the workers run. With one worker there is
 * nothing to do. RWY_ENOMEM. */
RWY_MUST_CHECK int gw_queue_rules_new(struct gw_app *app);
/* Removes all rules. Call it before gw_ports_stop. */
void gw_queue_rules_free(struct gw_app *app);

/* The tunnels of app->conf have changed: installs what is missing, and removes what is of no
 * tunnel. When memory is short, rules stay as they are. Under gw_change_lock. */
void gw_queue_rules_follow(struct gw_app *app);
/* Called once a second by the control thread: installs the rules again when the device lost them
 * (a reset, a link that was down), and retries those that it refused for the moment. */
void gw_queue_rules_tick(struct gw_app *app);

struct gw_queue_rules_info {
	unsigned rules, installed; /* that the port should have, and has */
	char why[OFFLOAD_WHY];     /* why some are missing, or all; "": none is missing */
};
/* Returns false for a port without queue rules: a LAN port, or the gateway has one worker. */
bool gw_queue_rules_get(const struct gw_app *app, unsigned port, struct gw_queue_rules_info *out);

#endif
