/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's neighbors and routes of the taps, by libnl. Control thread only. */
#ifndef GATEWAY_PORT_NETLINK_H
#define GATEWAY_PORT_NETLINK_H

#include "gateway/app.h"

struct gw_netlink;

/* Opens the socket and reads both tables. RWY_ENOMEM, RWY_EINVAL: no netlink; logged. */
RWY_MUST_CHECK int gw_netlink_new(struct gw_netlink **out, struct gw_app *app);
void gw_netlink_free(struct gw_netlink *n);
int gw_netlink_fd(const struct gw_netlink *n);
/* The fd is readable: processes changes and publishes a new next-hop table. */
void gw_netlink_ready(struct gw_netlink *n);
/* Asks the kernel to resolve an address on a port (ARP or ND), or to confirm a stale one. */
void gw_netlink_resolve(struct gw_netlink *n, uint16_t port, const struct rwy_ip *addr);
/* Asks the kernel whether a known neighbor still answers; if not, it becomes failed after some
 * seconds. */
void gw_netlink_probe(struct gw_netlink *n, uint16_t port, const struct rwy_ip *addr);
/*
 * The kernel takes an entry (NUD_STALE: it is confirmed when it is used). Nothing for an address
 * that no port but the pair's leads to, and for one that has this MAC address already.
 */
void gw_netlink_learn(struct gw_netlink *n, const struct rwy_ip *addr, const uint8_t mac[6]);
/*
 * Called every few seconds: marks the entries that workers use, and has stale ones of them
 * confirmed. Reads the kernel's tables again where that failed after events were lost, and makes
 * the next-hop table that had no memory.
 */
void gw_netlink_refresh(struct gw_netlink *n);

#endif
