/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's neighbours and routes of the taps, by libnl. Control thread only. */
#ifndef GATEWAY_PORT_NETLINK_H
#define GATEWAY_PORT_NETLINK_H

#include "gateway/app.h"

struct gw_netlink;

RWY_MUST_CHECK int gw_netlink_new(struct gw_netlink **out, struct gw_app *app);
void gw_netlink_free(struct gw_netlink *n);
int gw_netlink_fd(const struct gw_netlink *n);
/* The fd is readable: takes what changed in, publishes a new next-hop table. */
void gw_netlink_ready(struct gw_netlink *n);
/* Asks the kernel to resolve an address on a port (ARP or ND), or to confirm it when it is stale. */
void gw_netlink_resolve(struct gw_netlink *n, uint16_t port, const struct rwy_ip *addr);
/* Asks whether a neighbour that is known still answers; one that does not is failed after some seconds. */
void gw_netlink_probe(struct gw_netlink *n, uint16_t port, const struct rwy_ip *addr);
/* Every few seconds: marks what workers use, has stale entries in use confirmed. */
void gw_netlink_refresh(struct gw_netlink *n);

#endif
