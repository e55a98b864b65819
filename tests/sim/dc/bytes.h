/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts a packet record to RoCEv2 bytes, from the IP header to the ICRC, and back. The payload
 * is a function of (queue pair, PSN), so that the reader can check it. In a thin run only the first
 * 8 bytes of a payload exist, and such packets have no ICRC (thin.c); all else is the same.
 */
#ifndef SIM_DC_BYTES_H
#define SIM_DC_BYTES_H

#include "tests/sim/dc/dc.h"

#define DC_THIN_BYTES 160 /* bytes of a packet that exist in a thin run */
#define DC_THIN_TAG   8   /* .. of these so many of the payload have a value */

extern bool dc_thin;

/* Writes the packet into `out`, which has room for DC_THIN_BYTES or, in a full run, for all.
 * Returns the packet's whole length. */
uint32_t dc_bytes_make(const struct dc *dc, const struct dc_pkt *p, uint8_t *out);
/* Reads a packet into all of *p but at, next and in. False: a host would not accept it, or its
 * payload is wrong for its PSN. */
bool dc_bytes_read(const struct dc *dc, uint8_t *ip, uint32_t len, struct dc_pkt *p);
/* The IPv4 network of a site's hosts, /16. */
struct rwy_ip dc_site_net(unsigned site);

#endif
