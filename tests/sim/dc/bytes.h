/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A packet record as RoCEv2 bytes, from the IP header to the ICRC, and back. The payload is a function of
 * (queue pair, PSN), so that whoever reads it can tell whether it is what belongs there. In a thin run only
 * the first 8 bytes of a payload exist and the ICRC of such packets is not computed (thin.c); everything else
 * is the same.
 */
#ifndef SIM_DC_BYTES_H
#define SIM_DC_BYTES_H

#include "tests/sim/dc/dc.h"

#define DC_THIN_BYTES 160 /* of a packet that exist in a thin run */

extern bool dc_thin;

/* Writes into `out`, which has room for DC_THIN_BYTES or, in a full run, for everything. Returns the packet's
 * whole length. */
uint32_t dc_bytes_make(const struct dc *dc, const struct dc_pkt *p, uint8_t *out);
/* False: not a packet that a host would take, or its payload is not what belongs to its PSN. Fills all of *p
 * but at, next, in. */
bool dc_bytes_read(const struct dc *dc, uint8_t *ip, uint32_t len, struct dc_pkt *p);
/* IPv4 network of a site's hosts, /16. */
struct rwy_ip dc_site_net(unsigned site);

#endif
