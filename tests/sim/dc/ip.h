/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages without a connection: an IP packet each, as the small ones of TCP are. Gateways carry
 * them as they are, once. Nobody sends a lost one again.
 */
#ifndef SIM_DC_IP_H
#define SIM_DC_IP_H

#include <stdint.h>

#include "rwy/time.h"

struct dc;
struct dc_pkt;

#define DC_IP_QPN 0 /* names no queue pair: the packet is such a message */

struct dc_ip {
	rwy_time *posted; /* by number of the message; 0: it is there */
	uint32_t n, cap, there;
	void (*on_there)(void *ctx, uint32_t bytes, rwy_time posted, rwy_time now);
	void *ctx;
};

/* on_there: called for each message at its receiver. */
void dc_ip_init(
    struct dc *dc, void (*on_there)(void *ctx, uint32_t bytes, rwy_time posted, rwy_time now), void *ctx);
void dc_ip_fini(struct dc *dc);
/* Sends a message of 8 to 4096 bytes of payload from host src to host dst. */
void dc_ip_send(struct dc *dc, unsigned src, unsigned dst, uint32_t bytes, rwy_time now);
/* Takes one at its host; the caller frees the packet. */
void dc_ip_rx(struct dc *dc, const struct dc_pkt *p, rwy_time now);

#endif
