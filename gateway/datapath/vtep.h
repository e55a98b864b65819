/* SPDX-License-Identifier: Apache-2.0 */
/* VTEPs as neighbours of the gateway: their next hops and the headers in front of what they get. Worker's
 * thread only. */
#ifndef GATEWAY_DATAPATH_VTEP_H
#define GATEWAY_DATAPATH_VTEP_H

#include "gateway/datapath/overlay.h"

/* A VTEP on a network of ours is known by its MAC address, too, as the kernel has resolved it: another
 * machine there cannot speak in its name. False: to be dropped, and counted. Behind a router the router
 * vouches. */
bool gw_vtep_genuine(struct gw_worker *w, const struct gw_from *f);
/* Its next hop. NULL: asked for, or there is none; counted. */
const struct gw_nh *gw_vtep_next_hop(struct gw_worker *w, const struct rwy_ip *vtep);
/* Outer headers from `local` (NULL: the port's address that suits). False: no address of ours, counted. */
bool gw_vtep_template(struct gw_worker *w, struct vxlan_tmpl *out, const struct tenant *t,
    const struct gw_port *p, const struct rwy_ip *local, const struct rwy_ip *vtep);

#endif
