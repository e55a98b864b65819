/* SPDX-License-Identifier: Apache-2.0 */
/* VTEPs as neighbors of the gateway: their next hops and the outer headers of packets to them.
 * Worker's thread only. */
#ifndef GATEWAY_DATAPATH_VTEP_H
#define GATEWAY_DATAPATH_VTEP_H

#include "gateway/datapath/overlay.h"

/* Whether VXLAN really comes from its VTEP. A VTEP on one of our networks must also use the MAC
 * address that the kernel resolved for it, so another machine there cannot use its address. False:
 * drop; counted. Behind a router, the router is trusted. */
bool gw_vtep_genuine(struct gw_worker *w, const struct gw_from *f);
/* Returns the VTEP's next hop. NULL: asked for, or there is none; counted. */
const struct gw_nh *gw_vtep_next_hop(struct gw_worker *w, const struct rwy_ip *vtep);
/* Makes outer headers from `local` (NULL: a suitable address of the port). False: we have no
 * address of the family; counted. */
bool gw_vtep_template(struct gw_worker *w, struct vxlan_tmpl *out, const struct tenant *t,
    const struct gw_port *p, const struct rwy_ip *local, const struct rwy_ip *vtep);

#endif
